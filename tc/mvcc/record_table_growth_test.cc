// The record table while its buckets grow into branches: nothing is lost, whichever operation is in progress.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/mvcc/record_table.h"

namespace deut::tc {
namespace {

constexpr TableId kTable{1};

class RecordTableGrowthTest : public ::testing::Test {
 protected:
  ~RecordTableGrowthTest() override {
    testing::SetPointHandler(nullptr);
    testing::SetCasHandler(nullptr);
  }
  static uint64_t HashOf(std::string_view key) { return RecordTable::Hash(kTable, key); }
  RecordEntry* Find(std::string_view key) {
    ReclamationDomain::Guard guard(domain_);
    return table_.Find(HashOf(key), kTable, key);
  }
  RecordEntry* Make(std::string_view key) {
    ReclamationDomain::Guard guard(domain_);
    return table_.FindOrCreate(HashOf(key), kTable, key);
  }
  // The floor as a transaction sees it that is earlier than all reads.
  Timestamp FloorOf(uint64_t hash) const { return table_.Floor(hash, Timestamp{1}); }
  void MakeMany(const std::string& prefix, int keys) {
    for (int i = 0; i < keys; ++i) Make(Concat(prefix, i));
  }
  static void Once(const char* point, const std::function<void()>& action) {
    auto done = std::make_shared<bool>(false);
    testing::SetPointHandler([point, action, done](std::string_view name) {
      if (name != point || *done) return;
      *done = true;
      action();
    });
  }

  ReclamationDomain domain_;
  RecordTable table_{domain_, 1};  // two buckets
};

TEST_F(RecordTableGrowthTest, ChainsStayShort) {
  constexpr int kKeys = 20000;
  EXPECT_EQ(table_.branches(), 0u);
  const size_t empty = table_.table_bytes();
  MakeMany("key", kKeys);
  EXPECT_EQ(table_.entries(), static_cast<size_t>(kKeys));
  EXPECT_GT(table_.table_bytes(), empty);
  EXPECT_LT(table_.branches(), uint64_t{kKeys} / 4);
  uint64_t walked = 0;
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "record_table.walk") ++walked;
  });
  for (int i = 0; i < kKeys; ++i) ASSERT_NE(Find(Concat("key", i)), nullptr) << i;
  EXPECT_LT(walked, uint64_t{kKeys} * RecordTable::kLongChain);
  testing::SetPointHandler(nullptr);
  for (int i = 0; i < kKeys; ++i) {
    ReclamationDomain::Guard guard(domain_);
    ASSERT_TRUE(table_.Remove(table_.Find(HashOf(Concat("key", i)), kTable, Concat("key", i)), Timestamp{0})) << i;
  }
  EXPECT_EQ(table_.entries(), 0u);
  EXPECT_EQ(table_.entry_bytes(), 0u);
  MakeMany("key", kKeys);
  EXPECT_EQ(table_.entries(), static_cast<size_t>(kKeys));
}

// An insertion between the walk of the chain and the swing: the growth loses, and takes the new entry over.
TEST_F(RecordTableGrowthTest, R5AnInsertionBeforeTheSwing) {
  std::vector<std::string> meanwhile;
  int growths = 0;
  bool inside = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "record_table.grow.before_cas" || inside || growths > 20) return;
    inside = true;
    ++growths;
    // Into all buckets, so into the growing one, too.
    for (int i = 0; i < 40; ++i) {
      meanwhile.push_back(Concat("meanwhile", growths, ".", i));
      Make(meanwhile.back());
    }
    inside = false;
  });
  MakeMany("key", 500);
  EXPECT_GT(growths, 2);
  for (const std::string& key : meanwhile) EXPECT_NE(Find(key), nullptr) << key;
  for (int i = 0; i < 500; ++i) EXPECT_NE(Find(Concat("key", i)), nullptr) << i;
  EXPECT_EQ(table_.entries(), 500 + meanwhile.size());
}

// Two insertions of one key with a growth of the bucket in between: the second finds the first one's entry.
TEST_F(RecordTableGrowthTest, R5OneEntryAKeyThroughAGrowth) {
  RecordEntry* other = nullptr;
  Once("record_table.insert.before_cas", [&] {
    other = Make("k");
    MakeMany("key", 100);
  });
  EXPECT_EQ(Make("k"), other);
  EXPECT_GT(table_.branches(), 0u);
  EXPECT_EQ(table_.entries(), 101u);
}

// A reader stands in the middle of the chain while the bucket grows: the chain it walks stays whole. The branch two levels below would reuse the
// chain's links; it is not made before the reader has gone.
TEST_F(RecordTableGrowthTest, R5AWalkOfTheOldChainStaysInIt) {
  constexpr int kEarly = RecordTable::kLongChain;  // one fewer than makes a bucket grow
  // The seed of the hash differs per process, so whether the reused links would mislead a reader is chance: try several tables.
  for (int number = 0; number < 4; ++number) {
    RecordTable other(domain_, 1);
    const auto key_of = [&](int i) { return Concat("early", number, ".", i); };
    const auto make = [&](const std::string& key) {
      ReclamationDomain::Guard guard(domain_);
      other.FindOrCreate(HashOf(key), kTable, key);
    };
    const auto find = [&](const std::string& key) {
      ReclamationDomain::Guard guard(domain_);
      return other.Find(HashOf(key), kTable, key);
    };
    for (int i = 0; i < kEarly; ++i) make(key_of(i));
    ASSERT_EQ(other.branches(), 0u);
    for (int i = 0; i < kEarly; ++i) {
      Once("record_table.walk", [&] {
        for (int late = 0; late < 2000; ++late) make(Concat("late", i, ".", late));
      });
      EXPECT_NE(find(key_of(i)), nullptr) << i;
      testing::SetPointHandler(nullptr);
    }
    EXPECT_GT(other.branches(), 2u);
    for (int i = 0; i < kEarly; ++i) EXPECT_NE(find(key_of(i)), nullptr) << i;
  }
}

// R6: a reader raises the floor of the bucket in which it found no entry; the bucket grows before or after. The writer sees the floor.
TEST_F(RecordTableGrowthTest, R6AFloorIsSeenThroughAGrowth) {
  Once("record_table.floor.located", [&] { MakeMany("key", 200); });
  {
    ReclamationDomain::Guard guard(domain_);
    table_.RaiseFloor(HashOf("k"), Timestamp{30});
  }
  ASSERT_GT(table_.branches(), 0u);
  EXPECT_EQ(FloorOf(HashOf("k")), Timestamp{30});
  MakeMany("more", 20000);
  EXPECT_EQ(FloorOf(HashOf("k")), Timestamp{30});
  // The present bucket is smaller: its floor does not concern keys of other buckets, even if it remembers reads of all its keys.
  table_.RaiseFloor(HashOf("k") ^ uint64_t{1} << 62, Timestamp{50});
  table_.RaiseFloor(HashOf("k"), Timestamp{50});
  EXPECT_EQ(FloorOf(HashOf("k")), Timestamp{50});
  int concerned = 0;
  for (int i = 0; i < 1000; ++i) concerned += FloorOf(HashOf(Concat("other", i))) == Timestamp{50};
  EXPECT_LT(concerned, 100);
}

TEST_F(RecordTableGrowthTest, ALostSwingIsTriedAgain) {
  int lost = 0;
  testing::SetCasHandler([&](std::string_view name) { return name == "record_table.grow.cas" && lost++ % 2 == 0; });
  MakeMany("key", 2000);
  EXPECT_GT(lost, 10);
  EXPECT_GT(table_.branches(), 5u);
  for (int i = 0; i < 2000; ++i) ASSERT_NE(Find(Concat("key", i)), nullptr) << i;
}

// Threads insert the same keys, each in its own order, while one thread removes at full speed; some entries stay until the table has grown.
TEST_F(RecordTableGrowthTest, GrowthAndRemovalAtFullRate) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 4;
  constexpr uint64_t kKeys = 3000;
  constexpr size_t kStay = 2500;
  std::atomic<int> working{kThreads};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.push_back(RealRuntime().StartThread("inserter", [&, t] {
      Random random(static_cast<uint64_t>(t) + 1);
      for (uint64_t i = 0; i < kRounds * kKeys; ++i) {
        const std::string key = Concat("key", random.Below(kKeys));
        ReclamationDomain::Guard guard(domain_);
        RecordEntry* const entry = table_.FindOrCreate(HashOf(key), kTable, key);
        ASSERT_EQ(entry->key(), key);
        // The entry is found, unless it was removed.
        RecordEntry* const found = table_.Find(HashOf(key), kTable, key);
        ASSERT_TRUE(found == entry || entry->word.Load().dead()) << key;
      }
      working.fetch_sub(1);
    }));
  }
  uint64_t removed = 0;
  for (uint64_t i = 0; working.load() != 0 || table_.entries() != 0; ++i) {
    while (working.load() != 0 && table_.branches() <= 10 && table_.entries() < kStay) RealRuntime().Yield();
    const std::string key = Concat("key", i % kKeys);
    ReclamationDomain::Guard guard(domain_);
    RecordEntry* const entry = table_.Find(HashOf(key), kTable, key);
    if (entry != nullptr && table_.Remove(entry, Timestamp{0})) ++removed;
  }
  threads.clear();
  EXPECT_GT(removed, 0u);
  // The number beyond that depends on grace periods, which a thread that is preempted within its guard delays.
  EXPECT_GT(table_.branches(), 0u);
  EXPECT_EQ(table_.entry_bytes(), 0u);
}

}  // namespace
}  // namespace deut::tc
