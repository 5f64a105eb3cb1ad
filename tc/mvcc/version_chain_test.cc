// Which versions readers find in a chain, and how versions enter and leave it, at every step of a race (rules R4, R7, R10, S6).
#include "tc/mvcc/version_chain.h"

#include <functional>
#include <string>
#include <vector>

#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

class VersionChainTest : public ::testing::Test {
 protected:
  VersionChainTest() {
    ReclamationDomain::Guard guard(domain_);
    entry_ = table_.FindOrCreate(1, TableId{1}, "k");
  }
  ~VersionChainTest() override {
    testing::SetPointHandler(nullptr);
    ReclamationDomain::Guard guard(domain_);
    for (TransactionRecord* transaction : transactions_) transaction->DropReference(domain_);
  }

  TransactionRecord* Txn(uint64_t timestamp) {
    transactions_.push_back(new TransactionRecord(Timestamp{timestamp}));
    return transactions_.back();
  }
  RecordVersion* Install(TransactionRecord* transaction, uint32_t sequence = 1, bool tombstone = false) {
    ReclamationDomain::Guard guard(domain_);
    RecordVersion* version = RecordVersion::Create(transaction, sequence, tombstone, "v");
    HeadWord::Value seen = entry_->word.Load();
    do version->older.store(LiveHead(seen.head));
    while (!InstallVersion(*entry_, seen, version, Timestamp{0}, domain_));
    return version;
  }
  RecordVersion* Committed(uint64_t timestamp) {
    TransactionRecord* const transaction = Txn(timestamp);
    RecordVersion* const version = Install(transaction);
    transaction->TryStartCommit();
    transaction->FinishCommit(Lsn{timestamp});
    return version;
  }
  void Collect(RecordVersion* version) {
    ReclamationDomain::Guard guard(domain_);
    CollectApplied(*entry_, version, domain_);
  }
  // "20a 10": timestamps from the head down; a: aborted, w: withdrawn, p: pending.
  std::string Chain() {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    for (const RecordVersion* v = entry_->word.Load().head; v != nullptr; v = v->older.load()) {
      if (!text.empty()) text += ' ';
      text += std::to_string(v->transaction->timestamp().value);
      if (v->withdrawn.load()) {
        text += 'w';
      } else if (v->transaction->status() == TransactionStatus::kAborted) {
        text += 'a';
      } else if (v->transaction->status() != TransactionStatus::kCommitted) {
        text += 'p';
      }
    }
    return text;
  }
  std::string Sees(uint64_t timestamp, const TransactionRecord* self = nullptr, uint32_t own_below = UINT32_MAX) {
    ReclamationDomain::Guard guard(domain_);
    const Visible visible = FindVisible(entry_->word.Load().head, {Timestamp{timestamp}, self, own_below});
    if (visible.kind == Visible::Kind::kNothing) return "-";
    const std::string text =
        std::to_string(visible.version->version().timestamp.value) + "/" + std::to_string(visible.version->sequence);
    return (visible.kind == Visible::Kind::kConflict ? "!" : "") + text;
  }

  ReclamationDomain domain_;
  RecordTable table_{domain_, 0};
  RecordEntry* entry_ = nullptr;
  std::vector<TransactionRecord*> transactions_;
};

TEST_F(VersionChainTest, ReaderFindsTheNewestVisibleVersion) {
  EXPECT_EQ(Sees(100), "-");
  Committed(10);
  Committed(20);
  TransactionRecord* const pending = Txn(30);
  Install(pending, 1);
  Install(pending, 2);
  EXPECT_EQ(Chain(), "30p 30p 20 10");
  EXPECT_EQ(Sees(10), "-");
  EXPECT_EQ(Sees(11), "10/1");
  EXPECT_EQ(Sees(20), "10/1");
  EXPECT_EQ(Sees(25), "20/1");
  EXPECT_EQ(Sees(40), "!30/2");
  EXPECT_EQ(Sees(30, pending), "30/2");
  EXPECT_EQ(Sees(30, pending, 2), "30/1");
  EXPECT_EQ(Sees(30, pending, 1), "20/1");
  pending->TryStartCommit();
  EXPECT_EQ(Sees(40), "!30/2") << "committing is not decided";
  pending->FinishCommit(Lsn{30});
  EXPECT_EQ(Sees(40), "30/2");
}

// The owner withdraws a version and commits while a reader looks at it.
TEST_F(VersionChainTest, R4AReaderThatFindsItCommittedFindsItWithdrawn) {
  Committed(10);
  TransactionRecord* const inserts = Txn(20);
  RecordVersion* const intent = Install(inserts);
  bool once = false;
  testing::SetPointHandler([&](std::string_view name) {
    const bool between = name == (DEUT_OMITTED("R4.status_first") ? "chain.look.first" : "chain.look.status_loaded");
    if (!between || std::exchange(once, true)) return;
    intent->withdrawn.store(true);
    inserts->TryStartCommit();
    inserts->FinishCommit(Lsn{20});
  });
  EXPECT_EQ(Sees(30), "10/1");
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(once);
  EXPECT_EQ(Chain(), "20w 10");
}

TEST_F(VersionChainTest, R7AbortIsOneStoreForAllVersions) {
  Committed(10);
  TransactionRecord* const doomed = Txn(20);
  Install(doomed, 1);
  Install(doomed, 2);
  EXPECT_EQ(Sees(30), "!20/2");
  EXPECT_TRUE(doomed->TryAbort());
  EXPECT_FALSE(doomed->TryStartCommit());
  EXPECT_EQ(Sees(30), "10/1");
  EXPECT_EQ(LiveHead(entry_->word.Load().head)->version().timestamp, Timestamp{10});
  // An installer unlinks dead versions.
  Install(Txn(40));
  EXPECT_EQ(Chain(), "40p 10");
}

TEST_F(VersionChainTest, R4WithdrawnVersionsAreNobodys) {
  Committed(10);
  TransactionRecord* const owner = Txn(20);
  RecordVersion* const intent = Install(owner, 1);
  intent->withdrawn.store(true);
  EXPECT_EQ(Sees(30), "10/1");
  EXPECT_EQ(Sees(20, owner), "10/1");
  EXPECT_EQ(LiveHead(entry_->word.Load().head)->version().timestamp, Timestamp{10});
  Install(owner, 2);
  EXPECT_EQ(Chain(), "20p 10");
  owner->TryAbort();
  ReclamationDomain::Guard guard(domain_);
  RemoveDeadAndApplied(*entry_, domain_);
  EXPECT_EQ(Chain(), "10");
}

// S6: an applied version ends the chain; it leaves when nothing is above it.
TEST_F(VersionChainTest, S6AppliedVersionsEndTheChain) {
  RecordVersion* const v10 = Committed(10);
  RecordVersion* const v20 = Committed(20);
  TransactionRecord* const pending = Txn(30);
  Install(pending);
  Collect(v10);
  EXPECT_EQ(Chain(), "30p 20 10");
  Collect(v20);
  EXPECT_EQ(Chain(), "30p 20");
  EXPECT_EQ(Sees(25), "20/1") << "what the DC would tell";
  EXPECT_EQ(Sees(15), "-");
  pending->TryAbort();
  ReclamationDomain::Guard guard(domain_);
  RemoveDeadAndApplied(*entry_, domain_);
  EXPECT_EQ(Chain(), "");
}

TEST_F(VersionChainTest, S6TheHeadLeavesAtOnce) {
  RecordVersion* const v10 = Committed(10);
  RecordVersion* const v20 = Committed(20);
  Collect(v10);
  EXPECT_EQ(Chain(), "20 10");
  Collect(v20);
  EXPECT_EQ(Chain(), "");
}

// A writer and the collector, each wholly between two steps of the other; with a dead head, which both skip.
TEST_F(VersionChainTest, AnInstallerAndTheCollectorRace) {
  for (const char* point : {"chain.install.before_cas", "chain.remove.before_cas"}) {
    for (const bool dead_head : {false, true}) {
      SCOPED_TRACE(::testing::Message() << point << dead_head);
      RecordVersion* const v10 = Committed(10);
      RecordVersion* const v20 = Committed(20);
      Collect(v10);
      if (dead_head) {
        TransactionRecord* const doomed = Txn(30);
        Install(doomed);
        doomed->TryAbort();
      }
      TransactionRecord* const writer = Txn(40);
      bool done = false;
      const bool collector_inside = std::string_view(point) == "chain.install.before_cas";
      testing::SetPointHandler([&](std::string_view name) {
        if (name != point || done) return;
        done = true;
        if (collector_inside) {
          Collect(v20);
        } else {
          Install(writer);
        }
      });
      if (collector_inside) {
        Install(writer);
      } else {
        Collect(v20);
      }
      EXPECT_TRUE(done);
      testing::SetPointHandler(nullptr);
      EXPECT_TRUE(Chain() == "40p" || Chain() == "40p 20") << Chain();
      EXPECT_EQ(Sees(40, writer), "40/1");
      EXPECT_EQ(Sees(15), "-");
      writer->TryAbort();
      ReclamationDomain::Guard guard(domain_);
      RemoveDeadAndApplied(*entry_, domain_);
      EXPECT_EQ(Chain(), "");
    }
  }
}

// The head dies while the collector works below it, repeatedly: an installer that stops before its compare-and-swap finds a sound chain.
TEST_F(VersionChainTest, ADyingHeadOverSeveralCollections) {
  RecordVersion* const v10 = Committed(10);
  RecordVersion* const v20 = Committed(20);
  TransactionRecord* const dying = Txn(30);
  Install(dying);
  TransactionRecord* const writer = Txn(40);
  bool done = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "chain.install.before_cas" || done) return;
    done = true;
    Collect(v20);
  });
  Collect(v10);
  dying->TryAbort();
  Install(writer);
  EXPECT_TRUE(done);
  EXPECT_TRUE(Chain() == "40p" || Chain() == "40p 20") << Chain();
  writer->TryAbort();
}

// S6, early: committed versions that no reader reads are unlinked; the newest stays, and so do versions that are not folded.
TEST_F(VersionChainTest, UnreadVersionsGo) {
  for (const uint64_t t : {10, 20, 30, 40, 50}) Committed(t);
  const auto collect = [this](const Readers& readers) {
    ReclamationDomain::Guard guard(domain_);
    return CollectUnread(*entry_, readers, domain_).versions;
  };
  EXPECT_EQ(collect(Readers({}, Timestamp{60})), 0u);  // none is folded
  for (TransactionRecord* t : transactions_) t->set_collected();
  EXPECT_EQ(collect(Readers({25}, Timestamp{45})), 2u);
  EXPECT_EQ(Chain(), "50 40 20");  // readers from 45 to 50 read 40
  EXPECT_EQ(collect(Readers({25, 41}, Timestamp{50})), 0u);
  Install(Txn(70));
  Install(Txn(80))->transaction->TryAbort();
  EXPECT_EQ(collect(Readers({20}, Timestamp{51})), 2u);
  EXPECT_EQ(Chain(), "80a 70p 50");
  EXPECT_EQ(collect(Readers({}, Timestamp{100})), 0u);  // the newest committed one
}

// After its commit no reader reads a version that its own transaction has replaced.
TEST_F(VersionChainTest, ReplacedVersionsGo) {
  Committed(10);
  TransactionRecord* const t20 = Txn(20);
  for (uint32_t sequence = 1; sequence <= 3; ++sequence) Install(t20, sequence);
  for (TransactionRecord* t : transactions_) t->set_collected();
  ReclamationDomain::Guard guard(domain_);
  EXPECT_EQ(CollectUnread(*entry_, Readers(), domain_).versions, 0u);
  t20->TryStartCommit();
  t20->FinishCommit(Lsn{20});
  const Unread unread = CollectUnread(*entry_, Readers(), domain_);
  EXPECT_EQ(unread.versions, 2u);
  EXPECT_EQ(unread.bytes, 0u);
  EXPECT_EQ(Chain(), "20 10");
}

}  // namespace
}  // namespace deut::tc
