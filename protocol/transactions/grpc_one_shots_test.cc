// One-shot transactions of many threads on one stream, through real sockets.
#include "protocol/transactions/grpc_one_shots.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/one_shot_limits.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/transactions/thread_per_one_shot.h"

namespace deut {
namespace {

class GrpcOneShotsTest : public ::testing::Test {
 protected:
  bool Up() {
    return testing::Eventually([this] { return channel_.Ready(); });
  }
  Deadline Soon() { return runtime_.Now() + seconds(20); }
  // REQUIRES: the server has been stopped.
  void Restart(const RpcServiceOptions& options = {}) {
    service_ =
        std::make_unique<GrpcTransactionServiceServer>(runtime_, scripted_, testing::NewThreadPerOneShot, options);
    loopback_.Restart({service_->service()});
  }
  // Runs one operation as a transaction.
  Result<CommitAnswer> Run(const Operation& operation, std::vector<OperationResult>* results, Deadline deadline) {
    const TransactionOptions options;
    OneShotTransaction transaction{.options = &options, .operations = {&operation, 1}, .results = results};
    if (!channel_.Execute(absl::MakeSpan(&transaction, 1), deadline))
      return Status(ErrorCode::kUnavailable, "not ready");
    return transaction.answer;
  }
  static Operation Put(std::string_view key, std::string_view value) {
    return {.kind = OperationKind::kPut, .table = TableId(1), .key = key, .value = value};
  }
  static Operation Get(std::string_view key) { return {.kind = OperationKind::kGet, .table = TableId(1), .key = key}; }

  BlockingHookRuntime runtime_{RealRuntime()};  // of the service
  testing::ScriptedTransactionService scripted_{runtime_};
  std::unique_ptr<GrpcTransactionServiceServer> service_ =
      std::make_unique<GrpcTransactionServiceServer>(runtime_, scripted_, testing::NewThreadPerOneShot);
  testing::Loopback loopback_{{service_->service()}};
  RpcEventThread events_{runtime_};
  GrpcOneShots channel_{runtime_, loopback_.Peer(), events_};
};

TEST_F(GrpcOneShotsTest, ManyThreadsShareOneStream) {
  std::vector<OperationResult> results;
  EXPECT_EQ(Run(Get("k"), &results, Soon()).status().code(), ErrorCode::kUnavailable);  // no stream is wanted yet
  ASSERT_TRUE(Up());
  std::vector<std::unique_ptr<Thread>> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.push_back(runtime_.StartThread("client", [&, thread] {
      std::vector<OperationResult> own;
      for (int i = 0; i < 100; ++i) {
        const std::string key = "k" + std::to_string(thread), value = "v" + std::to_string(i);
        const Result<CommitAnswer> put = Run(Put(key, value), &own, Soon());
        ASSERT_TRUE(put.ok()) << put.status().ToString();
        EXPECT_GE(channel_.not_before(), put->timestamp);
        ASSERT_TRUE(Run(Get(key), &own, Soon()).ok());
        const RecordBatch::Iterator it(own.at(0).records);
        ASSERT_TRUE(it.Valid());
        EXPECT_EQ(it.record().value, value);
      }
    }));
  }
  for (const auto& thread : threads) thread->Join();
  EXPECT_EQ(scripted_.commits(), 1600u);
}

TEST_F(GrpcOneShotsTest, ManyAtOnceEachWithItsOwnAnswer) {
  ASSERT_TRUE(Up());
  constexpr size_t kMany = 1000;
  const TransactionOptions options;
  const std::string large(kMaxSharedOneShotBytes, 'v');
  std::vector<std::string> keys;
  for (size_t i = 0; i < kMany; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Operation> operations;
  std::vector<std::vector<OperationResult>> results(kMany);
  std::vector<OneShotTransaction> transactions;
  for (size_t i = 0; i < kMany; ++i) operations.push_back(Put(keys[i], i == 500 ? large : keys[i]));
  operations[7].key = "";
  operations[9] = {.kind = OperationKind::kUpdate, .table = TableId(1), .key = "absent"};
  for (size_t i = 0; i < kMany; ++i)
    transactions.push_back({.options = &options, .operations = {&operations[i], 1}, .results = &results[i]});
  ASSERT_TRUE(channel_.Execute(absl::MakeSpan(transactions), Soon()));
  for (size_t i = 0; i < kMany; ++i) {
    const ErrorCode code = transactions[i].answer.status().code();
    EXPECT_EQ(code, i == 7 || i == 500 ? ErrorCode::kInvalidArgument
                    : i == 9           ? ErrorCode::kNotFound
                                       : ErrorCode::kOk)
        << i;
    EXPECT_EQ(FailedPreconditionAt(results[i]) != Timestamp(0), i == 9) << i;
    if (code == ErrorCode::kOk) EXPECT_EQ(scripted_.Value(TableId(1), keys[i]), keys[i]);
  }
  EXPECT_EQ(scripted_.commits(), kMany - 3);
}

TEST_F(GrpcOneShotsTest, AStreamThatWasEndedForBeingIdleIsOpenedAgainWhenItIsWanted) {
  loopback_.Stop();
  Restart({.idle_session = seconds(1)});
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Up());
    std::vector<OperationResult> results;
    const Result<CommitAnswer> put = Run(Put("k", "v"), &results, Soon());
    EXPECT_TRUE(put.ok()) << put.status().ToString();
    EXPECT_TRUE(testing::Eventually([&] { return scripted_.sessions() == 0; })) << "the stream has its sessions still";
  }
}

TEST_F(GrpcOneShotsTest, ABrokenStreamLosesOnlyAnswersAndComesBack) {
  Event stopped;
  std::atomic<int> inside{0};
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call != "one_shot") return Status::Ok();
    ++inside;
    stopped.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  ASSERT_TRUE(Up());
  Status read, write;
  std::vector<std::unique_ptr<Thread>> threads;
  threads.push_back(runtime_.StartThread("reader", [&] {
    std::vector<OperationResult> results;
    read = Run(Get("k"), &results, kNoDeadline).status();
  }));
  threads.push_back(runtime_.StartThread("writer", [&] {
    std::vector<OperationResult> results;
    write = Run(Put("k", "v"), &results, kNoDeadline).status();
  }));
  ASSERT_TRUE(testing::Eventually([&] { return inside.load() == 2; }));
  const auto stop = runtime_.StartThread("stop", [&] { loopback_.Stop(); });
  for (const auto& thread : threads) thread->Join();  // they get an answer although their calls go on
  EXPECT_EQ(read.code(), ErrorCode::kUnavailable) << read.ToString();
  EXPECT_EQ(write.code(), ErrorCode::kOutcomeUnknown) << write.ToString();
  stopped.Signal(runtime_);
  stop->Join();
  EXPECT_EQ(scripted_.Value(TableId(1), "k"), "v");
  Restart();
  ASSERT_TRUE(Up());
  std::vector<OperationResult> results;
  const Result<CommitAnswer> again = Run(Put("k", "w"), &results, Soon());
  EXPECT_TRUE(again.ok()) << again.status().ToString();
}

TEST_F(GrpcOneShotsTest, LateAnswersAreNotWaitedFor) {
  Event go;
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "one_shot" && !go.IsSet()) go.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  ASSERT_TRUE(Up());
  std::vector<OperationResult> results;
  EXPECT_EQ(Run(Get("k"), &results, runtime_.Now() + milliseconds(1)).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(Run(Put("k", "v"), &results, runtime_.Now() + milliseconds(1)).status().code(), ErrorCode::kOutcomeUnknown);
  go.Signal(runtime_);
  // The stream still works.
  const Result<CommitAnswer> next = Run(Get("k"), &results, Soon());
  EXPECT_TRUE(next.ok()) << next.status().ToString();
}

TEST_F(GrpcOneShotsTest, AStreamThatEndsWhileNothingIsInFlightIsNoticed) {
  ASSERT_TRUE(Up());
  loopback_.Stop();
  EXPECT_TRUE(testing::Eventually([this] { return !channel_.Ready(); }));
  Restart();
  ASSERT_TRUE(Up());
  std::vector<OperationResult> results;
  const Result<CommitAnswer> again = Run(Put("k", "w"), &results, Soon());
  EXPECT_TRUE(again.ok()) << again.status().ToString();
}

TEST_F(GrpcOneShotsTest, AServerThatDoesNotKnowItIsNotAskedAgain) {
  testing::ScriptedDataComponent component(runtime_);
  GrpcDataComponentService other(runtime_, component, {});
  testing::Loopback old({other.service()});
  GrpcOneShots channel(runtime_, old.Peer(), events_);
  const Deadline end = runtime_.Now() + milliseconds(300);
  while (runtime_.Now() < end) {
    EXPECT_FALSE(channel.Ready());
    runtime_.SleepUntil(runtime_.Now() + milliseconds(10));
  }
}

TEST_F(GrpcOneShotsTest, ARefusedOpeningIsRetried) {
  std::atomic<bool> full{true};
  std::atomic<int> asked{0};
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call != "new_session") return Status::Ok();
    ++asked;
    return full.load() ? Status(ErrorCode::kResourceExhausted, "full") : Status::Ok();
  };
  ASSERT_TRUE(testing::Eventually([&] {
    EXPECT_FALSE(channel_.Ready());
    return asked.load() > 1;
  }));
  full = false;
  EXPECT_TRUE(Up());
}

}  // namespace
}  // namespace deut
