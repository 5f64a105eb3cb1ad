// The whole TC over a disk in memory and a DC of the test: transactions from session to log and DC, restarts of
// either side.
#include "tc/server/transaction_component.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/io/folder_owner.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tc/dc_link/fake_data_component.h"

namespace deut::tc {
namespace {

constexpr Duration kPatience = seconds(20);

#define ASSERT_OK(expression)                                            \
  do {                                                                   \
    const ::deut::Status status_for_assert = (expression);               \
    ASSERT_TRUE(status_for_assert.ok()) << status_for_assert.ToString(); \
  } while (false)

// A DC whose list of tables takes a while, or is refused, when the test says so.
class SlowlyListingDc : public FakeDataComponent {
 public:
  using FakeDataComponent::FakeDataComponent;
  Result<std::vector<TableInfo>> Tables(const Sender& sender, Deadline deadline) override {
    if (on_tables) on_tables(deadline);
    asked.fetch_add(1);
    if (const ErrorCode code = refuse_with.load(); code != ErrorCode::kOk) return Status(code, "no tables for you");
    return FakeDataComponent::Tables(sender, deadline);
  }
  std::function<void(Deadline)> on_tables;
  std::atomic<ErrorCode> refuse_with{ErrorCode::kOk};
  std::atomic<int> asked{0};
};

class TransactionComponentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    storage_ = NewMemoryStorage(runtime_);
    dc_.Start();
    StartTc();
    Result<TableId> table = tc_->CreateTable("t", Soon());
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }

  void TearDown() override {
    session_.reset();
    tc_.reset();
  }

  Deadline Soon() { return runtime_.Now() + kPatience; }

  TransactionComponentOptions Options() {
    TransactionComponentOptions options;
    options.log.directory = "/tc";
    options.log.ring_bytes = 4 << 20;
    options.log.segment_bytes = 4 << 20;
    options.log.max_record_bytes = 1 << 20;
    options.log.space_reserve_bytes = 256 << 10;
    options.log.chunk_bytes = 256 << 10;
    options.memory.log2_record_buckets = 8;
    options.ranges.period = milliseconds(5);
    options.ranges.records_per_range = 50;
    options.outcomes.log_bytes = 8 << 20;
    options.dc_link.redo_start_period = milliseconds(10);
    options.on_refused = [this](const Status&) { refused_.fetch_add(1); };
    return options;
  }

  void StartTc() {
    Result<std::unique_ptr<TransactionComponent>> opened =
        TransactionComponent::Open(Options(), runtime_, *storage_, dc_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    tc_ = *std::move(opened);
    if (!wait_serving_) return;
    ASSERT_OK(tc_->WaitServing(Soon()));
    session_ = *tc_->NewSession(Soon());
  }

  void RestartTc() {
    session_.reset();
    tc_.reset();
    StartTc();
  }

  static Operation Put(TableId table, std::string_view key, std::string_view value) {
    Operation operation;
    operation.kind = OperationKind::kPut;
    operation.table = table;
    operation.key = key;
    operation.value = value;
    return operation;
  }

  Status OneShot(const std::vector<Operation>& operations, std::vector<OperationResult>* results) {
    return session_->ExecuteOneShot({}, operations, results, Soon()).status();
  }
  Status PutOne(std::string_view key, std::string_view value) {
    std::vector<OperationResult> results;
    return OneShot({Put(table_, key, value)}, &results);
  }

  // Returns all records, read by scans of `limit` in the given direction.
  std::vector<std::pair<std::string, std::string>> ScanAll(Direction direction, uint32_t limit,
                                                           TransactionSession& session) {
    std::vector<std::pair<std::string, std::string>> records;
    std::string low, high;
    Result<Timestamp> begun = session.Begin({}, Soon());
    EXPECT_TRUE(begun.ok()) << begun.status().ToString();
    for (;;) {
      Operation scan;
      scan.kind = OperationKind::kScan;
      scan.table = table_;
      scan.low = low;
      scan.high = high;
      scan.direction = direction;
      scan.limit_records = limit;
      std::vector<OperationResult> results;
      const Status status = session.Execute({&scan, 1}, &results, Soon());
      EXPECT_TRUE(status.ok()) << status.ToString();
      if (!status.ok() || !results[0].status.ok()) return records;
      for (RecordBatch::Iterator it(results[0].records); it.Valid(); it.Next()) {
        records.emplace_back(it.record().key, it.record().value);
      }
      if (results[0].complete) break;
      (direction == Direction::kAscending ? low : high) = results[0].resume;
    }
    EXPECT_TRUE(session.Commit(Soon()).ok());
    return records;
  }

  uint64_t StatusValue(std::string_view name) {
    const Result<ServiceStatus> status = tc_->GetStatus(Soon());
    EXPECT_TRUE(status.ok());
    for (const CounterValue& counter : status->tc) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  Runtime& runtime_ = RealRuntime();
  SlowlyListingDc dc_{runtime_, DcId{7}};
  std::atomic<int> refused_{0};
  bool wait_serving_ = true;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<TransactionComponent> tc_;
  std::unique_ptr<TransactionSession> session_;
  TableId table_;
};

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

TEST_F(TransactionComponentTest, ARestartedDcIsRebuiltBehindTheGate) {
  for (int i = 0; i < 200; ++i) ASSERT_OK(PutOne(absl::StrCat("k", i), absl::StrCat(i)));
  ASSERT_OK(tc_->DropCaches(Soon()));
  dc_.Restart();  // it keeps nothing, so it has lost everything
  EXPECT_EQ(ScanAll(Direction::kAscending, 0, *session_).size(), 200u);
  EXPECT_EQ(dc_.records(), 200u);
}

TEST_F(TransactionComponentTest, AStopDoesNotWaitForThoseWhoWaitForTheDc) {
  ASSERT_OK(PutOne("a", "1"));
  ASSERT_OK(tc_->DropCaches(Soon()));
  dc_.Kill();
  // The next write stays uncollected, and a read must ask the DC.
  ASSERT_OK(PutOne("b", "2"));
  const MonotonicTime begun = runtime_.Now();
  Status read, dropped;
  const std::unique_ptr<Thread> reader = runtime_.StartThread("reader", [&] {
    Operation get;
    get.kind = OperationKind::kGet;
    get.table = table_;
    get.key = "a";
    std::vector<OperationResult> results;
    read = OneShot({get}, &results);
  });
  const std::unique_ptr<Thread> dropper =
      runtime_.StartThread("dropper", [&] { dropped = tc_->DropCaches(begun + kPatience); });
  while (StatusValue("transactions.open") == 0) runtime_.SleepUntil(runtime_.Now() + milliseconds(1));
  tc_->BeginStop();
  reader->Join();
  dropper->Join();
  EXPECT_EQ(read.code(), ErrorCode::kUnavailable) << read.ToString();
  EXPECT_EQ(dropped.code(), ErrorCode::kUnavailable) << dropped.ToString();
  EXPECT_LT(runtime_.Now() - begun, kPatience / 2);
}

TEST_F(TransactionComponentTest, TheRecordTableBeginsAsLargeAsTheBudgetAsksFor) {
  EXPECT_EQ(StatusValue("records.table_bytes"), uint64_t{16} << 8);  // as Options says
  session_.reset();
  tc_->Stop();
  tc_.reset();
  TransactionComponentOptions options = Options();
  options.memory.log2_record_buckets = 0;
  options.memory.version_budget_bytes = 100 << 20;  // a bucket for 256 bytes, as a power of two
  Result<std::unique_ptr<TransactionComponent>> opened = TransactionComponent::Open(options, runtime_, *storage_, dc_);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  tc_ = *std::move(opened);
  EXPECT_EQ(StatusValue("records.table_bytes"), uint64_t{16} << 18);
}

TEST_F(TransactionComponentTest, ACleanStopIsNoRefusal) {
  ASSERT_OK(PutOne("a", "1"));
  session_.reset();
  tc_->Stop();
  EXPECT_EQ(refused_.load(), 0);
  EXPECT_EQ(tc_->OpenTable("t", Soon()).status().code(), ErrorCode::kUnavailable);
}

// The TC is stopped while the DC is still listing its tables. It does not begin to serve afterwards, and its question
// lasts no longer than a stop may take.
TEST_F(TransactionComponentTest, AStopDuringTheStartIsFinal) {
  session_.reset();
  tc_.reset();
  Event listing, go_on;
  Duration patience{0};
  dc_.on_tables = [&](Deadline deadline) {
    if (listing.IsSet()) return;
    patience = deadline - runtime_.Now();
    listing.Signal(runtime_);
    go_on.Wait(runtime_, kNoDeadline);
  };
  wait_serving_ = false;
  StartTc();
  ASSERT_TRUE(listing.Wait(runtime_, Soon()));
  EXPECT_LE(patience, seconds(1));
  tc_->BeginStop();
  go_on.Signal(runtime_);
  tc_->Stop();
  EXPECT_EQ(tc_->WaitServing(Soon()).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(tc_->CreateTable("x", Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(refused_.load(), 0);
  dc_.on_tables = nullptr;
}

// Answers to the question for the tables that no later answer can better.
TEST_F(TransactionComponentTest, TablesRefusedForGoodEndTheStart) {
  dc_.refuse_with = ErrorCode::kInvalidArgument;
  wait_serving_ = false;
  const int refused = refused_.load();
  RestartTc();
  EXPECT_EQ(tc_->WaitServing(Soon()).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused_.load(), refused + 1);
}

TEST_F(TransactionComponentTest, TablesRefusedForNowAreAskedForWithPauses) {
  dc_.refuse_with = ErrorCode::kResourceExhausted;
  wait_serving_ = false;
  RestartTc();
  const int before = dc_.asked.load();
  runtime_.SleepUntil(runtime_.Now() + milliseconds(500));
  // There are pauses of 50, 100, 200 and 400 ms. A busy processor makes the questions fewer.
  EXPECT_LE(dc_.asked.load() - before, 6);
  dc_.refuse_with = ErrorCode::kOk;
  ASSERT_OK(tc_->WaitServing(Soon()));
  session_ = *tc_->NewSession(Soon());
  ASSERT_OK(PutOne("a", "1"));
}

// A call that creates or drops a table appends to the log, so the log is not stopped before it has ended.
TEST_F(TransactionComponentTest, AStopWaitsForATableThatIsBeingMade) {
  Event appending, go_on;
  std::atomic<bool> committed{false}, stopped_log{false}, committed_first{false};
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "commit.before_append") {
      appending.Signal(runtime_);
      go_on.Wait(runtime_, kNoDeadline);
    } else if (name == "commit.committed") {
      committed.store(true);
    } else if (name == "component.aborted_all") {
      go_on.Signal(runtime_);
    } else if (name == "component.stopping_log") {
      committed_first.store(committed.load());
      stopped_log.store(true);
    }
  });
  Status made;
  std::unique_ptr<Thread> maker = runtime_.StartThread("maker", [&] { made = tc_->CreateTable("x", Soon()).status(); });
  ASSERT_TRUE(appending.Wait(runtime_, Soon()));
  session_.reset();
  tc_->Stop();
  maker.reset();
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(stopped_log.load());
  EXPECT_TRUE(committed_first.load());
  EXPECT_TRUE(made.ok()) << made.ToString();
  RestartTc();
  EXPECT_TRUE(tc_->OpenTable("x", Soon()).ok());
}

TEST_F(TransactionComponentTest, ARestartedTcHasEverythingAcknowledged) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) ASSERT_OK(PutOne(absl::StrCat("k", round, "-", i), "v"));
    if (round == 1) dc_.Restart();
    RestartTc();
    EXPECT_EQ(ScanAll(Direction::kAscending, 0, *session_).size(), static_cast<size_t>(50 * (round + 1)));
  }
  Result<TableId> again = tc_->CreateTable("t", Soon());
  EXPECT_EQ(again.status().code(), ErrorCode::kAlreadyExists);
}

TEST_F(TransactionComponentTest, ATableThatGrowsGetsMoreRanges) {
  for (int i = 0; i < 400; ++i) ASSERT_OK(PutOne(absl::StrCat("k", 1000 + i), "v"));
  const Deadline deadline = Soon();
  while (StatusValue("ranges.table.t") < 2 && runtime_.Now() < deadline)
    runtime_.SleepUntil(runtime_.Now() + milliseconds(5));
  EXPECT_GE(StatusValue("ranges.table.t"), 2u);
  EXPECT_EQ(ScanAll(Direction::kDescending, 9, *session_).size(), 400u);
}

// A TC that is started by mistake, with another's directory or with bad options, does not clear the spilled files.
TEST_F(TransactionComponentTest, OneThatCannotStartTouchesNothingSpilled) {
  const auto spill = [&](const std::string& directory) {
    ASSERT_OK(storage_->CreateDirectory(directory));
    ASSERT_TRUE(storage_->Open(directory + "/spill-7", {.create = true, .writable = true}).ok());
  };
  spill("/of_another");
  TransactionComponentOptions options = Options();
  options.spill.directory = "/of_another";
  EXPECT_EQ(TransactionComponent::Open(options, runtime_, *storage_, dc_).status(), ErrorCode::kUnavailable)
      << "the log's directory is taken";
  EXPECT_THAT(*storage_->List("/of_another"), ::testing::ElementsAre("spill-7"));

  options = Options();
  options.log.directory = "/later";
  options.log.ring_bytes = 1;
  spill("/later/spill");
  EXPECT_EQ(TransactionComponent::Open(options, runtime_, *storage_, dc_).status(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(*storage_->List("/later/spill"), ::testing::ElementsAre("spill-7"));
  options.log.ring_bytes = Options().log.ring_bytes;
  // X4: a TC that is refused by its DC, because that is another's, does not either.
  auto refused = TransactionComponent::Open(options, runtime_, *storage_, dc_);
  ASSERT_TRUE(refused.ok()) << refused.status().ToString();
  EXPECT_EQ((*refused)->WaitServing(Soon()), ErrorCode::kWrongState);
  (*refused)->Stop();
  refused->reset();
  EXPECT_THAT(*storage_->List("/later/spill"), ::testing::ElementsAre("spill-7"));
  EXPECT_THAT(*storage_->List("/later"), ::testing::ElementsAre("spill"));
}

// X4: before the DC has accepted a TC nothing of its folders is made but the empty folder of the log. OWNER in the folder of a TC that was never
// accepted would keep another component from a folder that nobody uses.
TEST_F(TransactionComponentTest, AFreshFolderIsLeftEmptyByATcThatItsDcRefuses) {
  ASSERT_OK(storage_->CreateDirectory("/empty"));
  for (const std::string folder : {"/empty", "/made"}) {
    TransactionComponentOptions options = Options();
    options.log.directory = folder;
    options.spill.directory = folder + "-spill";
    for (int start = 0; start < 12; ++start) {
      auto refused = TransactionComponent::Open(options, runtime_, *storage_, dc_);
      ASSERT_TRUE(refused.ok()) << refused.status().ToString();
      EXPECT_EQ((*refused)->WaitServing(Soon()), ErrorCode::kWrongState);
      EXPECT_EQ(TransactionComponent::Open(options, runtime_, *storage_, dc_).status(), ErrorCode::kUnavailable)
          << "the folder is not locked while it waits";
      refused->reset();
      EXPECT_THAT(*storage_->List(folder), ::testing::ElementsAre());
      EXPECT_FALSE(*storage_->Exists(folder + "-spill"));
    }
  }
}

// The DC that refused is exchanged for one that does not.
TEST_F(TransactionComponentTest, AFolderThatWasRefusedServesWithAnotherDc) {
  TransactionComponentOptions options = Options();
  options.log.directory = "/later";
  {
    auto refused = TransactionComponent::Open(options, runtime_, *storage_, dc_);
    ASSERT_TRUE(refused.ok()) << refused.status().ToString();
    EXPECT_EQ((*refused)->WaitServing(Soon()), ErrorCode::kWrongState);
  }
  FakeDataComponent other(runtime_, DcId(10));
  other.Start();
  auto opened = TransactionComponent::Open(options, runtime_, *storage_, other);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  ASSERT_OK((*opened)->WaitServing(Soon()));
  opened->reset();
  EXPECT_THAT(*storage_->List("/later"), ::testing::IsSupersetOf({"LOCK", "OWNER", "spill"}));
  EXPECT_THAT(*storage_->List("/later/spill"), ::testing::ElementsAre("LOCK", "OWNER"));
}

TEST_F(TransactionComponentTest, AFolderOfAnotherComponentIsRefusedAndNotTouched) {
  const auto make = [&](const std::string& directory, const std::string& name, const std::string& bytes) {
    ASSERT_OK(storage_->CreateDirectory(directory));
    auto file = storage_->Open(directory + "/" + name, {.create = true, .writable = true});
    ASSERT_TRUE(file.ok());
    ASSERT_OK((*file)->Write(0, bytes.data(), bytes.size()));
  };
  make("/dc", "OWNER", EncodeFolderOwner(FolderKind::kDataComponent));
  make("/old_dc", "dc_state", "bytes");
  TransactionComponentOptions options = Options();
  for (const std::string directory : {"/dc", "/old_dc"}) {
    const auto contents = [&] {
      std::map<std::string, std::string> files;
      const std::vector<std::string> names = *storage_->List(directory);
      for (const std::string& name : names) {
        const auto file = storage_->Open(directory + "/" + name, {});
        std::string bytes(*(*file)->Size(), '\0');
        EXPECT_EQ(*(*file)->Read(0, bytes.data(), bytes.size()), bytes.size());
        files[name] = bytes;
      }
      return files;
    };
    const auto before = contents();
    for (int start = 0; start < 12; ++start) {
      options.log.directory = directory;
      options.spill.directory = "/spill_of_mine";
      EXPECT_EQ(TransactionComponent::Open(options, runtime_, *storage_, dc_).status(), ErrorCode::kWrongState);
      options.log.directory = "/log_of_mine";
      options.spill.directory = directory;
      EXPECT_EQ(TransactionComponent::Open(options, runtime_, *storage_, dc_).status(), ErrorCode::kWrongState);
      EXPECT_TRUE(contents() == before);
      EXPECT_FALSE(*storage_->Exists("/log_of_mine")) << "nothing is made before all folders are known to be its own";
      EXPECT_FALSE(*storage_->Exists("/spill_of_mine"));
    }
  }
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
  const Result<TableId> again = tc_->CreateTable("t", Soon());
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
