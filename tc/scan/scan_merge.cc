#include "tc/scan/scan_merge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/scan/batch_buffer_cache.h"

namespace deut::tc {

bool AppendRest(DcAnswer& answer, const BatchRoom& room) {
  const size_t records = answer.RecordsLeft();
  if (!room.AllFit(records, answer.BytesLeft())) return false;
  if (room.records().empty() && answer.merged_bytes == 0) {
    room.records() = std::exchange(answer.records, RecordBatch());
  } else if (records != 0) {
    room.records().AppendRun(std::string_view(answer.records.bytes()).substr(answer.merged_bytes), records,
                             answer.records.newest());
  }
  return true;
}

void ScanMerge::MakeRoom() {
  RecordBatch& batch = room_.records();
  // An answer that is handed on as it is needs no room.
  if (!batch.empty()) return;
  size_t most = answer_.records.bytes().size() - run_begin_;
  for (size_t i = gathered_.next; i < end_; ++i) {
    most += RecordBatch::kHeaderBytes + gathered_.keys[i].key.size() + gathered_.keys[i].value.size();
  }
  most = std::min<size_t>(most, room_.limit_bytes());
  if (batch.bytes().capacity() < most) batch = BatchBufferCache::Get(most);
}

void ScanMerge::Flush() {
  if (run_records_ != 0) {
    MakeRoom();
    room_.records().AppendRun(std::string_view(answer_.records.bytes()).substr(run_begin_, run_bytes_), run_records_,
                              answer_.records.newest());
  }
  run_begin_ = answer_.merged_bytes;
  run_bytes_ = run_records_ = 0;
}

void ScanMerge::StopAfter(std::string_view key) {
  full_ = true;
  cursor_.MoveBehind(key);
}

void ScanMerge::Emit(std::string_view key, std::string_view value, Version version) {
  room_.records().Append(key, value, version);
  if (room_.Full(0, 0)) StopAfter(key);
}

void ScanMerge::PassGathered() {
  const GatheredKey& gathered = gathered_.keys[gathered_.next++];
  DEUT_DCHECK(gathered_.next == gathered_.keys.size() ||
              cursor_.Before(gathered.key, gathered_.keys[gathered_.next].key));
  if (gathered.kind != GatheredKey::Kind::kValue) return;
  Flush();
  MakeRoom();
  // For a key that was asked again only a bound on its version is known, and the client needs no more.
  Emit(gathered.key, gathered.value, gathered.version.timestamp == kMaxTimestamp ? Version{} : gathered.version);
}

void ScanMerge::PassRecord(const RecordView& record, bool taken) {
  const size_t bytes = RecordBatch::kHeaderBytes + record.key.size() + record.value.size();
  if (!taken) Flush();  // the records before this one
  answer_.merged_bytes += bytes;
  ++answer_.merged_records;
  if (!taken) {
    run_begin_ = answer_.merged_bytes;
    return;
  }
  run_bytes_ += bytes;
  ++run_records_;
  if (room_.Full(run_records_, run_bytes_)) StopAfter(record.key);
}

bool ScanMerge::Run(size_t end, bool last) {
  DEUT_DCHECK(gathered_.next <= end && end <= gathered_.keys.size());
  DEUT_DCHECK(last || end < gathered_.keys.size());
  end_ = end;
  const std::vector<GatheredKey>& keys = gathered_.keys;
  size_t& next = gathered_.next;
  bool tried_rest = false;
  for (RecordBatch::Iterator it(answer_.records, answer_.merged_bytes); it.Valid() && !full_; it.Next()) {
    if (last && next == end && !tried_rest) {
      Flush();
      tried_rest = true;
      if (AppendRest(answer_, room_)) return false;
    }
    const RecordView& record = it.record();
    while (!full_ && next < end && cursor_.Before(keys[next].key, record.key)) PassGathered();
    if (full_ || (!last && next == end && !cursor_.Before(record.key, keys[end].key))) break;
    bool tc_wins = false;
    if (next < end && keys[next].key == record.key) {
      const GatheredKey& gathered = keys[next];
      tc_wins = gathered.kind != GatheredKey::Kind::kAskDc && gathered.version > record.version &&
                DEUT_STEP("S5.larger_wins");
      if (!tc_wins) ++next;
    }
    PassRecord(record, !tc_wins);
    if (tc_wins) PassGathered();
  }
  Flush();
  while (!full_ && next < end) PassGathered();
  // Each record of the answer is in the batch or was replaced by a gathered key.
  DEUT_DCHECK(full_ || !last || (answer_.RecordsLeft() == 0 && answer_.BytesLeft() == 0));
  return full_;
}

}  // namespace deut::tc
