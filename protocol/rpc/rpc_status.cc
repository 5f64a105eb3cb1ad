#include "protocol/rpc/rpc_status.h"

#include "common/base/concat.h"

namespace deut {
namespace {

grpc::StatusCode CodeToRpc(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return grpc::StatusCode::OK;
    case ErrorCode::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::kDeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::kResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::kCorruption:
      return grpc::StatusCode::DATA_LOSS;
    case ErrorCode::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::kInternal:
      return grpc::StatusCode::INTERNAL;
    default:
      return grpc::StatusCode::FAILED_PRECONDITION;
  }
}

ErrorCode CodeFromRpc(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return ErrorCode::kOk;
    case grpc::StatusCode::INVALID_ARGUMENT:
      return ErrorCode::kInvalidArgument;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kDeadlineExceeded;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return ErrorCode::kResourceExhausted;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return ErrorCode::kWrongState;
    case grpc::StatusCode::DATA_LOSS:
      return ErrorCode::kCorruption;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return ErrorCode::kPermissionDenied;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::kVersionMismatch;  // a call that the peer does not know
    default:
      // A peer that stops cancels, a peer that dies resets. All other codes say only that the connection is lost.
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

grpc::Status ToRpcStatus(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(CodeToRpc(status.code()), std::string(status.message()));
}

Status FromRpcStatus(const grpc::Status& status, std::string_view peer) {
  if (status.ok()) return Status::Ok();
  return Status(CodeFromRpc(status.error_code()), Concat(peer, ": ", status.error_message()));
}

gpr_timespec ToRpcTime(Runtime& runtime, Deadline deadline) {
  if (deadline == kNoDeadline) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const MonotonicTime now = runtime.Now();
  if (deadline <= now) return gpr_now(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos((deadline - now).count(), GPR_TIMESPAN));
}

Deadline FromRpcTime(Runtime& runtime, gpr_timespec deadline) {
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return kNoDeadline;
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  constexpr int64_t kForeverSeconds = int64_t{10} * 365 * 24 * 3600;
  if (left.tv_sec > kForeverSeconds) return kNoDeadline;
  return runtime.Now() + seconds(left.tv_sec) + nanoseconds(left.tv_nsec);
}

}  // namespace deut
