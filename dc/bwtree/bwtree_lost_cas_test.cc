// Every compare-and-swap of the tree loses when it is first tried, and often afterwards. The loser still owns the
// nodes that it built and frees them once (ASan), and the outcome is the same.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// Decides which tries are lost, and counts them: the first try of each name, and `losses` of `of` later ones.
class Losses {
 public:
  Losses(uint64_t losses, uint64_t of) {
    testing::SetCasHandler([this, losses, of](std::string_view name) {
      const std::lock_guard<std::mutex> lock(mutex_);
      Count& count = counts_[std::string(name)];
      const bool lose = count.tries++ == 0 || random_.Below(of) < losses;
      count.lost += lose ? 1 : 0;
      return lose;
    });
  }
  ~Losses() { testing::SetCasHandler(nullptr); }

  void ExpectLost(std::string_view name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_GE(counts_[std::string(name)].lost, 1) << name;
    EXPECT_GT(counts_[std::string(name)].tries, counts_[std::string(name)].lost) << name << " never won";
  }

 private:
  struct Count {
    int tries = 0;
    int lost = 0;
  };
  std::mutex mutex_;
  Random random_{17};
  std::map<std::string, Count> counts_;
};

constexpr const char* kAll[] = {"bwtree.update.cas", "bwtree.consolidate.cas",  "bwtree.forced_consolidate.cas",
                                "bwtree.split.cas",  "bwtree.forced_split.cas", "bwtree.split_root.cas",
                                "bwtree.post.cas",   "mapping_table.pop.cas",   "mapping_table.push.cas"};

void Fill(TestTree& t, uint64_t first, uint64_t step, uint64_t keys) {
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = first; i < keys; i += step) {
      t.Put(KeyOf(i * 7919 % keys), std::string(20 + i % 30, static_cast<char>('a' + round)), V(1 + round * keys + i));
    }
  }
}

void ExpectFilled(TestTree& t, uint64_t keys) {
  const std::vector<TestRecord> records = t.Scan(true);
  ASSERT_EQ(records.size(), keys);
  for (uint64_t i = 0; i < keys; ++i) {
    ASSERT_EQ(records[i].key, KeyOf(i));
    ASSERT_EQ(records[i].value[0], 'c');
  }
  ASSERT_EQ(t.Scan(false).size(), keys);
}

TEST(BwTreeLostCasTest, EachLosesOnceAndOften) {
  constexpr uint64_t kKeys = 3000;
  TestTree t;
  {
    // Most consolidations lose, so that the forced ones are needed as well.
    Losses losses(7, 10);
    // Updates of one key: the page stays small, however often it is updated.
    for (uint32_t i = 1; i <= 200; ++i) t.Put(KeyOf(0), "a", V(1, i));
    Fill(t, 0, 1, kKeys);
    for (const char* name : kAll) losses.ExpectLost(name);
  }
  ExpectFilled(t, kKeys);
}

TEST(BwTreeLostCasTest, ByManyThreads) {
  constexpr uint64_t kKeys = 3000;
  TestTree t;
  {
    Losses losses(1, 2);
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint64_t i = 0; i < 3; ++i) {
      threads.push_back(RealRuntime().StartThread("filler", [&t, i] { Fill(t, i, 3, kKeys); }));
    }
  }
  ExpectFilled(t, kKeys);
}

}  // namespace
}  // namespace deut::dc
