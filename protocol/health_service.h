// HealthService: grpc.health.v1, as every server answers it: whether the whole server serves (there is no other name to ask for).
//
// gRPC has one, too, with threads that poll for all connections: they would take each message of a stream first, and wake another thread for it.
// This one answers on the completion queue of the server's executor. None of its events blocks, so it answers also when all threads that may block
// do (rpc_executor.h).
// Check answers at once. Watch answers at once and whenever that has changed, at the latest kLook afterwards.
// A name that is not known is NOT_FOUND for Check, and SERVICE_UNKNOWN for Watch, whose stream stays.
// Bounds: a peer has at most kMostChecks checks without an answer and kMostWatches watches; all peers together have sixteen times as much
//   (stream_quota.h). A peer that does not take what is sent to it for `stuck_peer` loses its call.
// States of a call: wanted (gRPC will fill it in) -> in work -> gone. A call that is taken is followed by another that is wanted.
//   Check:  taken -> Finish -> gone.
//   Watch:  taken -> writing -> resting (an alarm is set) -> writing, where what there is to say has changed; else resting again. When its peer or
//           the server has ended it (told by `ended`) what is under way comes back, and then Finish.
// Lifetime: made before the server; Serve once the server is built; Stop once that has shut down, which waits for the calls to go, before the queue
//   is shut down; then destroyed.
// Thread-safety: SetServing from any thread; the calls are under one lock.
#ifndef PROTOCOL_HEALTH_SERVICE_H_
#define PROTOCOL_HEALTH_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "protocol/stream_quota.h"
#include "protocol/stream_watchdog.h"

namespace deut {

class HealthService final : public grpc::Service {
 public:
  static constexpr Duration kLook = milliseconds(200);
  static constexpr size_t kMostWatches = 64;
  static constexpr size_t kMostChecks = 64;

  explicit HealthService(Runtime& runtime, Duration stuck_peer = seconds(30));
  ~HealthService();  // REQUIRES: Stop was called, if Serve was

  // Before BuildAndStart.
  void AddTo(grpc::ServerBuilder& builder) { builder.RegisterService(this); }
  // Once the server is built: on the queue of an executor, which runs RpcEvents.
  void Serve(grpc::ServerCompletionQueue* queue);
  // Watches end by themselves from now on, at the latest after kLook; a server that shuts down waits for them.
  void BeginStop() { stopping_.store(true, std::memory_order_seq_cst); }
  void Stop();

  void SetServing(bool serving) { serving_.store(serving, std::memory_order_seq_cst); }

 private:
  class Call;
  class Check;
  class Watch;

  // {status}, as HealthCheckResponse has it.
  static grpc::ByteBuffer Answer(int status);
  // Whether the request asks for the whole server.
  static bool AsksForAll(const grpc::ByteBuffer& request);
  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }
  bool serving() const { return serving_.load(std::memory_order_seq_cst); }

  Runtime& runtime_;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  Mutex mutex_;  // calls are told one at a time
  std::atomic<bool> serving_{false};
  std::atomic<bool> stopping_{false};
  size_t calls_ DEUT_GUARDED_BY(mutex_) = 0;  // there are
  CondVar none_;                              // calls_ is 0
  StreamQuota watches_, checks_;
  StreamWatchdog watchdog_;
};

}  // namespace deut

#endif  // PROTOCOL_HEALTH_SERVICE_H_
