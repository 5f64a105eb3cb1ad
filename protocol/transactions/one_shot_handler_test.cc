// Streams of one-shot transactions on a server, against clients that break any rule they like.
#include "protocol/transactions/one_shot_handler.h"

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "grpcpp/alarm.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using testing::Eventually;

class Client {
 public:
  explicit Client(wire::TransactionService::Stub& stub) : stream_(stub.OneShots(&context_)) {}
  ~Client() {
    context_.TryCancel();
    if (!finished_) (void)Finish();
  }
  void AddOpen(uint32_t version = kProtocolVersion) { message_.mutable_open()->set_protocol_version(version); }
  void Add(uint64_t id, const std::vector<Operation>& operations) {
    wire::OneShotCall* call = message_.add_calls();
    call->set_id(id);
    for (const Operation& operation : operations) ToWire(operation, call->mutable_one_shot()->add_operations());
  }
  bool Send() {
    const bool sent = stream_->Write(message_);
    message_.Clear();
    return sent;
  }
  // Returns the next message; empty if the stream has ended.
  wire::OneShotAnswers Next() {
    wire::OneShotAnswers answers;
    if (!stream_->Read(&answers)) answers.Clear();
    return answers;
  }
  void HalfClose() { stream_->WritesDone(); }
  void Reset() { context_.TryCancel(); }
  grpc::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  bool finished_ = false;
  const std::unique_ptr<grpc::ClientReaderWriter<wire::OneShotCalls, wire::OneShotAnswers>> stream_;
  wire::OneShotCalls message_;
};

Operation Put(const std::string& key, const std::string& value) {
  return {.kind = OperationKind::kPut, .table = TableId(1), .key = key, .value = value};
}
Operation Get(const std::string& key) { return {.kind = OperationKind::kGet, .table = TableId(1), .key = key}; }

#ifdef DEUT_TEST_POINTS
// An event that an executor's queue delivers at once.
class Ping final : public RpcEvent {
 public:
  explicit Ping(grpc::ServerCompletionQueue* queue) {
    alarm_.Set(queue, gpr_now(GPR_CLOCK_MONOTONIC), static_cast<RpcEvent*>(this));
    done_.Wait(RealRuntime(), kNoDeadline);
  }
  void Done(bool) override { done_.Signal(RealRuntime()); }

 private:
  Event done_;
  grpc::Alarm alarm_;
};
#endif

class OneShotHandlerTest : public ::testing::Test {
 protected:
  explicit OneShotHandlerTest(const RpcServiceOptions& options = {.streams_per_peer = 64}, int threads = 256)
      : service_(runtime_, scripted_, options) {
    RpcServerOptions server;
    server.max_threads = threads;
    auto started = RpcServer::Start(RealRuntime(), server, {service_.service()});
    if (!started.ok()) ADD_FAILURE() << started.status().ToString();
    server_ = std::move(started).value();
    peer_ = *RpcPeer::Create("the server", "--server", server_->address(), nullptr, /*insecure=*/false);
    stub_ = wire::TransactionService::NewStub(peer_->NewChannel(RpcTraffic::kShort));
  }
  ~OneShotHandlerTest() override {
#ifdef DEUT_TEST_POINTS
    testing::SetPointHandler({});
#endif
    server_.reset();
    EXPECT_EQ(scripted_.sessions(), 0u);
  }
  std::unique_ptr<Client> Connect() { return std::make_unique<Client>(*stub_); }
  std::unique_ptr<Client> Open() {
    auto client = Connect();
    client->AddOpen();
    EXPECT_TRUE(client->Send());
    EXPECT_EQ(client->Next().protocol_version(), kProtocolVersion);
    return client;
  }
  void ExpectServes() {
    const auto client = Open();
    client->Add(1, {Put("k", "v")});
    ASSERT_TRUE(client->Send());
    const wire::OneShotAnswers answers = client->Next();
    ASSERT_EQ(answers.answers_size(), 1);
    EXPECT_TRUE(FromWire(answers.answers(0).answer().status()).ok());
    client->HalfClose();
    EXPECT_TRUE(client->Finish().ok());
  }

  BlockingHookRuntime runtime_{RealRuntime()};
  testing::ScriptedTransactionService scripted_{runtime_};
  GrpcTransactionServiceServer service_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<const RpcPeer> peer_;
  std::unique_ptr<wire::TransactionService::Stub> stub_;
};

TEST_F(OneShotHandlerTest, CallsOfAStreamAreAnswered) { ExpectServes(); }

TEST_F(OneShotHandlerTest, AnotherVersionIsReportedAndTheStreamEnds) {
  const auto client = Connect();
  client->AddOpen(kProtocolVersion + 1);
  ASSERT_TRUE(client->Send());
  EXPECT_EQ(FromWire(client->Next().status()).code(), ErrorCode::kVersionMismatch);
  EXPECT_TRUE(client->Finish().ok());
  EXPECT_TRUE(Eventually([&] { return scripted_.sessions() == 0; }));
}

TEST_F(OneShotHandlerTest, AMessageThatIsNoneEndsTheStream) {
  const auto client = Open();
  ASSERT_TRUE(client->Send());
  const grpc::Status end = client->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << end.error_message();
}

TEST_F(OneShotHandlerTest, HalfCloseAtOnceEndsTheStream) {
  const auto client = Connect();
  client->HalfClose();
  EXPECT_TRUE(client->Finish().ok());
}

// A waiting call delays neither the other call nor the end of the stream.
TEST_F(OneShotHandlerTest, ACallThatWaitsHoldsUpNoOther) {
  std::atomic<int> calls{0};
  Event gate;
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "one_shot" && calls.fetch_add(1) == 0) gate.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  const auto client = Open();
  client->Add(1, {Put("a", "v")});
  client->Add(2, {Put("b", "v")});
  ASSERT_TRUE(client->Send());
  const wire::OneShotAnswers first = client->Next();
  ASSERT_EQ(first.answers_size(), 1);
  EXPECT_EQ(first.answers(0).id(), 2u);
  gate.Signal(runtime_);
  EXPECT_EQ(client->Next().answers(0).id(), 1u);
}

#ifdef DEUT_TEST_POINTS
TEST_F(OneShotHandlerTest, AStreamLivesUntilTheThreadThatEndsItHasFinished) {
  RpcExecutor& executor = *server_->executor();
  std::atomic<int> calls{0}, over{0};
  std::atomic<bool> opened{false}, ended{false};
  Event gates[2];
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "one_shot") gates[calls.fetch_add(1)].Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "rpc_call.over") ++over;
    if (point != "rpc_call.finishing") return;
    EXPECT_TRUE(opened) << "not by the work that was posted";
    executor.BeforeBlocking();
    // The end of the call and the note to its peer have been run. The thread that ran the second of these has finished
    // it.
    EXPECT_TRUE(Eventually([&] { return over == 2; }));
    Ping(executor.queue());
    EXPECT_NE(scripted_.sessions(), 0u) << "the stream is gone, and its workers with it";
    ended = true;
  });
  const auto client = Open();
  client->Add(1, {Put("a", "v")});
  client->Add(2, {Put("b", "v")});
  ASSERT_TRUE(client->Send());
  // A summoned thread runs the second call.
  ASSERT_TRUE(Eventually([&] { return calls == 2; }));
  gates[0].Signal(runtime_);
  EXPECT_EQ(client->Next().answers(0).id(), 1u);
  Ping(executor.queue());
  const uint64_t events = executor.counts().events;
  client->Reset();
  EXPECT_TRUE(Eventually([&] { return executor.counts().events >= events + 2; }));
  Ping(executor.queue());
  opened = true;
  gates[1].Signal(runtime_);
  EXPECT_TRUE(Eventually([&] { return ended.load(); }));
}
#endif

TEST_F(OneShotHandlerTest, ResetsAtRandomMomentsLeaveNothingBehind) {
  scripted_.withholds = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      for (int round = 0; round < 100; ++round) {
        const auto client = Connect();
        client->AddOpen();
        bool good = true;
        for (auto step = random() % 4; step != 0 && good; --step) {
          for (uint64_t id = 1; id <= random() % 8; ++id)
            client->Add(id, {Put("k", std::string(random() % 10000, 'v')), Get("k")});
          good = client->Send();
          if (random() % 3 == 0) (void)client->Next();
        }
        if (random() % 4 == 0) client->HalfClose();
        if (random() % 2 == 0) client->Reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] { return scripted_.sessions() == 0; }));
  ExpectServes();
}

// More streams than a peer may have open at once: their places are released.
TEST_F(OneShotHandlerTest, StreamsThatAreResetAtOnceKeepNoPlace) {
  for (int i = 0; i < 1000; ++i) Connect()->Reset();
  EXPECT_TRUE(Eventually([&] {
    const auto client = Connect();
    client->AddOpen();
    return client->Send() && client->Next().protocol_version() == kProtocolVersion;
  }));
}

class OneShotFewThreadsTest : public OneShotHandlerTest {
 protected:
  static constexpr int kThreads = 4;
  OneShotFewThreadsTest() : OneShotHandlerTest({.stuck_peer = milliseconds(500)}, kThreads) {}
};

TEST_F(OneShotFewThreadsTest, PeersThatTakeNoAnswersDoNotBlockOthersForGood) {
  {
    const auto client = Open();
    client->Add(1, {Put("k", std::string(kMaxValueBytes, 'v'))});
    ASSERT_TRUE(client->Send());
    ASSERT_EQ(client->Next().answers_size(), 1);
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3 * kThreads; ++i) {
    clients.push_back(Connect());
    clients.back()->AddOpen();
    for (uint64_t id = 1; id <= 4; ++id) clients.back()->Add(id, std::vector<Operation>(16, Get("k")));
    ASSERT_TRUE(clients.back()->Send());
  }
  // Each is cut off in turn, although no client goes away.
  EXPECT_TRUE(Eventually([&] { return scripted_.commits() > 1; }));
  EXPECT_TRUE(Eventually([&] { return scripted_.sessions() == 0; }));
  ExpectServes();
}

class IdleOneShotsTest : public OneShotHandlerTest {
 protected:
  IdleOneShotsTest() : OneShotHandlerTest({.idle_session = seconds(1)}) {}
};

TEST_F(IdleOneShotsTest, AStreamThatAsksForNothingIsEndedAndSaysSo) {
  for (const bool opened : {true, false}) {
    const auto client = opened ? Open() : Connect();
    EXPECT_EQ(client->Next().ByteSizeLong(), 0u);
    const grpc::Status end = client->Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_NE(end.error_message().find("--idle_session_timeout"), std::string::npos) << end.error_message();
  }
  ExpectServes();
}

// A call takes longer than the timeout, while the stream waits for the next message.
TEST_F(IdleOneShotsTest, AStreamWithACallAtWorkIsNotIdle) {
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "one_shot") runtime_.SleepUntil(runtime_.Now() + milliseconds(2500));
    return Status::Ok();
  };
  const auto client = Open();
  client->Add(1, {Put("k", "v")});
  ASSERT_TRUE(client->Send());
  const wire::OneShotAnswers answers = client->Next();
  ASSERT_EQ(answers.answers_size(), 1);
  EXPECT_TRUE(FromWire(answers.answers(0).answer().status()).ok());
  EXPECT_EQ(client->Next().ByteSizeLong(), 0u);
  EXPECT_EQ(client->Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << "it was idle after that";
}

// Messages come at about the moment at which the stream is found idle: each is answered, or the stream has ended without a word about it.
TEST_F(IdleOneShotsTest, MessagesBesideTheEndAreAnsweredOrNotRun) {
  for (int round = 0; round < 6; ++round) {
    const auto client = Open();
    runtime_.SleepUntil(runtime_.Now() + milliseconds(950 + 60 * round));
    client->Add(1, {Put("k", "v")});
    if (!client->Send()) continue;
    const wire::OneShotAnswers answers = client->Next();
    if (answers.answers_size() == 1) EXPECT_TRUE(FromWire(answers.answers(0).answer().status()).ok());
  }
  ExpectServes();
}

}  // namespace
}  // namespace deut
