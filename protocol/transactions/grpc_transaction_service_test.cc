// The calls outside sessions, through a real connection.
#include "protocol/transactions/grpc_transaction_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/compression.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/testing/test_authority.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/transactions/thread_per_one_shot.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {
namespace {

class GrpcTransactionServiceTest : public ::testing::Test {
 protected:
  GrpcTransactionServiceTest() {
    scripted_.before = [this](std::string_view call, Deadline) {
      if (call == stuck_in_) stuck_.Wait(runtime_, kNoDeadline);
      return call == refused_ ? Status(ErrorCode::kUnavailable, "starting") : Status::Ok();
    };
  }
  ~GrpcTransactionServiceTest() override { stuck_.Signal(runtime_); }

  Deadline Soon() { return runtime_.Now() + seconds(20); }

  Runtime& runtime_ = RealRuntime();
  std::string stuck_in_, refused_;
  Event stuck_;
  testing::ScriptedTransactionService scripted_{runtime_};
  GrpcTransactionServiceServer service_{runtime_, scripted_, testing::NewThreadPerOneShot};
  testing::Loopback loopback_{{service_.service()}};
  GrpcTransactionService client_{runtime_, loopback_.Peer(), GrpcTransactionServiceOptions()};
};

TEST_F(GrpcTransactionServiceTest, Tables) {
  EXPECT_EQ(client_.OpenTable("t", Soon()).status().code(), ErrorCode::kNotFound);
  auto created = client_.CreateTable("t", {}, Soon());
  ASSERT_TRUE(created.ok()) << created.status().ToString();
  EXPECT_EQ(*created, TableId(1));
  EXPECT_EQ(client_.CreateTable("t", {}, Soon()).status().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(*client_.OpenTable("t", Soon()), TableId(1));
  auto tables = client_.ListTables(Soon());
  ASSERT_TRUE(tables.ok());
  ASSERT_EQ(tables->size(), 1u);
  EXPECT_EQ((*tables)[0].name, "t");
  EXPECT_TRUE(client_.DropTable("t", Soon()).ok());
  EXPECT_EQ(client_.DropTable("t", Soon()).code(), ErrorCode::kNotFound);
  EXPECT_EQ(client_.CreateTable("", {}, Soon()).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(client_.CreateTable(std::string(256, 'n'), {}, Soon()).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(GrpcTransactionServiceTest, OptionsOfATableAreSentAndUnknownOnesRefused) {
  const std::vector<std::pair<std::string, std::optional<Compression>>> tables = {{"default", std::nullopt},
                                                                                  {"plain", Compression::kNone},
                                                                                  {"fast", Compression::kLz4},
                                                                                  {"small", Compression::kZstd}};
  for (const auto& [name, compression] : tables) {
    ASSERT_TRUE(client_.CreateTable(name, {.compression = compression}, Soon()).ok());
    EXPECT_EQ(scripted_.last_table_options().compression, compression) << name;
  }
  const auto stub = wire::TransactionService::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kShort));
  for (const uint32_t unknown : {4u, 257u, UINT32_MAX}) {
    wire::TableRequest request;
    request.set_protocol_version(kProtocolVersion);
    request.set_name("another");
    request.set_compression(unknown);
    wire::TableAnswer answer;
    grpc::ClientContext context;
    ASSERT_TRUE(stub->CreateTable(&context, request, &answer).ok());
    EXPECT_EQ(answer.status().code(), static_cast<uint32_t>(ErrorCode::kInvalidArgument)) << unknown;
  }
  EXPECT_EQ(client_.OpenTable("another", Soon()).status().code(), ErrorCode::kNotFound);
}

TEST_F(GrpcTransactionServiceTest, Outcomes) {
  const TransactionName name{.id = {.high = 7, .low = 8}, .not_before = Timestamp(9)};
  scripted_.set_outcome(
      {.outcome = TransactionOutcome::kCommitted, .commit = {.timestamp = Timestamp(3), .commit_lsn = Lsn(4)}});
  const Result<OutcomeAnswer> answer = client_.AskOutcome(name, Soon());
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->outcome, TransactionOutcome::kCommitted);
  EXPECT_EQ(answer->commit.timestamp, Timestamp(3));
  EXPECT_EQ(scripted_.last_asked().id, name.id);
  EXPECT_EQ(scripted_.last_asked().not_before, name.not_before);
  EXPECT_EQ(client_.AskOutcome({}, Soon()).status().code(), ErrorCode::kInvalidArgument);
  refused_ = "ask_outcome";
  EXPECT_EQ(client_.AskOutcome(name, Soon()).status().code(), ErrorCode::kUnavailable);
}

TEST_F(GrpcTransactionServiceTest, SessionsNameTheirTransactions) {
  auto session = client_.NewSession(Soon());
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  EXPECT_EQ((*session)->not_before(), Timestamp(1)) << "told when it was opened";
  const TransactionName name{.id = {.high = 7, .low = 8}, .not_before = (*session)->not_before()};
  TransactionOptions options;
  options.name = name;
  const Result<Timestamp> begun = (*session)->Begin(options, Soon());
  ASSERT_TRUE(begun.ok());
  EXPECT_EQ(scripted_.last_options().name.id, name.id);
  std::vector<OperationResult> results;
  const std::vector<Operation> operations = {
      {.kind = OperationKind::kPut, .table = TableId(1), .key = "k", .value = "v"},
      {.kind = OperationKind::kAdd, .table = TableId(1), .key = "n", .value = "12345678"},
      {.kind = OperationKind::kCompareAndSet, .table = TableId(1), .key = "k", .value = "x", .expected = "y"},
      {.kind = OperationKind::kRemoveRange, .table = TableId(1), .low = "a"}};
  ASSERT_TRUE((*session)->Execute(operations, &results, Soon()).ok());
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(RecordBatch::Iterator(results[1].records).record().value, "12345678");
  EXPECT_EQ(results[2].status.code(), ErrorCode::kConditionFailed);
  EXPECT_EQ(RecordBatch::Iterator(results[2].records).record().value, "found") << "what it has instead";
  EXPECT_EQ(results[3].removed, 3u);
  const Result<CommitAnswer> committed = (*session)->Commit(Soon());
  ASSERT_TRUE(committed.ok());
  EXPECT_GE((*session)->not_before(), committed->timestamp);
}

TEST_F(GrpcTransactionServiceTest, StatusAndCaches) {
  auto status = client_.GetStatus(Soon());
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->tc[0].name, "a");
  EXPECT_EQ(status->dc[0].value, 2u);
  EXPECT_TRUE(client_.DropCaches(Soon()).ok());
  refused_ = "drop_caches";
  EXPECT_EQ(client_.DropCaches(Soon()).code(), ErrorCode::kUnavailable);
}

TEST_F(GrpcTransactionServiceTest, LostAnswerToACommitIsUnknown) {
  for (const char* call : {"create_table", "drop_table"}) {
    stuck_in_ = call;
    const Deadline deadline = runtime_.Now() + milliseconds(200);
    const Status late = stuck_in_ == "create_table" ? client_.CreateTable("t", {}, deadline).status()
                                                    : client_.DropTable("t", deadline);
    EXPECT_EQ(late.code(), ErrorCode::kOutcomeUnknown) << late.ToString();
  }
  // A call that commits nothing has no unknown outcome.
  stuck_in_ = "open_table";
  EXPECT_EQ(client_.OpenTable("t", runtime_.Now() + milliseconds(50)).status().code(), ErrorCode::kDeadlineExceeded);
  // If the service answers with an error, that error is the outcome.
  stuck_in_.clear();
  refused_ = "create_table";
  EXPECT_EQ(client_.CreateTable("t", {}, Soon()).status().code(), ErrorCode::kUnavailable);
}

TEST_F(GrpcTransactionServiceTest, NobodyThere) {
  loopback_.Stop();
  EXPECT_EQ(client_.CreateTable("t", {}, Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(client_.DropTable("t", Soon()).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(client_.ListTables(Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(client_.GetStatus(Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(client_.NewSession(Soon()).status().code(), ErrorCode::kUnavailable);
}

TEST_F(GrpcTransactionServiceTest, OtherVersionsAreRefused) {
  const auto stub = wire::TransactionService::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kShort));
  wire::TableRequest request;
  request.set_name("t");
  wire::TableAnswer answer;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->CreateTable(&context, request, &answer).ok());
    EXPECT_EQ(answer.status().code(), static_cast<uint32_t>(ErrorCode::kVersionMismatch));
  }
  request.set_protocol_version(kProtocolVersion);
  request.set_name("");
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->CreateTable(&context, request, &answer).ok());
    EXPECT_EQ(answer.status().code(), static_cast<uint32_t>(ErrorCode::kInvalidArgument));
  }
  wire::GetStatusAnswer status;
  grpc::ClientContext context;
  ASSERT_TRUE(stub->GetStatus(&context, wire::ServiceRequest(), &status).ok());
  EXPECT_EQ(status.status().code(), static_cast<uint32_t>(ErrorCode::kVersionMismatch));
}

TEST(GrpcTransactionServiceTlsTest, AllowListBindsClientsToo) {
  Runtime& runtime = RealRuntime();
  testing::TestAuthority authority("ca");
  testing::ScriptedTransactionService scripted(runtime);
  GrpcTransactionServiceServer service(runtime, scripted, testing::NewThreadPerOneShot);
  testing::Loopback loopback({service.service()}, authority.Identity("tc", {}, {"app"}));
  GrpcTransactionService good(runtime, loopback.Peer(authority.Identity("app", {}, {"tc"})), {});
  auto session = good.NewSession(runtime.Now() + seconds(20));
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  EXPECT_TRUE((*session)->Begin({}, runtime.Now() + seconds(20)).ok());
  GrpcTransactionService unknown(runtime, loopback.Peer(authority.Identity("stranger", {}, {"tc"})), {});
  EXPECT_EQ(unknown.NewSession(runtime.Now() + seconds(20)).status().code(), ErrorCode::kPermissionDenied);
  GrpcTransactionService mistaken(runtime, loopback.Peer(authority.Identity("app", {}, {"another"})), {});
  EXPECT_EQ(mistaken.NewSession(runtime.Now() + seconds(20)).status().code(), ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace deut
