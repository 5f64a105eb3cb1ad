// OneShotScheduler: decides which thread runs which call of one stream of one-shot transactions on the server, in which
// order, and when the stream is read and written. The transaction component brings the implementation, because a good
// choice depends on what its transactions wait for. The stream (one_shot_handler.h) tells the scheduler of the ends of
// reads and writes, and gives it threads. The scheduler starts reads and writes, and ends the stream, by way of
// OneShotMessages (one_shot_messages.h). So it needs neither gRPC nor the format of messages, and the stream knows no
// call.
// A message costs two calls of a scheduler: one when it was read, one when its answers were written.
// End: when it calls OneShotMessages::End, no transaction is at work, no posted work is still to come, and no read or
// write is in flight, except the read of EndIfIdle. But a thread that is in Start, ReadDone, WriteDone, EndIfIdle or
// posted work may still be there when another one calls End. The stream keeps scheduler and messages until these calls,
// and that read, have returned.
// Thread-safety: ReadDone, WriteDone and EndIfIdle from any thread; Start is called first, and once. Ownership: borrows
// everything that it is made with.
#ifndef PROTOCOL_TRANSACTIONS_ONE_SHOT_SCHEDULER_H_
#define PROTOCOL_TRANSACTIONS_ONE_SHOT_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_messages.h"

namespace deut {

class OneShotScheduler {
 public:
  // The source of the threads.
  class Threads {
   public:
    virtual ~Threads() = default;
    enum class Posted : uint8_t {
      kComes,     // the work will soon run on another thread
      kWhenFree,  // the work will run when a thread is no longer blocked
      kNo,        // the peer has as many threads as it may have
    };
    virtual Posted Post(std::function<void()> work) = 0;
    // The calling thread, which came with ReadDone or WriteDone or was posted, is about to block.
    virtual void BeforeBlocking() = 0;
    // True: no other stream needs the threads, so a waiting thread may delay its announcement a little.
    virtual bool MayHaveDelay() = 0;
  };

  virtual ~OneShotScheduler() = default;

  // Starts the first read.
  virtual void Start() = 0;
  // The read has ended; false: the peer sends nothing more. The scheduler may keep the calling thread to run calls.
  virtual void ReadDone(bool ok) = 0;
  // The write has ended; false: the peer takes nothing more.
  virtual void WriteDone(bool ok) = 0;
  // Ends the stream if it only waits for a message. False: it does something else, or is over.
  virtual bool EndIfIdle(const Status& reason) = 0;
};

// Makes the scheduler of one stream. `service` has the rights of the stream's client. Any thread may call it.
using OneShotSchedulerFactory = std::function<std::unique_ptr<OneShotScheduler>(
    Runtime& runtime, TransactionService& service, OneShotScheduler::Threads& threads, OneShotMessages& messages)>;

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_ONE_SHOT_SCHEDULER_H_
