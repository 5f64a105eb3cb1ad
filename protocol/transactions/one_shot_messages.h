// The messages of one stream of one-shot transactions, as the threads that run their calls see them
// (one_shot_scheduler.h). Those threads know neither the format of messages nor the connection.
//
// OneShotBatch: the calls of one message. UnpublishedAnswers: the answers of one thread, which no other thread sees yet.
// OneShotMessages: both directions of the stream. At most one read and one write are in flight.
// Path of an answer: added by the thread that ran its call; published; ready, or first withheld until the log is durable
// up to its commit (D1); written.
// Lock: `mutex` guards the messages, and the state of the scheduler, too. StartRead and StartWrite release it during their
// call to the connection.
// Thread-safety: a method that does not require the lock may be called by any thread; UnpublishedAnswers belong to their
// thread, except in Publish. Ownership: OneShotMessages own the batches.
#ifndef PROTOCOL_TRANSACTIONS_ONE_SHOT_MESSAGES_H_
#define PROTOCOL_TRANSACTIONS_ONE_SHOT_MESSAGES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/transaction_service.h"

namespace deut {

class OneShotBatch {
 public:
  virtual ~OneShotBatch() = default;

  virtual int size() const = 0;
  virtual bool IsSnapshot(int call) const = 0;
  // Not OK: the call is refused with this. Views in `operations` point into the batch.
  virtual Status GetOptions(int call, TransactionOptions* options) const = 0;
  virtual Status GetOperations(int call, std::vector<Operation>* operations) const = 0;
  // Sets `deadlines`, from the time that each call has left from now on.
  virtual void SetDeadlines(Runtime& runtime) = 0;

  std::vector<Deadline> deadlines;  // of the calls
  int left = 0;                     // the calls that have not ended; guarded by the lock
};

class UnpublishedAnswers {
 public:
  virtual ~UnpublishedAnswers() = default;

  virtual bool empty() const = 0;
  // Adds the answer to a call. Calls `publish` before a message would become too large; `publish` passes this object to
  // OneShotMessages::Publish.
  virtual void Add(const OneShotBatch& batch, int call, absl::Span<const OperationResult> results,
                   const Result<CommitAnswer>& commit, absl::FunctionRef<void()> publish) = 0;
  // The answer that was added last must not be shown before the log is durable up to `durable_at`. `wrote`: if that does
  // not come about, the outcome is unknown. REQUIRES: it was not published.
  virtual void WithholdLast(bool wrote, Lsn durable_at, Deadline deadline) = 0;
};

class OneShotMessages {
 public:
  explicit OneShotMessages(Runtime& runtime) : mutex(runtime) {}
  virtual ~OneShotMessages() = default;

  // Starts a read.
  virtual void StartRead() DEUT_REQUIRES(mutex) = 0;
  // The message that was read. An error: the peer has sent a forbidden message. `first`: the stream's first message.
  virtual Result<OneShotBatch*> TakeRead(bool first) DEUT_REQUIRES(mutex) = 0;
  // The batch is not used any more.
  virtual void Recycle(OneShotBatch* batch) DEUT_REQUIRES(mutex) = 0;

  // Whether the stream's first message opens it as it has to.
  virtual Status CheckOpening(const OneShotBatch& first) = 0;
  // Makes the answer to the opening ready. It is written as a message of its own.
  virtual void AnswerOpening(const Status& status, Timestamp not_before) DEUT_REQUIRES(mutex) = 0;

  virtual std::unique_ptr<UnpublishedAnswers> NewAnswers() = 0;
  // Makes the answers ready or withheld, and leaves `answers` empty.
  virtual void Publish(UnpublishedAnswers* answers) DEUT_REQUIRES(mutex) = 0;
  // Drops all answers that are not being written.
  virtual void DropAnswers() DEUT_REQUIRES(mutex) = 0;

  struct Backlog {
    bool ready = false;  // there are ready answers
    bool withheld = false;
    size_t ready_bytes = 0;  // with those that are being written
    size_t withheld_bytes = 0;
  };
  virtual Backlog backlog() const DEUT_REQUIRES(mutex) = 0;

  // Starts to write the first ready answers. REQUIRES: there are some, and no write is in flight.
  virtual void StartWrite() DEUT_REQUIRES(mutex) = 0;
  virtual void WriteEnded() DEUT_REQUIRES(mutex) = 0;

  // The first log position that a withheld answer waits for, and the earliest deadline of all of them. REQUIRES: there
  // are some.
  virtual Lsn FirstWithheld() const DEUT_REQUIRES(mutex) = 0;
  virtual Deadline EarliestDeadline() const DEUT_REQUIRES(mutex) = 0;
  // Makes those ready that can be given by now (withheld_answers.h).
  virtual void Release(const Result<Lsn>& durable, MonotonicTime now) DEUT_REQUIRES(mutex) = 0;

  // Ends the stream (OneShotScheduler). The caller touches neither the scheduler nor the messages afterwards. `reason` is
  // an error if the peer has sent a forbidden message, or none for too long.
  virtual void End(const Status& reason) = 0;

  Mutex mutex;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_ONE_SHOT_MESSAGES_H_
