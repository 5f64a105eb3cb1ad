// Copies of the DC's records: how they enter chains and leave, the queue, the budget (rules S7, R5).
#include "tc/mvcc/read_cache.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

constexpr TableId kTable{1};
constexpr uint64_t kRoomForAll = 1 << 20;

uint64_t BytesOf(const std::string& key, size_t value_bytes) {
  return sizeof(RecordEntry) + key.size() + sizeof(RecordVersion) + value_bytes;
}

class ReadCacheTest : public ::testing::Test {
 protected:
  ~ReadCacheTest() override { testing::SetCasHandler(nullptr); }

  static uint64_t Hash(const std::string& key) { return RecordTable::Hash(kTable, key); }
  RecordEntry* Find(const std::string& key) { return table_.Find(Hash(key), kTable, key); }
  // The reader's result: the value, "-" for absent, "?" for nothing, "conflict".
  std::string Sees(const std::string& key, uint64_t timestamp = 1) {
    ReclamationDomain::Guard guard(domain_);
    RecordEntry* const entry = Find(key);
    if (entry == nullptr) return "?";
    const Visible visible = FindVisible(entry->word.Load().head, {.timestamp = Timestamp{timestamp}});
    if (visible.kind == Visible::Kind::kNothing) return "?";
    if (visible.kind == Visible::Kind::kConflict) return "conflict";
    if (visible.version->of_dc()) ReadCache::Use(*visible.version);
    return visible.version->tombstone ? "-" : std::string(visible.version->value());
  }
  // Installs as a writer does (WritePath::Install). The caller has a reference to the transaction.
  // Installs over `under`, over a copy, or into an empty chain. Returns `under` if given, else the new version; null: another live version is there.
  RecordVersion* Install(ReadCache& cache, const std::string& key, TransactionRecord* transaction,
                         RecordVersion* under = nullptr, bool removed = false) {
    ReclamationDomain::Guard guard(domain_);
    for (;;) {
      RecordEntry* const entry = table_.FindOrCreate(Hash(key), kTable, key);
      HeadWord::Value seen = entry->word.Load();
      while (!seen.dead()) {
        RecordVersion* const live = LiveHead(seen.head);
        const bool over_copy = live != nullptr && live->of_dc();
        if (live != under && !over_copy) return nullptr;
        RecordVersion* const version = RecordVersion::Create(transaction, 1, removed, removed ? "" : "written");
        version->older.store(under);
        if (InstallVersion(*entry, seen, version, Timestamp{0}, domain_)) {
          if (over_copy) cache.Replaced(*live);
          return under != nullptr ? under : version;
        }
        RecordVersion::Destroy(version, domain_);
      }
    }
  }
  // Removes an aborted version, as the collector does.
  void RemoveDead(const std::string& key) {
    ReclamationDomain::Guard guard(domain_);
    RecordEntry* const entry = Find(key);
    if (entry == nullptr) return;
    RemoveDeadAndApplied(*entry, domain_);
    table_.Remove(entry, kMaxTimestamp);
  }
  void Drop(TransactionRecord* transaction) {
    ReclamationDomain::Guard guard(domain_);
    transaction->DropReference(domain_);
  }
  void RemoveUnqueued(RecordEntry* entry) { table_.Remove(entry, kMaxTimestamp); }
  void Clear(ReadCache& cache) {
    cache.Clear([&](RecordEntry* entry) { RemoveUnqueued(entry); });
  }
  bool Evict(ReadCache& cache, size_t most) {
    return cache.Evict(most, [&](RecordEntry* entry) { RemoveUnqueued(entry); });
  }
  bool Refresh(ReadCache& cache, const std::string& key, const RecordVersion& version) {
    ReclamationDomain::Guard guard(domain_);
    return cache.Refresh(*Find(key), version);
  }
  static void Commit(TransactionRecord* transaction) {
    transaction->TryStartCommit();
    transaction->FinishCommit(Lsn{transaction->timestamp().value});
  }
  // Writes the key and refreshes it as applied. True: a copy is kept.
  bool Write(ReadCache& cache, const std::string& key, uint64_t timestamp, bool removed = false) {
    auto* const writer = new TransactionRecord(Timestamp{timestamp});
    RecordVersion* const version = Install(cache, key, writer, nullptr, removed);
    Commit(writer);
    const bool kept = version != nullptr && Refresh(cache, key, *version);
    if (version != nullptr && !kept) {  // as the collector does
      ReclamationDomain::Guard guard(domain_);
      CollectApplied(*Find(key), version, domain_);
      table_.Remove(Find(key), kMaxTimestamp);
    }
    Drop(writer);
    return kept;
  }
  static bool Fill(ReadCache& cache, const std::string& key, std::optional<std::string_view> value) {
    return cache.Fill(Hash(key), kTable, key, value);
  }

  ReclamationDomain domain_;
  RecordTable table_{domain_, 4};
};

TEST_F(ReadCacheTest, ACopyIsSeenByEverybody) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  EXPECT_EQ(Sees("a"), "?");
  EXPECT_FALSE(Fill(cache, "a", "1"));
  EXPECT_EQ(Sees("a", 1), "1");
  EXPECT_EQ(Sees("a", 1000), "1");
  EXPECT_FALSE(Fill(cache, "b", std::nullopt));
  EXPECT_EQ(Sees("b"), "-");
  EXPECT_EQ(cache.bytes(), BytesOf("a", 1) + BytesOf("b", 0));
  Clear(cache);
  EXPECT_EQ(Sees("a"), "?");
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(table_.entries(), 0u);
}

TEST_F(ReadCacheTest, TheFirstCopyStays) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  EXPECT_FALSE(Fill(cache, "a", "1"));
  EXPECT_FALSE(Fill(cache, "a", "1"));
  EXPECT_EQ(cache.filled(), 1u);
  EXPECT_EQ(cache.bytes(), BytesOf("a", 1));
}

TEST_F(ReadCacheTest, S7OnlyIntoAChainWithoutALiveVersion) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  auto* const writer = new TransactionRecord(Timestamp{20});
  EXPECT_NE(Install(cache, "a", writer), nullptr);
  EXPECT_FALSE(Fill(cache, "a", "old"));
  EXPECT_EQ(Sees("a", 30), "conflict");
  EXPECT_EQ(cache.bytes(), 0u);
  // A dead version does not prevent a copy.
  EXPECT_TRUE(writer->TryAbort());
  Drop(writer);
  EXPECT_FALSE(Fill(cache, "a", "old"));
  EXPECT_EQ(Sees("a", 30), "old");
  EXPECT_EQ(cache.bytes(), BytesOf("a", 3));
}

TEST_F(ReadCacheTest, AWriterReplacesTheCopy) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  EXPECT_FALSE(Fill(cache, "a", "old"));
  auto* const writer = new TransactionRecord(Timestamp{20});
  EXPECT_NE(Install(cache, "a", writer), nullptr);
  EXPECT_EQ(cache.replaced(), 1u);
  EXPECT_EQ(cache.bytes(), sizeof(RecordEntry) + 1);  // the entry is still queued
  EXPECT_EQ(Sees("a", 10), "?");
  EXPECT_EQ(Sees("a", 30), "conflict");
  // The same place in the queue serves the next copy.
  EXPECT_TRUE(writer->TryAbort());
  Drop(writer);
  EXPECT_FALSE(Fill(cache, "a", "old"));
  EXPECT_EQ(cache.bytes(), BytesOf("a", 3));
  Clear(cache);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(table_.entries(), 0u);
}

// A version written over a copy becomes the copy when it is applied, and dead versions above it leave; not below another live version.
TEST_F(ReadCacheTest, AnAppliedVersionBecomesTheCopy) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  std::vector<TransactionRecord*> writers;
  for (const uint64_t timestamp : {20u, 30u, 40u}) writers.push_back(new TransactionRecord(Timestamp{timestamp}));
  EXPECT_FALSE(Fill(cache, "a", "old"));
  for (const std::string key : {"a", "b"}) {  // no reader has read b
    RecordVersion* const version = Install(cache, key, writers[0]);
    ASSERT_NE(version, nullptr);
    if (key == "a") Commit(writers[0]);
    EXPECT_EQ(Refresh(cache, key, *version), key == "a");
  }
  EXPECT_EQ(Sees("a"), "written");
  EXPECT_EQ(cache.bytes(), BytesOf("a", 7));
  EXPECT_EQ(cache.refreshed(), 1u);

  RecordVersion* const version = Install(cache, "a", writers[1]);
  ASSERT_NE(version, nullptr);
  Commit(writers[1]);
  EXPECT_EQ(Install(cache, "a", writers[2], version), version);
  EXPECT_FALSE(Refresh(cache, "a", *version));
  EXPECT_EQ(cache.bytes(), sizeof(RecordEntry) + 1);
  EXPECT_TRUE(writers[2]->TryAbort());
  EXPECT_TRUE(Refresh(cache, "a", *version));
  EXPECT_EQ(cache.bytes(), BytesOf("a", 7));
  Clear(cache);
  EXPECT_EQ(cache.bytes(), 0u);
  for (TransactionRecord* const writer : writers) Drop(writer);
}

TEST_F(ReadCacheTest, WrittenValueIsKeptWhileThereIsRoom) {
  const uint64_t each = BytesOf("k00", 7);
  ReadCache cache(16 * each, true, domain_, table_);
  // An eighth stays free for records that are read.
  for (int i = 10; i < 40; ++i) EXPECT_EQ(Write(cache, Concat("k", i), 20), i < 24) << i;
  EXPECT_EQ(cache.bytes(), 14 * each);
  EXPECT_EQ(cache.no_room(), 0u);
  EXPECT_EQ(table_.entries(), 14u);
  for (int i = 10; i < 24; ++i) EXPECT_TRUE(Write(cache, Concat("k", i), 30)) << i;  // these are queued already
  EXPECT_EQ(Sees("k10"), "written");
  EXPECT_EQ(Sees("k24"), "?");
  EXPECT_TRUE(Write(cache, "k23", 40, /*removed=*/true));
  EXPECT_EQ(Sees("k23"), "-");
  EXPECT_FALSE(Write(cache, "x10", 20, /*removed=*/true));
  EXPECT_FALSE(Evict(cache, 100));
  EXPECT_EQ(cache.evicted(), 0u);
  EXPECT_TRUE(Write(cache, "k23", 50));
  // Copies of read records use the rest, and copies that were never read are evicted for them.
  EXPECT_FALSE(Fill(cache, "r10", "written"));
  EXPECT_FALSE(Evict(cache, 100));
  EXPECT_EQ(cache.evicted(), 1u);
  EXPECT_EQ(Sees("k10"), "written");
  EXPECT_EQ(Sees("k11"), "?");
  EXPECT_EQ(Sees("r10"), "written");
  Clear(cache);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(table_.entries(), 0u);
}

// A reader that has found a spill queues the entry while the collector is about to queue it for a written version.
TEST_F(ReadCacheTest, AnEntryIsQueuedAndCountedOnce) {
  ReadCache cache(kRoomForAll, true, domain_, table_);
  const std::atomic<uint64_t> spills{1};
  bool met = false;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "chain.copy.before_cas" || std::exchange(met, true)) return;
    EXPECT_FALSE(cache.Fill(Hash("a"), kTable, "a", "old", {.spills = &spills}));
  });
  EXPECT_TRUE(Write(cache, "a", 20));
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(met);
  EXPECT_EQ(Sees("a"), "written");
  EXPECT_EQ(cache.bytes(), BytesOf("a", 7));
  Clear(cache);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(table_.entries(), 0u);
}

TEST_F(ReadCacheTest, S7AQueuedEntryStays) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  EXPECT_FALSE(Fill(cache, "a", "old"));
  auto* const writer = new TransactionRecord(Timestamp{20});
  EXPECT_NE(Install(cache, "a", writer), nullptr);
  EXPECT_TRUE(writer->TryAbort());
  Drop(writer);
  RemoveDead("a");
  ASSERT_EQ(table_.entries(), 1u);
  Clear(cache);
  EXPECT_EQ(table_.entries(), 0u);
}

TEST_F(ReadCacheTest, AWrittenEntryLeavesTheQueueAndStays) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  EXPECT_FALSE(Fill(cache, "a", "old"));
  auto* const writer = new TransactionRecord(Timestamp{20});
  EXPECT_NE(Install(cache, "a", writer), nullptr);
  Clear(cache);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(Sees("a", 30), "conflict");
  EXPECT_TRUE(writer->TryAbort());
  Drop(writer);
  RemoveDead("a");
  EXPECT_EQ(table_.entries(), 0u);
}

TEST_F(ReadCacheTest, ASealedEntryGetsNoCopy) {
  ReadCache cache(kRoomForAll, false, domain_, table_);
  {
    ReclamationDomain::Guard guard(domain_);
    RecordEntry* const entry = table_.FindOrCreate(Hash("a"), kTable, "a");
    EXPECT_TRUE(table_.Remove(entry, kMaxTimestamp));
    auto* const of_dc = new TransactionRecord(Timestamp{0});
    RecordVersion* const copy = RecordVersion::Create(of_dc, 0, false, "1");
    HeadWord::Value seen;
    EXPECT_FALSE(InstallCopy(*entry, seen, nullptr, copy, domain_));
    EXPECT_TRUE(seen.dead());
    RecordVersion::Destroy(copy, domain_);
    of_dc->DropReference(domain_);
  }
  EXPECT_FALSE(Fill(cache, "a", "1"));  // into a new entry
  EXPECT_EQ(Sees("a"), "1");
}

TEST_F(ReadCacheTest, ALoweredBudgetEvictsAndARaisedOneHasRoom) {
  const uint64_t each = BytesOf("k00", 10);
  ReadCache cache(16 * each, false, domain_, table_);
  for (int i = 10; i < 20; ++i) EXPECT_FALSE(Fill(cache, Concat("k", i), "0123456789"));
  EXPECT_TRUE(cache.SetBudget(4 * each)) << "the collector has to evict";
  EXPECT_TRUE(Fill(cache, "k20", "0123456789"));
  EXPECT_EQ(Sees("k20"), "?") << "there is no room";
  EXPECT_FALSE(Evict(cache, 100));
  EXPECT_LE(cache.bytes(), 4 * each);
  EXPECT_FALSE(cache.SetBudget(16 * each));
  EXPECT_FALSE(Fill(cache, "k20", "0123456789"));
  EXPECT_EQ(Sees("k20"), "0123456789");
  Clear(cache);
}

// The collector is not woken for answers that are not kept.
TEST_F(ReadCacheTest, WithABudgetOfZeroNothingIsKeptAndTheCollectorSleeps) {
  ReadCache cache(kRoomForAll, true, domain_, table_);
  EXPECT_FALSE(Fill(cache, "a", "1"));
  EXPECT_TRUE(cache.SetBudget(0));
  EXPECT_FALSE(Evict(cache, 100));
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(table_.entries(), 0u);
  EXPECT_FALSE(cache.SetBudget(0));
  EXPECT_FALSE(Fill(cache, "a", "1"));
  EXPECT_EQ(Sees("a"), "?");
  EXPECT_EQ(cache.no_room(), 0u);
}

TEST_F(ReadCacheTest, NeverBeyondTheBudget) {
  const uint64_t each = BytesOf("k00", 10);
  ReadCache cache(16 * each, false, domain_, table_);
  bool woken = false;
  for (int i = 10; i < 50; ++i) {
    woken = Fill(cache, Concat("k", i), "0123456789");
    EXPECT_LE(cache.bytes(), 16 * each);
  }
  EXPECT_TRUE(woken);
  EXPECT_EQ(cache.bytes(), 16 * each);
  EXPECT_EQ(cache.filled(), 16u);
  EXPECT_EQ(cache.no_room(), 24u);
  EXPECT_FALSE(Fill(cache, "large", std::string(16 * each, 'x')) && Sees("large") != "?");

  // The oldest copies are evicted, except those that have been read; these get only one second chance.
  EXPECT_EQ(Sees("k10"), "0123456789");
  EXPECT_EQ(Sees("k12"), "0123456789");
  EXPECT_FALSE(Evict(cache, 100));
  EXPECT_EQ(cache.evicted(), 2u);
  EXPECT_EQ(table_.entries(), 14u);
  EXPECT_EQ(Sees("k11"), "?");
  EXPECT_EQ(Sees("k13"), "?");
  EXPECT_FALSE(Evict(cache, 100));  // there is room
  EXPECT_EQ(cache.evicted(), 2u);
}

TEST_F(ReadCacheTest, CopyReadLongAgoIsEvicted) {
  const uint64_t each = BytesOf("k00", 10);
  ReadCache cache(16 * each, false, domain_, table_);
  for (int i = 10; i < 26; ++i) {
    Fill(cache, Concat("k", i), "0123456789");
    EXPECT_EQ(Sees(Concat("k", i)), "0123456789");
  }
  EXPECT_TRUE(Evict(cache, 3));  // all three have been read: each gets its second chance
  EXPECT_EQ(cache.evicted(), 0u);
  EXPECT_FALSE(Evict(cache, 100));
  EXPECT_EQ(cache.evicted(), 2u);
}

// Readers fill, writers install and abort, the collector evicts and removes: every count is right at the end, and no freed memory is touched.
TEST_F(ReadCacheTest, UnderLoad) {
  constexpr uint64_t kKeys = 12;
  const uint64_t each = BytesOf("k0", 2);  // the values may be a little longer
  ReadCache cache(8 * each, true, domain_, table_);
  std::atomic<uint64_t> number{0}, fills_lost{0}, removals_lost{0};
  testing::SetCasHandler([&](std::string_view name) {
    if (Mix64(number.fetch_add(1)) % 8 != 0) return false;
    if (name == "chain.copy.cas") fills_lost.fetch_add(1);
    if (name == "chain.copy_out.cas") removals_lost.fetch_add(1);
    return true;
  });
  const auto done = [&] {
    return cache.evicted() > 500 && cache.replaced() > 500 && cache.filled() > 2000 && fills_lost.load() > 0 &&
           removals_lost.load() > 0;
  };
  const MonotonicTime deadline = RealRuntime().Now() + seconds(120);
  std::atomic<bool> end{false};
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.push_back(RealRuntime().StartThread("client", [&, t] {
      Random random(t + 1);
      for (uint64_t i = 0; !end.load(); ++i) {
        const std::string key = Concat("k", random.Below(kKeys));
        if (random.OneIn(4)) {
          auto* const writer = new TransactionRecord(Timestamp{i + 1});
          if (Install(cache, key, writer) != nullptr && random.OneIn(2)) RealRuntime().Yield();
          writer->TryAbort();
          Drop(writer);
        } else if (Sees(key, 1) == "?") {
          Fill(cache, key, key);
        } else {
          const std::string seen = Sees(key, 1);
          EXPECT_TRUE(seen == key || seen == "?") << seen;
        }
      }
    }));
  }
  // This thread is the collector's.
  Random random(9);
  while (!done() && RealRuntime().Now() < deadline) {
    Evict(cache, 1 + random.Below(8));
    RemoveDead(Concat("k", random.Below(kKeys)));
    EXPECT_LE(cache.bytes(), 8 * each);
    if (random.OneIn(64)) Clear(cache);
  }
  EXPECT_TRUE(done());
  end.store(true);
  threads.clear();
  Clear(cache);
  EXPECT_EQ(cache.bytes(), 0u);
  for (uint64_t k = 0; k < kKeys; ++k) RemoveDead(Concat("k", k));
  EXPECT_EQ(table_.entries(), 0u);
}

}  // namespace
}  // namespace deut::tc
