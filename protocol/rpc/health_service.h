// HealthService: grpc.health.v1. It answers whether the whole server serves; it knows no other name.
//
// gRPC has such a service, too, but its threads poll for all connections. They would take each message of a stream
// first, and wake another thread for it. This service answers on the completion queue of the server's executor. None of
// its events blocks, so it answers even while all threads that may block are blocked (rpc_executor.h).
// Check answers at once. Watch answers at once, and again after each change, at the latest kRecheckInterval later. For an unknown
// name Check answers NOT_FOUND. Watch answers SERVICE_UNKNOWN, and its stream stays open.
// Bounds: a peer has at most kMaxChecksPerPeer unanswered checks and kMaxWatchesPerPeer watches. All peers together have at most
// sixteen times as many (stream_quota.h). A peer that takes nothing for `stuck_peer` loses its call.
// States of a call: wanted (gRPC will fill it in) -> in work -> gone. After each call that is taken, the service wants
// another.
//   Check:  taken -> Finish -> gone.
//   Watch:  taken -> writing -> resting (an alarm is set) -> writing if the answer has changed, else resting again.
// When the peer or the server has ended a watch, as `ended` reports, its operation in flight returns, and then Finish
// follows.
// Lifetime: made before the server. Serve follows once the server is built, and Stop once the server has shut down.
// Stop waits for all calls to end, before the queue is shut down. Then the object is destroyed.
// Thread-safety: any thread may call SetServing; one lock protects the calls.
#ifndef PROTOCOL_RPC_HEALTH_SERVICE_H_
#define PROTOCOL_RPC_HEALTH_SERVICE_H_

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
#include "protocol/connections/stream_quota.h"
#include "protocol/rpc/stream_watchdog.h"

namespace deut {

class HealthService final : public grpc::Service {
 public:
  static constexpr Duration kRecheckInterval = milliseconds(200);
  static constexpr size_t kMaxWatchesPerPeer = 64;
  static constexpr size_t kMaxChecksPerPeer = 64;

  explicit HealthService(Runtime& runtime, Duration stuck_peer = seconds(30));
  ~HealthService() override;  // REQUIRES: Stop was called, if Serve was

  // Call it before BuildAndStart.
  void AddTo(grpc::ServerBuilder& builder) { builder.RegisterService(this); }
  // Call it once the server is built. `queue` belongs to an executor, which runs RpcEvents.
  void Serve(grpc::ServerCompletionQueue* queue);
  // From now on watches end by themselves, at the latest after kRecheckInterval. A server that shuts down waits for them.
  void BeginStop() { stopping_.store(true, std::memory_order_seq_cst); }
  void Stop();

  void SetServing(bool serving) { serving_.store(serving, std::memory_order_seq_cst); }

 private:
  class Call;
  class Check;
  class Watch;

  // Encodes a HealthCheckResponse with this status.
  static grpc::ByteBuffer Answer(int status);
  // Whether the request asks for the whole server.
  static bool AsksForAll(const grpc::ByteBuffer& request);
  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }
  bool serving() const { return serving_.load(std::memory_order_seq_cst); }

  Runtime& runtime_;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  Mutex mutex_;  // held while an event of a call runs, so these run one at a time
  std::atomic<bool> serving_{false};
  std::atomic<bool> stopping_{false};
  size_t calls_ DEUT_GUARDED_BY(mutex_) = 0;  // number of calls that exist
  CondVar none_;                              // signalled when calls_ becomes 0
  StreamQuota watches_, checks_;
  StreamWatchdog watchdog_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_HEALTH_SERVICE_H_
