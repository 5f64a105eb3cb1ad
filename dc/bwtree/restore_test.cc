#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/io/disk_fault.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/page_image.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/part_format.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// A tree of three levels whose pages are written.
class RestoreTest : public ::testing::Test {
 protected:
  RestoreTest() {
    t_.FillSettled(400);
    t_.Flush();
    EXPECT_GE(t_.tree().root_level(), 2);
    images_ = t_.AllImages();
  }

  Status Restore() {
    found_.clear();
    return t_.Restore(images_, &found_);
  }
  void ExpectRefused(PageId page, std::string_view why) {
    const Status status = Restore();
    EXPECT_EQ(status, ErrorCode::kCorruption);
    EXPECT_NE(status.message().find(Concat("page ", page.value, " ")), std::string_view::npos) << status.ToString();
    EXPECT_NE(status.message().find(why), std::string_view::npos) << status.ToString();
  }

  // Returns an inner page below the root.
  PageId Inner() { return t_.Pages(1).front(); }
  // Reads the page's image.
  Owned<BasePage> Read(PageId id) {
    PageLoad load;
    load.id = id;
    load.parts = images_.at(id);
    EXPECT_TRUE(load.ReadImage(t_.store()).ok());
    return std::move(load.page);
  }
  void Write(PageId id, const BasePage& page, TableId table = StoredTree::kTable) {
    std::string payload;
    EncodeBaseImage(page, &payload);
    images_[id] =
        ImageParts(t_.Append({.kind = PartKind::kBase, .level = page.level, .page = id, .table = table}, payload));
  }

  StoredTree t_;
  StoredTree::Images images_;
  StoredTree::Records found_;
};

TEST_F(RestoreTest, InnerPagesAreBackAndLeavesWaitOnStorage) {
  ASSERT_TRUE(Restore().ok());
  EXPECT_TRUE(found_ == t_.records());
}

TEST_F(RestoreTest, PagesThatAPageNamesAreReportedOnce) {
  ReclamationDomain domain;
  const std::atomic<uint64_t> consolidation{0};
  const auto pages = std::move(*MappingTable::Create(1 << 16));
  for (const auto& [id, parts] : images_) pages->Restore(id, parts);
  const BwTreeEnvironment environment{*pages, domain, consolidation, nullptr, /*images=*/nullptr};
  const auto tree = BwTree::Restore(environment, SmallPages(), StoredTree::kTable, t_.tree().root());
  BwTree::NamedPages level;
  level.inner.push_back(NamedRoot(tree->root()));
  std::vector<PageId> leaves;
  std::vector<PageId> inner;
  while (!level.inner.empty()) {
    BwTree::NamedPages below;
    for (const NamedPage& page : level.inner) {
      inner.push_back(page.id);
      ASSERT_TRUE(tree->RestorePage(page, t_.store(), &below).ok());
      const ReclamationDomain::Guard guard(domain);
      EXPECT_NE(pages->Load(page.id), nullptr);
    }
    leaves.insert(leaves.end(), below.leaves.begin(), below.leaves.end());
    level = std::move(below);
  }
  EXPECT_EQ(std::set<PageId>(leaves.begin(), leaves.end()).size(), leaves.size());
  EXPECT_EQ(leaves.size(), t_.Pages(0).size());
  EXPECT_EQ(inner.size() + leaves.size(), images_.size());
  uint64_t records = 0;
  for (const PageId leaf : leaves) {
    {
      const ReclamationDomain::Guard guard(domain);
      EXPECT_EQ(pages->Load(leaf), nullptr);
    }
    const auto of_leaf = tree->RecordsOfStored(leaf, t_.store());
    ASSERT_TRUE(of_leaf.ok());
    records += *of_leaf;
  }
  EXPECT_EQ(records, t_.records().size());
  // The inner pages account for the tree's memory.
  EXPECT_GT(tree->statistics().bytes, 0u);
}

TEST_F(RestoreTest, ATreeOfOnePageIsRestored) {
  StoredTree small;
  small.Put(1, "one");
  small.Flush();
  StoredTree::Records found;
  ASSERT_TRUE(small.Restore(&found).ok());
  EXPECT_EQ(found, small.records());
}

TEST_F(RestoreTest, AnInnerPageThatNamesAPageWithoutAnImageIsRefused) {
  const PageId leaf = t_.Pages(0).front();  // the last leaf belongs to the last inner page
  const PageId parent = t_.Pages(1).front();
  images_.erase(leaf);
  ExpectRefused(parent, "names a page that has no image");
}

TEST_F(RestoreTest, AnInnerPageThatNamesAnInnerPageWithoutAnImageIsRefused) {
  images_.erase(Inner());
  ExpectRefused(t_.Pages(2).front(), "names a page that has no image");
}

TEST_F(RestoreTest, ARootWithoutAnImageIsRefused) {
  images_.erase(t_.tree().root());
  ExpectRefused(t_.tree().root(), "no image");
}

TEST_F(RestoreTest, APageOfAnotherLevelThanItsParentSaysIsRefused) {
  // A leaf takes the place of an inner page, with the inner page's bounds.
  const PageId inner = Inner();
  const Owned<BasePage> page = Read(inner);
  const BasePage::Bounds bounds{page->low(), page->fence->high_key(), page->fence->sibling};
  Write(inner, *BasePage::Build(/*level=*/0, bounds, Timestamp(), BasePage::Content()));
  ExpectRefused(inner, "level");
}

TEST_F(RestoreTest, BoundsThatAreNotThoseOfTheParentAreRefused) {
  const PageId inner = t_.Pages(1).back();  // the leftmost one, which has an upper bound
  const Owned<BasePage> page = Read(inner);
  ASSERT_TRUE(page->fence->bounded());
  ASSERT_GT(page->count(), 2u);
  BasePage::Content content;
  content.AddRun(*page, 0, page->count());
  const std::string higher = std::string(page->fence->high_key()) + "x";
  Write(inner, *BasePage::Build(page->level, {page->low(), higher, page->fence->sibling}, Timestamp(), content));
  ExpectRefused(inner, "bounds");
  Write(inner, *BasePage::Build(page->level, {page->low(), {}, kNoPage}, Timestamp(), content));
  ExpectRefused(inner, "bounds");
  // The page's own low key is above the bound that its parent states.
  BasePage::Content rest;
  rest.AddRun(*page, 1, page->count());
  Write(inner, *BasePage::Build(page->level, {page->key(1), page->fence->high_key(), page->fence->sibling}, Timestamp(),
                                rest));
  ExpectRefused(inner, "bounds");
}

TEST_F(RestoreTest, ARightSiblingThatDoesNotFollowIsRefused) {
  const std::vector<PageId> level = t_.Pages(1);  // from right to left
  ASSERT_GE(level.size(), 2u);
  const PageId inner = level.back();
  const PageId next = level[level.size() - 2];
  const Owned<BasePage> page = Read(inner);
  ASSERT_EQ(page->fence->sibling, next);
  BasePage::Content content;
  content.AddRun(*page, 0, page->count());
  const auto write = [&](PageId sibling) {
    const BasePage::Bounds bounds{page->low(), page->fence->high_key(), sibling};
    Write(inner, *BasePage::Build(page->level, bounds, Timestamp(), content));
  };
  for (const PageId wrong : {t_.tree().root(), t_.Pages(0).front(), t_.Pages(0).back(), PageId(40000),
                             PageId(uint32_t{1} << 30), PageId(UINT32_MAX - 1)}) {
    write(wrong);
    ExpectRefused(inner, Concat("it names page ", wrong.value, " as its right sibling, but page ", next.value));
  }
  write(inner);
  ExpectRefused(inner, "its own right sibling");
  write(next);
  ASSERT_TRUE(Restore().ok());
  EXPECT_TRUE(found_ == t_.records());
}

TEST_F(RestoreTest, APageOfAnotherTableIsRefused) {
  const PageId inner = Inner();
  const Owned<BasePage> page = Read(inner);
  Write(inner, *page, TableId(StoredTree::kTable.value + 1));
  ExpectRefused(inner, Concat("of table ", StoredTree::kTable.value + 1));
  Write(inner, *page);
  ASSERT_TRUE(Restore().ok());
}

TEST_F(RestoreTest, ChildrenBeyondAllPagesAreRefused) {
  const PageId root = t_.tree().root();
  const Owned<BasePage> page = Read(root);
  for (const uint32_t child : {uint32_t{1} << 30, uint32_t{40000}}) {
    BasePage::Content content;
    content.AddRun(*page, 0, page->count() - 1);
    const std::string key(page->key(page->count() - 1));
    PageEntry entry;
    entry.data = key.data();
    entry.key_bytes = static_cast<uint16_t>(key.size());
    entry.child = PageId(child);
    content.Add(entry);
    Write(root, *BasePage::Build(page->level, {{}, {}, kNoPage}, Timestamp(), content));
    ExpectRefused(root, "names a page that has no image");
  }
}

TEST_F(RestoreTest, DamagedInnerPagesAreRefusedAndDamagedLeavesWhenTheyAreRead) {
  for (const PageId page : {t_.tree().root(), Inner()}) {
    t_.FlipBit(images_.at(page), 0, /*at=*/60, 3);
    ExpectRefused(page,
                  Concat("segment ", images_.at(page).newest().segment(), " at ", images_.at(page).newest().offset()));
    t_.FlipBit(images_.at(page), 0, /*at=*/60, 3);
  }
  const PageId leaf = t_.LeafOf(200);
  t_.FlipBit(images_.at(leaf), 0, /*at=*/60, 3);
  ExpectRefused(leaf, "segment");  // the scan refuses it
  EXPECT_LT(found_.size(), t_.records().size());
  for (const auto& [key, value] : found_) EXPECT_EQ(value, t_.records().at(key));
  t_.FlipBit(images_.at(leaf), 0, /*at=*/60, 3);
  ASSERT_TRUE(Restore().ok());
  EXPECT_TRUE(found_ == t_.records());
}

TEST_F(RestoreTest, AReadErrorIsNotTakenForDamage) {
  t_.disk().AddFault({.kinds = kDiskRead, .skip = 1, .count = 1});
  EXPECT_EQ(Restore(), ErrorCode::kIoError);
  ASSERT_TRUE(Restore().ok());
}

}  // namespace
}  // namespace deut::dc
