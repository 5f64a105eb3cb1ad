// A scan of recorded values: what was asked for, and what came back. For the recorder.
#ifndef INTEGRATION_HISTORY_STORED_SCAN_H_
#define INTEGRATION_HISTORY_STORED_SCAN_H_

#include <string>
#include <vector>

#include "integration/history/history.h"
#include "integration/history/recorder.h"
#include "protocol/record_batch.h"
#include "tc/client/options.h"

namespace deut::history {

// Reached: all that was asked for.
Scan RequestedScan(const ScanOptions& options);
// It goes on at `resume`, and answers for what lies before.
void SetReached(Scan* scan, std::string resume);
// Adds the batch to the scan's results.
std::vector<StoredRecord> TakeRecords(const RecordBatch& batch, Scan* scan);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_STORED_SCAN_H_
