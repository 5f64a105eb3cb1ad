// Several runs side by side compared with a sorted set: bounds, directions, keys that the reader does not see or the DC has, various prefixes.
#include "tc/mvcc/run_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/runtime/random.h"

namespace deut::tc {
namespace {

using RunPointer = std::shared_ptr<const CommittedRun>;

struct Update {
  uint64_t timestamp;
  uint64_t commit;
  bool removal;
};

RunPointer RunOf(const std::map<std::string, Update>& updates) {
  CommittedRun::Builder builder;
  for (const auto& [key, u] : updates) builder.Append(key, Timestamp{u.timestamp}, Lsn{u.commit}, u.removal);
  return builder.Finish(Position{Lsn{1000}, 1});
}

std::vector<std::string> Merged(const std::vector<RunPointer>& runs, const RunMerge::Bounds& bounds) {
  std::vector<std::string> keys;
  RunMerge merge(runs, RunMerge::CommonPrefix(runs), bounds);
  while (merge.Next()) keys.push_back(std::string(merge.key()) + (merge.removed() ? "-" : ""));
  return keys;
}

TEST(RunMergeTest, NoRunsNoKeys) {
  EXPECT_EQ(RunMerge::CommonPrefix({}), 0u);
  EXPECT_TRUE(Merged({}, {.reader = Timestamp{9}}).empty());
}

TEST(RunMergeTest, TheCommonPrefixIsThatOfAllRuns) {
  const RunPointer a = RunOf({{"user1a", {1, 1, false}}, {"user1b", {1, 1, false}}});
  const RunPointer b = RunOf({{"user2a", {1, 1, false}}, {"user2b", {1, 1, false}}});
  const RunPointer one = RunOf({{"user1", {1, 1, false}}});
  EXPECT_EQ(RunMerge::CommonPrefix({a}), 5u);
  EXPECT_EQ(RunMerge::CommonPrefix({a, b}), 4u);
  EXPECT_EQ(RunMerge::CommonPrefix({a, one}), 5u);
}

// A removal of a key is reported whichever run has it, unless the reader does not see that run's entry.
TEST(RunMergeTest, AKeyOfSeveralRunsIsThereOnce) {
  const RunPointer a = RunOf({{"a", {1, 10, false}}, {"b", {1, 10, true}}, {"d", {1, 10, false}}});
  const RunPointer b = RunOf({{"b", {2, 20, false}}, {"c", {2, 20, false}}, {"d", {5, 50, true}}});
  using Keys = std::vector<std::string>;
  EXPECT_EQ(Merged({a, b}, {.reader = Timestamp{9}}), (Keys{"a", "b-", "c", "d-"}));
  EXPECT_EQ(Merged({b, a}, {.ascending = false, .reader = Timestamp{5}}), (Keys{"d", "c", "b-", "a"}));
  EXPECT_EQ(Merged({a, b}, {.reader = Timestamp{9}, .applied = Lsn{11}}), (Keys{"b", "c", "d-"}));
}

TEST(RunMergeTest, FindsWhatASortedSetFinds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::vector<std::string> prefixes = {"", "user", std::string(20, 'p'), "\xff\xff"};
    const std::string& prefix = prefixes[random.Below(prefixes.size())];
    const auto key_of = [&] {
      std::string key = random.Below(30) == 0 ? std::string() : prefix;
      // Short keys with zero bytes, and long keys with long common prefixes.
      if (random.Below(4) == 0) key += std::string(random.Below(10), 'x');
      for (uint64_t n = random.Below(4); n > 0; --n) key.push_back(static_cast<char>(random.Below(3)));
      return key + std::to_string(random.Below(200));
    };
    std::vector<std::map<std::string, Update>> content(1 + random.Below(5));
    std::vector<RunPointer> runs;
    for (auto& updates : content) {
      for (uint64_t n = 1 + random.Below(150); n > 0; --n)
        updates[key_of()] = {1 + random.Below(20), 1 + random.Below(20), random.Below(4) == 0};
      runs.push_back(RunOf(updates));
    }
    for (int i = 0; i < 30; ++i) {
      std::string low = random.Below(4) == 0 ? "" : key_of(), high = random.Below(4) == 0 ? "" : key_of();
      if (!high.empty() && high < low) std::swap(low, high);
      const RunMerge::Bounds bounds{.low = low,
                                    .high = high,
                                    .ascending = random.Below(2) == 0,
                                    .reader = Timestamp{random.Below(22)},
                                    .applied = Lsn{random.Below(22)}};
      std::map<std::string, bool> found;
      for (const auto& updates : content) {
        for (const auto& [key, u] : updates) {
          if (key < low || (!high.empty() && key >= high)) continue;
          if (u.timestamp >= bounds.reader.value || u.commit < bounds.applied.value) continue;
          found[key] = found[key] || u.removal;
        }
      }
      std::vector<std::string> expected;
      for (const auto& [key, removal] : found) expected.push_back(key + (removal ? "-" : ""));
      if (!bounds.ascending) std::ranges::reverse(expected);
      ASSERT_EQ(Merged(runs, bounds), expected) << low << "|" << high;
    }
  }
}

}  // namespace
}  // namespace deut::tc
