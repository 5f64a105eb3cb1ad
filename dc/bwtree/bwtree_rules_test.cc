// Rules X1 and X2 on the tree, each on its counter-example. If the rule's step is omitted, the test fails
// (integration/rules.txt).
#include <map>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// Options by which every update is consolidated at once, or never (deltas stay in the chain).
BwTreeOptions AtOnce() {
  BwTreeOptions options;
  options.leaf_chain_length = 1;
  return options;
}

BwTreeOptions Never() {
  BwTreeOptions options;
  options.leaf_chain_length = 1000;
  return options;
}

std::string ValueOf(TestTree& t, std::string_view key) {
  const auto record = t.Read(key);
  const std::vector<TestRecord> scanned = t.Scan(true, key, std::string(key) + '\0');
  EXPECT_EQ(record != nullptr, scanned.size() == 1);
  if (record == nullptr) return "absent";
  EXPECT_EQ(*record, scanned[0]);
  return record->value;
}

TEST(BwTreeRulesTest, X2LargestVersionWinsInTheChain) {
  TestTree t(Never());
  t.Put("k", "nine", V(9));
  t.Put("k", "seven", V(7));
  EXPECT_EQ(ValueOf(t, "k"), "nine");
  t.Put("k", "nine, second", V(9, 2));
  t.Put("k", "nine", V(9));
  EXPECT_EQ(ValueOf(t, "k"), "nine, second");
  t.Delete("k", V(8));
  EXPECT_EQ(ValueOf(t, "k"), "nine, second");
  t.Delete("k", V(10));
  t.Put("k", "seven", V(7));
  EXPECT_EQ(ValueOf(t, "k"), "absent");
}

TEST(BwTreeRulesTest, X2LargestVersionWinsAgainstTheBase) {
  TestTree t(AtOnce());
  t.Put("k", "nine", V(9));
  t.Put("k", "seven", V(7));  // consolidated with the base
  EXPECT_EQ(ValueOf(t, "k"), "nine");
  t.Delete("k", V(10));
  t.Put("k", "seven", V(7));
  EXPECT_EQ(ValueOf(t, "k"), "absent");

  BwTreeOptions pairs;
  pairs.leaf_chain_length = 2;
  TestTree u(pairs);
  u.Put("k", "nine", V(9));
  u.Put("other", "x", V(1));  // the base now holds both records
  u.Put("k", "seven", V(7));  // a delta on that base
  EXPECT_EQ(ValueOf(u, "k"), "nine");
}

// T5 inserts, T8 deletes, and the page drops the tombstone. A late duplicate of T5 must not bring the record back.
TEST(BwTreeRulesTest, X1FlatIsRaisedWithADroppedTombstone) {
  TestTree t(AtOnce());
  t.Put("k", "five", V(5));
  t.consolidation.store(9);
  t.Delete("k", V(8));
  ASSERT_EQ(ValueOf(t, "k"), "absent");
  EXPECT_EQ(t.Put("k", "five", V(5)), BwTree::Outcome::kDuplicate);
  EXPECT_EQ(t.Delete("k", V(8)), BwTree::Outcome::kDuplicate);
  EXPECT_EQ(ValueOf(t, "k"), "absent");
  EXPECT_EQ(t.Put("k", "nine", V(9)), BwTree::Outcome::kApplied);
  EXPECT_EQ(ValueOf(t, "k"), "nine");
}

// While C is still 0 the tombstone stays, and the duplicate loses to it.
TEST(BwTreeRulesTest, X1TombstonesStayUntilTheyAreBelowTheConsolidationTimestamp) {
  TestTree t(AtOnce());
  t.Put("k", "five", V(5));
  t.Delete("k", V(8));
  t.consolidation.store(8);
  t.Put("other", "", V(6));
  EXPECT_EQ(t.Put("k", "five", V(5)), BwTree::Outcome::kApplied);  // applied, but the tombstone supersedes it
  EXPECT_EQ(ValueOf(t, "k"), "absent");
}

// Low-water 20 means that everything below 20 has been applied; T20 itself may still come.
TEST(BwTreeRulesTest, X1FlatIsTheHighestTimestampDroppedNotTheBound) {
  TestTree t(AtOnce());
  t.Put("k", "five", V(5));
  t.consolidation.store(20);
  t.Delete("k", V(8));
  EXPECT_EQ(t.Put("j", "twenty", V(20)), BwTree::Outcome::kApplied);
  EXPECT_EQ(ValueOf(t, "j"), "twenty");
}

TEST(BwTreeRulesTest, X1SplitsCopyFlat) {
  BwTreeOptions options = AtOnce();
  options.leaf_page_bytes = 1024;
  TestTree t(options);
  const std::string value(100, 'v');
  t.Put("z", value, V(5));
  t.consolidation.store(9);
  t.Delete("z", V(8));  // the tombstone is dropped
  for (uint64_t i = 0; i < 200; ++i) t.Put(KeyOf(i), value, V(10 + i));
  ASSERT_GT(t.tree->statistics().splits, 10u);
  EXPECT_EQ(t.Put("z", value, V(5)), BwTree::Outcome::kDuplicate);
  EXPECT_EQ(ValueOf(t, "z"), "absent");
}

struct LoggedUpdate {
  std::string key;
  bool put;
  std::string value;
  Version version;
};

void Apply(TestTree& t, const LoggedUpdate& update) {
  if (update.put) {
    t.Put(update.key, update.value, update.version);
  } else {
    t.Delete(update.key, update.version);
  }
}

// A log with transactions that overlap in time: timestamps are out of order between keys, but in order for each key.
// The test applies it in pieces that are reordered within and followed by late duplicates of earlier updates.
// Low-water follows.
TEST(BwTreeRulesTest, X1X2DuplicatedReorderedResent) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(Concat("seed ", seed));
    Random random(seed);
    BwTreeOptions options = SmallPages();
    options.leaf_chain_length = static_cast<uint16_t>(random.Between(1, 6));
    TestTree t(options);
    constexpr uint64_t kKeys = 60;
    std::vector<LoggedUpdate> log;
    std::vector<uint64_t> last(kKeys, 0);
    uint64_t low_water = 0;  // every update below it is in the log
    std::map<std::string, TestRecord> expected;
    for (int stretch = 0; stretch < 60; ++stretch) {
      const size_t from = log.size();
      const uint64_t window = low_water + random.Between(5, 40);
      for (uint64_t i = random.Below(30); i > 0; --i) {
        const uint64_t number = random.Below(kKeys);
        const uint64_t timestamp = std::max(low_water, last[number]) + random.Between(1, 50);
        last[number] = timestamp;
        LoggedUpdate update{KeyOf(number), !random.OneIn(3), Concat("v", timestamp),
                            V(timestamp, random.OneIn(2) ? 1 : 2)};
        if (update.put) {
          expected[update.key] = TestRecord{update.key, update.value, update.version};
        } else {
          expected.erase(update.key);
        }
        log.push_back(std::move(update));
      }
      std::vector<size_t> order;
      for (size_t i = from; i < log.size(); ++i) order.insert(order.end(), 1 + random.Below(2), i);
      std::shuffle(order.begin(), order.end(), random);
      for (const size_t i : order) Apply(t, log[i]);
      if (random.OneIn(3)) {
        low_water = window;
        t.consolidation.store(low_water + 1);
      }
      if (random.OneIn(2)) MergeOnce(t.tree.get());
      for (uint64_t i = random.Below(20); i > 0 && !log.empty(); --i) Apply(t, log[random.Below(log.size())]);
    }
    std::vector<TestRecord> records;
    for (const auto& [key, record] : expected) records.push_back(record);
    ASSERT_EQ(t.Scan(true), records);
    for (const LoggedUpdate& update : log) Apply(t, update);
    ASSERT_EQ(t.Scan(false).size(), records.size());
    ASSERT_EQ(t.Scan(true), records);
  }
}

}  // namespace
}  // namespace deut::dc
