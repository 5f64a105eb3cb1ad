// RpcStream: a bidirectional stream as its client sees it, for one thread at a time, with a deadline on every wait. An
// event loop runs the ends of its operations; the calling thread waits for them.
//
// The thread waits on one word. It has a bit for each operation in flight, a bit for each failed one, and a bit that
// says that a thread sleeps. The thread sets the first kind before it starts an operation. The loop sets the second if
// the operation failed, and then clears the first and the last in one step. After that step it touches nothing of the
// stream but, for the wake, the word's address.
// States: new -> Start -> open -> broken (the peer ended it, the connection is lost, or Cancel). Broken is final;
// status() gives the reason.
// Write starts to send and returns; it waits only for the previous write. Read waits for the next message. If the
// deadline passes first, Read returns DEADLINE_EXCEEDED and the stream stays open. A later Read then waits for the same
// message.
// Thread-safety: none, except that any thread may call Cancel between Start and destruction. Ownership: keeps channel
// and peer alive. The destructor cancels the stream if it is open, and waits until gRPC has released it. That needs no
// message from the peer.
#ifndef PROTOCOL_RPC_RPC_STREAM_H_
#define PROTOCOL_RPC_RPC_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/adaptive_spin.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/connections/rpc_limits.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_status.h"

namespace deut {

// The part that does not depend on the message types.
class RpcStreamBase {
 public:
  RpcStreamBase(const RpcStreamBase&) = delete;
  RpcStreamBase& operator=(const RpcStreamBase&) = delete;

  bool open() const { return open_; }
  // Why the stream is broken. REQUIRES: it was started and is not open.
  const Status& status() const { return status_; }

  // Whether the server has said that it has run nothing since its last answer. REQUIRES: as status().
  bool nothing_run() const { return nothing_run_; }

  // Ends the call from this side. Waiting calls return soon.
  void Cancel() { context_.TryCancel(); }

 protected:
  enum Operation : uint32_t { kStart = 1, kRead = 2, kWrite = 4, kFinish = 8 };
  enum class Outcome : uint8_t { kDone, kFailed, kTimeout };

  RpcStreamBase(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop)
      : runtime_(runtime), peer_(std::move(peer)), loop_(loop) {}
  ~RpcStreamBase();

  // Marks the operation as in flight, and returns the tag to start it with.
  void* Begin(Operation operation);
  bool outstanding(Operation operation) const { return (state_.load(std::memory_order_acquire) & operation) != 0; }
  // Waits until the operation is no longer in flight.
  Outcome Await(Operation operation, Deadline deadline);
  // After an operation has failed: ends the stream and stores the reason. A `reason` that is not OK replaces gRPC's.
  void Break(Status reason);
  // Derived destructors call it while the stream object still exists.
  void Close();
  Status TimedOut(const char* what) const;
  void Settle(Operation operation);

  virtual void StartFinish(grpc::Status* status) = 0;

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  RpcEventLoop& loop_;
  grpc::ClientContext context_;
  bool open_ = false;

  Status status_;
  bool nothing_run_ = false;

 private:
  static constexpr uint32_t kFailedShift = 4;
  static constexpr uint32_t kSleeps = 1u << 8;

  class Event final : public RpcEvent {
   public:
    Event(RpcStreamBase& stream, Operation operation) : stream_(stream), operation_(operation) {}
    void Done(bool ok) override { stream_.Ended(operation_, ok); }
    bool MayBlock() const override { return false; }

   private:
    RpcStreamBase& stream_;
    const Operation operation_;
  };

  void Ended(Operation operation, bool ok);

  std::atomic<uint32_t> state_{0};
  AdaptiveSpin spin_;
  Event start_{*this, kStart};
  Event read_{*this, kRead};
  Event write_{*this, kWrite};
  Event finish_{*this, kFinish};
};

template <typename Out, typename In>
class RpcStream final : public RpcStreamBase {
 public:
  using Stream = grpc::ClientAsyncReaderWriter<Out, In>;

  // Borrows the loop.
  RpcStream(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop)
      : RpcStreamBase(runtime, std::move(peer), loop) {}
  ~RpcStream() { Close(); }

  // `prepare(context, queue)` is a stub's PrepareAsync method. Returns UNAVAILABLE soon if there is no connection.
  template <typename Prepare>
  Status Start(Prepare prepare, Deadline deadline) {
    stream_ = prepare(&context_, loop_.queue());
    open_ = true;
    stream_->StartCall(Begin(kStart));
    return EndOnFailure(Await(kStart, deadline), "connecting");
  }

  // An error means that the message was not sent. (OK does not mean that it will arrive.)
  Status Write(const Out& message, Deadline deadline) {
    if (!open_) return status_;
    const Outcome before = Await(kWrite, deadline);
    if (before != Outcome::kDone) return EndOnFailure(before, "sending");
    stream_->Write(message, Begin(kWrite));
    return Status::Ok();
  }

  // Like Write, for a message that is useless to a peer that has already sent its last message. If the previous message
  // could not be sent, this is no error. Read still returns the peer's messages, and then how the stream ended.
  Status WriteUnlessEnded(const Out& message, Deadline deadline) {
    if (!open_) return status_;
    const Outcome before = Await(kWrite, deadline);
    if (before == Outcome::kTimeout) return EndOnFailure(before, "sending");
    if (before == Outcome::kFailed) return Status::Ok();
    stream_->Write(message, Begin(kWrite));
    return Status::Ok();
  }

  // Swaps the message out. DEADLINE_EXCEEDED leaves the stream open.
  Status Read(In* message, Deadline deadline) {
    if (!open_) return status_;
    // A read that timed out may have ended since. Its message is still to be taken, so no other read starts.
    if (!std::exchange(reading_, true)) stream_->Read(&incoming_, Begin(kRead));
    const Outcome outcome = Await(kRead, deadline);
    if (outcome == Outcome::kTimeout) return TimedOut("waiting for an answer");
    reading_ = false;
    if (outcome == Outcome::kFailed) {
      Break(Status::Ok());
      return status_;
    }
    message->Swap(&incoming_);
    return Status::Ok();
  }

  // Cancels an open stream; `reason` becomes its status.
  void Abandon(Status reason) {
    Cancel();
    Break(std::move(reason));
  }

 private:
  Status EndOnFailure(Outcome outcome, const char* what) {
    if (outcome == Outcome::kDone) return Status::Ok();
    if (outcome == Outcome::kTimeout) {
      Abandon(TimedOut(what));
    } else {
      Break(Status::Ok());
    }
    return status_;
  }

  void StartFinish(grpc::Status* status) override { stream_->Finish(status, Begin(kFinish)); }

  std::unique_ptr<Stream> stream_;
  bool reading_ = false;  // a read was started, and its end is not seen yet
  In incoming_;
};

// Makes a call with one message each way. `call(context)` is a method of a stub of `channel`, with its messages. While
// the peer closes connections before they are up, CallRpc retries for about a second. In that case nothing was sent,
// and the retries show whether the peer refuses our certificate or is stopping.
template <typename Call>
Status CallRpc(Runtime& runtime, const RpcPeer& peer, grpc::Channel& channel, Deadline deadline, Call call) {
  for (int tries = 1;; ++tries) {
    grpc::ClientContext context;
    if (deadline != kNoDeadline) context.set_deadline(ToRpcTime(runtime, deadline));
    const grpc::Status end = call(&context);
    Status status = peer.FromRpc(end);
    constexpr Duration kPause = milliseconds(kInitialBackoffMs);
    constexpr int kMaxTries = 12;
    const bool again = status == ErrorCode::kUnavailable && peer.MayHaveRefused(end);
    if (!again || tries == kMaxTries || runtime.Now() + kPause >= deadline) return status;
    // This wait polls. Without it the next attempt to connect would go unnoticed.
    AwaitConnection(runtime, channel, runtime.Now() + kPause);
  }
}

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_STREAM_H_
