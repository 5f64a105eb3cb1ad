// Which values leave memory when, and which queued entries the value evictor drops (S9).
#include "tc/mvcc/value_evictor.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tc/mvcc/page_out.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

class ValueEvictorTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 1000;

  ~ValueEvictorTest() override {
    ReclamationDomain::Guard guard(domain_);
    for (TransactionRecord* transaction : transactions_) transaction->DropReference(domain_);
  }

  // Commits a version of the key at this LSN, and folds it.
  void Commit(const std::string& key, uint64_t lsn, uint32_t bytes = kBytes) {
    ReclamationDomain::Guard guard(domain_);
    transactions_.push_back(new TransactionRecord(Timestamp{lsn}));
    TransactionRecord* const transaction = transactions_.back();
    RecordEntry* const entry = table_.FindOrCreate(RecordTable::Hash(TableId{1}, key), TableId{1}, key);
    RecordVersion* const version = RecordVersion::Create(transaction, 1, false, std::string(bytes, 'x'));
    HeadWord::Value seen = entry->word.Load();
    do version->older.store(LiveHead(seen.head));
    while (!InstallVersion(*entry, seen, version, Timestamp{0}, domain_));
    transaction->TryStartCommit();
    version->SetPlace(Lsn{lsn});
    transaction->FinishCommit(Lsn{lsn});
    transaction->set_collected();
    evictor_.Add(Lsn{lsn}, entry, bytes);
  }
  // Number of paged-out versions of the key.
  int Paged(const std::string& key) {
    ReclamationDomain::Guard guard(domain_);
    const RecordEntry* const entry = table_.Find(RecordTable::Hash(TableId{1}, key), TableId{1}, key);
    int paged = 0;
    for (const RecordVersion* v = entry->word.Load().head; v != nullptr; v = v->older.load()) paged += v->paged_out;
    return paged;
  }

  uint64_t excess_ = 0;
  Lsn durable_{UINT64_MAX};
  ReclamationDomain domain_;
  RecordTable table_{domain_, 4};
  std::vector<TransactionRecord*> transactions_;
  ValueEvictor evictor_{{.excess = [this] { return excess_; }, .durable = [this] { return durable_; }}, domain_};
};

TEST_F(ValueEvictorTest, NothingLeavesWithinTheShare) {
  Commit("a", 10);
  EXPECT_FALSE(evictor_.pressed());
  EXPECT_EQ(evictor_.Run(Lsn{0}), 0u);
  EXPECT_EQ(Paged("a"), 0);
  EXPECT_GT(evictor_.bytes(), 0u);
}

TEST_F(ValueEvictorTest, AllOfItLeavesWhereThatIsNotEnough) {
  Commit("a", 10);
  Commit("b", 20);
  Commit("a", 30);
  Commit("small", 40, kMinPagedOutBytes - 1);
  excess_ = 100 * kBytes;
  EXPECT_TRUE(evictor_.pressed());
  EXPECT_EQ(evictor_.Run(Lsn{0}), 3u * kBytes);
  EXPECT_EQ(Paged("a"), 2);
  EXPECT_EQ(Paged("b"), 1);
  EXPECT_EQ(Paged("small"), 0);
  EXPECT_EQ(evictor_.versions(), 3u);
  EXPECT_EQ(evictor_.bytes(), 0u);
  EXPECT_EQ(evictor_.Run(Lsn{0}), 0u);
}

// The value evictor takes entries in batches: beyond the batch that ends the excess nothing is paged out.
TEST_F(ValueEvictorTest, TheFirstOnesLeaveFirst) {
  constexpr int kMany = 1000;
  for (int i = 0; i < kMany; ++i) Commit("k" + std::to_string(i), static_cast<uint64_t>(i) + 10);
  excess_ = kBytes;
  EXPECT_GE(evictor_.Run(Lsn{0}), kBytes);
  EXPECT_EQ(Paged("k0"), 1);
  EXPECT_EQ(Paged("k999"), 0);
}

TEST_F(ValueEvictorTest, CommitThatIsNotDurableWaits) {
  Commit("a", 10);
  Commit("b", 20);
  excess_ = 100 * kBytes;
  durable_ = Lsn{20};
  EXPECT_EQ(evictor_.Run(Lsn{0}), kBytes);
  EXPECT_EQ(Paged("a"), 1);
  EXPECT_EQ(Paged("b"), 0);
  durable_ = Lsn{21};
  EXPECT_EQ(evictor_.Run(Lsn{0}), kBytes);
  EXPECT_EQ(Paged("b"), 1);
}

// The entries of collected commits may have been freed: the value evictor does not touch them.
TEST_F(ValueEvictorTest, CollectedCommitIsForgotten) {
  Commit("a", 10);
  Commit("b", 20);
  Commit("c", 30);
  EXPECT_EQ(evictor_.Run(Lsn{20}), 0u);
  const uint64_t one = evictor_.bytes();
  EXPECT_GT(one, 0u);
  excess_ = 100 * kBytes;
  EXPECT_EQ(evictor_.Run(Lsn{20}), kBytes);
  EXPECT_EQ(Paged("a") + Paged("b"), 0);
  EXPECT_EQ(Paged("c"), 1);
}

}  // namespace
}  // namespace deut::tc
