#include "tc/spill/spill_reader.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/spill/spill_test_util.h"

namespace deut::tc {
namespace {

// Random versions of few keys in two tables, one of which has the largest id, over several runs in commit order, compared with a map.
TEST(SpillReaderTest, FindsWhatAMapFinds) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  ReclamationDomain domain;
  SpilledRuns runs("dir", RealRuntime(), *storage, domain);
  ASSERT_TRUE(runs.LockAndEmpty().ok());
  Random random(7);
  const auto random_table = [&] { return random.Below(2) == 0 ? uint32_t{1} : UINT32_MAX; };
  const auto key = [](uint64_t i) { return Concat(std::string(i % 3 == 0 ? 900 : 3, 'k'), 100 + i); };
  std::map<std::pair<uint32_t, std::string>, std::set<uint64_t>> expected;
  uint64_t timestamp = 10;
  for (int r = 0; r < 4; ++r) {
    std::vector<std::string> keys;
    std::vector<std::pair<uint32_t, uint64_t>> chosen;
    for (int i = 0; i < 250; ++i) {
      chosen.emplace_back(random_table(), 10 + i);
      keys.push_back(key(random.Below(60)));
    }
    std::vector<SpilledVersion> versions;
    for (size_t i = 0; i < keys.size(); ++i) {
      versions.push_back(SpilledAt(keys[i], ++timestamp, TableId{chosen[i].first}));
      expected[{chosen[i].first, keys[i]}].insert(timestamp);
    }
    runs.Publish(RunOf(runs, versions));
  }
  ReclamationDomain::Guard guard(domain);
  SpillReader reader(runs.PublishedRuns());
  ASSERT_EQ(runs.runs(), 4u);
  for (int look = 0; look < 3000; ++look) {
    const uint32_t table = random_table();
    const std::string wanted = key(random.Below(62));
    const uint64_t at = 10 + random.Below(timestamp);
    const Result<std::optional<SpilledVersion>> found = reader.Find(TableId{table}, wanted, Timestamp{at});
    ASSERT_TRUE(found.ok());
    const std::set<uint64_t>& known = expected[{table, wanted}];
    const auto it = known.lower_bound(at);
    ASSERT_EQ(found->has_value(), it != known.begin()) << look;
    if (*found) EXPECT_EQ((*found)->timestamp.value, *std::prev(it)) << look;
  }
  for (int look = 0; look < 500; ++look) {
    const uint32_t table = random_table();
    std::string low = key(random.Below(60)), high = look % 5 == 0 ? "" : key(random.Below(60));
    if (!high.empty() && high < low) std::swap(low, high);
    const bool ascending = look % 2 == 0;
    const uint64_t at = 10 + random.Below(timestamp);
    const size_t most = look % 3 == 0 ? SIZE_MAX : 1 + random.Below(20);
    std::vector<std::string> all;
    for (const auto& [where, timestamps] : expected) {
      if (where.first != table || where.second < low || (!high.empty() && where.second >= high)) continue;
      if (!timestamps.empty() && *timestamps.begin() < at) all.push_back(where.second);
    }
    if (!ascending) std::ranges::reverse(all);
    std::set<std::string> gathered;
    ASSERT_TRUE(reader
                    .Gather({.table = TableId{table},
                             .low = low,
                             .high = high,
                             .ascending = ascending,
                             .reader = Timestamp{at},
                             .most = most},
                            [&](std::string_view k) { gathered.emplace(k); })
                    .ok());
    // The first `most` keys are gathered; later keys of other runs may be gathered, too.
    for (size_t i = 0; i < std::min(all.size(), most); ++i) EXPECT_TRUE(gathered.contains(all[i])) << look << " " << i;
    if (most == SIZE_MAX) EXPECT_EQ(gathered.size(), all.size()) << look;
  }
}

class SpillReaderCostTest : public ::testing::Test {
 protected:
  SpillReaderCostTest() { EXPECT_TRUE(runs_.LockAndEmpty().ok()); }
  void Publish(const std::vector<std::string>& keys, uint64_t timestamp) {
    std::vector<SpilledVersion> versions;
    for (const std::string& key : keys) versions.push_back(SpilledAt(key, timestamp));
    runs_.Publish(RunOf(runs_, versions));
    ASSERT_EQ(runs_.runs(), ++published_);
  }
  // One operation with one find. Returns the timestamp of what it found, or 0.
  uint64_t Find(const std::string& key, uint64_t reader) {
    ReclamationDomain::Guard guard(domain_);
    SpillReader spilled(runs_.PublishedRuns());
    const Result<std::optional<SpilledVersion>> found = spilled.Find(TableId{1}, key, Timestamp{reader});
    EXPECT_TRUE(found.ok());
    return found.ok() && *found ? (*found)->timestamp.value : 0;
  }
  uint64_t reads() { return disk_.counts().reads; }

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_ = disk_.Mount();
  ReclamationDomain domain_;
  SpilledRuns runs_{"dir", RealRuntime(), *storage_, domain_};
  size_t published_ = 0;
};

// The hash of the filters has a fixed key, so the number of reads is the same every time.
TEST_F(SpillReaderCostTest, AFindReadsAboutOneBlockHoweverManyRuns) {
  constexpr uint64_t kRuns = 40, kKeys = 100;
  const auto key = [](uint64_t i) { return Concat("user", i * 7); };
  for (uint64_t r = 0; r < kRuns; ++r) {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(key(i * kRuns + r));
    Publish(keys, r + 1);
  }
  uint64_t before = reads();
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(Find(key(i), 1000), i % kRuns + 1) << i;
  EXPECT_GE(reads() - before, 1000u);
  EXPECT_LT(reads() - before, 2000u);
  before = reads();
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(Find(key(kRuns * kKeys + i), 1000), 0u) << i;
  EXPECT_LT(reads() - before, 1000u);
}

TEST_F(SpillReaderCostTest, AFindSkipsRunsOfOlderAndOfUnseenVersions) {
  for (uint64_t r = 1; r <= 10; ++r) Publish({"a", "k", "z"}, 10 * r);
  for (const uint64_t reader : {1000, 55, 11}) {
    const uint64_t before = reads();
    EXPECT_EQ(Find("k", reader), std::min<uint64_t>(reader / 10, 10) * 10);
    EXPECT_EQ(reads() - before, 1u) << reader;
  }
  const uint64_t before = reads();
  EXPECT_EQ(Find("k", 10), 0u);
  EXPECT_EQ(reads() - before, 0u);
}

// If runs overlap, the one that was published last need not have the newest version.
TEST_F(SpillReaderCostTest, AFindLooksAtEarlierRunsThatMayHaveANewerVersion) {
  Publish({"k"}, 70);
  Publish({"k"}, 50);
  EXPECT_EQ(Find("k", 1000), 70u);
  EXPECT_EQ(Find("k", 60), 50u);
}

TEST_F(SpillReaderCostTest, AGatherSkipsRunsOfUnseenAndOfAppliedVersions) {
  for (uint64_t r = 1; r <= 10; ++r) Publish({Concat("k", r)}, 10 * r);
  ReclamationDomain::Guard guard(domain_);
  SpillReader spilled(runs_.PublishedRuns());
  const uint64_t before = reads();
  std::string keys;
  // SpilledAt commits at ten times the timestamp.
  ASSERT_TRUE(spilled
                  .Gather({.table = TableId{1}, .reader = Timestamp{60}, .applied = Lsn{300}},
                          [&](std::string_view key) { keys += Concat(key, " "); })
                  .ok());
  EXPECT_EQ(keys, "k3 k4 k5 ");
  EXPECT_EQ(reads() - before, 3u);
}

// A range lies in one block, unless it is at the end of a block.
TEST_F(SpillReaderCostTest, AGatherOfFewKeysReadsAboutOneBlockInEitherDirection) {
  constexpr uint64_t kKeys = 2000, kEach = 10;
  const auto key = [](uint64_t i) { return Concat("key", 10'000 + i); };
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(key(i));
  Publish(keys, 1);
  ReclamationDomain::Guard guard(domain_);
  const size_t blocks = runs_.PublishedRuns()[0]->blocks();
  ASSERT_GE(blocks, 5u);
  for (const bool ascending : {true, false}) {
    const uint64_t before = reads();
    for (uint64_t i = 0; i + kEach <= kKeys; i += kEach) {
      SpillReader spilled(runs_.PublishedRuns());
      const std::string low = key(i), high = key(i + kEach);
      uint64_t found = 0;
      ASSERT_TRUE(
          spilled
              .Gather({.table = TableId{1}, .low = low, .high = high, .ascending = ascending, .reader = Timestamp{2}},
                      [&](std::string_view) { ++found; })
              .ok());
      EXPECT_EQ(found, kEach) << low;
    }
    EXPECT_LE(reads() - before, kKeys / kEach + 2 * blocks) << ascending;
  }
}

}  // namespace
}  // namespace deut::tc
