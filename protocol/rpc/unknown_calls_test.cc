// Calls of methods that a server does not have. The last test fails with gRPC's own answers.
#include "protocol/rpc/unknown_calls.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpc/support/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/rpc/rpc_status.h"

namespace deut {
namespace {

class UnknownCallsTest : public ::testing::Test {
 protected:
  UnknownCallsTest() {
    RpcServerOptions options;
    options.listen = *Address::Parse("--listen", "127.0.0.1:0");
    auto started = RpcServer::Start(RealRuntime(), options, {});
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    server_ = *std::move(started);
    peer_ = RpcPeer::Create("the server", "--server", server_->address(), nullptr, false).value();
  }
  // The answers to calls that are made at the same time.
  static std::vector<grpc::Status> Call(grpc::GenericStub& stub, const std::string& method, int calls) {
    grpc::CompletionQueue queue;
    struct One {
      grpc::ClientContext context;
      grpc::ByteBuffer answer;
      grpc::Status status;
      std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    };
    std::vector<One> all(static_cast<size_t>(calls));
    for (One& one : all) {
      one.context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      one.reader = stub.PrepareUnaryCall(&one.context, method, grpc::ByteBuffer(), &queue);
      one.reader->StartCall();
      one.reader->Finish(&one.answer, &one.status, &one);
    }
    std::vector<grpc::Status> answers;
    for (int i = 0; i < calls; ++i) {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
      answers.push_back(static_cast<One*>(tag)->status);
    }
    return answers;
  }

  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<const RpcPeer> peer_;
};

TEST_F(UnknownCallsTest, TheAnswerNamesTheMethod) {
  grpc::GenericStub stub(peer_->NewChannel(RpcTraffic::kShort));
  for (int i = 0; i < 2; ++i) {
    const grpc::Status answer = Call(stub, "/no.Service/Method", 1)[0];
    EXPECT_EQ(answer.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_EQ(answer.error_message(), "this server has no method \"/no.Service/Method\"");
  }
}

// The package of the messages was deut.wire before it was deuteronomy.v1. Its callers never come to compare
// kProtocolVersion.
TEST_F(UnknownCallsTest, ACallOfAnEarlierPackageIsAVersionMismatch) {
  grpc::GenericStub stub(peer_->NewChannel(RpcTraffic::kShort));
  const Status status = FromRpcStatus(Call(stub, "/deut.wire.DataComponent/Hello", 1)[0], "the server");
  EXPECT_EQ(status, ErrorCode::kVersionMismatch);
  EXPECT_EQ(status.message(), "the server: this server has no method \"/deut.wire.DataComponent/Hello\"");
}

TEST_F(UnknownCallsTest, TheAnswerShowsTheBeginningOfALongName) {
  grpc::GenericStub stub(peer_->NewChannel(RpcTraffic::kShort));
  const grpc::Status answer = Call(stub, "/" + std::string(4000, 'x'), 1)[0];
  EXPECT_EQ(answer.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(answer.error_message(), "this server has no method \"/" + std::string(127, 'x') + "\"...");
}

// Two threads take events from the queue all the time, as when the executor has replaced a leader that computes.
TEST_F(UnknownCallsTest, WithTwoThreadsAtTheQueueAllCallsAreAnswered) {
  constexpr int kCallers = 8, kRounds = 200, kAtOnce = 16;
  std::atomic<bool> stop{false};
  auto second = RealRuntime().StartThread("second", [&] {
    while (!stop.load()) {
      void* tag = nullptr;
      bool ok = false;
      const auto now = gpr_time_0(GPR_CLOCK_MONOTONIC);
      if (server_->executor()->queue()->AsyncNext(&tag, &ok, now) != grpc::CompletionQueue::GOT_EVENT) continue;
      ASSERT_NE(tag, nullptr) << "the event of an object that was not complete";
      static_cast<RpcEvent*>(tag)->Done(ok);
    }
  });
  std::vector<std::unique_ptr<Thread>> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.push_back(RealRuntime().StartThread("caller", [&] {
      grpc::GenericStub stub(peer_->NewChannel(RpcTraffic::kShort));
      for (int round = 0; round < kRounds; ++round) {
        for (const grpc::Status& answer : Call(stub, "/no.Service/Method", kAtOnce))
          ASSERT_EQ(answer.error_code(), grpc::StatusCode::UNIMPLEMENTED) << answer.error_message();
      }
    }));
  }
  for (auto& caller : callers) caller->Join();
  stop.store(true);
  second->Join();
  server_->Shutdown(RealRuntime().Now());  // It would wait for a call that has no answer.
}

}  // namespace
}  // namespace deut
