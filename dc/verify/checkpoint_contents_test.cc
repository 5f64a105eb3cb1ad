#include "dc/verify/checkpoint_contents.h"

#include <string>
#include <vector>

#include "common/base/status.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/verify/store_on_disk.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(ImageIndexTest, FindsEachPageAndNoOther) {
  ImageIndex index;
  const PageAddress base = PageAddress::Make(1, 4096, 256);
  const PageAddress delta = PageAddress::Make(2, 4096, 128);
  const std::vector<PageAddress> both = {delta, base};
  index.Add(PageId(3), both);
  index.Add(PageId(7), std::vector<PageAddress>{base});
  ASSERT_EQ(index.size(), 2u);
  for (const uint32_t absent : {1u, 4u, 8u}) EXPECT_FALSE(index.Find(PageId(absent)).has_value());
  ASSERT_TRUE(index.Find(PageId(3)).has_value());
  const size_t place = *index.Find(PageId(3));
  EXPECT_EQ(index.page(place), PageId(3));
  EXPECT_EQ(std::vector<PageAddress>(index.parts(place).begin(), index.parts(place).end()), both);
  EXPECT_EQ(index.parts(*index.Find(PageId(7))).size(), 1u);
}

TEST(ImageIndexTest, PagesOfSeveralFilesArePutInOrder) {
  ImageIndex index;
  const PageAddress base = PageAddress::Make(1, 4096, 256);
  const PageAddress delta = PageAddress::Make(2, 4096, 128);
  index.Add(PageId(7), std::vector<PageAddress>{base});
  index.Add(PageId(3), std::vector<PageAddress>{delta, base});
  index.Add(PageId(5), std::vector<PageAddress>{base});
  index.Sort();
  for (size_t place = 0; place < 3; ++place) {
    EXPECT_EQ(index.page(place).value, 3 + 2 * place);
    EXPECT_EQ(index.parts(place).size(), place == 0 ? 2u : 1u);
    EXPECT_EQ(index.Find(index.page(place)), place);
  }
}

TEST(CheckpointContentsTest, HoldsTablesSegmentsAndImages) {
  StoreOnDisk store;
  store.Start();
  store.Fill(500);
  const auto numbers = FindCheckpoints(store.storage(), StoreOnDisk::PathOf("pages"));
  ASSERT_TRUE(numbers.ok());
  const auto read = [&](WithImages images) {
    return ReadContents(store.storage(), StoreOnDisk::PathOf("pages"), numbers->front(), StoreOnDisk::kDc, images);
  };
  const auto whole = read(WithImages::kYes);
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  EXPECT_EQ(whole->head.number, numbers->front());
  ASSERT_EQ(whole->tables.size(), 3u);
  EXPECT_FALSE(whole->tables[0].dropped());
  EXPECT_TRUE(whole->tables[2].dropped());
  EXPECT_FALSE(whole->segments.empty());
  EXPECT_EQ(whole->images.size(), whole->pages);
  EXPECT_TRUE(whole->images.Find(whole->tables[0].root).has_value());
  const auto head = read(WithImages::kNo);
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->pages, whole->pages);
  EXPECT_EQ(head->images.size(), 0u);
  const std::string path = StoreOnDisk::PathOf("pages/" + std::string(CheckpointName(numbers->front())));
  store.Flip(path, 20, 3);
  EXPECT_EQ(read(WithImages::kYes).status(), ErrorCode::kCorruption);
}

}  // namespace
}  // namespace deut::dc
