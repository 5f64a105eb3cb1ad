#include "protocol/rpc/rpc_status.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(RpcStatusTest, CodesThatGrpcKnowsComeBack) {
  for (const ErrorCode code :
       {ErrorCode::kOk, ErrorCode::kInvalidArgument, ErrorCode::kUnavailable, ErrorCode::kDeadlineExceeded,
        ErrorCode::kResourceExhausted, ErrorCode::kCorruption, ErrorCode::kPermissionDenied}) {
    EXPECT_EQ(FromRpcStatus(ToRpcStatus(Status(code, "m")), "peer").code(), code);
  }
}

TEST(RpcStatusTest, EveryEndOfACallMeansSomething) {
  for (int code = 1; code <= 16; ++code) {
    const Status status = FromRpcStatus(grpc::Status(static_cast<grpc::StatusCode>(code), "text"), "the peer");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "the peer: text");
  }
  // Codes that say only that the connection is lost.
  for (const auto code : {grpc::StatusCode::CANCELLED, grpc::StatusCode::UNKNOWN, grpc::StatusCode::INTERNAL}) {
    EXPECT_EQ(FromRpcStatus(grpc::Status(code, ""), "").code(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(FromRpcStatus(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""), "").code(), ErrorCode::kVersionMismatch);
}

TEST(RpcStatusTest, Deadlines) {
  Runtime& runtime = RealRuntime();
  EXPECT_EQ(FromRpcTime(runtime, ToRpcTime(runtime, kNoDeadline)), kNoDeadline);
  const Deadline deadline = runtime.Now() + seconds(5);
  const Deadline back = FromRpcTime(runtime, ToRpcTime(runtime, deadline));
  EXPECT_LT(back - deadline, milliseconds(500));
  EXPECT_LT(deadline - back, milliseconds(500));
  EXPECT_LE(FromRpcTime(runtime, ToRpcTime(runtime, Deadline::min())), runtime.Now());
  EXPECT_EQ(FromRpcTime(runtime, gpr_inf_future(GPR_CLOCK_REALTIME)), kNoDeadline);
}

}  // namespace
}  // namespace deut
