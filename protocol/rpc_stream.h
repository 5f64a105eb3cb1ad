// RpcStream: a bidirectional stream as its client sees it, for one thread at a time, with deadlines on every wait. The calling thread polls
// for its own events, so an answer costs no wake-up of another thread.
//
// States: new -> Start -> open -> broken (the peer ended it, the connection is lost, or Cancel). Broken is final; status() says why.
// Write starts sending and returns; it waits only for the write before it. Read waits for the next message; if the deadline passes
// first it returns DEADLINE_EXCEEDED, the stream stays open, and a later Read goes on waiting for the same message.
// Thread-safety: none; Cancel may be called from any thread between Start and destruction. Ownership: keeps channel and peer alive.
// The destructor cancels what is still open and waits for gRPC to let go of it, which takes no message from the peer.
#ifndef PROTOCOL_RPC_STREAM_H_
#define PROTOCOL_RPC_STREAM_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/rpc_limits.h"
#include "protocol/rpc_peer.h"
#include "protocol/rpc_status.h"

namespace deut {

// What does not depend on the messages.
class RpcStreamBase {
 public:
  RpcStreamBase(const RpcStreamBase&) = delete;
  RpcStreamBase& operator=(const RpcStreamBase&) = delete;

  bool open() const { return open_; }
  // Why the stream is broken. REQUIRES: started and not open.
  const Status& status() const { return status_; }

  // The server has said that it has run nothing since its last answer. REQUIRES: as status().
  bool nothing_run() const { return nothing_run_; }

  // Ends the call from this side; what waits returns soon.
  void Cancel() { context_.TryCancel(); }

 protected:
  enum Operation : uint32_t { kStart = 1, kRead = 2, kWrite = 4, kFinish = 8 };
  enum class Outcome : uint8_t { kDone, kFailed, kTimeout };

  RpcStreamBase(Runtime& runtime, std::shared_ptr<const RpcPeer> peer) : runtime_(runtime), peer_(std::move(peer)) {}
  ~RpcStreamBase();

  static void* Tag(Operation operation) { return reinterpret_cast<void*>(uintptr_t{operation}); }
  void Begin(Operation operation) { outstanding_ |= operation; }
  bool outstanding(Operation operation) const { return (outstanding_ & operation) != 0; }
  // Waits until the operation is no longer outstanding.
  Outcome Await(Operation operation, Deadline deadline);
  // After an operation failed: learns the reason. `reason`, if not OK, is ours and stands in place of gRPC's.
  void Break(Status reason);
  // For derived destructors, while the stream object still exists.
  void Close();
  Status TimedOut(const char* what) const;
  void Settle(Operation operation);

  virtual void StartFinish(grpc::Status* status) = 0;

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  bool open_ = false;

  Status status_;
  bool nothing_run_ = false;

 private:
  uint32_t outstanding_ = 0;
  uint32_t failed_ = 0;
};

template <typename Out, typename In>
class RpcStream final : public RpcStreamBase {
 public:
  using Stream = grpc::ClientAsyncReaderWriter<Out, In>;

  RpcStream(Runtime& runtime, std::shared_ptr<const RpcPeer> peer) : RpcStreamBase(runtime, std::move(peer)) {}
  ~RpcStream() { Close(); }

  // `prepare(context, queue)` is a stub's PrepareAsync method. UNAVAILABLE quickly if there is no connection.
  template <typename Prepare>
  Status Start(Prepare prepare, Deadline deadline) {
    stream_ = prepare(&context_, &queue_);
    open_ = true;
    Begin(kStart);
    stream_->StartCall(Tag(kStart));
    return Judge(Await(kStart, deadline), "connecting");
  }

  // An error means that the message was not sent. (OK does not mean that it will arrive.)
  Status Write(const Out& message, Deadline deadline) {
    if (!open_) return status_;
    const Outcome before = Await(kWrite, deadline);
    if (before != Outcome::kDone) return Judge(before, "sending");
    Begin(kWrite);
    stream_->Write(message, Tag(kWrite));
    return Status::Ok();
  }

  // The same, for what a peer who has said all he had to say need not hear any more: that a message before could not be sent is no error. What he
  // has said can still be read, and Read tells how the stream has ended.
  Status WriteUnlessEnded(const Out& message, Deadline deadline) {
    if (!open_) return status_;
    const Outcome before = Await(kWrite, deadline);
    if (before == Outcome::kTimeout) return Judge(before, "sending");
    if (before == Outcome::kFailed) return Status::Ok();
    Begin(kWrite);
    stream_->Write(message, Tag(kWrite));
    return Status::Ok();
  }

  // Swaps the message out. DEADLINE_EXCEEDED leaves the stream open.
  Status Read(In* message, Deadline deadline) {
    if (!open_) return status_;
    if (!outstanding(kRead)) {
      Begin(kRead);
      stream_->Read(&incoming_, Tag(kRead));
    }
    const Outcome outcome = Await(kRead, deadline);
    if (outcome == Outcome::kTimeout) return TimedOut("waiting for an answer");
    if (outcome == Outcome::kFailed) {
      Break(Status::Ok());
      return status_;
    }
    message->Swap(&incoming_);
    return Status::Ok();
  }

  // Cancels what is open; `reason` becomes the status.
  void Abandon(Status reason) {
    Cancel();
    Break(std::move(reason));
  }

 private:
  Status Judge(Outcome outcome, const char* what) {
    if (outcome == Outcome::kDone) return Status::Ok();
    if (outcome == Outcome::kTimeout) {
      Abandon(TimedOut(what));
    } else {
      Break(Status::Ok());
    }
    return status_;
  }

  void StartFinish(grpc::Status* status) override { stream_->Finish(status, Tag(kFinish)); }

  std::unique_ptr<Stream> stream_;
  In incoming_;
};

// A call with one message each way: `call(context)` is a method of a stub of `channel`, with its messages. It is called again for about a second
// while the peer closes connections before they are up. Then nothing was sent, and it shows whether the peer refuses our certificate or stops.
template <typename Call>
Status CallRpc(Runtime& runtime, const RpcPeer& peer, grpc::Channel& channel, Deadline deadline, Call call) {
  for (int tries = 1;; ++tries) {
    grpc::ClientContext context;
    if (deadline != kNoDeadline) context.set_deadline(ToRpcTime(runtime, deadline));
    const grpc::Status end = call(&context);
    Status status = peer.FromRpc(end);
    constexpr Duration kPause = milliseconds(kInitialBackoffMs);
    constexpr int kMostTries = 12;
    const bool again = status == ErrorCode::kUnavailable && peer.MayHaveRefused(end);
    if (!again || tries == kMostTries || runtime.Now() + kPause >= deadline) return status;
    // Polls: without it the next attempt to connect would not be noticed.
    AwaitConnection(runtime, channel, runtime.Now() + kPause);
  }
}

}  // namespace deut

#endif  // PROTOCOL_RPC_STREAM_H_
