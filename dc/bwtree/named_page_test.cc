#include "dc/bwtree/named_page.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "dc/bwtree/base_page.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

Owned<BasePage> Inner(const std::vector<std::string>& keys, const BasePage::Bounds& bounds) {
  BasePage::Content content;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    PageEntry entry;
    entry.data = keys[i].data();
    entry.key_bytes = static_cast<uint16_t>(keys[i].size());
    entry.child = PageId(10 + i);
    content.Add(entry);
  }
  return BasePage::Build(/*level=*/2, bounds, Timestamp(), content);
}

Owned<BasePage> Page(uint8_t level, const BasePage::Bounds& bounds) {
  return BasePage::Build(level, bounds, Timestamp(), BasePage::Content());
}

TEST(NamedPageTest, AChildEndsWhereTheNextOneBegins) {
  const Owned<BasePage> page = Inner({"b", "f", "m"}, {"b", "t", PageId(99)});
  const NamedPage first = NamedChild(*page, 0);
  EXPECT_EQ(first.id, PageId(10));
  EXPECT_EQ(first.level, 1);
  EXPECT_EQ(first.low, "b");
  EXPECT_EQ(first.high, "f");
  EXPECT_TRUE(first.bounded);
  const NamedPage last = NamedChild(*page, 2);
  EXPECT_EQ(last.low, "m");
  EXPECT_EQ(last.high, "t");
  EXPECT_TRUE(last.bounded);
}

TEST(NamedPageTest, TheLastChildOfTheLastPageHasNoEnd) {
  const Owned<BasePage> page = Inner({"", "f"}, {});
  EXPECT_TRUE(NamedChild(*page, 0).bounded);
  const NamedPage last = NamedChild(*page, 1);
  EXPECT_FALSE(last.bounded);
  EXPECT_EQ(last.high, "");
}

TEST(NamedPageTest, EveryDifferenceIsAContradiction) {
  const Owned<BasePage> parent = Inner({"b", "f"}, {"b", "t", PageId(99)});
  const NamedPage named = NamedChild(*parent, 0);
  EXPECT_EQ(DescribeMismatch(*Page(1, {"b", "f", PageId(11)}), named), nullptr);
  EXPECT_NE(DescribeMismatch(*Page(0, {"b", "f", PageId(11)}), named), nullptr);
  EXPECT_NE(DescribeMismatch(*Page(1, {"a", "f", PageId(11)}), named), nullptr);
  EXPECT_NE(DescribeMismatch(*Page(1, {"b", "g", PageId(11)}), named), nullptr);
  EXPECT_NE(DescribeMismatch(*Page(1, {"b", {}, kNoPage}), named), nullptr);
}

TEST(NamedPageTest, AWrongSiblingIsNamedTogetherWithThePageThatFollows) {
  EXPECT_EQ(DescribeWrongSibling(PageId(4000000000), PageId(12)),
            "it names page 4000000000 as its right sibling, but page 12 follows it");
}

TEST(NamedPageTest, ARootIsOfAnyLevelAndHasAllKeys) {
  const NamedPage root = NamedRoot(PageId(7));
  EXPECT_EQ(root.id, PageId(7));
  for (const uint8_t level : {0, 1, 5}) EXPECT_EQ(DescribeMismatch(*Page(level, {}), root), nullptr);
  EXPECT_NE(DescribeMismatch(*Page(0, {"a", {}, kNoPage}), root), nullptr);
  EXPECT_NE(DescribeMismatch(*Page(0, {{}, "z", PageId(3)}), root), nullptr);
}

}  // namespace
}  // namespace deut::dc
