// A scan of recorded values: its request and its results. Used by the recorder.
// Thread-safety: pure functions.
#ifndef INTEGRATION_HISTORY_STORED_SCAN_H_
#define INTEGRATION_HISTORY_STORED_SCAN_H_

#include <string>
#include <vector>

#include "integration/history/history.h"
#include "integration/history/recorder.h"
#include "protocol/record_batch.h"
#include "tc/client/options.h"

namespace deut::history {

// Returns the scan of these options. Its reached bounds are the requested ones.
Scan RequestedScan(const ScanOptions& options);
// Sets the reached bounds of a scan that will continue at `resume`: it answers for the keys before `resume`.
void SetReached(Scan* scan, std::string resume);
// Adds the batch to the scan's results, and returns its records.
std::vector<StoredRecord> AddBatchToScan(const RecordBatch& batch, Scan* scan);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_STORED_SCAN_H_
