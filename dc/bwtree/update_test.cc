// Where an update puts its delta when another thread comes between its load of a page and its compare-and-swap.
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint16_t kChain = 6;

BwTreeOptions OnePage() {
  BwTreeOptions options;
  options.leaf_chain_length = kChain;
  return options;
}

class UpdateTest : public ::testing::Test {
 protected:
  ~UpdateTest() override { testing::SetPointHandler({}); }

  // Calls `between` once, before the compare-and-swap of the next update.
  void BeforeNextCas(std::function<void()> between) {
    between_ = std::move(between);
    testing::SetPointHandler([this](std::string_view name) {
      if (name != "bwtree.update.before_cas" || between_ == nullptr) return;
      std::exchange(between_, nullptr)();
    });
  }
  void Put(const std::string& key) {
    t_.Put(key, value_, V(++clock_));
    ++keys_;
  }
  const Node* Head() { return t_.table->Load(t_.tree->root()); }
  bool HeadIsTenant() {
    const ReclamationDomain::Guard guard(t_.domain);
    return IsRecord(Head()) && static_cast<const RecordDelta*>(Head())->tenant;
  }
  // Retired nodes are freed, and their memory is used again.
  void ExpectAllThere(const std::initializer_list<std::string>& keys) {
    for (int i = 0; i < 4; ++i) t_.domain.Collect();
    TestTree other(OnePage());
    for (uint64_t i = 0; i < 100; ++i) other.Put(KeyOf(i), std::string(value_.size(), 'x'), V(1));
    for (const std::string& key : keys) {
      const auto record = t_.Read(key);
      ASSERT_NE(record, nullptr) << key;
      EXPECT_EQ(record->value, value_) << key;
    }
    EXPECT_EQ(t_.Scan(true).size(), keys_);
    const ReclamationDomain::Guard guard(t_.domain);
    EXPECT_EQ(t_.tree->statistics().bytes, ChainBytes(Head()));
  }

  TestTree t_{OnePage()};
  const std::string value_ = std::string(50, 'v');
  const std::string large_ = std::string(700, 'm');
  uint64_t clock_ = 0;
  uint64_t keys_ = 0;
  std::function<void()> between_;
};

TEST_F(UpdateTest, DeltasOfAPageLieInTheRoomOfEarlierOnes) {
  Put("a");
  EXPECT_FALSE(HeadIsTenant());
  Put("b");
  EXPECT_TRUE(HeadIsTenant());
  ExpectAllThere({"a", "b"});
}

// Four deltas of 248 bytes lie in two blocks of 512.
TEST(UpdatesOfSmallPagesTest, AChainIsConsolidatedByTheBytesOfItsDeltasNotOfTheirBlocks) {
  BwTreeOptions options = OnePage();
  options.leaf_page_bytes = 1024;
  options.leaf_chain_length = 4;
  TestTree t(options);
  const std::string value(247 - sizeof(RecordDelta) - KeyOf(0).size(), 'v');
  ASSERT_EQ(RecordDelta::BytesFor(KeyOf(0).size() + value.size()), 248u);
  for (uint64_t i = 0; i < 4; ++i) {
    const ReclamationDomain::Guard guard(t.domain);
    EXPECT_EQ(t.table->Load(t.tree->root())->chain_length, i);
    t.Put(KeyOf(i), value, V(i + 1));
  }
  EXPECT_EQ(t.tree->statistics().consolidations, 1u);
}

TEST_F(UpdateTest, ALoserKeepsItsRoomInTheSameChain) {
  Put("a");
  BeforeNextCas([this] {
    Put("c");
    EXPECT_FALSE(HeadIsTenant()) << "the room is the other one's";
  });
  Put("b");
  EXPECT_TRUE(HeadIsTenant());
  ExpectAllThere({"a", "b", "c"});
}

TEST_F(UpdateTest, ALoserAgainstAConsolidationLeavesItsRoom) {
  Put("a");
  BeforeNextCas([this] {
    for (int key = 'c'; key < 'c' + kChain - 1; ++key) Put(std::string(1, static_cast<char>(key)));
    const ReclamationDomain::Guard guard(t_.domain);
    ASSERT_EQ(Head()->kind, NodeKind::kBase) << "consolidated";
  });
  Put("b");
  EXPECT_FALSE(HeadIsTenant());
  ExpectAllThere({"a", "b", "c", "g"});
}

TEST_F(UpdateTest, ALoserAgainstASplitGoesToThePageOfItsKey) {
  for (uint64_t i = 0; i < 7 * kChain + 1; ++i) {
    t_.Put(KeyOf(i), large_, V(++clock_));
    ++keys_;
  }
  BeforeNextCas([this] {
    for (uint64_t i = 100; i < 100 + 3 * kChain; ++i) {
      t_.Put(KeyOf(i), large_, V(++clock_));
      ++keys_;
    }
    EXPECT_GE(t_.tree->statistics().splits, 1u);
  });
  Put("z");
  EXPECT_GE(t_.tree->statistics().splits, 1u);
  EXPECT_EQ(t_.Scan(true).size(), keys_);
  const auto record = t_.Read("z");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->value, value_);
}

}  // namespace
}  // namespace deut::dc
