#include "tc/dc_link/outgoing_batch.h"

#include "common/base/check.h"

namespace deut::tc {

void OutgoingBatch::Restart(Position applied, Position ever_sent) {
  DEUT_CHECK(applied <= ever_sent);
  batch_.from = batch_.to = applied;
  batch_.entries.clear();
  resent_until_ = ever_sent;
  last_send_ = MonotonicTime{};
}

Status OutgoingBatch::Fill(CommitFeed& feed) { return feed.Fill(&batch_, batch_bytes_, &limit_); }

bool OutgoingBatch::ReadyToSend(MonotonicTime now) const {
  if (!pending()) return false;
  return limit_ == CommitFeed::Limit::kBatchFull || now >= leaves_at();
}

void OutgoingBatch::Append(const LogEntryView& entry, Position to) {
  batch_.Append(entry);
  batch_.to = to;
}

void OutgoingBatch::Sent(MonotonicTime now) {
  DEUT_CHECK(pending());  // batches of one stream end at ascending positions
  batch_.from = batch_.to;
  batch_.entries.clear();
  last_send_ = now;
}

}  // namespace deut::tc
