// Many threads use one tree (run under TSan and ASan too).
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

void RunThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < count; ++i)
    threads.push_back(RealRuntime().StartThread(Concat("tree", i), [&body, i] { body(i); }));
}

std::string ValueOf(uint64_t version) { return Concat("value ", version, " ", std::string(version % 40, 'x')); }

// The highest version given to each key, and whether it was a put.
class Latest {
 public:
  explicit Latest(size_t keys) : versions_(keys) {}

  void Record(uint64_t key, uint64_t version, bool put) {
    const uint64_t word = version * 2 + (put ? 1 : 0);
    uint64_t seen = versions_[key].load();
    while (seen < word && !versions_[key].compare_exchange_weak(seen, word)) {
    }
  }
  bool present(uint64_t key) const { return (versions_[key].load() & 1) != 0; }
  uint64_t version(uint64_t key) const { return versions_[key].load() / 2; }

  void ExpectIn(TestTree& t) const {
    std::vector<TestRecord> expected;
    for (uint64_t key = 0; key < versions_.size(); ++key) {
      const auto found = t.Read(KeyOf(key));
      ASSERT_EQ(found != nullptr, present(key)) << key;
      if (found == nullptr) continue;
      ASSERT_EQ(found->version, V(version(key)));
      ASSERT_EQ(found->value, ValueOf(version(key)));
      expected.push_back(*found);
    }
    ASSERT_EQ(t.Scan(true), expected);
    ASSERT_EQ(t.Scan(false).size(), expected.size());
  }

 private:
  std::vector<std::atomic<uint64_t>> versions_;
};

struct Shape {
  const char* name;
  uint64_t keys;
  int operations;
};

class BwTreeConcurrencyTest : public ::testing::TestWithParam<Shape> {};

// Versions come from one counter, but the threads apply them in any order: the largest must win.
TEST_P(BwTreeConcurrencyTest, TheLargestVersionOfEachKeyWins) {
  const Shape& shape = GetParam();
  TestTree t;
  Latest latest(shape.keys);
  std::atomic<uint64_t> clock{0};
  RunThreads(4, [&](int thread) {
    Random random(static_cast<uint64_t>(thread) + 100);
    for (int i = 0; i < shape.operations; ++i) {
      const uint64_t key = random.Below(shape.keys);
      const uint64_t version = clock.fetch_add(1) + 1;
      const bool put = !random.OneIn(4);
      if (put) {
        t.Put(KeyOf(key), ValueOf(version), V(version));
      } else {
        t.Delete(KeyOf(key), V(version));
      }
      latest.Record(key, version, put);
      if (random.OneIn(4)) {
        const auto found = t.Read(KeyOf(key));
        // The record is never older than the version that this thread has put.
        if (found != nullptr) {
          ASSERT_GE(found->version, V(version));
          ASSERT_EQ(found->value, ValueOf(found->version.timestamp.value));
        }
      }
    }
  });
  latest.ExpectIn(t);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BwTreeConcurrencyTest,
                         ::testing::Values(Shape{"one_key", 1, 15000}, Shape{"one_page", 8, 15000},
                                           Shape{"many_pages", 5000, 20000}),
                         [](const auto& info) { return info.param.name; });

// Even keys exist from the start and only change their values. Odd keys come and go, so that pages split and empty
// under the scans. Every scan sees every even key once, in order, and never with an older value than before.
TEST(BwTreeScanTest, ScansDuringSplitsNeitherLoseNorRepeat) {
  constexpr uint64_t kKeys = 4000;
  TestTree t;
  std::atomic<uint64_t> clock{0};
  for (uint64_t key = 0; key < kKeys; key += 2) t.Put(KeyOf(key), "x", V(++clock));
  std::atomic<int> writers{2};
  std::atomic<int> scans{0};
  RunThreads(4, [&](int thread) {
    Random random(static_cast<uint64_t>(thread) + 7);
    if (thread < 2) {
      for (int i = 0; i < 30000; ++i) {
        const uint64_t version = clock.fetch_add(1) + 1;
        const uint64_t key = random.Below(kKeys);
        if (key % 2 == 0 || random.OneIn(2)) {
          t.Put(KeyOf(key), std::string(random.Below(60), 'y'), V(version));
        } else {
          t.Delete(KeyOf(key), V(version));
        }
      }
      writers.fetch_sub(1);
      return;
    }
    std::vector<uint64_t> seen(kKeys, 0);
    for (bool last = false; !last;) {
      last = writers.load() == 0;
      const bool ascending = random.OneIn(2);
      const std::vector<TestRecord> records =
          t.Scan(ascending, {}, {}, random.Below(50), random.OneIn(2) ? 0 : 500 + random.Below(4000));
      uint64_t even = 0;
      for (const TestRecord& record : records) {
        const uint64_t key = std::stoull(record.key.substr(1));
        if (key % 2 == 0) ++even;
        ASSERT_GE(record.version.timestamp.value, seen[key]);
        seen[key] = record.version.timestamp.value;
      }
      ASSERT_EQ(even, kKeys / 2);
      scans.fetch_add(1);
    }
  });
  EXPECT_GT(scans.load(), 2);
  EXPECT_GT(t.tree->statistics().splits, 20u);
}

// Several threads insert keys in order, so all of them use the rightmost page.
TEST(BwTreeInsertTest, OrderedInsertsByManyThreads) {
  constexpr int kThreads = 4;
  constexpr uint64_t kPerThread = 8000;
  TestTree t;
  std::atomic<uint64_t> next{0};
  RunThreads(kThreads, [&](int) {
    for (uint64_t i = 0; i < kPerThread; ++i) {
      const uint64_t key = next.fetch_add(1);
      t.Put(KeyOf(key), ValueOf(key + 1), V(key + 1));
    }
  });
  const std::vector<TestRecord> records = t.Scan(true);
  ASSERT_EQ(records.size(), kThreads * kPerThread);
  for (uint64_t key = 0; key < records.size(); ++key) ASSERT_EQ(records[key].key, KeyOf(key));
}

// Pages drop tombstones while threads write. The consolidation timestamp follows the slowest thread, as low-water
// does.
TEST(BwTreeTombstoneTest, ConsolidationFollowsLowWater) {
  constexpr int kThreads = 3;
  constexpr uint64_t kKeys = 600;
  TestTree t;
  Latest latest(kKeys);
  std::atomic<uint64_t> clock{1};
  std::vector<std::atomic<uint64_t>> floors(kThreads);  // the lowest version each thread may still apply
  for (auto& floor : floors) floor.store(1);
  RunThreads(kThreads, [&](int thread) {
    Random random(static_cast<uint64_t>(thread) + 50);
    auto& own = floors[static_cast<size_t>(thread)];
    for (int i = 0; i < 15000; ++i) {
      own.store(clock.load());
      const uint64_t version = clock.fetch_add(1);
      const uint64_t key = random.Below(kKeys);
      const bool put = random.OneIn(2);
      if (put) {
        t.Put(KeyOf(key), ValueOf(version), V(version));
      } else {
        t.Delete(KeyOf(key), V(version));
      }
      latest.Record(key, version, put);
      if (i % 16 == 0) {
        uint64_t low_water = clock.load();
        for (const auto& floor : floors) low_water = std::min(low_water, floor.load());
        uint64_t seen = t.consolidation.load();
        while (seen < low_water && !t.consolidation.compare_exchange_weak(seen, low_water)) {
        }
      }
      if (i % 64 == 0) {
        RecordBatch batch;
        ScanCursor cursor;
        cursor.low = KeyOf(random.Below(kKeys));
        ScanBudget budget;
        ASSERT_TRUE(t.tree->ScanAscending(&cursor, &budget, &batch));
      }
    }
    own.store(UINT64_MAX);
  });
  latest.ExpectIn(t);
}

// Ranges of keys fill and empty while threads read and write, and one thread merges.
TEST(BwTreeMergeTest, MergesWhileThreadsWriteAndScan) {
  constexpr int kWriters = 2;
  constexpr uint64_t kKeys = 3000;
  BwTreeOptions options = SmallPages();
  options.inner_page_bytes = 1024;
  TestTree t(options);
  Latest latest(kKeys);
  std::atomic<uint64_t> clock{1};
  std::vector<std::atomic<uint64_t>> floors(kWriters);
  for (auto& floor : floors) floor.store(1);
  std::atomic<int> writers{kWriters};
  RunThreads(kWriters + 2, [&](int thread) {
    Random random(static_cast<uint64_t>(thread) + 70);
    if (thread == kWriters) {
      while (writers.load() != 0) {
        MergeOnce(t.tree.get());
        t.domain.Collect();
      }
      return;
    }
    if (thread > kWriters) {
      while (writers.load() != 0) t.Scan(random.OneIn(2), KeyOf(random.Below(kKeys)), {}, 100);
      return;
    }
    auto& own = floors[static_cast<size_t>(thread)];
    for (int tide = 0; tide < 24; ++tide) {
      const uint64_t first = random.Below(kKeys - 600);
      for (uint64_t i = 0; i < 1500; ++i) {
        own.store(clock.load());
        const uint64_t version = clock.fetch_add(1);
        const uint64_t key = first + random.Below(600);
        const bool put = tide % 2 == 0 ? !random.OneIn(8) : random.OneIn(30);
        if (put) {
          t.Put(KeyOf(key), ValueOf(version), V(version));
        } else {
          t.Delete(KeyOf(key), V(version));
        }
        latest.Record(key, version, put);
        if (i % 16 != 0) continue;
        uint64_t low_water = clock.load();
        for (const auto& floor : floors) low_water = std::min(low_water, floor.load());
        uint64_t seen = t.consolidation.load();
        while (seen < low_water && !t.consolidation.compare_exchange_weak(seen, low_water)) {
        }
      }
    }
    own.store(UINT64_MAX);
    writers.fetch_sub(1);
  });
  EXPECT_GE(t.tree->statistics().merges, 10u);
  latest.ExpectIn(t);
  t.MergeAll();
  latest.ExpectIn(t);
}

}  // namespace
}  // namespace deut::dc
