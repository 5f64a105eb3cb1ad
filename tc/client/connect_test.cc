#include "tc/client/connect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/sync/event.h"
#include "common/testing/temp_dir.h"
#include "protocol/connections/endpoint.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/rpc/service_options.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "tc/client/fake_transaction_service.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"
#include "tc/server/one_shot_workers.h"

namespace deut {
namespace {

using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::TempDirPath;

// A service behind a real server, at a unix socket.
class Served {
 public:
  explicit Served(const std::string& target, const RpcServiceOptions& with = {})
      : handler_(RealRuntime(), service_, tc::NewOneShotWorkers, with) {
    RpcServerOptions options{.listen = Address::Parse("--listen", target).value(), .tls = nullptr};
    server_ = RpcServer::Start(RealRuntime(), options, {handler_.service()}).value();
  }
  FakeTransactionService& service() { return service_; }

 private:
  FakeTransactionService service_{RealRuntime()};
  GrpcTransactionServiceServer handler_;
  std::unique_ptr<RpcServer> server_;
};

class ConnectTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect() { return Client::Connect(target_, {}).value(); }

  TempDir directory_{TempDirPath::kShortPath};
  const std::string target_ = "unix:" + directory_.Sub("tc");
};

// A request that arrives after the server has ended its session for idleness was not run. So another session runs it,
// and the caller does not notice.
TEST_F(ConnectTest, SessionsThatWereEndedForBeingIdleAreReplaced) {
  Served served(target_, {.idle_session = milliseconds(100)});
  const auto client = Connect();
  const TableId table = client->CreateTable("t").value();
  for (int round = 0; round < 3; ++round) {
    // A write in one message: if the session ends, was it executed or not?
    OneShot shot(*client);
    shot.Put(table, "k", std::to_string(round));
    const Result<CommitAnswer> answer = shot.Run();
    EXPECT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_EQ(served.service().Peek(table, "k"), std::to_string(round));
    const Deadline deadline = RealRuntime().Now() + seconds(20);
    while (served.service().sessions_open() != 0 && RealRuntime().Now() < deadline) RealRuntime().Yield();
    ASSERT_EQ(served.service().sessions_open(), 0);
  }
  EXPECT_EQ(served.service().sessions_opened(), 3);
}

TEST_F(ConnectTest, WrongTargetsAreRefusedAtOnce) {
  EXPECT_EQ(Client::Connect("nonsense", {}).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Client::Connect("127.0.0.1:99999", {}).status().code(), ErrorCode::kInvalidArgument);
  const Status remote = Client::Connect("192.0.2.1:7701", {}).status();
  EXPECT_EQ(remote.code(), ErrorCode::kInvalidArgument) << "another machine, neither TLS nor insecure";
  ConnectOptions missing;
  missing.tls = {.cert_file = directory_.Sub("none.pem"),
                 .key_file = directory_.Sub("none.key"),
                 .ca_file = directory_.Sub("ca.pem"),
                 .allow = {"tcd"}};
  EXPECT_THAT(Client::Connect("192.0.2.1:7701", missing).status().ToString(), HasSubstr("none.pem"));
}

TEST_F(ConnectTest, NobodyThereIsUnavailableAndNamed) {
  const std::unique_ptr<Client> client = Connect();
  const Status status = client->Begin({}, {.timeout = seconds(2)}).status();
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.ToString(), HasSubstr(target_));
  EXPECT_EQ(client->GetStatus({.timeout = seconds(2)}).status().code(), ErrorCode::kUnavailable);
}

TEST_F(ConnectTest, TheWholeInterfaceOverASocket) {
  Served served(target_);
  const std::unique_ptr<Client> client = Connect();
  const TableId table = client->CreateTable("t").value();
  EXPECT_EQ(client->OpenTable("none").status().code(), ErrorCode::kNotFound);
  ASSERT_EQ(client->ListTables().value().size(), 1u);

  const Status written = RunTransaction(*client, {}, [&](Transaction& t) {
    for (int i = 0; i < 100; ++i) DEUT_RETURN_IF_ERROR(t.Insert(table, Concat("k", 100 + i), std::string(1000, 'v')));
    return t.Remove(table, "k150");
  });
  ASSERT_TRUE(written.ok()) << written.ToString();
  Transaction reader = client->Begin().value();
  EXPECT_TRUE(reader.Get(table, "k101").value() == std::string(1000, 'v'));
  EXPECT_EQ(reader.Get(table, "k150").value(), std::nullopt);
  EXPECT_EQ(reader.Insert(table, "k101", "").code(), ErrorCode::kAlreadyExists);
  Scanner scanner = reader.OpenScanner(table, {.direction = Direction::kDescending, .batch_bytes = 5000});
  int records = 0;
  std::string last = "l";
  for (; scanner.Next(); ++records) {
    EXPECT_LT(scanner.key(), last);
    last.assign(scanner.key());
  }
  EXPECT_TRUE(scanner.status().ok()) << scanner.status().ToString();
  EXPECT_EQ(records, 99);
  EXPECT_TRUE(reader.Commit().ok());

  OneShot shot(*client);
  shot.Put(table, "a", "1");
  const size_t read = shot.Get(table, "a");
  EXPECT_TRUE(RunOneShot(shot).ok());
  EXPECT_EQ(RecordBatch::Iterator(shot.result(read).records).record().value, "1");
  EXPECT_TRUE(client->DropCaches().ok());
  EXPECT_FALSE(client->GetStatus().value().dc.empty());
  EXPECT_TRUE(client->DropTable("t").ok());
  EXPECT_EQ(served.service().sessions_opened(), 1) << "one after the other: one session";
}

TEST_F(ConnectTest, AnAbortKeepsItsReasonOverTheSocket) {
  Served served(target_);
  served.service().on_call = [](FakeCall call, Deadline) {
    if (call != FakeCall::kCommit) return FakeFault{};
    return FakeFault{
        Status::Aborted({.reason = AbortReason::kWriteLater, .table = 1, .key = "k", .other_timestamp = 77}, "lost")};
  };
  const std::unique_ptr<Client> client = Connect();
  const TableId table = client->CreateTable("t").value();
  Transaction writer = client->Begin().value();
  EXPECT_TRUE(writer.Put(table, "k", "v").ok());
  const Status status = writer.Commit().status();
  ASSERT_NE(status.abort(), nullptr);
  EXPECT_EQ(status.abort()->reason, AbortReason::kWriteLater);
  EXPECT_EQ(status.abort()->key, "k");
  EXPECT_EQ(status.abort()->other_timestamp, 77u);
}

// The store ends while the client has idle sessions, and another store starts: the user sees no error.
TEST_F(ConnectTest, ARestartedStoreIsFoundAgain) {
  auto served = std::make_unique<Served>(target_);
  const std::unique_ptr<Client> client = Connect();
  TableId table = client->CreateTable("t").value();
  EXPECT_TRUE(RunTransaction(*client, {}, [&](Transaction& t) { return t.Put(table, "a", "1"); }).ok());
  Transaction lost = client->Begin().value();
  served.reset();
  EXPECT_EQ(lost.Put(table, "b", "1").code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(lost.open());
  EXPECT_EQ(client->Begin({}, {.timeout = seconds(5)}).status().code(), ErrorCode::kUnavailable);
  served = std::make_unique<Served>(target_);
  table = TableId(1);
  EXPECT_TRUE(served->service().CreateTable("t", {}, kNoDeadline).ok());
  RetryReport report;
  EXPECT_TRUE(RunTransaction(*client, {}, [&](Transaction& t) { return t.Put(table, "a", "2"); }, &report).ok());
  EXPECT_EQ(served->service().Peek(table, "a"), "2");
}

TEST_F(ConnectTest, ABrokenConnectionDuringCommitIsAnUnknownOutcome) {
  auto served = std::make_unique<Served>(target_);
  const std::unique_ptr<Client> client = Connect();
  const TableId table = client->CreateTable("t").value();
  Transaction writer = client->Begin().value();
  EXPECT_TRUE(writer.Put(table, "a", "1").ok());
  // The commit is in flight when the server ends.
  Event reached, release;
  served->service().on_call = [&](FakeCall call, Deadline) {
    if (call == FakeCall::kCommit) {
      reached.Signal(RealRuntime());
      release.Wait(RealRuntime(), kNoDeadline);
    }
    return FakeFault{};
  };
  std::thread end([&] {
    reached.Wait(RealRuntime(), kNoDeadline);
    // The destructor cancels the stream, then waits for the handler.
    std::thread let_go([&] {
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(300));  // paces the handler behind the cancellation
      release.Signal(RealRuntime());
    });
    served.reset();
    let_go.join();
  });
  // No server is left that could tell the outcome.
  const Status status = writer.Commit({.timeout = seconds(3)}).status();
  end.join();
  EXPECT_EQ(status.code(), ErrorCode::kOutcomeUnknown) << status.ToString();
}

TEST_F(ConnectTest, ThreadsShareAClient) {
  Served served(target_);
  const std::unique_ptr<Client> client = Connect();
  const TableId table = client->CreateTable("t").value();
  served.service().Poke(table, "n", "0");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        EXPECT_TRUE(RunTransaction(*client, {}, [&](Transaction& t) {
                      Result<std::optional<std::string>> value = t.Get(table, "n");
                      DEUT_RETURN_IF_ERROR(value.status());
                      return t.Put(table, "n", std::to_string(std::stoi(**value) + 1));
                    }).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served.service().Peek(table, "n"), "200");
  EXPECT_LE(served.service().sessions_opened(), 8);
}

// One-shots use sessions while the stream is being opened, and then the stream. The caller notices no difference.
TEST_F(ConnectTest, ManyOneShotsAtOnceEachWithItsOwnAnswer) {
  Served served(target_);
  const std::unique_ptr<Client> client = Connect();
  const TableId table = client->CreateTable("t").value();
  served.service().Poke(table, "there", "old");
  const TransactionOptions options;
  const std::string large(200 << 10, 'v');
  for (int round = 0; round < 20; ++round) {
    const std::string key = Concat("k", round);
    const std::vector<Operation> operations = {
        {.kind = OperationKind::kPut, .table = table, .key = key, .value = "v"},
        {.kind = OperationKind::kPut, .table = table, .key = "large", .value = large},
        {.kind = OperationKind::kGet, .table = table, .key = "there"},
        {.kind = OperationKind::kInsert, .table = table, .key = "there", .value = "new"},
        {.kind = OperationKind::kGet, .table = table, .key = ""},
    };
    std::vector<std::vector<OperationResult>> results(operations.size());
    std::vector<OneShotTransaction> transactions;
    for (size_t i = 0; i < operations.size(); ++i)
      transactions.push_back({.options = &options, .operations = {&operations[i], 1}, .results = &results[i]});
    client->ExecuteOneShots(absl::MakeSpan(transactions));
    EXPECT_TRUE(transactions[0].answer.ok()) << transactions[0].answer.status().ToString();
    EXPECT_EQ(served.service().Peek(table, key), "v");
    EXPECT_TRUE(transactions[1].answer.ok()) << transactions[1].answer.status().ToString();
    ASSERT_TRUE(transactions[2].answer.ok()) << transactions[2].answer.status().ToString();
    EXPECT_EQ(RecordBatch::Iterator(results[2].at(0).records).record().value, "old");
    EXPECT_EQ(transactions[3].answer.status().code(), ErrorCode::kAlreadyExists);
    EXPECT_EQ(transactions[4].answer.status().code(), ErrorCode::kInvalidArgument);
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(5));  // lets the stream open in one of the rounds
  }
  EXPECT_EQ(served.service().Peek(table, "large"), large);
}

TEST_F(ConnectTest, TheOutcomeOfEachLostOneShotIsAskedFor) {
  Served served(target_);
  const std::unique_ptr<Client> client = Connect();
  const TableId table = client->CreateTable("t").value();
  std::atomic<int> calls{0};
  served.service().on_call = [&](FakeCall call, Deadline) {
    // Every other call is applied and its answer is lost; the others are not applied.
    if (call != FakeCall::kOneShot) return FakeFault{};
    return FakeFault{.status = Status(ErrorCode::kOutcomeUnknown, "lost"), .applied = calls.fetch_add(1) % 2 == 0};
  };
  for (int round = 0; round < 20; ++round) {
    const std::vector<std::string> keys = {Concat("a", round), Concat("b", round)};
    const TransactionOptions options;
    std::vector<Operation> operations;
    for (const std::string& key : keys)
      operations.push_back({.kind = OperationKind::kPut, .table = table, .key = key, .value = "v"});
    std::vector<std::vector<OperationResult>> results(2);
    std::vector<OneShotTransaction> transactions;
    for (size_t i = 0; i < 2; ++i)
      transactions.push_back({.options = &options, .operations = {&operations[i], 1}, .results = &results[i]});
    client->ExecuteOneShots(absl::MakeSpan(transactions));
    int committed = 0;
    for (size_t i = 0; i < 2; ++i) {
      const bool there = served.service().Peek(table, keys[i]).has_value();
      committed += there ? 1 : 0;
      EXPECT_EQ(transactions[i].answer.status().code(), there ? ErrorCode::kOk : ErrorCode::kUnavailable);
    }
    EXPECT_EQ(committed, 1);
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(5));  // lets the stream open in one of the rounds
  }
}

TEST_F(ConnectTest, ThreadsShareAClientForOneShots) {
  Served served(target_);
  const std::unique_ptr<Client> client = Connect();
  const TableId table = client->CreateTable("t").value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string key = Concat("k", i);
      for (int k = 0; k < 100; ++k) {
        OneShot shot(*client);
        shot.Put(table, key, std::to_string(k));
        const size_t read = shot.Get(table, key);
        EXPECT_TRUE(RunOneShot(shot).ok());
        EXPECT_EQ(RecordBatch::Iterator(shot.result(read).records).record().value, std::to_string(k));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(served.service().Peek(table, Concat("k", i)), "99");
}

}  // namespace
}  // namespace deut
