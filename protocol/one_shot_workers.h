// OneShotWorkers: one stream of one-shot transactions on the server (OneShots of transaction_service.proto), without gRPC: reads messages, runs
// their calls, writes answers, each thread on a session of its own.
//
// One thread does all of it as long as nothing waits: it reads a message, runs its calls one after the other and writes their answers as one message.
// A call that is about to block (on a TellingRuntime) first puts another thread in its thread's place. So what needs nothing but memory costs no
// change of threads, and what waits (for the disk, the DC, another transaction) holds up nobody.
// Two waits that many calls have are had together:
//   Reading ahead. Who comes to calls of a message at which nobody has looked asks for what their point reads need from elsewhere, in one request,
//     and waits for the answers, behind; whoever runs then runs the other calls. What has not come within a moment is waited for by each call
//     itself, and for a while nothing is asked for ahead. While a thread has something asked for it runs nothing.
//     A call that begins with a scan is begun (TransactionSession::BeginAhead), as what a scan needs is good for its own transaction alone. That
//     stays with its item, and whoever runs the call goes on with it, on any session.
//     Invariant: those that are begun come first in the queue. Such a call waits for the DC, never for another that is begun. So whoever has
//     begun some, and puts them there, runs them, or they are run, before he runs anything that might wait for their end, even where there is
//     no other thread. Nobody waits for room while some are queued: there those that are begun end before, and are begun anew when they are run. So
//     a peer that does not take its answers keeps none of them open.
//   Acknowledging. A call that has committed and is not durable yet leaves its answer (unacknowledged_) and its thread goes on. One thread waits
//     for the disk, always for the first of them, and answers all that became durable by then: whoever has nothing to do, or, where the queue
//     is long, whoever has run it for a while.
//
// Threads are the executor's: one comes with each message that was read, and leaves when nothing is left but to wait for the next one. So a
// stream that waits for its peer, to send or to take something, holds none.
// States of a worker: running (it looks for work by itself), behind (in a call that has told of its wait). All under the lock:
//   comes      with a message (ReadDone), or summoned: running.
//   running -> behind   before a wait. It starts to write what is answered; if nobody else runs and there is a queue, or something to acknowledge, it
//                       summons another; if there is nothing but to read, it starts to read.
//   behind -> running   its call has ended.
//   running -> acknowledging  the queue is empty, or has been run for share_after; there is something unacknowledged, and nobody acknowledges. It
//                       tells of this wait, too, so it is behind; -> running when something has become durable.
//   running -> gone     there is nothing to do. It has started to read, unless somebody has.
//   Invariant: while there is something to do, somebody runs, or (where no more threads are to be had) somebody is behind and will.
//   A runner whose calls take long, while others wait in the queue, summons another, up to `parallel` at a time.
// Answers: each worker gathers its own; they pass to `ready_` before it waits or goes, or when they are large. One message is being written at a
//   time (writing_), so parts of an answer keep their order; WriteDone starts the next. While one is being written and much is ready, nobody reads
//   or adds more: a peer that does not take its answers stops being read.
// Bounds: threads of the stream, and of the executor; queued calls are those of one message; held back are those that a thread has
//   looked at together; while much is unacknowledged nobody reads or adds more.
// End: when the stream is over, nothing is being read or written and no thread is inside, Stream::End is called, once.
// Thread-safety: ReadDone and WriteDone from any thread. Ownership: borrows everything; nothing is left behind when Stream::End is called.
#ifndef PROTOCOL_ONE_SHOT_WORKERS_H_
#define PROTOCOL_ONE_SHOT_WORKERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/transaction_service.h"
#include "protocol/transaction_service.pb.h"
#include "protocol/unacknowledged.h"

namespace deut {

class OneShotWorkers {
 public:
  // The stream. At most one read and one write are under way.
  class Stream {
   public:
    virtual ~Stream() = default;
    // ReadDone follows, from another event.
    virtual void StartRead(wire::OneShotCalls* message) = 0;
    // WriteDone follows. The message can be used again at once.
    virtual void StartWrite(const wire::OneShotAnswers& message) = 0;
    // Nothing follows; the workers may be gone afterwards. An error: the peer has sent what it must not.
    virtual void End(const Status& reason) = 0;
  };

  // Whose threads it runs on.
  class Threads {
   public:
    virtual ~Threads() = default;
    enum class Posted : uint8_t {
      kComes,     // it runs soon, on another thread
      kWhenFree,  // when some thread has ceased to be blocked
      kNo,        // the peer has as many threads as it may have
    };
    virtual Posted Post(std::function<void()> work) = 0;
    // The calling thread, which came with ReadDone or WriteDone or was posted, is about to block.
    virtual void BeforeBlocking() = 0;
    // Nobody else needs the threads: so the one that waits may wait a little before it says so.
    virtual bool MayHaveDelay() = 0;
  };

  struct Options {
    int threads = 128;  // of the stream
    int parallel = 1;   // that run calls at the same time, apart from those behind a wait
    // A runner for whose queue nobody else has run for so long shares it.
    Duration share_after = microseconds(50);
    // While nothing else is to be done for the stream but to read, a thread waits for so long before it puts another in its place: where what it
    // waits for comes soon, two changes of threads are saved.
    Duration patience = microseconds(200);
    // How long calls are held back for what was asked for together.
    Duration hold_back = milliseconds(5);
  };

  OneShotWorkers(Runtime& runtime, TransactionService& service, Threads& threads, const Options& options,
                 Stream* stream);
  ~OneShotWorkers();

  void Start();
  void ReadDone(bool ok);
  void WriteDone(bool ok);

 private:
  // A message in work; used again.
  struct Batch {
    wire::OneShotCalls message;
    std::vector<Deadline> deadlines;
    int left = 0;
  };
  struct Item {
    Batch* batch = nullptr;
    int index = 0;
    bool looked = false;  // for what its reads need
    bool held = false;    // back, until that is there
    std::unique_ptr<BegunOneShot> begun = nullptr;
  };
  struct Answers {
    wire::OneShotAnswers message;
    size_t bytes = 0;
  };
  class Worker;

  // The first message.
  void OpenLocked(std::unique_ptr<Batch> first) DEUT_REQUIRES(mutex_);
  // Of a thread that runs; until there is nothing to do. It is not inside any more then.
  void Work() DEUT_REQUIRES(mutex_);
  // True: there was something to wait for. REQUIRES: the queue is empty.
  bool Rest(Worker& worker) DEUT_REQUIRES(mutex_);
  void StartReadLocked() DEUT_REQUIRES(mutex_);
  bool RoomLocked() const DEUT_REQUIRES(mutex_);
  void QueueLocked(std::unique_ptr<Batch> batch) DEUT_REQUIRES(mutex_);
  void WriteLocked() DEUT_REQUIRES(mutex_);
  // Looks at calls at the front of the queue, and asks and waits for what their reads need; then they are there again.
  void LookAheadLocked(Worker& worker) DEUT_REQUIRES(mutex_);
  void TakeReadsLocked(Worker& worker, Deadline until) DEUT_REQUIRES(mutex_);
  void QueueFirstLocked(absl::Span<Item> items) DEUT_REQUIRES(mutex_);
  // How many of those in the queue are begun.
  ptrdiff_t BegunLocked() const DEUT_REQUIRES(mutex_);
  void EndBegunLocked() DEUT_REQUIRES(mutex_);
  bool NeedsAcknowledgerLocked() const DEUT_REQUIRES(mutex_) { return !acknowledging_ && !unacknowledged_.empty(); }
  bool OthersCanRunLocked() const DEUT_REQUIRES(mutex_) { return running_ > 1 || inside_ < options_.threads; }
  // One wait for the disk.
  void AcknowledgeLocked(Worker& worker) DEUT_REQUIRES(mutex_);
  // Before more is read or run: waits for a writer, or for the disk, who are behind.
  void AwaitRoomLocked() DEUT_REQUIRES(mutex_);
  // What is answered already does not wait for it, nor what is to become durable.
  Duration PatienceLocked(const Worker& worker) const DEUT_REQUIRES(mutex_);
  void PublishLocked(Worker& worker) DEUT_REQUIRES(mutex_);
  void EndLocked(Status reason) DEUT_REQUIRES(mutex_);
  void DoneLocked(Batch* batch) DEUT_REQUIRES(mutex_);
  // Another thread runs from now on, unless there may be no more.
  void SummonLocked() DEUT_REQUIRES(mutex_);
  std::unique_ptr<Worker> TakeWorkerLocked() DEUT_REQUIRES(mutex_);
  // Ends the stream, unless something of it is still under way. Unlocks.
  void UnlockAndFinish() __attribute__((release_capability(mutex_)));

  Runtime& runtime_;
  TransactionService& service_;
  Threads& threads_;
  const Options options_;
  Stream* const stream_;

  Mutex mutex_;
  std::deque<Item> queue_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Batch>> used_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Batch>> free_ DEUT_GUARDED_BY(mutex_);
  std::deque<Answers> ready_ DEUT_GUARDED_BY(mutex_);
  size_t ready_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  Unacknowledged unacknowledged_ DEUT_GUARDED_BY(mutex_);
  bool acknowledging_ DEUT_GUARDED_BY(mutex_) = false;
  MonotonicTime no_reads_ahead_until_ DEUT_GUARDED_BY(mutex_);
  bool opened_ DEUT_GUARDED_BY(mutex_) = false;
  bool refused_ DEUT_GUARDED_BY(mutex_) = false;  // the answer to the opening says why; then it is over
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  size_t writing_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Batch> reading_batch_ DEUT_GUARDED_BY(mutex_);
  bool over_ DEUT_GUARDED_BY(mutex_) = false;
  bool finished_ DEUT_GUARDED_BY(mutex_) = false;
  Status reason_ DEUT_GUARDED_BY(mutex_);
  int running_ DEUT_GUARDED_BY(mutex_) = 0;
  int inside_ DEUT_GUARDED_BY(mutex_) = 0;  // running, behind, or summoned and on its way
  std::vector<std::unique_ptr<Worker>> spare_ DEUT_GUARDED_BY(mutex_);
  CondVar written_;  // ready_bytes_, unacknowledged_, over_
};

}  // namespace deut

#endif  // PROTOCOL_ONE_SHOT_WORKERS_H_
