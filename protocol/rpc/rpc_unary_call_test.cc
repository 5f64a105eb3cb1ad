// A small service with one single call, on an executor.
#include "protocol/rpc/rpc_unary_call.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"

namespace deut {
namespace {

using testing::Eventually;
using ::testing::HasSubstr;

constexpr char kPath[] = "/test.Singles/Call";

grpc::ByteBuffer Message(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Text(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  if (!message.DumpToSingleSlice(&slice).ok()) return "";
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

// Answers a request with itself. The request `hold` first waits for the gate, without announcing it; `fail` gets a
// status.
class Singles final : public grpc::Service, public ExecutedService {
 public:
  Singles(Runtime& runtime, size_t per_peer)
      : runtime_(runtime),
        watchdog_(runtime, seconds(60)),
        calls_(runtime, {.in_all = 1000, .per_peer = per_peer, .what = "single calls"}) {
    using grpc::internal::RpcMethod;
    AddMethod(new grpc::internal::RpcServiceMethod(kPath, RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodAsync(0);
  }

  void Serve(RpcExecutor& executor) override {
    host_.emplace(UnaryHost{.executor = executor, .writes = watchdog_, .calls = calls_});
    method_.request_next = [this, &executor](auto* context, auto* request, auto* writer, void* tag) {
      RequestAsyncUnary(0, context, request, writer, executor.queue(), executor.queue(), tag);
    };
    method_.run = [this](grpc::ServerContext&, const grpc::ByteBuffer& request, grpc::ByteBuffer* answer) {
      const std::string text = Text(request);
      if (text == "fail") return grpc::Status(grpc::StatusCode::DATA_LOSS, "as asked");
      if (text == "hold") {
        ++holding;
        gate.Wait(runtime_, kNoDeadline);
      }
      *answer = Message(text);
      return grpc::Status::OK;
    };
    RpcUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>::RequestNextCall(*host_, method_);
  }

  size_t open() { return calls_.open(); }

  std::atomic<int> holding{0};
  Event gate;

 private:
  Runtime& runtime_;
  StreamWatchdog watchdog_;
  StreamQuota calls_;
  std::optional<UnaryHost> host_;
  UnaryMethod<grpc::ByteBuffer, grpc::ByteBuffer> method_;
};

// One call, from the client side.
class Call {
 public:
  Call(grpc::GenericStub& stub, const std::string& text) {
    call_ = stub.PrepareUnaryCall(&context_, kPath, Message(text), &queue_);
    call_->StartCall();
    call_->Finish(&answer_, &end_, nullptr);
  }
  ~Call() {
    context_.TryCancel();
    (void)End();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  grpc::Status End() {
    void* tag = nullptr;
    bool ok = false;
    if (!ended_) queue_.Next(&tag, &ok);
    ended_ = true;
    return end_;
  }
  std::string Answer() { return End().ok() ? Text(answer_) : end_.error_message(); }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::ByteBuffer answer_;
  grpc::Status end_;
  bool ended_ = false;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call_;
};

class RpcUnaryCallTest : public ::testing::Test {
 protected:
  static constexpr int kThreads = 32;
  static constexpr size_t kPerPeer = 8;

  RpcUnaryCallTest() {
    RpcServerOptions options;
    options.listen = Address();
    options.max_threads = kThreads;
    auto server = RpcServer::Start(runtime_, options, {&singles_});
    if (!server.ok()) ADD_FAILURE() << server.status().ToString();
    server_ = std::move(server).value();
    server_->SetServing(true);
    peer_ = *RpcPeer::Create("the server", "--server", server_->address(), nullptr, /*insecure=*/false);
    stub_.emplace(peer_->NewChannel(RpcTraffic::kShort));
  }
  ~RpcUnaryCallTest() override {
    if (!singles_.gate.IsSet()) singles_.gate.Signal(runtime_);
  }
  std::string Ask(const std::string& text) { return Call(*stub_, text).Answer(); }

  Runtime& runtime_ = RealRuntime();
  Singles singles_{runtime_, kPerPeer};
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<const RpcPeer> peer_;
  std::optional<grpc::GenericStub> stub_;
};

TEST_F(RpcUnaryCallTest, EachIsAnsweredAndLeavesNothingBehind) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Ask(std::to_string(i)), std::to_string(i));
  EXPECT_EQ(Call(*stub_, "fail").End().error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_TRUE(Eventually([&] { return singles_.open() == 0; }));
}

TEST_F(RpcUnaryCallTest, CallsBeyondTheQuotaAreRefusedAndTheOthersRun) {
  std::vector<std::unique_ptr<Call>> calls;
  for (size_t i = 0; i < kPerPeer; ++i) calls.push_back(std::make_unique<Call>(*stub_, "hold"));
  ASSERT_TRUE(Eventually([&] { return singles_.holding == static_cast<int>(kPerPeer); }));
  const grpc::Status refused = Call(*stub_, "more").End();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("8 single calls of "));
  EXPECT_EQ(*testing::Health(*peer_), 1);
  singles_.gate.Signal(runtime_);
  for (const auto& call : calls) EXPECT_EQ(call->Answer(), "hold");
  EXPECT_TRUE(Eventually([&] { return singles_.open() == 0; }));
  EXPECT_EQ(Ask("more"), "more");
}

TEST_F(RpcUnaryCallTest, ACallWhosePeerHasGoneRunsToItsEnd) {
  {
    Call call(*stub_, "hold");
    ASSERT_TRUE(Eventually([&] { return singles_.holding == 1; }));
    call.Cancel();
    EXPECT_EQ(call.End().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_EQ(singles_.open(), 1u);
  singles_.gate.Signal(runtime_);
  EXPECT_TRUE(Eventually([&] { return singles_.open() == 0; }));
}

TEST_F(RpcUnaryCallTest, AServerThatEndsWaitsForTheCallThatRuns) {
  Call call(*stub_, "hold");
  ASSERT_TRUE(Eventually([&] { return singles_.holding == 1; }));
  std::thread opener([&] {
    EXPECT_FALSE(call.End().ok());  // the server has cancelled it
    singles_.gate.Signal(runtime_);
  });
  server_->Shutdown(runtime_.Now());
  opener.join();
  EXPECT_EQ(singles_.open(), 0u);
}

// Single calls have threads left even while work holds all threads that streams may use.
TEST_F(RpcUnaryCallTest, SingleCallsRunWhilePostedWorkBlocksAllItsThreads) {
  RpcExecutor& executor = *server_->executor();
  for (int i = 0; i < kThreads; ++i) {
    (void)executor.Post([&] {
      executor.BeforeBlocking();
      singles_.gate.Wait(runtime_, kNoDeadline);
    });
  }
  const int kept = kThreads / 16;
  ASSERT_TRUE(Eventually([&] { return executor.counts().blocked == kThreads - 1 - kept; }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask("status"), "status");
  EXPECT_TRUE(Eventually([&] { return executor.counts().blocked == kThreads - 1 - kept; }));
}

}  // namespace
}  // namespace deut
