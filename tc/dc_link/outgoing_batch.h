// OutgoingBatch: the batch that is being filled from the log, and the time at which it may leave. A full batch leaves at
// once. A smaller one leaves at once after a pause of `linger`, otherwise when that has passed.
//
// Batches join without a gap: the first of a stream begins at the DC's applied position, each later one at the end of
// the one before.
// Thread-safety: one thread. Ownership: owns the batch.
#ifndef TC_DC_LINK_OUTGOING_BATCH_H_
#define TC_DC_LINK_OUTGOING_BATCH_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/time.h"
#include "protocol/log_batch.h"
#include "tc/dc_link/commit_feed.h"

namespace deut::tc {

class OutgoingBatch {
 public:
  OutgoingBatch(uint64_t batch_bytes, Duration linger) : batch_bytes_(batch_bytes), linger_(linger) {}

  // A new stream begins, at `applied`. Everything up to `ever_sent` was sent before. REQUIRES: what the DC has applied
  // was sent.
  void Restart(Position applied, Position ever_sent);

  // Takes records that may be shipped from the feed, until the batch is full. REQUIRES: the feed goes on at the batch's end.
  Status Fill(CommitFeed& feed);
  // The reason why the last Fill took no more.
  CommitFeed::Limit limit() const { return limit_; }

  // True if the batch has something to say.
  bool pending() const { return batch_.to > batch_.from; }
  // True if it may leave now, as far as its size and the linger go.
  bool ReadyToSend(MonotonicTime now) const;
  // When a batch that is not full may leave.
  MonotonicTime leaves_at() const { return last_send_ + linger_; }
  // True if a part of it was sent before, on an earlier stream.
  bool resends() const { return batch_.from < resent_until_; }

  const LogBatch& content() const { return batch_; }
  void set_durable(Lsn durable) { batch_.durable = durable; }
  void Append(const LogEntryView& entry, Position to);

  // The batch was sent. The next one begins at its end, empty. REQUIRES: pending.
  void Sent(MonotonicTime now);

 private:
  const uint64_t batch_bytes_;
  const Duration linger_;
  LogBatch batch_;
  CommitFeed::Limit limit_ = CommitFeed::Limit::kNotDurable;
  Position resent_until_;
  MonotonicTime last_send_{};
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_OUTGOING_BATCH_H_
