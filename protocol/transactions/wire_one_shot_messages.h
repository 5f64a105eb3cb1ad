// WireOneShotMessages: the messages of one stream of one-shot transactions (OneShots of transaction_service.proto) on
// the server. It checks calls, packs answers, and keeps those that wait for the writer or for the disk.
// Answers of several threads join one message while they fit. Results that do not fit travel in parts, which keep their
// order because one message is written at a time.
// Memory: the messages of a few batches are kept for later reads.
// Thread-safety: as OneShotMessages. Ownership: borrows the stream.
#ifndef PROTOCOL_TRANSACTIONS_WIRE_ONE_SHOT_MESSAGES_H_
#define PROTOCOL_TRANSACTIONS_WIRE_ONE_SHOT_MESSAGES_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/transactions/one_shot_messages.h"
#include "protocol/transactions/withheld_answers.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.pb.h"

namespace deut {

class WireOneShotMessages final : public OneShotMessages {
 public:
  // The connection. At most one read and one write are in flight.
  class Stream {
   public:
    virtual ~Stream() = default;
    // Starts a read; OneShotScheduler::ReadDone follows, from another event.
    virtual void StartRead(wire::OneShotCalls* message) = 0;
    // Starts a write; OneShotScheduler::WriteDone follows. The message can be reused at once.
    virtual void StartWrite(const wire::OneShotAnswers& message) = 0;
    // As OneShotMessages::End. Nothing follows except the end of a read (OneShotScheduler::EndIfIdle). Threads that are in
    // Start, ReadDone, WriteDone, EndIfIdle or posted work may still be there. The stream keeps scheduler and messages
    // until these calls, and that read, have returned.
    virtual void End(const Status& reason) = 0;
  };

  WireOneShotMessages(Runtime& runtime, Stream* stream);
  ~WireOneShotMessages() override;

  void StartRead() override DEUT_REQUIRES(mutex);
  Result<OneShotBatch*> TakeRead(bool first) override DEUT_REQUIRES(mutex);
  void Recycle(OneShotBatch* batch) override DEUT_REQUIRES(mutex);
  Status CheckOpening(const OneShotBatch& first) override;
  void AnswerOpening(const Status& status, Timestamp not_before) override DEUT_REQUIRES(mutex);
  std::unique_ptr<UnpublishedAnswers> NewAnswers() override;
  void Publish(UnpublishedAnswers* answers) override DEUT_REQUIRES(mutex);
  void DropAnswers() override DEUT_REQUIRES(mutex);
  Backlog backlog() const override DEUT_REQUIRES(mutex);
  void StartWrite() override DEUT_REQUIRES(mutex);
  void WriteEnded() override DEUT_REQUIRES(mutex);
  Lsn FirstWithheld() const override DEUT_REQUIRES(mutex) { return withheld_.first(); }
  Deadline EarliestDeadline() const override DEUT_REQUIRES(mutex) { return withheld_.EarliestDeadline(); }
  void Release(const Result<Lsn>& durable, MonotonicTime now) override DEUT_REQUIRES(mutex);
  void End(const Status& reason) override { stream_->End(reason); }

 private:
  class Batch;
  class Unpublished;
  // A message of answers.
  struct Answers {
    wire::OneShotAnswers message;
    size_t bytes = 0;
  };

  Stream* const stream_;
  std::vector<std::unique_ptr<Batch>> used_ DEUT_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Batch>> free_ DEUT_GUARDED_BY(mutex);
  std::unique_ptr<Batch> reading_ DEUT_GUARDED_BY(mutex);  // the batch that the read fills, until TakeRead
  std::deque<Answers> ready_ DEUT_GUARDED_BY(mutex);
  size_t ready_bytes_ DEUT_GUARDED_BY(mutex) = 0;    // of ready_ and of the message that is being written
  size_t writing_bytes_ DEUT_GUARDED_BY(mutex) = 0;  // of that message
  WithheldAnswers withheld_ DEUT_GUARDED_BY(mutex);
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_WIRE_ONE_SHOT_MESSAGES_H_
