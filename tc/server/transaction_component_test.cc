// The whole TC over a disk in memory and a DC of the test: transactions from session to log and DC, their
// outcomes.
#include "tc/server/transaction_component.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tc/server/transaction_component_fixture.h"

namespace deut::tc {
namespace {

TEST_F(TransactionComponentTest, WritesAreReadBackFromVersionsAndFromTheDc) {
  ASSERT_OK(PutOne("a", "1"));
  for (const bool from_dc : {false, true}) {
    if (from_dc) ASSERT_OK(tc_->DropCaches(Soon()));
    Operation get;
    get.table = table_;
    get.key = "a";
    std::vector<OperationResult> results;
    ASSERT_OK(OneShot({get}, &results));
    ASSERT_EQ(results[0].records.size(), 1u);
    EXPECT_EQ(RecordBatch::Iterator(results[0].records).record().value, "1");
  }
  EXPECT_EQ(StatusValue("records.entries"), 0u);
  EXPECT_EQ(StatusValue("versions.bytes"), 0u);
  EXPECT_GE(StatusValue("reads.from_dc"), 1u);
  EXPECT_EQ(dc_.Get(table_, "a"), "1");
}

// The answer is lost, but the outcome is not: it is the same every time, even after a restart of the TC.
TEST_F(TransactionComponentTest, OutcomesAreRemembered) {
  std::vector<OperationResult> results;
  TransactionOptions options;
  options.name = {.id = {.high = 1, .low = 1}, .not_before = session_->not_before()};
  const Result<CommitAnswer> committed = session_->ExecuteOneShot(options, {Put(table_, "a", "1")}, &results, Soon());
  ASSERT_OK(committed.status());
  const TransactionName denied{.id = {.high = 1, .low = 2}, .not_before = session_->not_before()};
  for (int life = 0; life < 3; ++life) {
    if (life > 0) RestartTc();
    const Result<OutcomeAnswer> answer = tc_->AskOutcome(options.name, Soon());
    ASSERT_OK(answer.status());
    EXPECT_EQ(answer->outcome, TransactionOutcome::kCommitted);
    EXPECT_EQ(answer->commit.timestamp, committed->timestamp);
    EXPECT_EQ(answer->commit.commit_lsn, committed->commit_lsn);
    const Result<OutcomeAnswer> none = tc_->AskOutcome(denied, Soon());
    ASSERT_OK(none.status());
    EXPECT_EQ(none->outcome, TransactionOutcome::kNotCommitted);
    // The transaction whose outcome was asked for arrives after all.
    options.name = denied;
    EXPECT_EQ(session_->ExecuteOneShot(options, {Put(table_, "b", "1")}, &results, Soon()).status().code(),
              ErrorCode::kAborted);
    options.name = {.id = {.high = 1, .low = 1}, .not_before = Timestamp(1)};
  }
  EXPECT_EQ(StatusValue("outcomes.asked"), 2u);
  EXPECT_EQ(ScanAll(Direction::kAscending, 10, *session_).size(), 1u);
}

// An answered outcome is durable: a crash after the answer does not take it back.
TEST_F(TransactionComponentTest, AnOutcomeIsAnsweredWhenItIsDurable) {
  std::vector<OperationResult> results;
  TransactionOptions options;
  options.durability = Durability::kBuffered;
  options.name = {.id = {.high = 1, .low = 1}, .not_before = session_->not_before()};
  // Holds the log thread before it writes this commit. The handler shares the event, because the thread may still be
  // leaving the wait when this test has ended.
  const auto go_on = std::make_shared<Event>();
  testing::SetPointHandler([this, go_on](std::string_view name) {
    if (name == "redo_log.writer.before_submit") go_on->Wait(runtime_, kNoDeadline);
  });
  ASSERT_OK(session_->ExecuteOneShot(options, {Put(table_, "a", "1")}, &results, Soon()).status());
  EXPECT_EQ(tc_->AskOutcome(options.name, runtime_.Now() + milliseconds(20)).status().code(),
            ErrorCode::kDeadlineExceeded);
  go_on->Signal(runtime_);
  const Result<OutcomeAnswer> answer = tc_->AskOutcome(options.name, Soon());
  testing::SetPointHandler(nullptr);
  ASSERT_OK(answer.status());
  EXPECT_EQ(answer->outcome, TransactionOutcome::kCommitted);
}

// The log is cut below the commit. From then on, even after restarts, the store does not claim to know its outcome.
// Younger outcomes are still known.
TEST_F(TransactionComponentTest, OutcomesGoWithTheLog) {
  std::vector<OperationResult> results;
  TransactionOptions options;
  options.name = {.id = {.high = 1, .low = 1}, .not_before = session_->not_before()};
  ASSERT_OK(session_->ExecuteOneShot(options, {Put(table_, "a", "1")}, &results, Soon()).status());
  const uint64_t first = StatusValue("log.first");
  const std::string large(900'000, 'v');
  TransactionOptions younger;
  for (uint64_t i = 2; StatusValue("log.first") == first; ++i) {
    younger.name = {.id = {.high = 1, .low = i}, .not_before = session_->not_before()};
    ASSERT_OK(session_->ExecuteOneShot(younger, {Put(table_, "large", large)}, &results, Soon()).status());
    ASSERT_TRUE(dc_.WaitUntil([&] { return dc_.applied().commit.value + (8 << 20) > StatusValue("log.tail"); }));
    dc_.MakeStable();
    ASSERT_LT(i, 2000u) << "the log is never cut";
  }
  for (int life = 0; life < 2; ++life) {
    if (life > 0) RestartTc();
    const Result<OutcomeAnswer> answer = tc_->AskOutcome(options.name, Soon());
    ASSERT_OK(answer.status());
    EXPECT_EQ(answer->outcome, TransactionOutcome::kTooOld) << "life " << life;
    const Result<OutcomeAnswer> known = tc_->AskOutcome(younger.name, Soon());
    ASSERT_OK(known.status());
    EXPECT_EQ(known->outcome, TransactionOutcome::kCommitted) << "life " << life;
  }
}

// Results are held until the transaction has committed. The refusal costs nothing but the call.
TEST_F(TransactionComponentTest, ResultsOfAOneShotAreBounded) {
  const std::string large(1'000'000, 'v');
  ASSERT_OK(PutOne("large", large));
  Operation get;
  get.table = table_;
  get.key = "large";
  Operation scan;
  scan.kind = OperationKind::kScan;
  scan.table = table_;
  scan.limit_records = 1;
  scan.limit_bytes = 1 << 20;
  for (const bool from_dc : {false, true}) {
    if (from_dc) ASSERT_OK(tc_->DropCaches(Soon()));
    for (const Operation& read : {get, scan}) {
      std::vector<OperationResult> results;
      std::vector<Operation> operations(67, read);
      ASSERT_OK(OneShot(operations, &results));
      operations.insert(operations.begin(), Put(table_, "small", "written"));
      operations.resize(70, read);
      const Status refused = OneShot(operations, &results);
      EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(refused.ToString(), ::testing::AllOf(::testing::HasSubstr("67108864"),
                                                       ::testing::HasSubstr("use an interactive transaction")));
      ASSERT_EQ(results.size(), 70u);
      EXPECT_EQ(results[67].records.size(), 1u);
      EXPECT_EQ(results[68].status.code(), ErrorCode::kInvalidArgument);
      EXPECT_TRUE(results[68].records.empty());
      EXPECT_EQ(results[69].status.code(), ErrorCode::kWrongState);
      // The session goes on, nothing was written, and an interactive transaction may read this much.
      get.key = "small";
      ASSERT_OK(OneShot({get}, &results));
      EXPECT_TRUE(results[0].records.empty());
      get.key = "large";
      ASSERT_TRUE(session_->Begin({}, Soon()).ok());
      ASSERT_OK(session_->Execute(std::vector<Operation>(70, read), &results, Soon()));
      EXPECT_EQ(results[69].records.size(), 1u);
      ASSERT_TRUE(session_->Commit(Soon()).ok());
    }
  }
}

TEST_F(TransactionComponentTest, ScansMergeVersionsWithTheDcInBothDirections) {
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 300; ++i) {
    const std::string key = absl::StrCat("k", 1000 + i);
    ASSERT_OK(PutOne(key, absl::StrCat(i)));
    expected[key] = absl::StrCat(i);
  }
  ASSERT_OK(tc_->DropCaches(Soon()));
  dc_.HoldApply(true);  // from here on updates stay in the TC
  for (int i = 0; i < 300; i += 3) {
    const std::string key = absl::StrCat("k", 1000 + i);
    if (i % 2 == 0) {
      Operation remove;
      remove.kind = OperationKind::kRemove;
      remove.table = table_;
      remove.key = key;
      std::vector<OperationResult> results;
      ASSERT_OK(OneShot({remove}, &results));
      expected.erase(key);
    } else {
      ASSERT_OK(PutOne(key, "new"));
      expected[key] = "new";
    }
  }
  const std::vector<std::pair<std::string, std::string>> ascending(expected.begin(), expected.end());
  const std::vector<std::pair<std::string, std::string>> descending(expected.rbegin(), expected.rend());
  for (const uint32_t limit : {0u, 1u, 7u, 1000u}) {
    EXPECT_EQ(ScanAll(Direction::kAscending, limit, *session_), ascending) << limit;
    EXPECT_EQ(ScanAll(Direction::kDescending, limit, *session_), descending) << limit;
  }
  dc_.HoldApply(false);
  ASSERT_OK(tc_->DropCaches(Soon()));
  EXPECT_EQ(ScanAll(Direction::kAscending, 10, *session_), ascending);
}

TEST_F(TransactionComponentTest, ATableThatGrowsGetsMoreRanges) {
  for (int i = 0; i < 400; ++i) ASSERT_OK(PutOne(absl::StrCat("k", 1000 + i), "v"));
  const Deadline deadline = Soon();
  while (StatusValue("ranges.table.t") < 2 && runtime_.Now() < deadline)
    runtime_.SleepUntil(runtime_.Now() + milliseconds(5));
  EXPECT_GE(StatusValue("ranges.table.t"), 2u);
  EXPECT_EQ(ScanAll(Direction::kDescending, 9, *session_).size(), 400u);
}

TEST_F(TransactionComponentTest, FailedPreconditionsLeaveTheTransactionOpenAndWriteNothing) {
  ASSERT_OK(PutOne("there", "1"));
  ASSERT_TRUE(session_->Begin({}, Soon()).ok());
  Operation insert = Put(table_, "there", "2");
  insert.kind = OperationKind::kInsert;
  Operation update = Put(table_, "absent", "2");
  update.kind = OperationKind::kUpdate;
  std::vector<OperationResult> results;
  ASSERT_OK(session_->Execute(std::vector<Operation>{insert, update, Put(table_, "new", "3")}, &results, Soon()));
  EXPECT_EQ(results[0].status.code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(results[1].status.code(), ErrorCode::kNotFound);
  EXPECT_TRUE(results[2].status.ok());
  ASSERT_TRUE(session_->Commit(Soon()).ok());
  EXPECT_THAT(ScanAll(Direction::kAscending, 0, *session_),
              ::testing::ElementsAre(::testing::Pair("new", "3"), ::testing::Pair("there", "1")));
}

TEST_F(TransactionComponentTest, ADroppedTableIsGoneAndItsNameFree) {
  ASSERT_OK(PutOne("a", "1"));
  ASSERT_OK(tc_->DropTable("t", Soon()));
  EXPECT_EQ(PutOne("a", "2").code(), ErrorCode::kNotFound);
  EXPECT_EQ(tc_->OpenTable("t", Soon()).status().code(), ErrorCode::kNotFound);
  const Result<TableId> again = tc_->CreateTable("t", {}, Soon());
  ASSERT_TRUE(again.ok());
  EXPECT_GT(*again, table_);
  table_ = *again;
  EXPECT_TRUE(ScanAll(Direction::kAscending, 0, *session_).empty());
}

TEST_F(TransactionComponentTest, SnapshotsReadACommittedPast) {
  std::vector<OperationResult> results;
  const Operation put = Put(table_, "a", "1");
  const Result<CommitAnswer> committed = session_->ExecuteOneShot({}, {&put, 1}, &results, Soon());
  ASSERT_TRUE(committed.ok());
  TransactionOptions snapshot;
  snapshot.isolation = Isolation::kSnapshot;
  snapshot.min_timestamp = committed->timestamp;
  ASSERT_TRUE(session_->Begin(snapshot, Soon()).ok());
  std::unique_ptr<TransactionSession> writer = *tc_->NewSession(Soon());
  const Operation later = Put(table_, "a", "2");
  ASSERT_TRUE(writer->ExecuteOneShot({}, {&later, 1}, &results, Soon()).ok());
  Operation get;
  get.table = table_;
  get.key = "a";
  ASSERT_OK(session_->Execute({&get, 1}, &results, Soon()));
  ASSERT_EQ(results[0].records.size(), 1u);
  EXPECT_EQ(RecordBatch::Iterator(results[0].records).record().value, "1");
  EXPECT_TRUE(session_->Commit(Soon()).ok());
}

}  // namespace
}  // namespace deut::tc
