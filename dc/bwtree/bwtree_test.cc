// One thread compares the tree with a reference map.
#include "dc/bwtree/bwtree.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Reference = std::map<std::string, TestRecord>;

std::vector<TestRecord> Expected(const Reference& reference, const std::string& low, const std::string& high,
                                 bool ascending) {
  std::vector<TestRecord> records;
  for (auto it = reference.lower_bound(low); it != reference.end() && (high.empty() || it->first < high); ++it)
    records.push_back(it->second);
  if (!ascending) std::reverse(records.begin(), records.end());
  return records;
}

TEST(BwTreeTest, EmptyTree) {
  TestTree t;
  EXPECT_EQ(t.Read("a"), nullptr);
  EXPECT_TRUE(t.Scan(true).empty());
  EXPECT_TRUE(t.Scan(false).empty());
  EXPECT_TRUE(t.tree->Partition(8).empty());
  EXPECT_EQ(t.tree->ApproximateRecords(), 0u);
}

TEST(BwTreeTest, ReadsBackWhatWasPut) {
  TestTree t;
  EXPECT_EQ(t.Put("b", "1", V(5)), BwTree::Outcome::kApplied);
  EXPECT_EQ(*t.Read("b"), (TestRecord{"b", "1", V(5)}));
  EXPECT_EQ(t.Read("a"), nullptr);
  EXPECT_EQ(t.Read("bb"), nullptr);
  t.Put("b", "", V(6));
  EXPECT_EQ(*t.Read("b"), (TestRecord{"b", "", V(6)}));
  EXPECT_EQ(t.tree->ApproximateRecords(), 1u);
  t.Delete("b", V(7));
  EXPECT_EQ(t.Read("b"), nullptr);
  EXPECT_EQ(t.tree->ApproximateRecords(), 0u);
  t.Put("b", "back", V(8));
  EXPECT_EQ(*t.Read("b"), (TestRecord{"b", "back", V(8)}));
}

struct Mix {
  const char* name;
  uint64_t seed;
  int operations;
  size_t keys;
  size_t max_value;
  bool awkward;  // long keys with zero bytes and common prefixes
};

class BwTreeReferenceTest : public ::testing::TestWithParam<Mix> {};

std::string RandomKey(const Mix& mix, Random& random) {
  const uint64_t number = random.Below(mix.keys);
  if (!mix.awkward) return KeyOf(number);
  Random of_key(number + mix.seed * 1000);
  std::string key(of_key.Below(8), 'x');
  for (uint64_t i = of_key.Between(1, 6); i > 0; --i)
    key += static_cast<char>(of_key.OneIn(2) ? 0 : 0xfe + of_key.Below(2));
  if (of_key.OneIn(50)) key += std::string(kMaxKeyBytes - key.size(), static_cast<char>(number));
  return key;
}

TEST_P(BwTreeReferenceTest, RandomOperations) {
  const Mix& mix = GetParam();
  TestTree t;
  Reference reference;
  Random random(mix.seed);
  for (int i = 1; i <= mix.operations; ++i) {
    const std::string key = RandomKey(mix, random);
    const Version version = V(static_cast<uint64_t>(i));
    switch (random.Below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: {
        const std::string value(random.Below(mix.max_value), static_cast<char>('a' + i % 26));
        ASSERT_EQ(t.Put(key, value, version), BwTree::Outcome::kApplied);
        reference[key] = TestRecord{key, value, version};
        break;
      }
      case 5:
      case 6:
        t.Delete(key, version);
        reference.erase(key);
        break;
      case 7: {
        const auto found = t.Read(key);
        const auto expected = reference.find(key);
        ASSERT_EQ(found != nullptr, expected != reference.end()) << i;
        if (found != nullptr) ASSERT_EQ(*found, expected->second);
        break;
      }
      case 8: {
        if (!random.OneIn(20)) break;
        std::string low = random.OneIn(4) ? "" : RandomKey(mix, random);
        std::string high = random.OneIn(4) ? "" : RandomKey(mix, random);
        if (!high.empty() && low > high) std::swap(low, high);
        const bool ascending = random.OneIn(2);
        ASSERT_EQ(t.Scan(ascending, low, high, random.Below(20), random.OneIn(2) ? 0 : random.Below(3000)),
                  Expected(reference, low, high, ascending))
            << i;
        break;
      }
      case 9:
        // Consolidation may now drop the tombstones of everything that was applied.
        if (random.OneIn(30)) t.consolidation.store(static_cast<uint64_t>(i) + 1);
        break;
      default:
        FAIL() << "no such operation";
    }
  }
  EXPECT_EQ(t.Scan(true), Expected(reference, "", "", true));
  EXPECT_EQ(t.Scan(false), Expected(reference, "", "", false));
  for (const auto& [key, record] : reference) ASSERT_EQ(*t.Read(key), record);
}

INSTANTIATE_TEST_SUITE_P(Mixes, BwTreeReferenceTest,
                         ::testing::Values(Mix{"few_keys", 1, 60000, 40, 60, false},
                                           Mix{"many_keys", 2, 60000, 20000, 60, false},
                                           Mix{"large_values", 3, 6000, 100, 6000, false},
                                           Mix{"awkward_keys", 4, 60000, 5000, 60, true},
                                           Mix{"empty_values", 5, 60000, 3000, 1, true}),
                         [](const auto& info) { return info.param.name; });

TEST(BwTreeTest, LargestKeysAndValues) {
  TestTree t;
  const std::string key(kMaxKeyBytes, 'k');
  const std::string value(kMaxValueBytes, 'v');
  for (uint64_t i = 0; i < 40; ++i) {
    std::string each = key;
    each[i] = 'j';
    t.Put(each, value, V(i + 1));
  }
  EXPECT_EQ(t.Scan(true, {}, {}, 0, 3 << 20).size(), 40u);
  EXPECT_EQ(t.Scan(false, {}, {}, 1).size(), 40u);
  std::string each = key;
  each[39] = 'j';
  EXPECT_EQ(t.Read(each)->value, value);
}

TEST(BwTreeTest, OrderedInsertsFillPages) {
  BwTreeOptions options;
  options.leaf_page_bytes = 8192;
  TestTree t(options);
  for (uint64_t i = 0; i < 20000; ++i) t.Put(KeyOf(i), "0123456789", V(i + 1));
  ASSERT_EQ(t.Scan(true).size(), 20000u);
  // A record takes 50 bytes in a page: header 18, key 9, value 10, index 13.
  EXPECT_LT(t.table->used(), 20000 * 50 / 8192 * 12 / 10);
  TestTree down;
  for (uint64_t i = 20000; i > 0; --i) down.Put(KeyOf(i), "0123456789", V(20001 - i));
  ASSERT_EQ(down.Scan(false).size(), 20000u);
}

TEST(BwTreeTest, EmptiedPagesAreCheapAndFilledAgain) {
  TestTree t;
  constexpr uint64_t kRecords = 5000;
  uint64_t now = 0;
  for (uint64_t i = 0; i < kRecords; ++i) t.Put(KeyOf(i), std::string(100, 'v'), V(++now));
  const uint64_t full = t.tree->statistics().bytes;
  for (uint64_t i = 0; i < kRecords; ++i) t.Delete(KeyOf(i), V(++now));
  EXPECT_TRUE(t.Scan(true).empty());
  t.consolidation.store(now + 1);
  EXPECT_TRUE(t.Scan(true).empty());  // the scan meets pages of tombstones and clears them
  t.domain.Collect();
  const uint64_t emptied = t.tree->statistics().bytes;
  EXPECT_LT(emptied, full / 2);
  EXPECT_TRUE(t.Scan(true).empty());
  EXPECT_TRUE(t.Scan(false).empty());
  EXPECT_EQ(t.Read(KeyOf(17)), nullptr);
  const uint64_t pages = t.table->used();
  for (uint64_t i = 0; i < kRecords; ++i) t.Put(KeyOf(i), std::string(100, 'w'), V(++now));
  EXPECT_EQ(t.Scan(true).size(), kRecords);
  EXPECT_LT(t.table->used(), pages * 11 / 10);
}

TEST(BwTreeTest, CountsRecordsAndBytes) {
  TestTree t;
  for (uint64_t i = 0; i < 10000; ++i) t.Put(KeyOf(i * 7919 % 10000), std::string(50, 'v'), V(i + 1));
  EXPECT_NEAR(static_cast<double>(t.tree->statistics().records), 10000,
              2000);  // updates since a page was last consolidated do not count
  EXPECT_NEAR(static_cast<double>(t.tree->ApproximateRecords()), 10000,
              2000);  // updates since a page was last consolidated do not count
  EXPECT_GT(t.tree->statistics().bytes, 10000u * 59);
  EXPECT_LT(t.tree->statistics().bytes, 10000u * 59 * 3);
  EXPECT_GT(t.tree->statistics().splits, 100u);
}

TEST(BwTreeTest, PageIdsRunOut) {
  TestTree t(SmallPages(), /*pages=*/30);
  uint64_t refused = 0;
  uint64_t i = 0;
  for (; i < 5000 && refused < 20; ++i) {
    const auto outcome = t.tree->Put(KeyOf(i * 7919 % 5000), std::string(50, 'v'), V(i + 1));
    if (!outcome.ok()) {
      EXPECT_EQ(outcome.status(), ErrorCode::kResourceExhausted) << outcome.status().ToString();
      EXPECT_NE(outcome.status().message().find("30"), std::string::npos);
      ++refused;
    }
  }
  EXPECT_EQ(refused, 20u);
  EXPECT_EQ(t.table->used(), 30u);
  // Every accepted record is there, and deletes still work.
  EXPECT_GE(t.Scan(true).size(), i - refused);
}

TEST(BwTreeTest, DroppedTreesGiveTheirPagesBack) {
  TestTree t;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 3000; ++i) t.Put(KeyOf(i), std::string(50, 'v'), V(i + 1));
    EXPECT_GT(t.table->used(), 100u);
    t.tree.reset();
    t.domain.Collect();
    EXPECT_EQ(t.table->used(), 0u);
    t.tree = std::move(*BwTree::Create(BwTreeEnvironment{*t.table, t.domain, t.consolidation}, SmallPages()));
  }
}

}  // namespace
}  // namespace deut::dc
