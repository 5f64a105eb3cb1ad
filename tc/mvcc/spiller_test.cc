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
    EXPECT_TRUE(runs.LockAndEmpty().ok());
    ReclamationDomain::Guard guard(domain);
    entry = table.FindOrCreate(kHash, TableId{1}, "k");
  }
  ~SpillerTest() override {
    ReclamationDomain::Guard guard(domain);
    for (TransactionRecord* transaction : transactions) transaction->DropReference(domain);
  }

  // If it commits, its commit LSN is its timestamp.
  TransactionRecord* Write(uint64_t timestamp) {
    transactions.push_back(new TransactionRecord(Timestamp{timestamp}));
    TransactionRecord* const transaction = transactions.back();
    ReclamationDomain::Guard guard(domain);
    RecordVersion* const version = RecordVersion::Create(transaction, 1, false, "v");
    HeadWord::Value seen = entry->word.Load();
    do version->older.store(LiveHead(seen.head));
    while (!InstallVersion(*entry, seen, version, Timestamp{0}, domain));
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
    commits.emplace_back(Position{Lsn{timestamp}, 1}, Timestamp{timestamp}, std::vector<RecordEntry*>{entry});
  }
  uint64_t Spill() {
    return spiller.Spill(&commits, [&](RecordEntry* gone) { removed.push_back(gone); });
  }
  // As Fold, but the commit waits in `unapplied`, counted as a fold counts it.
  void FoldUnapplied(uint64_t timestamp) {
    Fold(timestamp);
    ReclamationDomain::Guard guard(domain);
    unapplied.AddFoldedBytes(PinnedBy(*entry, *entry->word.Load().head) + commits.back().bytes());
    unapplied.CountArrival();
    unapplied.AddFolded(std::move(commits.back()));
    commits.pop_back();
  }
  uint64_t SpillEarliest() {
    return spiller.SpillEarliest(&unapplied, &remover, [] { return Timestamp{1000}; });
  }
  std::string Chain() {
    ReclamationDomain::Guard guard(domain);
    std::string text;
    for (const RecordVersion* v = entry->word.Load().head; v != nullptr; v = v->older.load())
      text += std::to_string(v->transaction->timestamp().value) + " ";
    return text;
  }
  std::string Runs() {
    ReclamationDomain::Guard guard(domain);
    std::string text;
    for (const SpilledRuns::RunPointer& run : runs.PublishedRuns()) text += "[" + TextOf(*run) + "]";
    return text;
  }
  Timestamp last_read() {
    ReclamationDomain::Guard guard(domain);
    return entry->word.Load().last_read();
  }

  FaultyDisk disk{RealRuntime(), 1};
  std::unique_ptr<Storage> storage = disk.Mount();
  ReclamationDomain domain;
  SpilledRuns runs{"dir", RealRuntime(), *storage, domain};
  RecordTable table{domain, 4};
  RecordEntry* entry = nullptr;
  std::vector<TransactionRecord*> transactions;
  std::vector<FoldedCommit> commits;
  std::vector<RecordEntry*> removed;
  UnappliedCommits unapplied;
  EntryRemover remover{domain, table, 100};
  Spiller spiller{{.runs = &runs,
                   .excess = [] { return uint64_t{1}; },
                   .durable = [] { return Lsn{UINT64_MAX}; },
                   .oldest_first_record = [] { return Lsn{UINT64_MAX}; },
                   .at_least = 2},
                  RealRuntime(),
                  domain};
};

TEST_F(SpillerTest, AWholeChainLeavesAndLeavesItsTimestamp) {
  Fold(10);
  Fold(20);
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "");
  EXPECT_TRUE(commits.empty());
  // R1: a writer earlier than them finds their timestamp in the entry's last_read instead of in the chain. R6: `remove` finds it there, too.
  EXPECT_GE(last_read(), Timestamp{20});
  EXPECT_EQ(removed, std::vector<RecordEntry*>{entry});
  EXPECT_EQ(spiller.versions(), 2u);
  EXPECT_EQ(runs.through(), Lsn{20});
  EXPECT_EQ(runs.spills().load(), 1u);
}

TEST_F(SpillerTest, CommitThatIsNotFoldedStays) {
  Fold(10);
  Fold(20);
  Commit(30);
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "30 ");
  EXPECT_TRUE(commits.empty());
  EXPECT_TRUE(removed.empty());
}

TEST_F(SpillerTest, BelowAnOpenTransactionItIsInBothPlacesAndGoesLater) {
  Fold(10);
  TransactionRecord* const open = Write(20);
  Spill();
  EXPECT_EQ(Runs(), "[k@10]");
  EXPECT_EQ(Chain(), "20 10 ");
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_TRUE(removed.empty());
  // Once that transaction is decided, the version leaves; it is not written again.
  open->TryStartCommit();
  open->FinishCommit(Lsn{20});
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@10]");
  EXPECT_EQ(Chain(), "20 ");
  EXPECT_TRUE(commits.empty());
}

TEST_F(SpillerTest, PrefixEndsBeforeCommitsThatMayStillArrive) {
  for (const uint64_t timestamp : {10, 20, 30, 40}) FoldUnapplied(timestamp);
  unapplied.set_complete_below(Lsn{20});
  EXPECT_EQ(SpillEarliest(), 0u);  // one update is fewer than `at_least`
  EXPECT_EQ(unapplied.folded_count(), 4u);
  unapplied.set_complete_below(Lsn{30});
  EXPECT_GT(SpillEarliest(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "40 30 ");
  EXPECT_EQ(unapplied.folded_count(), 2u);
  EXPECT_EQ(unapplied.waiting(), 2u);
  EXPECT_EQ(unapplied.gone(), 2u);
  unapplied.set_complete_below(Lsn{UINT64_MAX});
  EXPECT_GT(SpillEarliest(), 0u);
  EXPECT_EQ(unapplied.folded_bytes(), 0u);
  EXPECT_EQ(table.entries(), 0u);  // the remover got the entry, whose last_read is below low-water
}

TEST_F(SpillerTest, PrefixEndsBeforeACommitThatIsNotFolded) {
  FoldUnapplied(10);
  FoldUnapplied(20);
  unapplied.Add(Commit(30));
  unapplied.Settle();
  FoldUnapplied(40);
  unapplied.set_complete_below(Lsn{UINT64_MAX});
  EXPECT_GT(SpillEarliest(), 0u);
  EXPECT_EQ(Runs(), "[k@20 k@10]");
  EXPECT_EQ(Chain(), "40 30 ");
  EXPECT_EQ(unapplied.folded_count(), 1u);
}

TEST_F(SpillerTest, ARunThatCannotBeWrittenChangesNothing) {
  Fold(10);
  disk.AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskChanging, .path_contains = "spill-"});
  EXPECT_TRUE(spiller.pressed());
  EXPECT_EQ(Spill(), 0u);
  EXPECT_EQ(Runs(), "");
  EXPECT_EQ(Chain(), "10 ");
  EXPECT_EQ(commits.size(), 1u);
  EXPECT_EQ(last_read(), Timestamp{0});
  EXPECT_EQ(spiller.failures(), 1u);
  EXPECT_TRUE(spiller.excess());
  disk.RemoveAllFaults();
  EXPECT_GT(Spill(), 0u);
  EXPECT_EQ(Runs(), "[k@10]");
}

}  // namespace
}  // namespace deut::tc
