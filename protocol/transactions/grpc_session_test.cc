// Sessions through a real connection, tested from the client side: results, deadlines, lost answers.
#include "protocol/transactions/grpc_session.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/pipelined_call.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transactions/grpc_transaction_service.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/transactions/thread_per_one_shot.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

constexpr TableId kTable{1};

Operation Get(std::string_view key) { return {.kind = OperationKind::kGet, .table = kTable, .key = key}; }
Operation Put(std::string_view key, std::string_view value) {
  return {.kind = OperationKind::kPut, .table = kTable, .key = key, .value = value};
}
Operation Insert(std::string_view key) {
  return {.kind = OperationKind::kInsert, .table = kTable, .key = key, .value = "i"};
}
Operation Scan(uint32_t limit_bytes = 1000) {
  return {.kind = OperationKind::kScan, .table = kTable, .limit_bytes = limit_bytes};
}

class GrpcSessionTest : public ::testing::Test {
 protected:
  GrpcSessionTest() {
    scripted_.before = [this](std::string_view call, Deadline) {
      if (call != stuck_in_) return answer_in_ == call ? answer_ : Status::Ok();
      arrived_.Signal(runtime_);
      go_on_.Wait(runtime_, kNoDeadline);
      return Status::Ok();
    };
    auto session = client_.NewSession(Soon());
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    session_ = std::move(session).value();
  }
  ~GrpcSessionTest() override { go_on_.Signal(runtime_); }

  Deadline Soon() { return runtime_.Now() + seconds(20); }
  Status Execute(const std::vector<Operation>& operations) { return session_->Execute(operations, &results_, Soon()); }
  Result<CommitAnswer> OneShot(const std::vector<Operation>& operations) {
    return session_->ExecuteOneShot({}, operations, &results_, Soon());
  }
  // REQUIRES: the server has been stopped.
  void Restart() {
    service_ = std::make_unique<GrpcTransactionServiceServer>(runtime_, scripted_, testing::NewThreadPerOneShot);
    loopback_.Restart({service_->service()});
  }
  void Begin() { ASSERT_TRUE(session_->Begin({}, Soon()).ok()); }
  std::string Value(size_t i) { return std::string(RecordBatch::Iterator(results_[i].records).record().value); }

  Runtime& runtime_ = RealRuntime();
  // The server's thread stops in this call until go_on_ is signalled.
  std::string stuck_in_;
  Event arrived_, go_on_;
  // This call answers with answer_.
  std::string answer_in_;
  Status answer_;
  testing::ScriptedTransactionService scripted_{runtime_};
  std::unique_ptr<GrpcTransactionServiceServer> service_ =
      std::make_unique<GrpcTransactionServiceServer>(runtime_, scripted_, testing::NewThreadPerOneShot);
  testing::Loopback loopback_{{service_->service()}};
  GrpcTransactionService client_{runtime_, loopback_.Peer(), GrpcTransactionServiceOptions{.connections = 2}};
  std::unique_ptr<TransactionSession> session_;
  std::vector<OperationResult> results_;
};

TEST_F(GrpcSessionTest, InteractiveTransaction) {
  TransactionOptions options;
  options.durability = Durability::kBuffered;
  options.declared = {{kTable, "d"}};
  auto begun = session_->Begin(options, Soon());
  ASSERT_TRUE(begun.ok());
  EXPECT_EQ(*begun, Timestamp(1));
  EXPECT_EQ(scripted_.last_options().durability, Durability::kBuffered);
  ASSERT_EQ(scripted_.last_options().declared.size(), 1u);
  ASSERT_TRUE(Execute({Put("a", "1"), Get("a"), Get("absent")}).ok());
  ASSERT_EQ(results_.size(), 3u);
  EXPECT_EQ(Value(1), "1");
  EXPECT_TRUE(results_[2].records.empty());
  auto commit = session_->Commit(Soon());
  ASSERT_TRUE(commit.ok());
  EXPECT_EQ(commit->timestamp, Timestamp(1));
  EXPECT_EQ(commit->commit_lsn, Lsn(100));
  Begin();
  ASSERT_TRUE(Execute({Scan()}).ok());
  EXPECT_EQ(results_[0].records.size(), 1u);
  EXPECT_TRUE(results_[0].complete);
  EXPECT_TRUE(session_->Abort().ok());
  EXPECT_EQ(session_->Abort().code(), ErrorCode::kWrongState);
}

TEST_F(GrpcSessionTest, OneShotTransaction) {
  ASSERT_TRUE(OneShot({Put("a", "1"), Insert("b"), Get("a")}).ok());
  EXPECT_EQ(Value(2), "1");
  const auto failed = OneShot({Put("c", "3"), Insert("a"), Get("c")});
  EXPECT_EQ(failed.status().code(), ErrorCode::kAlreadyExists);
  ASSERT_EQ(results_.size(), 3u);
  EXPECT_TRUE(results_[0].status.ok());
  EXPECT_EQ(results_[1].status.code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(scripted_.Value(kTable, "c"), "");
  // D1: the timestamp at which the precondition did not hold.
  EXPECT_EQ(results_[1].failed_precondition_at, Timestamp(2));
  EXPECT_EQ(FailedPreconditionAt(results_), Timestamp(2));
  ASSERT_TRUE(OneShot({Put("c", "3"), Get("c")}).ok());
  EXPECT_EQ(FailedPreconditionAt(results_), Timestamp(0));
}

TEST_F(GrpcSessionTest, AbortEndsTheCallEarly) {
  Begin();
  answer_in_ = "operation";
  answer_ = Status::Aborted(AbortInfo{.reason = AbortReason::kWriteLater, .table = 1, .key = "k", .other_timestamp = 9},
                            "conflict");
  const Status status = Execute({Put("a", "1"), Put("b", "2"), Get("a")});
  ASSERT_NE(status.abort(), nullptr);
  EXPECT_EQ(status.abort()->reason, AbortReason::kWriteLater);
  EXPECT_EQ(status.abort()->other_timestamp, 9u);
  ASSERT_EQ(results_.size(), 3u);
  EXPECT_EQ(results_[0].status.code(), ErrorCode::kAborted);
  EXPECT_EQ(results_[1].status.code(), ErrorCode::kWrongState);
  EXPECT_EQ(results_[2].status.code(), ErrorCode::kWrongState);
  // The session goes on with the next transaction.
  answer_in_.clear();
  Begin();
  EXPECT_TRUE(session_->Commit(Soon()).ok());
}

TEST_F(GrpcSessionTest, MoreOperationsThanTravelInOneMessage) {
  Begin();
  std::vector<std::string> keys;
  std::vector<Operation> operations;
  for (int i = 0; i < 3000; ++i) keys.push_back("k" + std::to_string(i));
  for (const std::string& key : keys) operations.push_back(Put(key, key));
  ASSERT_TRUE(Execute(operations).ok());
  EXPECT_EQ(results_.size(), 3000u);
  const std::string large(kMaxValueBytes, 'x');
  operations.clear();
  for (int i = 0; i < 10; ++i) operations.push_back(Put(keys[i], large));
  for (int i = 0; i < 10; ++i) operations.push_back(Get(keys[i]));
  ASSERT_TRUE(Execute(operations).ok());
  ASSERT_EQ(results_.size(), 20u);
  for (size_t i = 10; i < 20; ++i) EXPECT_EQ(Value(i).size(), kMaxValueBytes);
  ASSERT_TRUE(Execute({}).ok());
  EXPECT_TRUE(results_.empty());
  EXPECT_TRUE(session_->Commit(Soon()).ok());
  EXPECT_EQ(scripted_.Value(kTable, "k2999"), "k2999");
  // A one-shot must fit into one message.
  EXPECT_EQ(OneShot(operations).status().code(), ErrorCode::kInvalidArgument);
  operations.assign(kMaxOperationsPerCall + 1, Get("k"));
  EXPECT_EQ(OneShot(operations).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(OneShot({Get("k1")}).ok());
}

TEST_F(GrpcSessionTest, RefusesWhatTheServerWouldRefuse) {
  Begin();
  EXPECT_THAT(Execute({Get("a"), Get("")}).ToString(),
              HasSubstr("INVALID_ARGUMENT: operations[1].key: a key of 0 bytes"));
  EXPECT_THAT(Execute({Get(std::string(4097, 'k'))}).ToString(), HasSubstr("a key of 4097 bytes"));
  EXPECT_THAT(Execute({Put("k", std::string(kMaxValueBytes + 1, 'v'))}).ToString(),
              HasSubstr("a value of 1048577 bytes"));
  EXPECT_EQ(Execute({Scan(0)}).code(), ErrorCode::kInvalidArgument);
  TransactionOptions options;
  options.declared = {{kTable, ""}};
  EXPECT_EQ(session_->Begin(options, Soon()).status().code(), ErrorCode::kInvalidArgument);
  // The transaction is still open.
  EXPECT_TRUE(session_->Commit(Soon()).ok());
}

TEST_F(GrpcSessionTest, AnswerByTheServersDeadlineKeepsTheSession) {
  Begin();
  answer_in_ = "execute";
  answer_ = Status(ErrorCode::kDeadlineExceeded, "the TC's own");
  EXPECT_EQ(session_->Execute({}, &results_, runtime_.Now()).code(), ErrorCode::kDeadlineExceeded);
  answer_in_.clear();
  // An answer may be late by kAnswerGrace. A busy machine may exceed even that.
  const auto commit = session_->Commit(Soon());
  EXPECT_TRUE(commit.ok() || commit.status() == ErrorCode::kUnavailable);
}

TEST_F(GrpcSessionTest, DeadlineWithoutAnswerClosesTheSession) {
  Begin();
  stuck_in_ = "execute";
  const MonotonicTime start = runtime_.Now();
  const Operation get = Get("a");
  const Status late = session_->Execute({&get, 1}, &results_, start + milliseconds(50));
  EXPECT_EQ(late.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_GE(runtime_.Now() - start, milliseconds(50));
  EXPECT_LT(runtime_.Now() - start, seconds(10));
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].status.code(), ErrorCode::kWrongState);
  const auto commit = session_->Commit(Soon());
  EXPECT_EQ(commit.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(commit.status().ToString(), HasSubstr("the session is closed"));
  go_on_.Signal(runtime_);
  EXPECT_TRUE(testing::Eventually([&] { return scripted_.sessions() == 0; }));
  EXPECT_EQ(scripted_.aborts(), 1u);
}

// The peer no longer answers. Abort waits for it only briefly, and the session is closed. The bound is far above
// kAbortWait, for a busy machine, and below the usual waits of callers.
TEST_F(GrpcSessionTest, AbortDoesNotWaitForADeadPeer) {
  Begin();
  stuck_in_ = "abort";
  const MonotonicTime before = runtime_.Now();
  EXPECT_EQ(session_->Abort().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_LT(runtime_.Now() - before, seconds(8));
  ASSERT_TRUE(arrived_.Wait(runtime_, Soon()));
  EXPECT_EQ(session_->Abort().code(), ErrorCode::kUnavailable) << "closed";
  go_on_.Signal(runtime_);
  EXPECT_TRUE(testing::Eventually([&] { return scripted_.sessions() == 0; }));
  EXPECT_EQ(scripted_.transactions(), 0u);
}

TEST_F(GrpcSessionTest, CommitWhoseDeadlinePassesIsUnknown) {
  Begin();
  ASSERT_TRUE(Execute({Put("a", "1")}).ok());
  stuck_in_ = "commit";
  const auto commit = session_->Commit(runtime_.Now() + milliseconds(50));
  EXPECT_EQ(commit.status().code(), ErrorCode::kOutcomeUnknown);
  go_on_.Signal(runtime_);
  // This commit happened.
  EXPECT_TRUE(testing::Eventually([&] { return scripted_.commits() == 1; }));
  EXPECT_EQ(scripted_.Value(kTable, "a"), "1");
}

TEST_F(GrpcSessionTest, ReadOnlyCommitIsNeverUnknown) {
  Begin();
  ASSERT_TRUE(Execute({Get("a"), Scan()}).ok());
  stuck_in_ = "commit";
  EXPECT_EQ(session_->Commit(runtime_.Now() + milliseconds(50)).status().code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(GrpcSessionTest, WritesAreRememberedUntilTheNextBegin) {
  Begin();
  ASSERT_TRUE(Execute({Put("a", "1")}).ok());
  EXPECT_EQ(session_->Begin({}, Soon()).status().code(), ErrorCode::kWrongState);  // the first one is still open
  stuck_in_ = "commit";
  EXPECT_EQ(session_->Commit(runtime_.Now() + milliseconds(50)).status().code(), ErrorCode::kOutcomeUnknown);
}

TEST_F(GrpcSessionTest, CommitOverABrokenConnection) {
  Begin();
  ASSERT_TRUE(Execute({Put("a", "1")}).ok());
  stuck_in_ = "commit";
  const auto killer = runtime_.StartThread("killer", [&] {
    arrived_.Wait(runtime_, kNoDeadline);
    go_on_.Signal(runtime_);
    loopback_.Stop();
  });
  const auto commit = session_->Commit(Soon());
  // The answer may have been sent before the connection broke.
  EXPECT_TRUE(commit.ok() || commit.status() == ErrorCode::kOutcomeUnknown) << commit.status().ToString();
  killer->Join();
  EXPECT_EQ(session_->Commit(Soon()).status().code(), ErrorCode::kUnavailable);
}

TEST_F(GrpcSessionTest, OneShotOverABrokenConnection) {
  for (const bool writes : {false, true}) {
    stuck_in_ = "one_shot";
    std::vector<OperationResult> results;
    const Operation operation = writes ? Put("a", "1") : Get("a");
    const auto commit = session_->ExecuteOneShot({}, {&operation, 1}, &results, runtime_.Now() + milliseconds(50));
    EXPECT_EQ(commit.status().code(), writes ? ErrorCode::kOutcomeUnknown : ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(results.size(), 1u);
    stuck_in_.clear();
    go_on_.Signal(runtime_);
    session_ = std::move(client_.NewSession(Soon())).value();
    go_on_.Reset();
  }
}

TEST_F(GrpcSessionTest, ServerThatStopsBetweenCalls) {
  Begin();
  loopback_.Stop();
  EXPECT_EQ(Execute({Get("a")}).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(session_->Begin({}, Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(session_->Abort().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(OneShot({Put("a", "1")}).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(scripted_.aborts(), 1u);
  EXPECT_EQ(client_.NewSession(Soon()).status().code(), ErrorCode::kUnavailable);
  Restart();
  EXPECT_TRUE(testing::Eventually([&] { return client_.NewSession(Soon()).ok(); }));
}

TEST_F(GrpcSessionTest, DestroyedSessionAborts) {
  Begin();
  session_.reset();
  EXPECT_TRUE(testing::Eventually([&] { return scripted_.sessions() == 0; }));
  EXPECT_EQ(scripted_.aborts(), 1u);
}

// The server may be at work on the call, or have answered it.
TEST_F(GrpcSessionTest, ACallInFlightThatIsGivenUpAborts) {
  const Operation get = Get("a");
  for (const bool at_work : {true, false}) {
    Begin();
    const size_t aborts = scripted_.aborts();
    if (at_work) stuck_in_ = "execute";
    {
      const std::optional<PipelinedCall> call = PipelinedCall::Send(&session_, {&get, 1}, Soon());
      ASSERT_TRUE(call.has_value());
      EXPECT_EQ(session_, nullptr);
      if (at_work) ASSERT_TRUE(arrived_.Wait(runtime_, Soon()));
      EXPECT_EQ(scripted_.transactions(), 1u);
    }
    go_on_.Signal(runtime_);
    EXPECT_TRUE(testing::Eventually([&] { return scripted_.sessions() == 0; }));
    EXPECT_EQ(scripted_.transactions(), 0u);
    EXPECT_EQ(scripted_.aborts(), aborts + 1);
    stuck_in_.clear();
    session_ = std::move(client_.NewSession(Soon())).value();
  }
}

TEST_F(GrpcSessionTest, RefusedSession) {
  answer_in_ = "new_session";
  answer_ = Status(ErrorCode::kResourceExhausted, "full").WithRetryAfter(9);
  const auto refused = client_.NewSession(Soon());
  EXPECT_EQ(refused.status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.status().retry_after_ms(), 9u);
}

TEST_F(GrpcSessionTest, ManySessionsAtOnce) {
  std::atomic<int> committed{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 8; ++t) {
    threads.push_back(runtime_.StartThread("client", [&, t] {
      auto session = client_.NewSession(Soon());
      ASSERT_TRUE(session.ok());
      std::vector<OperationResult> results;
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        const Operation operations[] = {Put(key, key), Get(key)};
        const auto commit = (*session)->ExecuteOneShot({}, operations, &results, Soon());
        ASSERT_TRUE(commit.ok()) << commit.status().ToString();
        ASSERT_EQ(RecordBatch::Iterator(results[1].records).record().value, key);
        committed.fetch_add(1);
      }
    }));
  }
  threads.clear();
  EXPECT_EQ(committed.load(), 400);
}

}  // namespace
}  // namespace deut
