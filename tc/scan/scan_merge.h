// ScanMerge: the last step of a scan: merges an answer of the DC with the gathered keys, into the batch (rule S5). It
// asks nobody and waits for nothing.
//
// The larger (timestamp, sequence) wins, the DC on ties; a tombstone removes. Records of the DC that are handed on
//   unchanged, all in a row, are copied in one piece.
// Thread-safety: one thread at a time. Ownership: borrows everything.
#ifndef TC_SCAN_SCAN_MERGE_H_
#define TC_SCAN_SCAN_MERGE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "protocol/record_batch.h"
#include "tc/scan/batch_room.h"
#include "tc/scan/gathered_keys.h"
#include "tc/scan/scan_cursor.h"

namespace deut::tc {

// An answer of the DC that is not merged to its end. Its first merged_records records, of merged_bytes bytes, are.
struct DcAnswer {
  size_t RecordsLeft() const { return records.size() - merged_records; }
  size_t BytesLeft() const { return records.bytes().size() - merged_bytes; }

  RecordBatch records;
  size_t merged_records = 0;
  size_t merged_bytes = 0;
  bool to_the_bound = false;  // false: up to `covered`
  std::string covered;
};

// Hands on the rest of the answer as it is, unseen, if it fits. REQUIRES: no gathered key is left within what the
// answer covers.
bool AppendRest(DcAnswer& answer, const BatchRoom& room);

class ScanMerge {
 public:
  ScanMerge(const BatchRoom& room, ScanCursor& cursor, GatheredKeys& gathered, DcAnswer& answer)
      : room_(room), cursor_(cursor), gathered_(gathered), answer_(answer), run_begin_(answer.merged_bytes) {}

  // Merges the answer with the keys before `end`, which are resolved. Unless `last`, it stops before the key at `end`,
  // which is not resolved yet. Returns whether the batch is full; then the cursor has moved behind its last record.
  // REQUIRES: called once.
  bool Run(size_t end, bool last);

 private:
  // Takes over the record at the front of the answer, or skips it.
  void PassRecord(const RecordView& record, bool taken);
  // Copies the records that were taken over and are not copied yet.
  void Flush();
  // Reserves the batch's buffer, before the first record is copied.
  void MakeRoom();
  // Appends the next gathered key, unless it shows no record.
  void PassGathered();
  void Emit(std::string_view key, std::string_view value, Version version);
  void StopAfter(std::string_view key);

  const BatchRoom& room_;
  ScanCursor& cursor_;
  GatheredKeys& gathered_;
  DcAnswer& answer_;
  size_t end_ = 0;
  // Records of the answer that are taken over and not copied yet.
  size_t run_begin_;
  size_t run_bytes_ = 0;
  size_t run_records_ = 0;
  bool full_ = false;
};

}  // namespace deut::tc

#endif  // TC_SCAN_SCAN_MERGE_H_
