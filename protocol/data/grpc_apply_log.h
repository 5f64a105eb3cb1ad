// GrpcApplyLog: the client side of one ApplyLog stream.
// An event loop runs acknowledgements and the ends of writes, and calls the listener. The stream's own thread starts
// the stream, ends it, and reports why it was closed. Send waits until the previous batch has left this process, starts
// the next write and returns. So one batch is sent while the next is built, and at most one, plus the connection's
// window, is held here.
// States of the write side: writing (from the start, for the opening message) <-> idle; ending; closed, which is final.
// - idle -> writing: Send's compare-and-swap.
// - writing -> idle: the end of the write.
// - -> ending: the exchange by the event that finds that the stream has ended. The old value tells it whether the end
//   of a write is still to come.
// - -> closed: the stream's thread.
// Lifetime of the gRPC stream object, events and lock: rpc_event_stream.h. The right to write is the state `writing`.
// Thread-safety: only one thread at a time calls Send. Ownership: borrows the listener, which outlives it.
#ifndef PROTOCOL_DATA_GRPC_APPLY_LOG_H_
#define PROTOCOL_DATA_GRPC_APPLY_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_event_stream.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

class GrpcApplyLog final : public ApplyLogStream, private RpcEventStream<wire::ApplyLogRequest, wire::ApplyLogAnswer> {
 public:
  // Borrows the loop as well, and the stub during the call. Fails with the data component's refusal (FENCED, WRONG_INCARNATION, ...), UNAVAILABLE, or
  // DEADLINE_EXCEEDED. After a failure the listener is not called.
  static Result<std::unique_ptr<ApplyLogStream>> Open(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                                      RpcEventLoop& loop, wire::DataComponent::Stub& stub,
                                                      const Sender& sender, ApplyLogListener* listener,
                                                      Deadline deadline);
  ~GrpcApplyLog() override;

  Status Send(const LogBatch& batch, Deadline deadline) override;

 private:
  // kEnding: no write may start any more. kClosed: the reason is known as well.
  enum WriteState : uint32_t { kIdle, kWriting, kEnding, kClosed };

  GrpcApplyLog(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop, ApplyLogListener* listener)
      : RpcEventStream(runtime, loop), peer_(std::move(peer)), listener_(listener) {}

  void OnOpenLocked() override DEUT_REQUIRES(mutex_) { StartWrite(); }
  bool OnRead() override;
  void OnWrittenLocked() override DEUT_REQUIRES(mutex_);
  bool StopWritingLocked() override DEUT_REQUIRES(mutex_);
  // If the write has failed, the stream has ended, perhaps with a reason that is still to be read. Cancelling the stream
  // would drop that reason.
  void OnLastWriteLocked(bool /*ok*/) override DEUT_REQUIRES(mutex_) {}

  // The body of the stream's thread.
  void OpenAndEnd(wire::DataComponent::Stub& stub);
  // Only the first reason is kept.
  void SetReason(Status reason);
  // Ends the stream with this reason. No lock is held.
  void StopBecause(Status reason);
  Status Reason();

  const std::shared_ptr<const RpcPeer> peer_;
  ApplyLogListener* const listener_;
  bool accepted_ = false;  // the data component has opened the stream; set before settled_
  Event settled_;          // opening has succeeded or failed
  std::atomic<uint32_t> write_state_{kWriting};
  Status reason_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_DATA_GRPC_APPLY_LOG_H_
