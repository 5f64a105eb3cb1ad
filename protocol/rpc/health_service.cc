#include "protocol/rpc/health_service.h"

#include <cstdint>

#include "common/testing/test_points.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/serialization_traits.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/slice.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/rpc_status.h"

namespace deut {
namespace {

// Values of HealthCheckResponse.status.
enum Serving : int { kServing = 1, kNotServing = 2, kUnknown = 3 };

enum Method : int { kCheck = 0, kWatch = 1 };

// All peers together may have this many times the bound of one peer.
constexpr size_t kPeers = 16;

StreamQuota::Options Bound(const char* what, size_t per_peer) {
  return {.in_all = kPeers * per_peer,
          .per_peer = per_peer,
          .what = what,
          .in_all_flag = "fixed",
          .per_peer_flag = "fixed"};
}

grpc::Status UnknownName() { return {grpc::StatusCode::NOT_FOUND, "service: only the whole server is known here"}; }

}  // namespace

// One call, to which events of the queue belong. It exists until Done has returned true.
class HealthService::Call {
 public:
  struct Tag final : RpcEvent {
    Tag(Call* its_call, int its_kind) : call(its_call), kind(its_kind) {}
    void Done(bool ok) override {
      HealthService& owner = call->owner_;
      if (kind == 0) DEUT_POINT("health.taken");
      MutexLock lock(owner.mutex_);
      if (!call->Done(kind, ok)) return;
      delete call;
      if (owner.calls_ == 0) owner.none_.NotifyAll(owner.runtime_);
    }
    bool MayBlock() const override { return false; }
    void* tag() { return static_cast<RpcEvent*>(this); }
    Call* const call;
    const int kind;
  };
  virtual ~Call() __attribute__((no_thread_safety_analysis)) { --owner_.calls_; }
  // Runs one event of the call. True: no operation of the call is in flight, and none will start.
  virtual bool Done(int kind, bool ok) = 0;

 protected:
  explicit Call(HealthService& owner) __attribute__((no_thread_safety_analysis))
      : owner_(owner), write_watch_(owner.watchdog_, [this] { context_.TryCancel(); }) {
    ++owner_.calls_;
  }

  HealthService& owner_;  // its lock is held during Done
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  StreamQuota::Slot quota_slot_;
  StreamWatchdog::Watch write_watch_;
};

class HealthService::Check final : public Call {
 public:
  explicit Check(HealthService& owner) : Call(owner), writer_(&context_) {
    owner_.RequestAsyncUnary(kCheck, &context_, &request_, &writer_, owner_.queue_, owner_.queue_, taken_.tag());
  }

  bool Done(int kind, bool ok) override {
    if (kind == kFinished || !ok) return true;
    new Check(owner_);  // the next call to be taken
    const bool for_all = AsksForAll(request_);
    request_.Clear();
    const Status entered = owner_.checks_.Enter(context_, &quota_slot_);
    write_watch_.Start();
    if (!entered.ok()) {
      writer_.FinishWithError(ToRpcStatus(entered), finished_.tag());
    } else if (for_all) {
      writer_.Finish(Answer(owner_.serving() ? kServing : kNotServing), grpc::Status::OK, finished_.tag());
    } else {
      writer_.FinishWithError(UnknownName(), finished_.tag());
    }
    return false;
  }

 private:
  enum EventKind : int { kTaken, kFinished };
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_;
  Tag taken_{this, kTaken};
  Tag finished_{this, kFinished};
};

class HealthService::Watch final : public Call {
 public:
  explicit Watch(HealthService& owner) : Call(owner), writer_(&context_) {
    context_.AsyncNotifyWhenDone(ended_tag_.tag());
    owner_.RequestAsyncServerStreaming(kWatch, &context_, &request_, &writer_, owner_.queue_, owner_.queue_,
                                       taken_.tag());
  }

  bool Done(int kind, bool ok) override __attribute__((no_thread_safety_analysis)) {
    switch (static_cast<EventKind>(kind)) {
      case kTaken:
        if (!ok) return true;  // the server has ended, and no other event will come
        taken_now_ = true;
        new Watch(owner_);
        if (ended_) {
          Finish(grpc::Status::CANCELLED);
        } else if (const Status entered = owner_.watches_.Enter(context_, &quota_slot_); !entered.ok()) {
          Finish(ToRpcStatus(entered));
        } else {
          for_whole_server_ = AsksForAll(request_);
          SendStatus();
        }
        request_.Clear();
        break;
      case kWritten:
      case kAlarm:
        in_flight_ = false;
        if (kind == kWritten) write_watch_.Stop();
        if (ended_ || (kind == kWritten && !ok)) {
          if (!finishing_) Finish(grpc::Status::CANCELLED);
        } else if (owner_.stopping()) {
          if (!finishing_) Finish({grpc::StatusCode::UNAVAILABLE, "the server ends"});
        } else if (Current() != sent_status_) {
          SendStatus();
        } else {
          SetAlarm();
        }
        break;
      case kEnded:
        ended_ = true;
        DEUT_POINT("health.ended");
        // Another thread may run this event before the call's kTaken. In that case kTaken finishes the call.
        if (!taken_now_) break;
        if (in_flight_) {
          alarm_.Cancel();
        } else if (!finishing_) {
          Finish(grpc::Status::CANCELLED);
        }
        break;
      case kFinished:
        finished_ = true;
        break;
    }
    return finished_ && ended_;
  }

 private:
  enum EventKind : int { kTaken, kWritten, kAlarm, kEnded, kFinished };

  int Current() const { return !for_whole_server_ ? kUnknown : owner_.serving() ? kServing : kNotServing; }
  void SendStatus() {
    sent_status_ = Current();
    in_flight_ = true;
    write_watch_.Start();
    writer_.Write(Answer(sent_status_), written_.tag());
  }
  void SetAlarm() {
    in_flight_ = true;
    alarm_.Set(owner_.queue_, ToRpcTime(owner_.runtime_, owner_.runtime_.Now() + kRecheckInterval), alarm_event_.tag());
  }
  void Finish(const grpc::Status& status) {
    finishing_ = true;
    write_watch_.Start();
    writer_.Finish(status, finished_tag_.tag());
  }

  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_;
  grpc::Alarm alarm_;
  bool taken_now_ = false;
  bool for_whole_server_ = false;  // whether it asks for the whole server
  int sent_status_ = 0;
  bool in_flight_ = false;  // a write or the alarm is in flight
  bool finishing_ = false;
  bool ended_ = false;
  bool finished_ = false;
  Tag taken_{this, kTaken};
  Tag written_{this, kWritten};
  Tag alarm_event_{this, kAlarm};
  Tag ended_tag_{this, kEnded};
  Tag finished_tag_{this, kFinished};
};

HealthService::HealthService(Runtime& runtime, Duration stuck_peer)
    : runtime_(runtime),
      mutex_(runtime),
      watches_(runtime, Bound("health watches", kMaxWatchesPerPeer)),
      checks_(runtime, Bound("health checks", kMaxChecksPerPeer)),
      watchdog_(runtime, stuck_peer) {
  using grpc::internal::RpcMethod;
  using grpc::internal::RpcServiceMethod;
  AddMethod(new RpcServiceMethod("/grpc.health.v1.Health/Check", RpcMethod::NORMAL_RPC, nullptr));
  AddMethod(new RpcServiceMethod("/grpc.health.v1.Health/Watch", RpcMethod::SERVER_STREAMING, nullptr));
  MarkMethodAsync(kCheck);
  MarkMethodAsync(kWatch);
}

HealthService::~HealthService() { Stop(); }

void HealthService::Serve(grpc::ServerCompletionQueue* queue) {
  MutexLock lock(mutex_);
  queue_ = queue;
  new Check(*this);
  new Watch(*this);
}

void HealthService::Stop() {
  MutexLock lock(mutex_);
  while (calls_ != 0) none_.Wait(mutex_);
}

grpc::ByteBuffer HealthService::Answer(int status) {
  // Field 1, as a varint.
  const char bytes[] = {8, static_cast<char>(status)};
  const grpc::Slice slice(bytes, sizeof bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// The request has one field, the name, as bytes with field number 1. The whole server's name is empty: no field, or an
// empty one.
bool HealthService::AsksForAll(const grpc::ByteBuffer& request) {
  grpc::Slice slice;
  if (request.Length() == 0) return true;
  return request.Length() == 2 && request.DumpToSingleSlice(&slice).ok() && slice.begin()[0] == 10 &&
         slice.begin()[1] == 0;
}

}  // namespace deut
