// How values leave a chain (S9): which versions, at which places of the chain, and against installers and readers at every step.
#include "tc/mvcc/page_out.h"

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

constexpr Lsn kAllDurable{UINT64_MAX};

class PageOutTest : public ::testing::Test {
 protected:
  PageOutTest() {
    ReclamationDomain::Guard guard(domain_);
    entry_ = table_.FindOrCreate(1, TableId{1}, "k");
  }
  ~PageOutTest() override {
    testing::SetPointHandler(nullptr);
    ReclamationDomain::Guard guard(domain_);
    for (TransactionRecord* transaction : transactions_) transaction->DropReference(domain_);
  }

  static std::string ValueOf(uint64_t timestamp, size_t bytes = 100) {
    std::string value = "value " + std::to_string(timestamp);
    value.resize(bytes, '.');
    return value;
  }
  TransactionRecord* Txn(uint64_t timestamp) {
    transactions_.push_back(new TransactionRecord(Timestamp{timestamp}));
    return transactions_.back();
  }
  RecordVersion* Install(TransactionRecord* transaction, uint32_t sequence = 1, bool tombstone = false,
                         size_t bytes = 100) {
    ReclamationDomain::Guard guard(domain_);
    RecordVersion* version = RecordVersion::Create(transaction, sequence, tombstone,
                                                   tombstone ? "" : ValueOf(transaction->timestamp().value, bytes));
    HeadWord::Value seen = entry_->word.Load();
    do version->older.store(LiveHead(seen.head));
    while (!InstallVersion(*entry_, seen, version, Timestamp{0}, domain_));
    return version;
  }
  // As the commit path does it. The commit LSN is the timestamp.
  static void Commit(TransactionRecord* transaction, RecordVersion* last) {
    transaction->TryStartCommit();
    last->SetPlace(Lsn{transaction->timestamp().value * 1000});
    transaction->FinishCommit(Lsn{transaction->timestamp().value});
  }
  TransactionRecord* Committed(uint64_t timestamp, size_t bytes = 100) {
    TransactionRecord* const transaction = Txn(timestamp);
    Commit(transaction, Install(transaction, 1, false, bytes));
    return transaction;
  }
  TransactionRecord* Folded(uint64_t timestamp, size_t bytes = 100) {
    TransactionRecord* const transaction = Committed(timestamp, bytes);
    transaction->set_collected();
    return transaction;
  }
  PagedOut Out(Lsn durable = kAllDurable) {
    ReclamationDomain::Guard guard(domain_);
    return PageOut(*entry_, durable, domain_);
  }
  // "20 10l": timestamps from the head down; "l" marks a version whose value is in the log alone.
  std::string Chain() {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    for (const RecordVersion* v = entry_->word.Load().head; v != nullptr; v = v->older.load()) {
      if (!text.empty()) text += ' ';
      text += std::to_string(v->transaction->timestamp().value);
      if (v->paged_out) text += 'l';
    }
    return text;
  }

  ReclamationDomain domain_;
  RecordTable table_{domain_, 4};
  RecordEntry* entry_ = nullptr;
  std::vector<TransactionRecord*> transactions_;
};

TEST_F(PageOutTest, AWholeChainOfFoldedOnes) {
  Folded(10);
  Folded(20);
  Folded(30);
  const PagedOut paged = Out();
  EXPECT_EQ(paged.versions, 3u);
  EXPECT_EQ(paged.bytes, 300u);
  EXPECT_FALSE(paged.retry_later);
  EXPECT_EQ(Chain(), "30l 20l 10l");
  EXPECT_EQ(Out().versions, 0u);
  ReclamationDomain::Guard guard(domain_);
  const Visible found = FindVisible(entry_->word.Load().head, ReaderView{.timestamp = Timestamp{25}});
  ASSERT_EQ(found.kind, Visible::Kind::kVersion);
  EXPECT_EQ(found.version->place, Lsn{20000});
  EXPECT_EQ(found.version->value_bytes, 100u);
  EXPECT_EQ(found.version->bytes(), sizeof(RecordVersion));
}

TEST_F(PageOutTest, IneligibleVersionsStay) {
  Folded(10);
  Committed(20);                      // not folded: a write set points to it
  Folded(30, kMinPagedOutBytes - 1);  // too small
  TransactionRecord* const removed = Txn(40);
  RecordVersion* const tombstone = Install(removed, 1, /*tombstone=*/true);
  Commit(removed, tombstone);
  removed->set_collected();
  Folded(50);
  Folded(60);
  EXPECT_EQ(Out(Lsn{60}).versions, 2u);
  EXPECT_EQ(Chain(), "60 50l 40 30 20 10l");
  EXPECT_EQ(Out(Lsn{61}).versions, 1u);
  EXPECT_EQ(Chain(), "60l 50l 40 30 20 10l");
}

TEST_F(PageOutTest, VersionReplacedByItsOwnTransactionStays) {
  TransactionRecord* const transaction = Txn(10);
  Install(transaction, 1);
  Commit(transaction, Install(transaction, 2));
  transaction->set_collected();
  EXPECT_EQ(Out().versions, 1u);
  EXPECT_EQ(Chain(), "10l 10");
}

TEST_F(PageOutTest, BelowAnOpenTransactionAndBelowDeadVersionsItStays) {
  Folded(10);
  Folded(20);
  TransactionRecord* const open = Txn(30);
  Install(open);
  PagedOut paged = Out();
  EXPECT_EQ(paged.versions, 1u);
  EXPECT_TRUE(paged.retry_later);
  EXPECT_EQ(Chain(), "30 20 10l");
  open->TryAbort();
  paged = Out();
  EXPECT_EQ(paged.versions, 0u);
  EXPECT_TRUE(paged.retry_later);
  {
    ReclamationDomain::Guard guard(domain_);
    RemoveDeadAndApplied(*entry_, domain_);
  }
  EXPECT_EQ(Out().versions, 1u);
  EXPECT_EQ(Chain(), "20l 10l");
}

TEST_F(PageOutTest, AnInstallThatComesFirstWins) {
  Folded(10);
  bool installed = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "page_out.before_cas" || std::exchange(installed, true)) return;
    Install(Txn(20));
  });
  const PagedOut paged = Out();
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(installed);
  EXPECT_EQ(paged.versions, 0u);
  EXPECT_TRUE(paged.retry_later);
  EXPECT_EQ(Chain(), "20 10");
}

TEST_F(PageOutTest, AnInstallThatHasSeenTheHeadLooksAgain) {
  Folded(10);
  bool paged = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "chain.install.before_cas" || std::exchange(paged, true)) return;
    EXPECT_EQ(Out().versions, 1u);
  });
  Install(Txn(20));
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(paged);
  EXPECT_EQ(Chain(), "20 10l");
}

TEST_F(PageOutTest, AReaderThatHasTheVersionKeepsIt) {
  Folded(10);
  Folded(20);
  ReclamationDomain::Guard guard(domain_);
  const RecordVersion* const newest = entry_->word.Load().head;
  EXPECT_EQ(Out().versions, 2u);
  EXPECT_EQ(newest->value(), ValueOf(20));
  EXPECT_EQ(newest->older.load()->value(), ValueOf(10));
}

// Readers look while installers add versions and values are paged out: each reader finds either the right value or its place in the log.
TEST_F(PageOutTest, Stress) {
  constexpr uint64_t kCommits = 20'000;
  constexpr uint64_t kKept = 6;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> done{0}, from_memory{0}, from_log{0};
  const auto reader = [&](uint64_t back) {
    while (!stop.load()) {
      const uint64_t last = done.load();
      if (last <= back) continue;
      ReclamationDomain::Guard guard(domain_);
      const Visible found = FindVisible(entry_->word.Load().head, ReaderView{.timestamp = Timestamp{last - back}});
      if (found.kind != Visible::Kind::kVersion) continue;  // it was collected
      const uint64_t timestamp = found.version->transaction->timestamp().value;
      if (found.version->paged_out) {
        ASSERT_EQ(found.version->place.value, timestamp * 1000);
        from_log.fetch_add(1);
      } else {
        ASSERT_EQ(found.version->value(), ValueOf(timestamp));
        from_memory.fetch_add(1);
      }
    }
  };
  std::thread first([&] { reader(0); }), second([&] { reader(kKept / 2); });
  std::thread writer([&] {
    for (uint64_t i = 1; i <= kCommits; ++i) {
      auto* const transaction = new TransactionRecord(Timestamp{i});
      RecordVersion* const version = Install(transaction);
      if (i % 5 == 0) {
        transaction->TryAbort();
      } else {
        Commit(transaction, version);
        transaction->set_collected();
      }
      {
        ReclamationDomain::Guard guard(domain_);
        transaction->DropReference(domain_);
      }
      done.store(i);
    }
  });
  // The collector's part: it pages out values, then collects old versions.
  uint64_t paged = 0;
  while (done.load() < kCommits) {
    paged += Out().versions;
    ReclamationDomain::Guard guard(domain_);
    uint64_t passed = 0;
    for (RecordVersion* v = entry_->word.Load().head; v != nullptr; v = v->older.load()) {
      if (v->dead() || v->transaction->status() != TransactionStatus::kCommitted || ++passed < kKept) continue;
      CollectApplied(*entry_, v, domain_);
      break;
    }
  }
  writer.join();
  stop.store(true);
  first.join();
  second.join();
  EXPECT_GT(paged, 0u);
  EXPECT_GT(from_memory.load() + from_log.load(), 0u);
}

}  // namespace
}  // namespace deut::tc
