// The server's side of sessions, against a client that sends arbitrary messages.
#include "protocol/transactions/session_handler.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/connections/rpc_limits.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/rpc/rpc_status.h"
#include "protocol/rpc/service_options.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/transactions/thread_per_one_shot.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

class SessionHandlerTest : public ::testing::Test {
 protected:
  SessionHandlerTest() {
    stub_ = wire::TransactionService::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kShort));
    Connect();
  }
  ~SessionHandlerTest() override { HangUp(); }

  void Connect() {
    context_ = std::make_unique<grpc::ClientContext>();
    stream_ = stub_->Session(context_.get());
    answers_.Clear();
    next_ = 0;
  }
  void HangUp() {
    if (stream_ == nullptr) return;
    context_->TryCancel();
    (void)stream_->Finish();
    stream_.reset();
  }
  grpc::Status Finish() {
    const grpc::Status end = stream_->Finish();
    stream_.reset();
    return end;
  }

  wire::SessionRequest* Add() { return message_.add_requests(); }
  bool Send() {
    const bool sent = stream_->Write(message_);
    message_.Clear();
    return sent;
  }
  // Returns the next answer; if the stream has ended, one with status INTERNAL.
  wire::SessionAnswer Next() {
    if (next_ == answers_.answers_size()) {
      next_ = 0;
      if (!stream_->Read(&answers_)) {
        answers_.Clear();
        wire::SessionAnswer none;
        ToWire(Status(ErrorCode::kInternal, "the stream has ended"), none.mutable_status());
        return none;
      }
    }
    return answers_.answers(next_++);
  }
  Status NextStatus() { return FromWire(Next().status()); }
  void Open() {
    Add()->mutable_open()->set_protocol_version(kProtocolVersion);
    ASSERT_TRUE(Send());
    const wire::SessionAnswer answer = Next();
    ASSERT_TRUE(FromWire(answer.status()).ok());
    EXPECT_EQ(answer.protocol_version(), kProtocolVersion);
  }
  static void AddPut(google::protobuf::RepeatedPtrField<wire::Operation>* operations, const std::string& key,
                     const std::string& value) {
    ToWire(Operation{.kind = OperationKind::kPut, .table = TableId(1), .key = key, .value = value}, operations->Add());
  }

  Runtime& runtime_ = RealRuntime();
  testing::ScriptedTransactionService scripted_{runtime_};
  GrpcTransactionServiceServer service_{
      runtime_, scripted_, testing::NewThreadPerOneShot, {.stuck_peer = milliseconds(300)}};
  testing::Loopback loopback_{{service_.service()}};
  std::unique_ptr<wire::TransactionService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::SessionRequests, wire::SessionAnswers>> stream_;
  wire::SessionRequests message_;
  wire::SessionAnswers answers_;
  int next_ = 0;
};

TEST_F(SessionHandlerTest, PipelinedRequestsAreAnsweredInOrder) {
  Add()->mutable_open()->set_protocol_version(kProtocolVersion);
  Add()->mutable_begin();
  AddPut(Add()->mutable_execute()->mutable_operations(), "k", "v");
  Add()->mutable_commit();
  ASSERT_TRUE(Send());
  // Sends the next message before it reads any answer.
  Add()->mutable_begin();
  Add()->mutable_abort();
  ASSERT_TRUE(Send());
  EXPECT_EQ(Next().protocol_version(), kProtocolVersion);
  EXPECT_EQ(Next().timestamp(), 1u);
  EXPECT_EQ(Next().results_size(), 1);
  const wire::SessionAnswer commit = Next();
  EXPECT_EQ(commit.timestamp(), 1u);
  EXPECT_EQ(commit.commit_lsn(), 100u);
  EXPECT_EQ(Next().timestamp(), 2u);
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_EQ(scripted_.Value(TableId(1), "k"), "v");
  EXPECT_EQ(scripted_.aborts(), 1u);
}

TEST_F(SessionHandlerTest, VersionComesFirst) {
  Add()->mutable_open()->set_protocol_version(kProtocolVersion + 1);
  ASSERT_TRUE(Send());
  EXPECT_EQ(NextStatus().code(), ErrorCode::kVersionMismatch);
  EXPECT_TRUE(Finish().ok());
  EXPECT_EQ(scripted_.sessions(), 0u);
}

TEST_F(SessionHandlerTest, NothingBeforeOpen) {
  Add()->mutable_begin();
  ASSERT_TRUE(Send());
  EXPECT_EQ(NextStatus().code(), ErrorCode::kWrongState);
  EXPECT_TRUE(Finish().ok());
}

TEST_F(SessionHandlerTest, ServiceThatRefusesSessions) {
  scripted_.before = [](std::string_view call, Deadline) {
    return call == "new_session" ? Status(ErrorCode::kResourceExhausted, "full").WithRetryAfter(7) : Status::Ok();
  };
  Add()->mutable_open()->set_protocol_version(kProtocolVersion);
  ASSERT_TRUE(Send());
  const Status status = NextStatus();
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(status.retry_after_ms(), 7u);
}

TEST_F(SessionHandlerTest, BadRequestsLeaveTheTransactionAlone) {
  Open();
  Add()->mutable_begin();
  Add();  // an empty request
  Add()->mutable_open()->set_protocol_version(kProtocolVersion);
  AddPut(Add()->mutable_execute()->mutable_operations(), "", "v");
  AddPut(Add()->mutable_execute()->mutable_operations(), std::string(4097, 'k'), "v");
  Add()->mutable_execute()->add_operations();
  Add()->mutable_begin()->set_isolation(static_cast<wire::Isolation>(9));
  AddPut(Add()->mutable_execute()->mutable_operations(), "k", "v");
  Add()->mutable_commit();
  Add()->mutable_commit();
  ASSERT_TRUE(Send());
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_EQ(NextStatus().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(NextStatus().code(), ErrorCode::kWrongState);
  EXPECT_THAT(NextStatus().ToString(), HasSubstr("INVALID_ARGUMENT: operations[0].key: a key of 0 bytes"));
  EXPECT_THAT(NextStatus().ToString(), HasSubstr("operations[0].key: a key of 4097 bytes"));
  EXPECT_THAT(NextStatus().ToString(), HasSubstr("operations[0].kind"));
  EXPECT_THAT(NextStatus().ToString(), HasSubstr("isolation: 9"));
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_EQ(NextStatus().code(), ErrorCode::kWrongState);  // there is no transaction to commit
  EXPECT_EQ(scripted_.commits(), 1u);
}

TEST_F(SessionHandlerTest, BadOneShotNamesItsPart) {
  Open();
  AddPut(Add()->mutable_one_shot()->mutable_operations(), "", "v");
  wire::OneShot* one_shot = Add()->mutable_one_shot();
  AddPut(one_shot->mutable_operations(), "k", "v");
  one_shot->mutable_begin()->set_durability(static_cast<wire::Durability>(7));
  ASSERT_TRUE(Send());
  EXPECT_THAT(NextStatus().ToString(), HasSubstr("operations[0].key"));
  EXPECT_THAT(NextStatus().ToString(), HasSubstr("begin.durability: 7"));
  EXPECT_EQ(scripted_.commits(), 0u);
}

TEST_F(SessionHandlerTest, MessagesThatAreNoneEndTheSession) {
  Open();
  Add()->mutable_begin();
  ASSERT_TRUE(Send());
  EXPECT_TRUE(NextStatus().ok());
  for (int i = 0; i <= kMaxCallsPerMessage; ++i) Add()->mutable_commit();
  ASSERT_TRUE(Send());
  EXPECT_EQ(NextStatus().code(), ErrorCode::kInternal);
  const grpc::Status end = Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(end.error_message(), HasSubstr("requests: 65 is not within 1 to 64"));
  EXPECT_EQ(scripted_.sessions(), 0u);
  EXPECT_EQ(scripted_.aborts(), 1u);
}

TEST_F(SessionHandlerTest, DeadlinesReachTheService) {
  Deadline seen;
  scripted_.before = [&](std::string_view call, Deadline deadline) {
    if (call == "begin") seen = deadline;
    return Status::Ok();
  };
  Open();
  wire::SessionRequest* begin = Add();
  begin->mutable_begin();
  begin->set_timeout_us(5'000'000);
  ASSERT_TRUE(Send());
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_GT(seen, runtime_.Now() + seconds(1));
  EXPECT_LT(seen, runtime_.Now() + seconds(6));
  Add()->mutable_abort();
  Add()->mutable_begin();
  ASSERT_TRUE(Send());
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_EQ(seen, kNoDeadline);
}

TEST_F(SessionHandlerTest, LargeResultsTravelInSeveralMessages) {
  Open();
  Add()->mutable_begin();
  for (int i = 0; i < 3; ++i)
    AddPut(Add()->mutable_execute()->mutable_operations(), "k" + std::to_string(i), std::string(kMaxValueBytes, 'v'));
  ASSERT_TRUE(Send());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(NextStatus().ok());
  wire::Execute* execute = Add()->mutable_execute();
  for (int i = 0; i < 12; ++i) {
    ToWire(Operation{.kind = OperationKind::kGet, .table = TableId(1), .key = "k" + std::to_string(i % 3)},
           execute->add_operations());
  }
  ASSERT_TRUE(Send());
  int results = 0, answers = 0;
  wire::SessionAnswer answer;
  do {
    answer = Next();
    ++answers;
    results += answer.results_size();
    EXPECT_LT(answer.ByteSizeLong(), kMaxMessageBytes);
  } while (answer.more());
  EXPECT_EQ(results, 12);
  EXPECT_GE(answers, 12);
}

TEST_F(SessionHandlerTest, LostConnectionAborts) {
  Open();
  Add()->mutable_begin();
  ASSERT_TRUE(Send());
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_EQ(scripted_.transactions(), 1u);
  HangUp();
  EXPECT_TRUE(testing::Eventually([&] { return scripted_.sessions() == 0; }));
  EXPECT_EQ(scripted_.aborts(), 1u);
}

TEST_F(SessionHandlerTest, HalfClosedSessionIsDone) {
  Open();
  Add()->mutable_begin();
  ASSERT_TRUE(Send());
  EXPECT_TRUE(NextStatus().ok());
  stream_->WritesDone();
  EXPECT_TRUE(Finish().ok());
  EXPECT_EQ(scripted_.aborts(), 1u);
}

TEST_F(SessionHandlerTest, ClientThatDoesNotReadIsCutOff) {
  Open();
  Add()->mutable_begin();
  AddPut(Add()->mutable_execute()->mutable_operations(), "k", std::string(kMaxValueBytes, 'v'));
  ASSERT_TRUE(Send());
  EXPECT_TRUE(NextStatus().ok());
  EXPECT_TRUE(NextStatus().ok());
  wire::Execute* execute = Add()->mutable_execute();
  for (int i = 0; i < 200; ++i) {
    ToWire(Operation{.kind = OperationKind::kGet, .table = TableId(1), .key = "k"}, execute->add_operations());
  }
  ASSERT_TRUE(Send());
  EXPECT_TRUE(testing::Eventually([&] { return scripted_.sessions() == 0; }));
  EXPECT_EQ(scripted_.aborts(), 1u);
}

// The server ends a session that sends no request, aborts its transaction, and states that it has run nothing since its last answer.
TEST(IdleSessionsTest, ASessionThatAsksForNothingIsEndedAndSaysSo) {
  Runtime& runtime = RealRuntime();
  testing::ScriptedTransactionService scripted(runtime);
  GrpcTransactionServiceServer service(runtime, scripted, testing::NewThreadPerOneShot,
                                       {.idle_session = milliseconds(200)});
  testing::Loopback loopback({service.service()});
  const auto stub = wire::TransactionService::NewStub(loopback.Peer()->NewChannel(RpcTraffic::kShort));
  grpc::ClientContext context;
  const auto stream = stub->Session(&context);
  wire::SessionRequests message;
  message.add_requests()->mutable_open()->set_protocol_version(kProtocolVersion);
  message.add_requests()->mutable_begin();
  ASSERT_TRUE(stream->Write(message));
  wire::SessionAnswers answers;
  ASSERT_TRUE(stream->Read(&answers));
  EXPECT_EQ(scripted.sessions(), 1u);
  EXPECT_FALSE(stream->Read(&answers));
  const grpc::Status end = stream->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(end.error_message(), HasSubstr("--idle_session_timeout"));
  EXPECT_EQ(context.GetServerTrailingMetadata().count(kNothingRunKey), 1u);
  EXPECT_TRUE(testing::Eventually([&] { return scripted.sessions() == 0; }));
  EXPECT_EQ(scripted.aborts(), 1u);
}

#ifdef DEUT_TEST_POINTS
// The peer hangs up after its session was found idle and before it is ended. Two threads used to end the session: one read the trailing metadata
// while the other changed it.
TEST(IdleSessionsTest, AnIdleSessionWhosePeerHangsUpIsEndedByOne) {
  Runtime& runtime = RealRuntime();
  testing::ScriptedTransactionService scripted(runtime);
  GrpcTransactionServiceServer service(runtime, scripted, testing::NewThreadPerOneShot,
                                       {.idle_session = milliseconds(200)});
  testing::Loopback loopback({service.service()});
  const auto stub = wire::TransactionService::NewStub(loopback.Peer()->NewChannel(RpcTraffic::kShort));
  Event found, go, finished;
  std::atomic<bool> first{true};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "session_handler.idle" || !first.exchange(false)) return;
    found.Signal(runtime);
    go.Wait(runtime, kNoDeadline);
  });
  grpc::ClientContext context;
  const auto stream = stub->Session(&context);
  wire::SessionRequests message;
  message.add_requests()->mutable_open()->set_protocol_version(kProtocolVersion);
  ASSERT_TRUE(stream->Write(message));
  wire::SessionAnswers answers;
  ASSERT_TRUE(stream->Read(&answers));
  ASSERT_TRUE(found.Wait(runtime, runtime.Now() + seconds(20)));
  stream->WritesDone();
  EXPECT_TRUE(testing::Eventually([&] { return scripted.sessions() == 0; })) << "the server has heard of it";
  grpc::Status end;
  std::thread finish([&] {
    end = stream->Finish();
    finished.Signal(runtime);
  });
  // No thread may have ended the session by now.
  EXPECT_FALSE(finished.Wait(runtime, runtime.Now() + milliseconds(300)));
  go.Signal(runtime);
  finish.join();
  testing::SetPointHandler({});
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(context.GetServerTrailingMetadata().count(kNothingRunKey), 1u);
}
#endif

// A session at work is not idle, however long its work takes.
TEST(IdleSessionsTest, ASessionAtWorkIsNotIdle) {
  BlockingHookRuntime runtime(RealRuntime());
  testing::ScriptedTransactionService scripted(runtime);
  scripted.before = [&](std::string_view call, Deadline) {
    if (call == "begin") runtime.SleepUntil(runtime.Now() + milliseconds(500));
    return Status::Ok();
  };
  GrpcTransactionServiceServer service(RealRuntime(), scripted, testing::NewThreadPerOneShot,
                                       {.idle_session = milliseconds(100)});
  testing::Loopback loopback({service.service()});
  const auto stub = wire::TransactionService::NewStub(loopback.Peer()->NewChannel(RpcTraffic::kShort));
  grpc::ClientContext context;
  const auto stream = stub->Session(&context);
  wire::SessionRequests message;
  message.add_requests()->mutable_open()->set_protocol_version(kProtocolVersion);
  message.add_requests()->mutable_begin();
  ASSERT_TRUE(stream->Write(message));
  wire::SessionAnswers answers;
  ASSERT_TRUE(stream->Read(&answers));
  EXPECT_EQ(answers.answers(1).timestamp(), 1u);
  EXPECT_FALSE(stream->Read(&answers));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << "it was idle after that";
}

// One host, without TLS, has more waiting sessions than it may have threads, on several connections. Other hosts are served, and its own sessions are
// served when the waits end. Each connection used to count as a peer, so two connections could take all threads.
TEST(IdleSessionsTest, WaitingSessionsOfOneAddressKeepNoOtherOut) {
  BlockingHookRuntime runtime(RealRuntime());
  testing::ScriptedTransactionService scripted(runtime);
  std::atomic<int> waiting{0};
  Event go;
  scripted.before = [&](std::string_view call, Deadline) {
    if (call == "begin") {
      waiting.fetch_add(1);
      go.Wait(runtime, kNoDeadline);
    }
    return Status::Ok();
  };
  GrpcTransactionServiceServer service(RealRuntime(), scripted, testing::NewThreadPerOneShot, {.threads = 8});
  RpcServerOptions options;
  options.max_threads = 8;
  auto server = RpcServer::Start(RealRuntime(), options, {service.service()});
  ASSERT_TRUE(server.ok());
  (*server)->SetServing(true);
  auto peer = RpcPeer::Create("the server", "--server", (*server)->address(), nullptr, false);
  constexpr int kSessions = 20, kAtWork = 6, kConnections = 4;
  std::vector<std::unique_ptr<wire::TransactionService::Stub>> stubs;
  for (int i = 0; i < kConnections; ++i)
    stubs.push_back(wire::TransactionService::NewStub((*peer)->NewChannel(RpcTraffic::kShort)));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<wire::SessionRequests, wire::SessionAnswers>>> streams;
  wire::SessionRequests message;
  message.add_requests()->mutable_open()->set_protocol_version(kProtocolVersion);
  message.add_requests()->mutable_begin();
  for (int i = 0; i < kSessions; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stubs[static_cast<size_t>(i % kConnections)]->Session(contexts.back().get()));
    ASSERT_TRUE(streams.back()->Write(message));
  }
  EXPECT_TRUE(testing::Eventually([&] { return waiting.load() == kAtWork; }));
  const auto modest =
      wire::TransactionService::NewStub(testing::Loopback::ChannelFrom("127.0.0.2", (*server)->address()));
  grpc::ClientContext context;
  const auto stream = modest->Session(&context);
  wire::SessionRequests open;
  open.add_requests()->mutable_open()->set_protocol_version(kProtocolVersion);
  ASSERT_TRUE(stream->Write(open));
  wire::SessionAnswers answers;
  EXPECT_TRUE(stream->Read(&answers));
  EXPECT_EQ(*testing::Health(**peer), 1);
  EXPECT_EQ(waiting.load(), kAtWork);
  go.Signal(runtime);
  for (const auto& one : streams) EXPECT_TRUE(one->Read(&answers));
  context.TryCancel();
  (void)stream->Finish();
  for (size_t i = 0; i < streams.size(); ++i) {
    contexts[i]->TryCancel();
    (void)streams[i]->Finish();
  }
}

// One host, without TLS, opens on two connections as many streams as one connection may have. Each stream only sends `open`.
TEST(IdleSessionsTest, IdleSessionsOfOneAddressKeepNoOtherOut) {
  Runtime& runtime = RealRuntime();
  testing::ScriptedTransactionService scripted(runtime);
  constexpr size_t kLimit = 768;
  GrpcTransactionServiceServer service(runtime, scripted, testing::NewThreadPerOneShot, {.streams_per_peer = kLimit});
  testing::Loopback loopback({service.service()});
  loopback.server().SetServing(true);
  wire::SessionRequests open;
  open.add_requests()->mutable_open()->set_protocol_version(kProtocolVersion);
  struct Client {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<wire::SessionRequests, wire::SessionAnswers>> stream;
    grpc::Status refused;
  };
  const auto connect = [&](wire::TransactionService::Stub& stub) {
    auto client = std::make_unique<Client>();
    client->stream = stub.Session(&client->context);
    wire::SessionAnswers answers;
    client->stream->Write(open);
    if (!client->stream->Read(&answers)) {
      client->refused = client->stream->Finish();
      client->stream.reset();
    }
    return client;
  };
  const auto hang_up = [](Client& client) {
    if (client.stream == nullptr) return;
    client.context.TryCancel();
    (void)client.stream->Finish();
  };
  const auto stub_from = [&](const char* source) {
    return wire::TransactionService::NewStub(loopback.ChannelFrom(source));
  };
  const auto greedy = stub_from("127.0.0.1"), second_of_greedy = stub_from("127.0.0.1");
  std::vector<std::unique_ptr<Client>> idle;
  size_t refused = 0;
  for (int i = 0; i < kMaxStreamsPerConnection - 1; ++i) {
    idle.push_back(connect(i % 2 == 0 ? *greedy : *second_of_greedy));
    const grpc::Status& status = idle.back()->refused;
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), HasSubstr(std::to_string(kLimit) + " streams of 127.0.0.1 "));
    EXPECT_THAT(status.error_message(), HasSubstr("--max_streams_per_peer"));
  }
  EXPECT_EQ(refused, kMaxStreamsPerConnection - 1 - kLimit);

  const auto modest = stub_from("127.0.0.2");
  const auto client = connect(*modest);
  EXPECT_TRUE(client->refused.ok()) << client->refused.error_message();
  {
    grpc::ClientContext context;
    wire::GetStatusAnswer answer;
    wire::ServiceRequest request;
    request.set_protocol_version(kProtocolVersion);
    EXPECT_TRUE(modest->GetStatus(&context, request, &answer).ok());
  }
  {
    grpc::ClientContext context;
    wire::OutcomeAnswer answer;
    wire::OutcomeRequest request;
    request.set_protocol_version(kProtocolVersion);
    request.set_id(std::string(16, 'i'));
    EXPECT_TRUE(modest->AskOutcome(&context, request, &answer).ok());
  }
  EXPECT_EQ(*testing::Health(*loopback.Peer()), 1);
  hang_up(*client);
  for (const auto& one : idle) hang_up(*one);
  EXPECT_TRUE(testing::Eventually([&] { return scripted.sessions() == 0; }));
  // The places were given back.
  const auto again = connect(*greedy);
  EXPECT_TRUE(again->refused.ok()) << again->refused.error_message();
  hang_up(*again);
}

}  // namespace
}  // namespace deut
