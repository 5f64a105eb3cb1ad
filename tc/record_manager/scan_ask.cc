#include "tc/record_manager/scan_ask.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/record_manager/conflict.h"

namespace deut::tc {

void ScanAsk::MakeRequest(const ResumableScan& scan, std::string_view low, std::string_view high,
                          DataRequest* request) const {
  const ScanCursor& cursor = scan.cursor;
  const BatchRoom& room = call_.room;
  request->kind = DataRequest::Kind::kScan;
  request->table = scan.table;
  request->low = cursor.ascending() ? low : cursor.bound;
  request->high = cursor.ascending() ? cursor.bound : high;
  request->direction = cursor.direction;
  // S4: only what is gathered is asked for.
  DEUT_DCHECK(cursor.gathered);
  DEUT_DCHECK(request->high.empty() || request->low < request->high);
  DEUT_DCHECK(room.BelowRecordLimit());  // 0 records left would ask for all of them
  const size_t left = room.limit_records() == 0 ? 0 : room.RecordsLeft();
  // Gathered keys replace records of the DC, and some may remove them, so the request asks for that many more.
  const size_t removing = left == 0 ? 0 : scan.gathered.CountRemoving();
  request->limit_records = left == 0 ? 0 : static_cast<uint32_t>(std::min<size_t>(left + removing, UINT32_MAX));
  request->limit_bytes = std::clamp<uint32_t>(room.BytesLeft(), 1, kShortScanBytes);
}

// With this the caller reserves the buffer at once. It would otherwise grow step by step, each time with a copy of
// its content.
uint64_t ScanAsk::ExpectedBytes(const DataRequest& request) const {
  const RecordBatch& held = call_.room.records();
  const uint64_t bytes = held.bytes().size();
  // Without a limit of records the scan is expected to go on for as many bytes as it has got.
  const uint64_t expected = request.limit_records == 0 ? bytes : request.limit_records * (bytes / held.size() + 1);
  return std::min<uint64_t>(expected, request.limit_bytes);
}

Status ScanAsk::AskDc(const TableState& table, DataRequest* request) const {
  DEUT_POINT("scan.before_dc");
  if (DcKnows(call_.engine, table)) {
    DataRequest* const requests[] = {request};
    DEUT_RETURN_IF_ERROR(call_.engine.dc.Read(requests, call_.deadline));
    DEUT_RETURN_IF_ERROR(request->status);
  } else {
    request->complete = true;
  }
  DEUT_POINT("scan.after_dc");
  return Status::Ok();
}

Status ScanAsk::AskOnce(const TableState& table, ResumableScan& scan, DataRequest* request) const {
  RecordBatch& batch = call_.room.records();
  // The buffer in which the answer is likely to stay, or one that was used before.
  const bool goes_on = !batch.empty();
  request->answer = std::exchange(goes_on ? scan.spare : batch, RecordBatch());
  MakeRequest(scan, scan.cursor.low, scan.cursor.high, request);
  if (goes_on) request->answer.Reserve(ExpectedBytes(*request));
  DEUT_RETURN_IF_ERROR(AskDc(table, request));
  return CheckAnswer(*request, scan.cursor, scan.cursor.low, scan.cursor.high);
}

Status ScanAsk::CheckAnswer(const DataRequest& request, const ScanCursor& cursor, std::string_view low,
                            std::string_view high) const {
  // Without progress the scan would ask for the same part for ever.
  if (!request.complete && !cursor.IsProgress(request.covered, low, high)) {
    return DEUT_ERROR(kInternal, "the data component answered a scan of table ", call_.scan.table.value,
                      " without progress");
  }
  return CheckAllVisible(request.answer, call_.txn.timestamp());
}

}  // namespace deut::tc
