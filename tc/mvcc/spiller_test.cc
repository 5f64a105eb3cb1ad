// How committed versions leave a chain for a run (S9): which versions, from which places of the chain, and what they leave behind.
#include "tc/mvcc/spiller.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/mvcc/entry_remover.h"
#include "tc/mvcc/folded_commit.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/unapplied_commits.h"
#include "tc/mvcc/version_chain.h"
#include "tc/spill/spill_test_util.h"
#include "tc/spill/spilled_runs.h"

namespace deut::tc {
namespace {

constexpr uint64_t kHash = 1;

class SpillerTest : public ::testing::Test {
 protected:
  SpillerTest() {
    EXPECT_TRUE(runs_.LockAndEmpty().ok());
    ReclamationDomain::Guard guard(domain_);
    entry_ = table_.FindOrCreate(kHash, TableId{1}, "k");
  }
  ~SpillerTest() override {
    ReclamationDomain::Guard guard(domain_);
    for (TransactionRecord* transaction : transactions_) transaction->DropReference(domain_);
  }

  // If it commits, its commit LSN is its timestamp.
  TransactionRecord* Write(uint64_t timestamp) {
    transactions_.push_back(new TransactionRecord(Timestamp{timestamp}));
    TransactionRecord* const transaction = transactions_.back();
    ReclamationDomain::Guard guard(domain_);
    RecordVersion* const version = RecordVersion::Create(transaction, 1, false, "v");
    HeadWord::Value seen = entry_->word.Load();
    do version->older.store(LiveHead(seen.head));
    while (!InstallVersion(*entry_, seen, version, Timestamp{0}, domain_));
    version->SetPlace(Lsn{timestamp * 1000});
    return transaction;
  }
  TransactionRecord* Commit(uint64_t timestamp) {
    TransactionRecord* const transaction = Write(timestamp);
    transaction->TryStartCommit();
    transaction->FinishCommit(Lsn{timestamp});
    return transaction;
  }
  void Fold(uint64_t timestamp) {
    Commit(timestamp)->set_collected();
    commits_.emplace_back(Position{Lsn{timestamp}, 1}, Timestamp{timestamp}, std::vector<RecordEntry*>{entry_});
  }
  uint64_t Spill() {
    return spiller_.Spill(&commits_, [&](RecordEntry* gone) { removed_.push_back(gone); });
  }
  // As Fold, but the commit waits in `unapplied_`, counted as a fold counts it.
  void FoldUnapplied(uint64_t timestamp) {
    Fold(timestamp);
    ReclamationDomain::Guard guard(domain_);
    unapplied_.AddFoldedBytes(PinnedBy(*entry_, *entry_->word.Load().head) + commits_.back().bytes());
    unapplied_.CountArrival();
    unapplied_.AddFolded(std::move(commits_.back()));
    commits_.pop_back();
  }
  uint64_t SpillEarliest() {
    return spiller_.SpillEarliest(&unapplied_, &remover_, [] { return Timestamp{1000}; });
  }
  std::string Chain() {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    for (const RecordVersion* v = entry_->word.Load().head; v != nullptr; v = v->older.load())
      text += std::to_string(v->transaction->timestamp().value) + " ";
    return text;
  }
  std::string Runs() {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    for (const SpilledRuns::RunPointer& run : runs_.PublishedRuns()) text += "[" + TextOf(*run) + "]";
    return text;
  }
  Timestamp last_read() {
    ReclamationDomain::Guard guard(domain_);
    return entry_->word.Load().last_read();
  }

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_ = disk_.Mount();
  ReclamationDomain domain_;
  SpilledRuns runs_{"dir", RealRuntime(), *storage_, domain_};
  RecordTable table_{domain_, 4};
  RecordEntry* entry_ = nullptr;
  std::vector<TransactionRecord*> transactions_;
  std::vector<FoldedCommit> commits_;
  std::vector<RecordEntry*> removed_;
  UnappliedCommits unapplied_;
  EntryRemover remover_{domain_, table_, 100};
  Spiller spiller_{{.runs = &runs_,
                    .excess = [] { return uint64_t{1}; },
                    .durable = [] { return Lsn{UINT64_MAX}; },
                    .oldest_first_record = [] { return Lsn{UINT64_MAX}; },
                    .at_least = 2},
                   RealRuntime(),
                   domain_};
};

TEST_F(SpillerTest, AWholeChainLeavesAndLeavesItsTimestamp) {
  Fold(10);
  Fold(20);
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "");
  EXPECT_TRUE(commits_.empty());
  // R1: a writer earlier than them finds their timestamp in the entry's last_read instead of in the chain. R6: `remove` finds it there, too.
  EXPECT_GE(last_read(), Timestamp{20});
  EXPECT_EQ(removed_, std::vector<RecordEntry*>{entry_});
  EXPECT_EQ(spiller_.versions(), 2u);
  EXPECT_EQ(runs_.through(), Lsn{20});
  EXPECT_EQ(runs_.spills().load(), 1u);
}

TEST_F(SpillerTest, CommitThatIsNotFoldedStays) {
  Fold(10);
  Fold(20);
  Commit(30);
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "30 ");
  EXPECT_TRUE(commits_.empty());
  EXPECT_TRUE(removed_.empty());
}

TEST_F(SpillerTest, BelowAnOpenTransactionItIsInBothPlacesAndGoesLater) {
  Fold(10);
  TransactionRecord* const open = Write(20);
  Spill();
  EXPECT_EQ(Runs(), "[k@10]");
  EXPECT_EQ(Chain(), "20 10 ");
  ASSERT_EQ(commits_.size(), 1u);
  EXPECT_TRUE(removed_.empty());
  // Once that transaction is decided, the version leaves; it is not written again.
  open->TryStartCommit();
  open->FinishCommit(Lsn{20});
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@10]");
  EXPECT_EQ(Chain(), "20 ");
  EXPECT_TRUE(commits_.empty());
}

TEST_F(SpillerTest, PrefixEndsBeforeCommitsThatMayStillArrive) {
  for (const uint64_t timestamp : {10, 20, 30, 40}) FoldUnapplied(timestamp);
  unapplied_.set_complete_below(Lsn{20});
  EXPECT_EQ(SpillEarliest(), 0u);  // one update is fewer than `at_least`
  EXPECT_EQ(unapplied_.folded_count(), 4u);
  unapplied_.set_complete_below(Lsn{30});
  EXPECT_GT(SpillEarliest(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "40 30 ");
  EXPECT_EQ(unapplied_.folded_count(), 2u);
  EXPECT_EQ(unapplied_.waiting(), 2u);
  EXPECT_EQ(unapplied_.gone(), 2u);
  unapplied_.set_complete_below(Lsn{UINT64_MAX});
  EXPECT_GT(SpillEarliest(), 0u);
  EXPECT_EQ(unapplied_.folded_bytes(), 0u);
  EXPECT_EQ(table_.entries(), 0u);  // the remover got the entry, whose last_read is below low-water
}

TEST_F(SpillerTest, PrefixEndsBeforeACommitThatIsNotFolded) {
  FoldUnapplied(10);
  FoldUnapplied(20);
  unapplied_.Add(Commit(30));
  unapplied_.Settle();
  FoldUnapplied(40);
  unapplied_.set_complete_below(Lsn{UINT64_MAX});
  EXPECT_GT(SpillEarliest(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "40 30 ");
  EXPECT_EQ(unapplied_.folded_count(), 1u);
}

TEST_F(SpillerTest, ARunThatCannotBeWrittenChangesNothing) {
  Fold(10);
  disk_.AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskChanging, .path_contains = "spill-"});
  EXPECT_TRUE(spiller_.pressed());
  EXPECT_EQ(Spill(), 0u);
  EXPECT_EQ(Runs(), "");
  EXPECT_EQ(Chain(), "10 ");
  EXPECT_EQ(commits_.size(), 1u);
  EXPECT_EQ(last_read(), Timestamp{0});
  EXPECT_EQ(spiller_.failures(), 1u);
  EXPECT_TRUE(spiller_.excess());
  disk_.RemoveAllFaults();
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@10]");
}

}  // namespace
}  // namespace deut::tc
