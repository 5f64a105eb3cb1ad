// OneShotWorkers: the threads that run the calls of one stream of one-shot transactions on the server. They read messages,
// run their calls, and write answers, by way of OneShotMessages (protocol/transactions/one_shot_messages.h). So this class
// depends neither on gRPC nor on the format of messages. Each thread has a session of its own.
//
// While nothing waits, one thread does all of it. It reads a message, runs its calls one after another, and writes
// their answers as one message. A call that is about to block (on a BlockingHookRuntime) first brings another thread in its
// thread's place. So a call that needs only memory costs no change of threads. A call that waits (for the disk, the DC,
// another transaction) delays no other.
// Many calls share two kinds of waits:
//
// Prefetching. A thread that comes to calls that are not examined yet sends the reads that they need from the DC in one
// request. It waits for the answers in the state `handed over` (see below), and another thread runs the other calls. A call
// whose answer takes too long (hold_back) waits for it by itself, and there is no prefetching for a while. A thread
// whose reads are in flight runs nothing.
// A call that begins with a scan is begun (PrefetchNotes::Begin), because a scan's answer is good for its own
// transaction only. The transaction stays with its call, and the thread that runs the call continues it, on any session.
// A thread that has begun calls puts them in front of the queue (one_shot_queue.h). So they run before that thread runs
// anything that might wait for their end. No thread waits for room while begun calls are queued: they are ended before,
// and begin again when they are run (L1). So a peer that does not take its answers keeps no transaction open.
//
// Acknowledging. A call that has committed and is not durable yet leaves its answer withheld (D1), and its thread goes
// on. One thread waits for the disk, always for the first of these positions, and answers all calls that became
// durable. It is a thread that has nothing to do, or, if the queue is long, one that has run it for a while.
//
// Threads belong to the executor. One comes with each message read, and leaves when it could only wait for the next
// message. So a stream that waits for its peer holds no thread.
// States of a worker: running (it looks for work by itself), handed over (inside a call that has announced its wait). All changes are made under the
// lock:
//   -> running          it comes with a message (ReadDone), or is summoned.
//   running -> handed over   before a wait. It starts to write the ready answers. If no other thread runs, it also summons one if the queue has calls
//                       or answers must be acknowledged, and otherwise starts to read.
//   handed over -> running   its call has ended.
//   running -> acknowledging  answers are withheld, no thread acknowledges, and the queue is empty or the thread has run it for share_after.
//                       The thread announces this wait, too, so it is handed over. -> running when a commit has become durable, or the wait has
//                       ended.
//   running -> gone     there is nothing to do. It has started to read, unless a read is in flight.
//   Invariant: while there is work, a thread runs. If no more threads can be had, one that has handed over will run afterwards.
//   A runner whose calls take long, while others wait in the queue, summons another one, up to `max_running` at a time.
// Answers: each worker has its own unpublished answers. They are published before the worker waits or leaves, or when they are large. One message is
//   written at a time (writing_), so the parts of an answer keep their order. WriteDone starts the next write. While a write is in flight and many
//   bytes are ready, no thread reads or adds more. So a peer that does not take its answers is no longer read.
// Bounds: the threads are limited by the stream and by the executor. The queue holds the calls of one message. At most the calls that a thread
//   has examined together are held back. While many bytes are withheld, no thread reads or adds more.
// End: OneShotMessages::End is called once, when the stream is over, nothing is being read or written, and no thread is inside. EndIfIdle calls it
//   while a read is in flight, which then ends without a message.
// Thread-safety and ownership: protocol/transactions/one_shot_scheduler.h. The lock of the messages guards all state.
#ifndef TC_SERVER_ONE_SHOT_WORKERS_H_
#define TC_SERVER_ONE_SHOT_WORKERS_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/prefetch.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_messages.h"
#include "protocol/transactions/one_shot_scheduler.h"
#include "tc/server/one_shot_queue.h"

namespace deut::tc {

class OneShotWorkers final : public OneShotScheduler {
 public:
  struct Options {
    int threads = 128;    // the most threads of the stream
    int max_running = 1;  // the most threads that run calls at the same time, not counting those that have handed over
    // A runner shares its queue after it has run it alone for this long.
    Duration share_after = microseconds(50);
    // While the stream has nothing to do but to read, a waiting thread delays its hand-over by up to this time. If its
    // wait is short, this saves two changes of threads.
    Duration patience = microseconds(200);
    // The longest time for which calls are held back for reads that were sent together.
    Duration hold_back = milliseconds(5);
  };

  OneShotWorkers(Runtime& runtime, TransactionService& service, Threads& threads, const Options& options,
                 OneShotMessages& messages);
  ~OneShotWorkers() override;

  void Start() override;
  void ReadDone(bool ok) override;
  void WriteDone(bool ok) override;
  bool EndIfIdle(const Status& reason) override;

 private:
  class Worker;

  // Handles the first message.
  void OpenLocked(OneShotBatch* first) DEUT_REQUIRES(messages_.mutex);
  // The work of a running thread, until there is nothing to do. Afterwards the thread is no longer inside.
  void Work() DEUT_REQUIRES(messages_.mutex);
  // True: there was something to wait for. REQUIRES: the queue is empty.
  bool Rest(Worker& worker) DEUT_REQUIRES(messages_.mutex);
  void StartReadLocked() DEUT_REQUIRES(messages_.mutex);
  bool RoomLocked() const DEUT_REQUIRES(messages_.mutex);
  void QueueLocked(OneShotBatch* batch) DEUT_REQUIRES(messages_.mutex);
  void WriteLocked() DEUT_REQUIRES(messages_.mutex);
  // Examines calls at the front of the queue, sends the reads that they need, and waits for the answers. Then it queues
  // the calls again.
  void PrefetchLocked(Worker& worker) DEUT_REQUIRES(messages_.mutex);
  // `held`: the calls that wait for the prefetch. They get their begun transactions.
  void AwaitPrefetchLocked(Worker& worker, PendingPrefetch pending, absl::Span<QueuedOneShot> held, Deadline until)
      DEUT_REQUIRES(messages_.mutex);
  void PutFirstLocked(absl::Span<QueuedOneShot> calls) DEUT_REQUIRES(messages_.mutex);
  bool NeedsAcknowledgerLocked() const DEUT_REQUIRES(messages_.mutex) {
    return !acknowledging_ && messages_.backlog().withheld;
  }
  bool OthersCanRunLocked() const DEUT_REQUIRES(messages_.mutex) { return running_ > 1 || inside_ < options_.threads; }
  // Waits for the disk once.
  void AcknowledgeLocked(Worker& worker) DEUT_REQUIRES(messages_.mutex);
  // Called before a thread reads or runs more: waits until the writer, or the disk, has caught up.
  void AwaitRoomLocked() DEUT_REQUIRES(messages_.mutex);
  // The worker may only be patient if it holds no answers, neither ready ones nor ones that wait for the disk.
  Duration PatienceLocked(const Worker& worker) const DEUT_REQUIRES(messages_.mutex);
  void PublishLocked(Worker& worker) DEUT_REQUIRES(messages_.mutex);
  void EndLocked(Status reason) DEUT_REQUIRES(messages_.mutex);
  void DoneLocked(OneShotBatch* batch) DEUT_REQUIRES(messages_.mutex);
  // Brings another running thread, unless the limit is reached.
  void SummonLocked() DEUT_REQUIRES(messages_.mutex);
  std::unique_ptr<Worker> GetWorkerLocked() DEUT_REQUIRES(messages_.mutex);
  // Ends the stream, unless a part of it is still in use. Unlocks the mutex.
  void UnlockAndFinish() __attribute__((release_capability(messages_.mutex)));

  Runtime& runtime_;
  TransactionService& service_;
  Threads& threads_;
  const Options options_;
  OneShotMessages& messages_;

  OneShotQueue queue_ DEUT_GUARDED_BY(messages_.mutex);
  bool acknowledging_ DEUT_GUARDED_BY(messages_.mutex) = false;
  MonotonicTime no_prefetch_until_ DEUT_GUARDED_BY(messages_.mutex);
  bool opened_ DEUT_GUARDED_BY(messages_.mutex) = false;
  // The answer to the opening has the reason, and ends the stream.
  bool refused_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool writing_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool reading_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool over_ DEUT_GUARDED_BY(messages_.mutex) = false;
  bool finished_ DEUT_GUARDED_BY(messages_.mutex) = false;
  Status reason_ DEUT_GUARDED_BY(messages_.mutex);
  int running_ DEUT_GUARDED_BY(messages_.mutex) = 0;
  int inside_ DEUT_GUARDED_BY(messages_.mutex) = 0;  // running, handed over, or summoned and about to come
  std::vector<std::unique_ptr<Worker>> spare_ DEUT_GUARDED_BY(messages_.mutex);
  CondVar written_;  // signalled when the backlog of the messages, or over_, changes
};

// To be passed as OneShotSchedulerFactory. The workers of a stream run at most one call for each processor of the machine
// at the same time. If the service waits on a Runtime that is no BlockingHookRuntime, the calls of a stream delay each other.
std::unique_ptr<OneShotScheduler> NewOneShotWorkers(Runtime& runtime, TransactionService& service,
                                                    OneShotScheduler::Threads& threads, OneShotMessages& messages);

}  // namespace deut::tc

#endif  // TC_SERVER_ONE_SHOT_WORKERS_H_
