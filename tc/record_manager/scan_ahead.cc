#include "tc/record_manager/scan_ahead.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "protocol/limits.h"
#include "tc/record_manager/conflict.h"

namespace deut::tc {

Status ScanAhead::Open() {
  DEUT_DCHECK(!scan_.answer);
  ScanSpec spec{
      .table = scan_.table, .range = {scan_.cursor.low, scan_.cursor.high}, .direction = scan_.cursor.direction};
  spec.batch_bytes = std::clamp<uint32_t>(call_.room.limit_bytes(), 1, kMaxScanBytes);
  scan_.bulk.Begin(scan_.cursor, spec.batch_bytes);
  DEUT_ASSIGN_OR_RETURN(scan_.bulk.stream, call_.engine.dc.OpenScan(spec, call_.deadline));
  call_.engine.counters.bulk_scans.fetch_add(1, std::memory_order_relaxed);
  return Status::Ok();
}

Status ScanAhead::AskStream(const TableState& table) {
  BulkScanState& bulk = scan_.bulk;
  if (bulk.stream == nullptr) DEUT_RETURN_IF_ERROR(Open());
  DEUT_RETURN_IF_ERROR(GatherAndGrant(table, /*ahead=*/false));
  DEUT_POINT("scan.before_dc");
  RecordBatch& made = call_.room.records();
  ScanBatch batch;
  batch.records = std::exchange(made.empty() ? made : scan_.spare, RecordBatch());
  // A DC in this process fills this very buffer. Another DC's stream replaces it.
  if (!bulk.stream->ReadsAhead()) batch.records.Reserve(Window(/*ahead=*/false));
  const MonotonicTime wanted = call_.engine.runtime.Now();
  DEUT_RETURN_IF_ERROR(bulk.stream->Next(&batch, call_.deadline));
  DEUT_POINT("scan.after_dc");
  call_.engine.counters.bulk_batches.fetch_add(1, std::memory_order_relaxed);
  const MonotonicTime now = call_.engine.runtime.Now();
  bulk.flow->OnBatchTaken(now, batch.records.bytes().size(), now - wanted);
  bulk.records_taken += batch.records.size();
  DcAnswer& answer = scan_.answer.emplace();
  answer.records = std::move(batch.records);
  answer.to_the_bound = batch.complete;
  answer.covered = std::move(batch.covered);
  DEUT_RETURN_IF_ERROR(CheckAllVisible(answer.records, call_.txn.timestamp()));
  bulk.DropPassedEnds(scan_.cursor, answer);
  // The DC sends the next batch while this one is merged, and while the client works on it.
  if (batch.complete || !bulk.stream->ReadsAhead() || scan_.for_update) return Status::Ok();
  return GatherAndGrant(table, /*ahead=*/true);
}

uint64_t ScanAhead::Window(bool ahead) {
  const BulkScanState& bulk = scan_.bulk;
  const uint64_t batch = bulk.flow->batch_bytes();
  uint64_t window = ahead ? bulk.flow->window() : batch;
  const uint64_t limit_records = call_.room.limit_records();
  if (limit_records != 0 && bulk.records_taken != 0) {
    // Records that the DC has answered count as delivered, merged or not.
    const uint64_t got = call_.room.records().size() + (scan_.answer ? scan_.answer->records.size() : 0);
    window = std::min(window, bulk.BytesOf(limit_records - std::min(got, limit_records)));
  }
  if (!ahead) return std::max<uint64_t>(window, 1);
  if (window <= batch) return window;
  return batch + scan_.share.Resize(call_.engine.scan_ahead, window - batch);
}

Status ScanAhead::GatherAndGrant(const TableState& table, bool ahead) {
  const uint64_t window = Window(ahead);
  bool moved = false;
  if (DEUT_OMITTED("S4.gather_before_grant")) {
    DEUT_RETURN_IF_ERROR(GrantTo({}, window, false));
    return GatherAhead(table, window, &moved);
  }
  // The DC may read what is granted at once. So the grant follows the gathering, and goes no further (S4).
  DEUT_RETURN_IF_ERROR(GatherAhead(table, window, &moved));
  return GrantTo(scan_.cursor.bound, window, moved);
}

Status ScanAhead::GatherAhead(const TableState& table, uint64_t window, bool* moved) {
  BulkScanState& bulk = scan_.bulk;
  const auto gather = [&](bool* blocked) {
    Status status = gather_.GatherNext(table, &scan_, call_.room, blocked);
    if (!status.ok() || (blocked != nullptr && *blocked)) return status;
    bulk.stretch_ends.push_back(scan_.cursor.bound);
    *moved = true;
    return status;
  };
  if (scan_.cursor.AtBound()) {
    DEUT_RETURN_IF_ERROR(gather(nullptr));
  } else if (bulk.AheadBytes() >= window - window / 8) {
    return Status::Ok();
  }
  if (scan_.for_update) return Status::Ok();
  bool blocked = false;
  while (!blocked && !scan_.cursor.GatheredToTheEnd() && bulk.AheadBytes() < window &&
         scan_.gathered.ahead() < ResumableScan::kMaxKeysAhead &&
         bulk.stretch_ends.size() < ResumableScan::kMaxStretchesAhead) {
    DEUT_RETURN_IF_ERROR(gather(&blocked));
  }
  return Status::Ok();
}

Status ScanAhead::GrantTo(std::string_view bound, uint64_t window, bool moved) {
  ScanFlow& flow = *scan_.bulk.flow;
  const uint64_t bytes = flow.BytesToGrant(window);
  if (bytes == 0 && !moved) return Status::Ok();
  DEUT_RETURN_IF_ERROR(scan_.bulk.stream->Grant(bound, bytes));
  flow.OnGrant(call_.engine.runtime.Now(), bytes);
  DEUT_DCHECK(bytes == 0 || flow.granted_untaken_bytes() <= window);
  return Status::Ok();
}

}  // namespace deut::tc
