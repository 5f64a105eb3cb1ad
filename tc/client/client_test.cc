#include "tc/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tc/client/fake_transaction_service.h"
#include "tc/client/one_shot.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::HasSubstr;
using testing::JumpingRuntime;

class ClientTest : public ::testing::Test {
 protected:
  Transaction Begin(const TransactionOptions& options = {}) {
    Result<Transaction> begun = client_->Begin(options);
    EXPECT_TRUE(begun.ok()) << begun.status().ToString();
    return std::move(begun).value();
  }

  JumpingRuntime runtime_;
  FakeTransactionService service_{runtime_};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {.runtime = &runtime_});
  TableId table_ = client_->CreateTable("t").value();
};

TEST_F(ClientTest, TablesByNameAreAskedOnce) {
  EXPECT_EQ(client_->OpenTable("t").value(), table_);
  EXPECT_EQ(service_.tables_opened(), 0) << "known from its creation";
  client_->ForgetTable("t");
  EXPECT_EQ(client_->OpenTable("t").value(), table_);
  EXPECT_EQ(client_->OpenTable("t").value(), table_);
  EXPECT_EQ(service_.tables_opened(), 1);
  EXPECT_EQ(client_->OpenTable("u").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(client_->CreateTable("t").status().code(), ErrorCode::kAlreadyExists);
  EXPECT_TRUE(client_->DropTable("t").ok());
  EXPECT_EQ(client_->OpenTable("t").status().code(), ErrorCode::kNotFound);
  const TableId again = client_->CreateTable("t").value();
  EXPECT_NE(again, table_);
  EXPECT_EQ(client_->ListTables().value().size(), 1u);
}

TEST_F(ClientTest, ReadsItsOwnWritesAndCommits) {
  Transaction writer = Begin();
  EXPECT_TRUE(writer.Insert(table_, "a", "1").ok());
  EXPECT_TRUE(writer.Put(table_, "b", std::string("\0x", 2)).ok());
  EXPECT_TRUE(writer.Update(table_, "a", "2").ok());
  EXPECT_EQ(writer.Get(table_, "a").value(), "2");
  EXPECT_TRUE(writer.Remove(table_, "c").ok());
  std::vector<std::optional<std::string>> values;
  EXPECT_TRUE(writer.MultiGet(table_, {"b", "c", "a"}, &values).ok());
  EXPECT_THAT(values, ElementsAre(std::string("\0x", 2), std::nullopt, "2"));
  EXPECT_EQ(service_.Peek(table_, "a"), std::nullopt);
  const Result<CommitAnswer> committed = writer.Commit();
  ASSERT_TRUE(committed.ok());
  EXPECT_GT(committed->timestamp.value, 0u);
  EXPECT_EQ(service_.Peek(table_, "a"), "2");
}

TEST_F(ClientTest, AFailedPreconditionLeavesTheTransactionOpen) {
  service_.Poke(table_, "a", "0");
  Transaction writer = Begin();
  EXPECT_EQ(writer.Insert(table_, "a", "1").code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(writer.Update(table_, "z", "1").code(), ErrorCode::kNotFound);
  EXPECT_EQ(writer.Put(table_, "", "1").code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(writer.open());
  EXPECT_TRUE(writer.Put(table_, "b", "1").ok());
  EXPECT_TRUE(writer.Commit().ok());
  EXPECT_EQ(service_.Peek(table_, "b"), "1");
}

TEST_F(ClientTest, AfterTheEndNothingRuns) {
  Transaction done = Begin();
  ASSERT_TRUE(done.Commit().ok());
  EXPECT_FALSE(done.open());
  EXPECT_TRUE(done.status().ok());
  EXPECT_EQ(done.Put(table_, "a", "1").code(), ErrorCode::kWrongState);
  EXPECT_EQ(done.Get(table_, "a").status().code(), ErrorCode::kWrongState);
  EXPECT_EQ(done.Commit().status().code(), ErrorCode::kWrongState);
  EXPECT_EQ(done.Abort().code(), ErrorCode::kWrongState);
  EXPECT_THAT(done.Commit().status().ToString(), HasSubstr("has been committed"));

  Transaction dropped = Begin();
  EXPECT_TRUE(dropped.Put(table_, "a", "1").ok());
  EXPECT_TRUE(dropped.Abort().ok());
  EXPECT_TRUE(dropped.Abort().ok());
  EXPECT_EQ(dropped.Commit().status().code(), ErrorCode::kWrongState);
  EXPECT_EQ(service_.Peek(table_, "a"), std::nullopt);
}

TEST_F(ClientTest, AnOpenTransactionIsAbortedWhenItGoes) {
  {
    Transaction outer = Begin();
    EXPECT_TRUE(outer.Put(table_, "a", "1").ok());
    Transaction moved = std::move(outer);
    EXPECT_TRUE(moved.open());
    EXPECT_EQ(service_.transactions_open(), 1);
  }
  EXPECT_EQ(service_.transactions_open(), 0);
  EXPECT_EQ(service_.Peek(table_, "a"), std::nullopt);
  // Its session is fit for the next transaction.
  EXPECT_TRUE(Begin().Commit().ok());
  EXPECT_EQ(service_.sessions_opened(), 1);
}

TEST_F(ClientTest, TheErrorThatEndedItIsToldAgain) {
  service_.Poke(table_, "a", "0");
  Transaction loser = Begin();
  EXPECT_TRUE(loser.Get(table_, "a").ok());
  service_.on_call = [](FakeCall call, Deadline) {
    if (call != FakeCall::kExecute) return FakeFault{};
    return FakeFault{Status::Aborted({.reason = AbortReason::kRangeReadLater, .key = "a"}, "lost")};
  };
  EXPECT_EQ(loser.Put(table_, "a", "1").code(), ErrorCode::kAborted);
  service_.on_call = nullptr;
  EXPECT_FALSE(loser.open());
  EXPECT_EQ(loser.status().abort()->reason, AbortReason::kRangeReadLater);
  EXPECT_EQ(loser.Get(table_, "a").status().abort()->reason, AbortReason::kRangeReadLater);
  EXPECT_EQ(loser.Commit().status().abort()->reason, AbortReason::kRangeReadLater);
  EXPECT_TRUE(loser.Abort().ok());
  // An abort is an outcome, not a failure of the session.
  EXPECT_TRUE(Begin().Commit().ok());
  EXPECT_EQ(service_.sessions_opened(), 1);
}

TEST_F(ClientTest, AFailedSessionIsClosed) {
  for (const ErrorCode code :
       {ErrorCode::kUnavailable, ErrorCode::kDeadlineExceeded, ErrorCode::kInternal, ErrorCode::kCorruption}) {
    Transaction broken = Begin();
    EXPECT_EQ(service_.sessions_open(), 1);
    service_.on_call = [&](FakeCall call, Deadline) {
      return call == FakeCall::kExecute ? FakeFault{Status(code, "broken")} : FakeFault{};
    };
    EXPECT_EQ(broken.Get(table_, "a").status().code(), code);
    service_.on_call = nullptr;
    EXPECT_EQ(service_.sessions_open(), 0);
    EXPECT_EQ(broken.Commit().status().code(), code);
  }
}

TEST_F(ClientTest, ALostCommitAnswerIsToldAsSuch) {
  Transaction writer = Begin();
  EXPECT_TRUE(writer.Put(table_, "a", "1").ok());
  service_.forgets_outcomes = true;
  service_.on_call = [](FakeCall call, Deadline) {
    if (call != FakeCall::kCommit) return FakeFault{};
    return FakeFault{DEUT_ERROR(kOutcomeUnknown, "the connection broke"), true};
  };
  EXPECT_EQ(writer.Commit().status().code(), ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(writer.status().code(), ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(service_.Peek(table_, "a"), "1");
  EXPECT_EQ(service_.sessions_open(), 0);
}

TEST_F(ClientTest, ALostCommitAnswerIsAskedFor) {
  for (const bool applied : {true, false}) {
    service_.on_call = [&](FakeCall call, Deadline) {
      if (call != FakeCall::kCommit) return FakeFault{};
      return FakeFault{DEUT_ERROR(kOutcomeUnknown, "the connection broke"), applied};
    };
    Transaction writer = Begin();
    const TransactionName name = writer.name();
    EXPECT_TRUE(name.id.given());
    EXPECT_TRUE(writer.Put(table_, applied ? "a" : "b", "1").ok());
    const Result<CommitAnswer> answer = writer.Commit();
    EXPECT_EQ(answer.ok(), applied) << answer.status().ToString();
    if (!applied) {
      EXPECT_EQ(answer.status().code(), ErrorCode::kUnavailable) << "it is not committed, and never will be";
    }
    const OutcomeAnswer asked = client_->AskOutcome(name).value();
    EXPECT_EQ(asked.outcome, applied ? TransactionOutcome::kCommitted : TransactionOutcome::kNotCommitted);
    if (applied) {
      EXPECT_EQ(asked.commit.timestamp, answer->timestamp);
    }
  }
  EXPECT_EQ(service_.Peek(table_, "a"), "1");
  EXPECT_EQ(service_.Peek(table_, "b"), std::nullopt);
}

TEST_F(ClientTest, NamesAreForOneTransactionEach) {
  std::vector<TransactionName> names;
  service_.on_begin = [&](const TransactionOptions& options) { names.push_back(options.name); };
  ASSERT_TRUE(Begin().Commit().ok());
  ASSERT_TRUE(Begin().Commit().ok());
  std::vector<OperationResult> results;
  ASSERT_TRUE(client_->ExecuteOneShot({}, {{.kind = OperationKind::kPut, .table = table_, .key = "a"}}, &results).ok());
  TransactionOptions snapshot;
  snapshot.isolation = Isolation::kSnapshot;
  ASSERT_TRUE(Begin(snapshot).Commit().ok());
  ASSERT_EQ(names.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(names[i].id.given());
    for (size_t k = 0; k < i; ++k) EXPECT_NE(names[i].id, names[k].id);
  }
  EXPECT_FALSE(names[3].id.given()) << "a snapshot writes nothing";
}

// No server of ours answers so. A client bears it from others.
TEST_F(ClientTest, AFailedConditionOfAWholeCallHasNoValue) {
  Transaction t = Begin();
  EXPECT_TRUE(t.CompareAndSet(table_, "c", std::nullopt, "1").ok());
  std::optional<std::string> found;
  EXPECT_EQ(t.CompareAndSet(table_, "c", "2", "3", &found).code(), ErrorCode::kConditionFailed);
  EXPECT_EQ(found, "1");
  found = std::nullopt;
  service_.on_call = [](testing::FakeCall call, Deadline) {
    return testing::FakeFault{.status = call == testing::FakeCall::kExecute
                                            ? DEUT_ERROR(kConditionFailed, "of the whole call")
                                            : Status::Ok()};
  };
  EXPECT_EQ(t.CompareAndSet(table_, "c", "2", "3", &found).code(), ErrorCode::kConditionFailed);
  EXPECT_EQ(found, std::nullopt);
}

TEST_F(ClientTest, AtomicOperations) {
  Transaction t = Begin();
  EXPECT_EQ(t.Add(table_, "n", 5).value(), 5);
  EXPECT_EQ(t.Add(table_, "n", -7).value(), -2);
  EXPECT_EQ(t.Min(table_, "n", -1).value(), -2);
  EXPECT_EQ(t.Max(table_, "n", 9).value(), 9);
  std::optional<std::string> found;
  EXPECT_TRUE(t.CompareAndSet(table_, "c", std::nullopt, "1").ok());
  EXPECT_EQ(t.CompareAndSet(table_, "c", "2", "3", &found).code(), ErrorCode::kConditionFailed);
  EXPECT_EQ(found, "1");
  EXPECT_EQ(t.CompareAndSet(table_, "absent", "2", "3", &found).code(), ErrorCode::kConditionFailed);
  EXPECT_EQ(found, std::nullopt);
  EXPECT_TRUE(t.open());
  EXPECT_TRUE(t.CompareAndSet(table_, "c", "1", "3").ok());
  EXPECT_EQ(t.Add(table_, "c", 1).status().code(), ErrorCode::kInvalidArgument) << "no number";
  EXPECT_TRUE(t.Commit().ok());
  EXPECT_EQ(service_.Peek(table_, "c"), "3");
}

TEST_F(ClientTest, ARangeIsRemovedBatchByBatch) {
  service_.max_batch_records = 3;
  for (int i = 0; i < 8; ++i) service_.Poke(table_, std::to_string(i), "v");
  Transaction t = Begin();
  EXPECT_EQ(t.RemoveRange(table_, "1", "").value(), 7u);
  EXPECT_EQ(t.RemoveRange(table_, "1", "").value(), 0u);
  EXPECT_TRUE(t.Commit().ok());
  EXPECT_EQ(service_.Records(table_), 1u);
}

TEST_F(ClientTest, AnIdleSessionThatDiedIsReplaced) {
  ASSERT_TRUE(Begin().Commit().ok());
  int begins = 0;
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kBegin && call != FakeCall::kOneShot) return FakeFault{};
    return ++begins == 1 ? FakeFault{DEUT_ERROR(kUnavailable, "connection reset")} : FakeFault{};
  };
  EXPECT_TRUE(Begin().Commit().ok());
  EXPECT_EQ(begins, 2);
  EXPECT_EQ(service_.sessions_opened(), 2);

  begins = 0;
  OneShot put(*client_);
  put.Put(table_, "a", "1");
  EXPECT_TRUE(put.Run().ok());
  EXPECT_EQ(begins, 2);
  EXPECT_EQ(service_.sessions_opened(), 3);

  // A new session that fails is not replaced by a third.
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kBegin) return FakeFault{};
    ++begins;
    return FakeFault{DEUT_ERROR(kUnavailable, "nobody is there")};
  };
  begins = 0;
  EXPECT_EQ(client_->Begin().status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(begins, 2);
  EXPECT_EQ(service_.sessions_open(), 0);
}

TEST_F(ClientTest, CallsCarryTheDefaultDeadlineOrTheirOwn) {
  std::vector<Duration> left;
  service_.on_call = [&](FakeCall call, Deadline deadline) {
    if (call == FakeCall::kExecute || call == FakeCall::kBegin || call == FakeCall::kCommit)
      left.push_back(deadline - runtime_.Now());
    return FakeFault{};
  };
  Transaction t = client_->Begin({}, {.timeout = seconds(2)}).value();
  EXPECT_TRUE(t.Get(table_, "a").ok());
  EXPECT_TRUE(t.Get(table_, "a", {.timeout = milliseconds(5)}).ok());
  EXPECT_TRUE(t.Commit().ok());
  EXPECT_THAT(left, ElementsAre(seconds(2), seconds(30), milliseconds(5), seconds(30)));
  EXPECT_EQ(client_->DeadlineFor({.timeout = Duration::max()}), kNoDeadline);
}

TEST_F(ClientTest, OneShots) {
  OneShot writes(*client_);
  writes.Put(table_, "a", "1");
  writes.Insert(table_, "b", "2");
  const size_t read = writes.Get(table_, "a");
  const size_t scan = writes.Scan(table_, {.low = "a", .limit_records = 1});
  const Result<CommitAnswer> first = writes.Run();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(writes.result(read).failed_precondition_at, Timestamp(0));
  EXPECT_EQ(RecordBatch::Iterator(writes.result(read).records).record().value, "1");
  EXPECT_EQ(writes.result(scan).records.size(), 1u);
  EXPECT_FALSE(writes.result(scan).complete);

  // The second insert of the same key fails: nothing of it is written, and the results say how far it came.
  writes.Clear();
  writes.Put(table_, "c", "3");
  const size_t insert = writes.Insert(table_, "b", "4");
  writes.Remove(table_, "a");
  EXPECT_EQ(writes.Run().status().code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(writes.result(insert).status.code(), ErrorCode::kAlreadyExists);
  EXPECT_GT(writes.result(insert).failed_precondition_at, first->timestamp);
  EXPECT_EQ(service_.Peek(table_, "a"), "1");
  EXPECT_EQ(service_.Peek(table_, "c"), std::nullopt);
  EXPECT_EQ(service_.sessions_opened(), 1);
}

TEST_F(ClientTest, MultiGetOfManyKeysGoesInSeveralMessages) {
  for (int i = 0; i < 3000; i += 2) service_.Poke(table_, std::to_string(i), std::to_string(i * 7));
  std::vector<std::string> keys;
  for (int i = 0; i < 3000; ++i) keys.push_back(std::to_string(i));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  int calls = 0;
  service_.on_call = [&](FakeCall call, Deadline) {
    calls += call == FakeCall::kExecute ? 1 : 0;
    return FakeFault{};
  };
  Transaction reader = Begin();
  std::vector<std::optional<std::string>> values;
  ASSERT_TRUE(reader.MultiGet(table_, views, &values).ok());
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(values.size(), 3000u);
  for (int i = 0; i < 3000; ++i) {
    EXPECT_EQ(values[i], i % 2 == 0 ? std::make_optional(std::to_string(i * 7)) : std::nullopt);
  }
}

TEST_F(ClientTest, ServesTheStatusOfTheService) {
  EXPECT_EQ(client_->GetStatus().value().dc[0].name, "reads_served");
  EXPECT_TRUE(client_->DropCaches().ok());
}

}  // namespace
}  // namespace deut
