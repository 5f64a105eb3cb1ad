// The start and the end of a whole TC: restarts of either side, refusals, stops at any moment, folders of others.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/io/folder_owner.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/process_budget.h"
#include "common/testing/test_points.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tc/server/transaction_component.h"
#include "tc/server/transaction_component_fixture.h"

namespace deut::tc {
namespace {

class TransactionComponentStartTest : public TransactionComponentTest {
 protected:
  // A DC refuses a TC as WRONG_STATE because it holds data of another one. Waits until it has the fixture's table.
  void AwaitTableAtDc() {
    while (dc_.applied() == Position{}) runtime_.SleepUntil(runtime_.Now() + milliseconds(1));
  }
};

TEST_F(TransactionComponentStartTest, ARestartedDcIsRebuiltBehindTheGate) {
  for (int i = 0; i < 200; ++i) ASSERT_OK(PutOne(absl::StrCat("k", i), absl::StrCat(i)));
  ASSERT_OK(tc_->DropCaches(Soon()));
  dc_.Restart();  // it keeps nothing, so it has lost everything
  EXPECT_EQ(ScanAll(Direction::kAscending, 0, *session_).size(), 200u);
  EXPECT_EQ(dc_.records(), 200u);
}

TEST_F(TransactionComponentStartTest, AStopDoesNotWaitForThoseWhoWaitForTheDc) {
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

TEST_F(TransactionComponentStartTest, TheRecordTableBeginsAsLargeAsTheBudgetAsksFor) {
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

// The versions and the read cache follow the budget of the process, whose memory the test sets.
TEST_F(TransactionComponentStartTest, PartsFollowTheMemoryBudgetOfTheProcess) {
  constexpr uint64_t kMiB = 1 << 20;
  std::atomic<uint64_t> resident{100 * kMiB};
  ProcessBudget budget(runtime_, 1024 * kMiB, {.resident_bytes = [&resident] { return resident.load(); }});
  session_.reset();
  tc_.reset();
  TransactionComponentOptions options = Options();
  options.log.ring_bytes = 64 * kMiB;
  options.memory.log2_record_buckets = 0;
  options.process_budget = &budget;
  Result<std::unique_ptr<TransactionComponent>> opened = TransactionComponent::Open(options, runtime_, *storage_, dc_);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  tc_ = *std::move(opened);
  budget.Measure();
  EXPECT_EQ(StatusValue("versions.budget_bytes"), 256 * kMiB);
  EXPECT_EQ(StatusValue("records.table_bytes"), uint64_t{16} << 20) << "a bucket for 256 bytes";
  EXPECT_EQ(StatusValue("read_cache.budget_bytes") / kMiB, 847u)
      << "there are no pages in this process, and 16 MiB are kept free for versions";
  resident.store(2000 * kMiB);
  budget.Measure();
  EXPECT_EQ(StatusValue("versions.budget_bytes"), 64 * kMiB);
  EXPECT_EQ(StatusValue("read_cache.budget_bytes") / kMiB, 59u) << "14/15 of a sixteenth";
  tc_.reset();
  // A flag of a part wins.
  options.memory.version_budget_bytes = 100 * kMiB;
  options.read_cache.bytes = 10 * kMiB;
  opened = TransactionComponent::Open(options, runtime_, *storage_, dc_);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  tc_ = *std::move(opened);
  budget.Measure();
  EXPECT_EQ(StatusValue("versions.budget_bytes"), 100 * kMiB);
  EXPECT_EQ(StatusValue("read_cache.budget_bytes"), 10 * kMiB);
  tc_.reset();
}

// Its bytes are charged apart from the version budget, so they must not raise it for others.
TEST_F(TransactionComponentStartTest, ALargeTransactionDoesNotRaiseTheVersionBudgetWithoutFreeMemory) {
  constexpr uint64_t kMiB = 1 << 20;
  ProcessBudget budget(runtime_, 64 * kMiB, {.resident_bytes = [] { return 100 * kMiB; }});
  session_.reset();
  tc_.reset();
  TransactionComponentOptions options = Options();
  options.process_budget = &budget;
  Result<std::unique_ptr<TransactionComponent>> opened = TransactionComponent::Open(options, runtime_, *storage_, dc_);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  tc_ = *std::move(opened);
  ASSERT_OK(tc_->WaitServing(Soon()));
  session_ = *tc_->NewSession(Soon());
  ASSERT_TRUE(session_->Begin({}, Soon()).ok());
  const std::string value(64 << 10, 'v');
  for (int i = 0; i < 128; ++i) {
    const std::string key = absl::StrCat("k", i);
    const Operation put = Put(table_, key, value);
    std::vector<OperationResult> results;
    ASSERT_OK(session_->Execute({&put, 1}, &results, Soon()));
    ASSERT_OK(results[0].status);
  }
  ASSERT_GT(StatusValue("versions.bytes"), 8 * kMiB);
  budget.Measure();
  EXPECT_EQ(StatusValue("versions.budget_bytes"), 4 * kMiB) << "a sixteenth";
  session_.reset();
  tc_.reset();
}

TEST_F(TransactionComponentStartTest, ACleanStopIsNoRefusal) {
  ASSERT_OK(PutOne("a", "1"));
  session_.reset();
  tc_->Stop();
  EXPECT_EQ(refused_.load(), 0);
  EXPECT_EQ(tc_->OpenTable("t", Soon()).status().code(), ErrorCode::kUnavailable);
}

// The TC is stopped while the DC is still listing its tables. It does not begin to serve afterwards, and its question
// lasts no longer than a stop may take.
TEST_F(TransactionComponentStartTest, AStopDuringTheStartIsFinal) {
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
  EXPECT_EQ(tc_->CreateTable("x", {}, Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(refused_.load(), 0);
  dc_.on_tables = nullptr;
}

// Answers to the question for the tables that no later answer can better.
TEST_F(TransactionComponentStartTest, TablesRefusedForGoodEndTheStart) {
  dc_.refuse_with = ErrorCode::kInvalidArgument;
  wait_serving_ = false;
  const int refused = refused_.load();
  RestartTc();
  EXPECT_EQ(tc_->WaitServing(Soon()).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused_.load(), refused + 1);
}

TEST_F(TransactionComponentStartTest, TablesRefusedForNowAreAskedForWithPauses) {
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
TEST_F(TransactionComponentStartTest, AStopWaitsForATableThatIsBeingMade) {
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
  std::unique_ptr<Thread> maker =
      runtime_.StartThread("maker", [&] { made = tc_->CreateTable("x", {}, Soon()).status(); });
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

TEST_F(TransactionComponentStartTest, ARestartedTcHasEverythingAcknowledged) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 50; ++i) ASSERT_OK(PutOne(absl::StrCat("k", round, "-", i), "v"));
    if (round == 1) dc_.Restart();
    RestartTc();
    EXPECT_EQ(ScanAll(Direction::kAscending, 0, *session_).size(), static_cast<size_t>(50 * (round + 1)));
  }
  Result<TableId> again = tc_->CreateTable("t", {}, Soon());
  EXPECT_EQ(again.status().code(), ErrorCode::kAlreadyExists);
}

// A TC that is started by mistake, with another's directory or with bad options, does not clear the spilled files.
TEST_F(TransactionComponentStartTest, OneThatCannotStartTouchesNothingSpilled) {
  AwaitTableAtDc();
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
TEST_F(TransactionComponentStartTest, AFreshFolderIsLeftEmptyByATcThatItsDcRefuses) {
  AwaitTableAtDc();
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
TEST_F(TransactionComponentStartTest, AFolderThatWasRefusedServesWithAnotherDc) {
  AwaitTableAtDc();
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

TEST_F(TransactionComponentStartTest, AFolderOfAnotherComponentIsRefusedAndNotTouched) {
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
        const auto file = storage_->Open(absl::StrCat(directory, "/", name), {});
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

}  // namespace
}  // namespace deut::tc
