// GrpcApplyLog: the client side of one ApplyLog stream.
// A thread of the stream's own opens it, takes acknowledgements and the ends of writes, and calls the listener. Send waits until the batch
// before has left this process, starts the next write and returns, so one batch is being sent while the next is built, and no more than
// one (plus the connection's window) is held here.
// States of the write side: writing (from the start: the opening message) <-> idle; closed, final. Idle -> writing by Send, writing -> idle
//   by the thread when the write has ended, both by compare-and-swap; -> closed by the thread's exchange, which tells it whether the
//   end of a write is still to come.
// Thread-safety: Send by one thread at a time. Ownership: borrows the listener, which outlives it.
#ifndef PROTOCOL_GRPC_APPLY_LOG_H_
#define PROTOCOL_GRPC_APPLY_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/rpc_peer.h"

namespace deut {

class GrpcApplyLog final : public ApplyLogStream {
 public:
  // The data component's refusal (FENCED, WRONG_INCARNATION, ...), UNAVAILABLE, or DEADLINE_EXCEEDED; then the listener is not called.
  static Result<std::unique_ptr<ApplyLogStream>> Open(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                                      wire::DataComponent::Stub& stub, const Sender& sender,
                                                      ApplyLogListener* listener, Deadline deadline);
  ~GrpcApplyLog() override;

  Status Send(const LogBatch& batch, Deadline deadline) override;

 private:
  using Stream = grpc::ClientAsyncReaderWriter<wire::ApplyLogRequest, wire::ApplyLogAnswer>;
  // kEnding: no write may start any more; kClosed: the reason is known as well.
  enum WriteState : uint32_t { kIdle, kWriting, kEnding, kClosed };

  GrpcApplyLog(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, ApplyLogListener* listener)
      : runtime_(runtime), peer_(std::move(peer)), listener_(listener), mutex_(runtime) {}

  void Run();
  void HandleAnswer();
  // No write starts from now on. True if the end of a write is still to come.
  bool EndWriting();
  // The first reason stays.
  void SetReason(Status reason);
  Status Reason();

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  ApplyLogListener* const listener_;
  grpc::CompletionQueue events_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  wire::ApplyLogRequest outgoing_;  // of whoever made the write side `writing`
  wire::ApplyLogAnswer incoming_;   // the thread's
  bool accepted_ = false;           // the data component has opened the stream; set before settled_
  Event settled_;                   // opening has ended, one way or the other
  std::atomic<uint32_t> write_state_{kWriting};
  Mutex mutex_;
  Status reason_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_APPLY_LOG_H_
