// The hash table of record entries: rule R5's sealing and removal against readers and writers at every step, R6's floors, lost
// compare-and-swaps.
#include "tc/mvcc/record_table.h"

#include <functional>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

constexpr TableId kTable{1};

class RecordTableTest : public ::testing::Test {
 protected:
  ~RecordTableTest() override {
    testing::SetPointHandler(nullptr);
    testing::SetCasHandler(nullptr);
  }
  uint64_t HashOf(std::string_view key) { return RecordTable::Hash(kTable, key); }
  RecordEntry* Find(std::string_view key) { return table_.Find(HashOf(key), kTable, key); }
  RecordEntry* Make(std::string_view key) { return table_.FindOrCreate(HashOf(key), kTable, key); }
  // The floor as a transaction sees it that is earlier than all reads.
  Timestamp FloorOf(uint64_t hash) const { return table_.Floor(hash, Timestamp{1}); }
  // The collector's sweep, with this low-water.
  void SweepBelow(uint64_t low_water) {
    table_.FreeFloorsBelow(Timestamp{low_water});
    EXPECT_TRUE(table_.SweepFloors(1)) << "there are two buckets";
    while (table_.SweepFloors(1)) {
    }
  }
  bool Remember(uint64_t hash, uint64_t timestamp) {
    ReclamationDomain::Guard guard(domain_);
    RecordTable::MissedLookup absence;
    EXPECT_EQ(table_.Find(hash, kTable, "absent", &absence), nullptr);
    return table_.RememberRead(absence, hash, Timestamp{timestamp});
  }
  void Once(const char* point, const std::function<void()>& action) {
    auto done = std::make_shared<bool>(false);
    testing::SetPointHandler([point, action, done](std::string_view name) {
      if (name != point || *done) return;
      *done = true;
      action();
    });
  }
  // Installs an uncommitted version of a new transaction.
  RecordVersion* Install(RecordEntry* entry, Timestamp timestamp) {
    auto* transaction = new TransactionRecord(timestamp);
    RecordVersion* version = RecordVersion::Create(transaction, 1, false, "v");
    transaction->DropReference(domain_);  // the version keeps it
    HeadWord::Value seen = entry->word.Load();
    do {
      RecordVersion* const live = LiveHead(seen.head);
      // A writer loses to a live version that is not earlier (R1).
      if (seen.dead() || (live != nullptr && live->version() >= version->version())) {
        RecordVersion::Destroy(version, domain_);
        return nullptr;
      }
      version->older.store(live);
    } while (!InstallVersion(*entry, seen, version, Timestamp{0}, domain_));
    return version;
  }

  ReclamationDomain domain_;
  RecordTable table_{domain_, 1};  // two buckets: everything collides
};

TEST_F(RecordTableTest, OneEntryAKey) {
  ReclamationDomain::Guard guard(domain_);
  EXPECT_EQ(Find("a"), nullptr);
  std::vector<RecordEntry*> entries;
  for (int i = 0; i < 100; ++i) entries.push_back(Make(std::to_string(i)));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Find(std::to_string(i)), entries[i]);
    EXPECT_EQ(Make(std::to_string(i)), entries[i]);
    EXPECT_EQ(entries[i]->key(), std::to_string(i));
  }
  EXPECT_EQ(table_.entries(), 100u);
  EXPECT_NE(table_.FindOrCreate(HashOf("1"), TableId{2}, "1"), entries[1]) << "another table's";
  const std::string longest(4096, 'k');
  EXPECT_EQ(Make(longest)->key(), longest);
}

TEST_F(RecordTableTest, RemovalFromEveryPlaceOfABucket) {
  ReclamationDomain::Guard guard(domain_);
  Random random(7);
  std::vector<std::string> live;
  for (int round = 0; round < 2000; ++round) {
    if (live.size() < 20) {
      live.push_back("key" + std::to_string(round));
      Make(live.back());
    }
    if (random.OneIn(2)) continue;
    const size_t at = random.Below(live.size());
    EXPECT_TRUE(table_.Remove(Find(live[at]), Timestamp{0}));
    EXPECT_EQ(Find(live[at]), nullptr);
    live.erase(live.begin() + static_cast<ptrdiff_t>(at));
    for (const std::string& key : live) ASSERT_NE(Find(key), nullptr);
  }
  EXPECT_EQ(table_.entries(), live.size());
}

TEST_F(RecordTableTest, R5AnEntryStaysWhileItsReadsOrVersionsMatter) {
  ReclamationDomain::Guard guard(domain_);
  RecordEntry* const entry = Make("k");
  RecordTable::RaiseLastRead(*entry, Timestamp{30});
  RecordTable::RaiseLastRead(*entry, Timestamp{20});
  EXPECT_EQ(entry->word.Load().last_read(), Timestamp{30});
  EXPECT_FALSE(table_.Remove(entry, Timestamp{29}));
  Install(entry, Timestamp{40})->transaction->TryAbort();
  EXPECT_FALSE(table_.Remove(entry, Timestamp{100}));
  RemoveDeadAndApplied(*entry, domain_);
  EXPECT_FALSE(table_.Remove(entry, Timestamp{29}));
  // Either low-water or the bucket's floor covers the reads.
  table_.RaiseFloor(HashOf("k"), Timestamp{30});
  EXPECT_TRUE(table_.Remove(entry, Timestamp{0}));
  EXPECT_EQ(Find("k"), nullptr);
  EXPECT_TRUE(entry->word.Load().dead());
}

// R5: a reader or a writer between the look and the seal: the seal fails.
TEST_F(RecordTableTest, R5AReaderBeforeTheSeal) {
  ReclamationDomain::Guard guard(domain_);
  RecordEntry* const entry = Make("k");
  Once("record_table.seal.before_cas", [&] { RecordTable::RaiseLastRead(*entry, Timestamp{30}); });
  EXPECT_FALSE(table_.Remove(entry, Timestamp{10}));
  EXPECT_EQ(Find("k"), entry);
  EXPECT_EQ(entry->word.Load().last_read(), Timestamp{30});
}

TEST_F(RecordTableTest, R5AWriterBeforeTheSeal) {
  ReclamationDomain::Guard guard(domain_);
  RecordEntry* const entry = Make("k");
  RecordVersion* version = nullptr;
  Once("record_table.seal.before_cas", [&] { version = Install(entry, Timestamp{26}); });
  EXPECT_FALSE(table_.Remove(entry, Timestamp{10}));
  ASSERT_EQ(Find("k"), entry);
  EXPECT_EQ(entry->word.Load().head, version);
}

// R5: between seal and unlink every thread treats the entry as absent, and the key may have a new one.
TEST_F(RecordTableTest, R5ASealedEntryIsAbsent) {
  ReclamationDomain::Guard guard(domain_);
  RecordEntry* const entry = Make("k");
  RecordEntry* fresh = nullptr;
  bool raised_dead = false, installed_dead = false;
  Once("record_table.unlink.before_cas", [&] {
    EXPECT_EQ(Find("k"), nullptr);
    raised_dead = RecordTable::RaiseLastRead(*entry, Timestamp{50}).dead();
    installed_dead = Install(entry, Timestamp{50}) == nullptr;
    fresh = Make("k");
  });
  EXPECT_TRUE(table_.Remove(entry, Timestamp{10}));
  EXPECT_TRUE(raised_dead);
  EXPECT_TRUE(installed_dead);
  EXPECT_NE(fresh, entry);
  EXPECT_EQ(Find("k"), fresh);
  EXPECT_EQ(table_.entries(), 1u);
}

TEST_F(RecordTableTest, TwoCreationsOfOneKeyRace) {
  ReclamationDomain::Guard guard(domain_);
  RecordEntry* other = nullptr;
  Once("record_table.insert.before_cas", [&] { other = Make("k"); });
  EXPECT_EQ(Make("k"), other);
  EXPECT_EQ(table_.entries(), 1u);
}

TEST_F(RecordTableTest, FloorsOnlyRise) {
  table_.RaiseFloor(1, Timestamp{30});
  table_.RaiseFloor(1, Timestamp{20});
  EXPECT_EQ(FloorOf(1), Timestamp{30});
  EXPECT_EQ(FloorOf(3), Timestamp{30}) << "the same bucket";
  EXPECT_EQ(FloorOf(0), Timestamp{0});
}

// R6: the floor of one key concerns no other key of the bucket, and is replaced only once it stops no writer.
TEST_F(RecordTableTest, R6AFloorIsOfOneKeyUntilLowWaterHasPassedIt) {
  constexpr uint64_t kOne = 1 | uint64_t{5} << 40;
  constexpr uint64_t kOther = 1 | uint64_t{6} << 40;
  EXPECT_TRUE(Remember(kOne, 30));
  EXPECT_TRUE(Remember(kOne, 20));
  EXPECT_EQ(FloorOf(kOne), Timestamp{30});
  EXPECT_EQ(FloorOf(kOther), Timestamp{0});
  EXPECT_FALSE(Remember(kOther, 20));
  table_.FreeFloorsBelow(Timestamp{30});
  EXPECT_FALSE(Remember(kOther, 40));
  EXPECT_EQ(FloorOf(kOne), Timestamp{30});
  table_.FreeFloorsBelow(Timestamp{31});
  EXPECT_TRUE(Remember(kOther, 40));
  EXPECT_EQ(FloorOf(kOther), Timestamp{40});
  EXPECT_EQ(FloorOf(kOne), Timestamp{0});
}

// R6: a floor of all keys has the latest of their reads, whichever came first.
TEST_F(RecordTableTest, R6ASharedFloorIsTheLaterOfBoth) {
  constexpr uint64_t kOne = 1 | uint64_t{5} << 40;
  constexpr uint64_t kOther = 1 | uint64_t{6} << 40;
  const auto expect = [&](uint64_t floor) {
    for (const uint64_t hash : {kOne, kOther, uint64_t{1}}) {
      EXPECT_EQ(FloorOf(hash), Timestamp{floor});
      EXPECT_TRUE(table_.FloorCovers(hash, Timestamp{floor}));
      EXPECT_FALSE(table_.FloorCovers(hash, Timestamp{floor + 1}));
    }
  };
  ASSERT_TRUE(Remember(kOne, 30));
  table_.RaiseFloor(kOther, Timestamp{20});
  expect(30);
  table_.RaiseFloor(kOne, Timestamp{50});
  expect(50);
  EXPECT_TRUE(Remember(kOther, 40)) << "it is covered";
  EXPECT_FALSE(Remember(kOther, 60)) << "it would hide the others";
}

// R6: a floor has the low bits of its timestamp. No floor is written, or believed, where the bits could be those of another timestamp.
TEST_F(RecordTableTest, R6AReadIsRememberedWhenItsKeysFloorIsOfVeryLongAgo) {
  constexpr uint64_t kKey = 1 | uint64_t{5} << 40;
  constexpr uint64_t kOther = 1 | uint64_t{6} << 40;
  constexpr uint64_t kFirst = uint64_t{1} << 50;
  constexpr uint64_t kLater = kFirst + (uint64_t{1} << FloorWord::kTimestampBits);
  const auto floor = [&](uint64_t hash, uint64_t self) { return table_.Floor(hash, Timestamp{self}).value; };
  EXPECT_FALSE(Remember(kKey, kFirst + 5)) << "the origin is too far below";
  SweepBelow(kFirst);
  EXPECT_TRUE(Remember(kKey, kFirst + 5));
  EXPECT_FALSE(Remember(kKey, kFirst + FloorWord::kSpan));
  EXPECT_EQ(floor(kKey, kFirst), kFirst + 5);
  EXPECT_LE(floor(kKey, kFirst + FloorWord::kSpan), kFirst + 5);
  // With its low bits the old read looks like one just after the new one.
  table_.FreeFloorsBelow(Timestamp{kLater - 1});
  EXPECT_FALSE(Remember(kKey, kLater)) << "the old read would hide it";
  EXPECT_FALSE(table_.FloorCovers(kKey, Timestamp{kLater}));
  EXPECT_EQ(floor(kKey, kLater - 1), 0u) << "an old read stops nobody";
  SweepBelow(kLater - 1);
  EXPECT_TRUE(Remember(kKey, kLater));
  EXPECT_EQ(floor(kKey, kLater - 1), kLater);
  EXPECT_TRUE(table_.FloorCovers(kKey, Timestamp{kLater}));
  EXPECT_FALSE(table_.FloorCovers(kKey, Timestamp{kLater + 1}));
  // Floors of all keys have whole timestamps.
  table_.RaiseFloor(kOther, Timestamp{kLater + FloorWord::kSpan});
  EXPECT_EQ(floor(kKey, kLater), kLater + FloorWord::kSpan);
}

// R6: a floor of all keys is made from the timestamp that the word stands for, not from another one with the same low bits.
TEST_F(RecordTableTest, R6AFloorOfVeryLongAgoMakesNoFloorOfAllKeysInTheFuture) {
  constexpr uint64_t kKey = 1 | uint64_t{5} << 40;
  constexpr uint64_t kLater = uint64_t{1} << FloorWord::kTimestampBits;
  ASSERT_TRUE(Remember(kKey, 500));
  table_.FreeFloorsBelow(Timestamp{kLater});
  table_.RaiseFloor(kKey, Timestamp{kLater + 100});
  EXPECT_EQ(table_.Floor(kKey, Timestamp{kLater}), Timestamp{kLater + 100});
}

// R6: the origin rises, so that the span reaches a reader's timestamp, before the reader has loaded the word. The word may then be a later read of
// the key, which the reader must not hide.
TEST_F(RecordTableTest, R6TheOriginRisesBeforeAFloorOfAllKeysIsRead) {
  constexpr uint64_t kKey = 1 | uint64_t{5} << 40;
  constexpr uint64_t kLowWater = FloorWord::kSpan + 10;
  table_.FreeFloorsBelow(Timestamp{kLowWater});
  {
    ReclamationDomain::Guard guard(domain_);
    ASSERT_TRUE(table_.SweepFloors(2)) << "this thread may have seen what was swept";
  }
  Once("record_table.floor.before_load", [&] {
    EXPECT_FALSE(table_.SweepFloors(2));
    EXPECT_TRUE(Remember(kKey, kLowWater + 5));
  });
  ReclamationDomain::Guard guard(domain_);
  table_.RaiseFloor(kKey, Timestamp{kLowWater + 1});
  EXPECT_EQ(table_.Floor(kKey, Timestamp{kLowWater + 3}), Timestamp{kLowWater + 5});
}

// R6: a word that a thread is about to replace does not return with the same bits for a later read.
TEST_F(RecordTableTest, R6TheOriginWaitsForThoseWhoHaveSeenAnOlderFloor) {
  constexpr uint64_t kKey = 1 | uint64_t{5} << 40;
  constexpr uint64_t kLater = uint64_t{1} << FloorWord::kTimestampBits;
  ASSERT_TRUE(Remember(kKey, 10));
  table_.FreeFloorsBelow(Timestamp{kLater});
  bool remembered = true;
  Once("record_table.floor.before_cas", [&] {
    for (int round = 0; round < 10; ++round) table_.SweepFloors(2);
    remembered = Remember(kKey, kLater + 10);
  });
  {
    ReclamationDomain::Guard guard(domain_);
    table_.RaiseFloor(kKey, Timestamp{kLater + 1});
  }
  EXPECT_FALSE(remembered);
  EXPECT_EQ(table_.Floor(kKey, Timestamp{kLater}), Timestamp{kLater + 1});
  while (table_.SweepFloors(2)) {
  }
  EXPECT_TRUE(Remember(kKey, kLater + 1)) << "it is covered";
}

// R6: a sweep leaves floors of reads made meanwhile, and covers buckets that have grown.
TEST_F(RecordTableTest, R6ASweepTakesOutOldFloorsOnly) {
  constexpr uint64_t kKey = 1 | uint64_t{5} << 40;
  constexpr uint64_t kLowWater = FloorWord::kSpan / 2;
  ASSERT_TRUE(Remember(kKey, 10));
  Once("record_table.floor.before_cas", [&] { EXPECT_TRUE(Remember(kKey, kLowWater + 1)); });
  SweepBelow(kLowWater);
  EXPECT_EQ(table_.Floor(kKey, Timestamp{kLowWater}), Timestamp{kLowWater + 1});
  {
    ReclamationDomain::Guard guard(domain_);
    for (int i = 0; table_.branches() < 2; ++i) Make(Concat("other", i));
  }
  ASSERT_TRUE(Remember(kKey, kLowWater + 2));
  const uint64_t later = 2 * kLowWater + 5;
  SweepBelow(later);
  ASSERT_TRUE(Remember(kKey | uint64_t{1} << 62, later + 3)) << "another key of the bucket takes it over";
  EXPECT_EQ(table_.Floor(kKey, Timestamp{later}), Timestamp{0});
}

// R6: the second look of a read is one load unless something has been inserted.
TEST_F(RecordTableTest, R6TheSecondLookSeesWhatHasCome) {
  ReclamationDomain::Guard guard(domain_);
  const auto look_twice = [&](const std::function<void()>& between) {
    RecordTable::MissedLookup absence;
    EXPECT_EQ(table_.Find(HashOf("k"), kTable, "k", &absence), nullptr);
    table_.RaiseFloor(absence, HashOf("k"), Timestamp{FloorOf(HashOf("k")).value + 1});
    between();
    return table_.FindAgain(absence, HashOf("k"), kTable, "k");
  };
  EXPECT_EQ(look_twice([] {}), nullptr);
  EXPECT_EQ(FloorOf(HashOf("k")), Timestamp{1});
  RecordEntry* entry = nullptr;
  EXPECT_NE(look_twice([&] { entry = Make("k"); }), nullptr);
  EXPECT_EQ(Find("k"), entry);
  // The entry is removed before, during, and with another one in its place. That is at another address while the guard is held.
  ASSERT_TRUE(table_.Remove(entry, Timestamp{0}));
  EXPECT_EQ(look_twice([&] { EXPECT_TRUE(table_.Remove(Make("k"), Timestamp{0})); }), nullptr);
  RecordEntry* again = nullptr;
  EXPECT_NE(look_twice([&] {
              EXPECT_TRUE(table_.Remove(Make("k"), Timestamp{0}));
              again = Make("k");
            }),
            nullptr);
  EXPECT_EQ(Find("k"), again);
  ASSERT_TRUE(table_.Remove(again, Timestamp{0}));
  // The bucket has grown meanwhile.
  EXPECT_NE(look_twice([&] {
              const uint64_t branches = table_.branches();
              for (int i = 0; table_.branches() == branches; ++i) Make(Concat("other", i));
              entry = Make("k");
            }),
            nullptr);
  EXPECT_EQ(Find("k"), entry);
}

// Each compare-and-swap is lost once, then succeeds: no step is done twice or left out.
TEST_F(RecordTableTest, EveryLostCompareAndSwapIsTriedAgain) {
  for (const char* cas :
       {"record_table.insert.cas", "record_table.raise.cas", "record_table.floor.cas", "record_table.seal.cas",
        "record_table.unlink.cas", "chain.install.cas", "chain.remove.cas"}) {
    SCOPED_TRACE(cas);
    ReclamationDomain::Guard guard(domain_);
    const Timestamp now{FloorOf(HashOf(cas)).value + 10};
    int lost = 0;
    testing::SetCasHandler([&](std::string_view name) { return name == cas && lost++ == 0; });
    RecordEntry* const entry = Make(cas);
    RecordTable::RaiseLastRead(*entry, now);
    EXPECT_EQ(entry->word.Load().last_read(), now);
    table_.RaiseFloor(HashOf(cas), now);
    RecordVersion* const version = Install(entry, now);
    ASSERT_NE(version, nullptr);
    EXPECT_EQ(entry->word.Load().head, version);
    version->transaction->TryAbort();
    RemoveDeadAndApplied(*entry, domain_);
    EXPECT_EQ(entry->word.Load().head, nullptr);
    EXPECT_TRUE(table_.Remove(entry, now));
    EXPECT_EQ(Find(cas), nullptr);
    EXPECT_GE(lost, 2);
    testing::SetCasHandler(nullptr);
  }
  EXPECT_EQ(table_.entries(), 0u);
  EXPECT_EQ(table_.entry_bytes(), 0u);
}

// Readers and creators of few keys while one thread removes at full speed.
TEST_F(RecordTableTest, RemovalAtFullRate) {
  constexpr int kThreads = 3;
  constexpr int kOperations = 50000;
  constexpr uint64_t kRemovals = 200;  // however the threads are scheduled
  std::atomic<int> working{kThreads};
  std::atomic<uint64_t> removed{0};
  // The latest timestamp read under a live word, per key: removal below low-water 0 must never lose one.
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(RealRuntime().StartThread("user", [&, t] {
      Random random(static_cast<uint64_t>(t));
      for (int i = 0; i < kOperations || removed.load() < kRemovals; ++i) {
        const std::string key = std::to_string(random.Below(4));
        ReclamationDomain::Guard guard(domain_);
        RecordEntry* const entry = Make(key);
        ASSERT_EQ(entry->key(), key);
        if (random.OneIn(4)) {
          if (RecordVersion* version = Install(entry, Timestamp{1})) {
            RecordEntry* const now = Find(key);
            ASSERT_EQ(now, entry) << "an entry that holds a version was removed";
            version->transaction->TryAbort();
            continue;
          }
        }
        const HeadWord::Value word = RecordTable::RaiseLastRead(*entry, Timestamp{0});
        if (!word.dead() && word.head != nullptr) ASSERT_EQ(word.head->value(), "v");
      }
      working.fetch_sub(1);
    }));
  }
  while (working.load() != 0 || table_.entries() != 0) {
    for (const char* key : {"0", "1", "2", "3"}) {
      ReclamationDomain::Guard guard(domain_);
      RecordEntry* const entry = Find(key);
      if (entry == nullptr) continue;
      RemoveDeadAndApplied(*entry, domain_);
      if (table_.Remove(entry, Timestamp{1})) removed.fetch_add(1);
    }
  }
  threads.clear();
  EXPECT_GE(removed.load(), kRemovals);
}

}  // namespace
}  // namespace deut::tc
