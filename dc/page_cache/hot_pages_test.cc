#include "dc/page_cache/hot_pages.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/compression.h"
#include "common/io/disk_fault.h"
#include "common/io/read_file.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/hot_page_list.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr char kDirectory[] = "/list";
constexpr char kListPath[] = "/list/hot_pages";
constexpr uint64_t kRecords = 600;

// A tree whose leaves were listed while they were in memory, and then evicted.
class HotPagesTest : public ::testing::Test {
 protected:
  HotPagesTest() : storage_(t_.disk().Mount()) {
    EXPECT_TRUE(storage_->CreateDirectory(kDirectory).ok());
    t_.FillSettled(kRecords);
    leaves_ = t_.Pages(0);
    EXPECT_GT(leaves_.size(), 20u);
    Fetched()->Record();
    EXPECT_EQ(ListOnDisk().size(), leaves_.size());
    EvictAll();
  }
  ~HotPagesTest() override { testing::SetPointHandler(nullptr); }

  std::unique_ptr<HotPages> New() {
    return std::make_unique<HotPages>(
        HotPagesEnvironment{RealRuntime(), *storage_, kDirectory, t_.environment(), t_.store(), t_, t_,
                            [this] { return room_ ? room_() : UINT64_MAX; }},
        /*threads=*/1);
  }
  // Returns an object whose fetch has ended.
  std::unique_ptr<HotPages> Fetched() {
    auto hot = New();
    while (!hot->ended()) RealRuntime().Yield();
    return hot;
  }
  void EvictAll() {
    t_.Flush();
    while (t_.Evict() != 0) {
    }
    for (const PageId leaf : leaves_) ASSERT_EQ(t_.HeadOf(leaf), nullptr);
  }
  bool InMemory(PageId leaf) {
    const Node* const head = t_.HeadOf(leaf);
    return head != nullptr && !IsStub(head);
  }
  size_t LeavesInMemory() {
    return static_cast<size_t>(std::ranges::count_if(leaves_, [this](PageId leaf) { return InMemory(leaf); }));
  }
  uint64_t BytesOf(PageId leaf) {
    uint64_t bytes = 0;
    const auto image = t_.ImageOf(leaf);
    for (const PageAddress part : image.all()) bytes += part.length_bound();
    return bytes;
  }

  HotPageList ListOnDisk() {
    const auto list = ReadHotPages(*storage_, kDirectory);
    EXPECT_TRUE(list.ok()) << list.status().ToString();
    return list.ok() ? *list : HotPageList();
  }
  std::string FileOnDisk() { return ReadFile(*storage_, kListPath).value(); }
  void Replace(std::string_view bytes) {
    const auto file = storage_->Open(kListPath, {.create = true, .writable = true});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Truncate(0).ok());
    ASSERT_TRUE((*file)->Write(0, bytes.data(), bytes.size()).ok());
  }

  std::function<uint64_t()> room_;  // none: there is no limit
  StoredTree t_;
  const std::unique_ptr<Storage> storage_;
  std::vector<PageId> leaves_;
};

TEST_F(HotPagesTest, TheListedPagesComeBackWithFewReads) {
  const uint64_t reads = t_.disk().counts().reads;
  const auto hot = Fetched();
  EXPECT_EQ(LeavesInMemory(), leaves_.size());
  const HotPagesStatistics found = hot->statistics();
  EXPECT_EQ(found.listed, leaves_.size());
  EXPECT_EQ(found.fetched, leaves_.size());
  EXPECT_GT(found.bytes, 0u);
  EXPECT_LT(t_.disk().counts().reads - reads, leaves_.size() / 4);
  t_.ExpectRight();
}

TEST_F(HotPagesTest, PagesWithDeltaPartsComeBackWhole) {
  for (uint64_t i = 0; i < kRecords; i += 3) t_.Put(i, "changed");
  EvictAll();
  size_t with_deltas = 0;
  for (const PageId leaf : leaves_) with_deltas += t_.ImageOf(leaf).count() > 1 ? 1 : 0;
  EXPECT_GT(with_deltas, 0u);
  EXPECT_EQ(Fetched()->statistics().fetched, leaves_.size());
  t_.ExpectRight();
}

TEST_F(HotPagesTest, OnlyLeavesThatAreInMemoryAreListed) {
  ASSERT_TRUE(t_.Load(0).ok());
  ASSERT_TRUE(t_.Load(kRecords - 1).ok());
  Replace("");  // a list that was not written to its end
  Fetched()->Record();
  HotPageList expected;
  expected.used = {t_.LeafOf(0), t_.LeafOf(kRecords - 1)};
  HotPageList found = ListOnDisk();
  EXPECT_TRUE(found.others.empty()) << "both were used a moment ago";
  std::ranges::sort(expected.used);
  std::ranges::sort(found.used);
  EXPECT_EQ(found, expected);
}

// --- Races.

TEST_F(HotPagesTest, UpdatesThatComeWhileAPageIsReadStay) {
  t_.AtPoint("page_cache.hot.before_read", [this] {
    for (uint64_t i = 0; i < kRecords; i += 2) t_.Put(i, "newer");
    for (uint64_t i = 1; i < kRecords; i += 6) t_.Delete(i);
  });
  (void)Fetched();
  t_.ExpectRight();
}

TEST_F(HotPagesTest, UpdatesThatComeBeforeAPageIsInstalledStay) {
  t_.AtPoint("page_cache.hot.before_install", [this] {
    for (uint64_t i = 0; i < kRecords; i += 2) t_.Put(i, "newer");
    for (uint64_t i = 1; i < kRecords; i += 6) t_.Delete(i);
  });
  (void)Fetched();
  t_.ExpectRight();
}

TEST_F(HotPagesTest, APageThatARequestHasLoadedWins) {
  t_.AtPoint("page_cache.hot.before_install", [this] {
    for (uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(t_.Load(i).ok());
  });
  EXPECT_EQ(Fetched()->statistics().fetched, 0u);
  EXPECT_EQ(LeavesInMemory(), leaves_.size());
  t_.ExpectRight();
}

TEST_F(HotPagesTest, APageThatWasWrittenAnewAndEvictedMeanwhileIsNotBroughtIn) {
  for (const char* const point : {"page_cache.hot.before_read", "page_cache.hot.before_install"}) {
    t_.AtPoint(point, [&] {
      for (uint64_t i = 0; i < kRecords; ++i) {
        ASSERT_TRUE(t_.Load(i).ok());
        t_.Put(i, point);
      }
      EvictAll();
    });
    EXPECT_EQ(Fetched()->statistics().fetched, 0u) << point;
    EXPECT_EQ(LeavesInMemory(), 0u) << point;
    t_.ExpectRight();
    EvictAll();
  }
}

TEST_F(HotPagesTest, PagesOfADroppedTableAreLeftAlone) {
  t_.AtPoint("page_cache.hot.before_install", [this] { t_.Drop(); });
  EXPECT_EQ(Fetched()->statistics().fetched, 0u);
}

// --- Lists that are wrong.

TEST_F(HotPagesTest, ADamagedListMeansAColdStartAndIsReplaced) {
  std::string bytes = FileOnDisk();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  Replace(bytes);
  const auto hot = Fetched();
  EXPECT_EQ(hot->statistics().listed, 0u);
  EXPECT_EQ(LeavesInMemory(), 0u);
  t_.ExpectRight();  // loads all pages
  hot->Record();
  EXPECT_EQ(ListOnDisk().size(), leaves_.size());
}

TEST_F(HotPagesTest, AMissingListMeansAColdStart) {
  ASSERT_TRUE(storage_->Remove(kListPath).ok());
  EXPECT_EQ(Fetched()->statistics().listed, 0u);
  t_.ExpectRight();
}

TEST_F(HotPagesTest, AFileOfAnUnknownFormatIsNeitherUsedNorReplaced) {
  const std::string bytes = "a list of a later program, say";
  Replace(bytes);
  const auto hot = Fetched();
  EXPECT_EQ(hot->statistics().listed, 0u);
  hot->Record();
  EXPECT_EQ(FileOnDisk(), bytes);
}

TEST_F(HotPagesTest, IdsThatNameNoLeafAreLeftOut) {
  HotPageList list = ListOnDisk();
  list.others = list.used;  // twice
  for (const uint64_t id : {uint64_t{0}, t_.pages().last_id() + 1, uint64_t{UINT32_MAX}}) {
    list.used.emplace_back(static_cast<uint32_t>(id));
  }
  for (const PageId inner : t_.Pages(1)) list.used.push_back(inner);
  ASSERT_TRUE(WriteHotPages(*storage_, kDirectory, list).ok());
  EXPECT_EQ(Fetched()->statistics().fetched, leaves_.size());
  t_.ExpectRight();
}

TEST_F(HotPagesTest, APageThatCannotBeReadIsLeftToTheRequestThatNeedsIt) {
  const PageId damaged = leaves_[leaves_.size() / 2];
  const ImageParts image = t_.ImageOf(damaged);
  t_.FlipBit(image, 0, /*at=*/100, 2);
  EXPECT_EQ(Fetched()->statistics().fetched, leaves_.size() - 1);
  EXPECT_FALSE(InMemory(damaged));
  t_.FlipBit(image, 0, /*at=*/100, 2);
  t_.ExpectRight();
}

// --- Memory and other bounds.

TEST_F(HotPagesTest, AWindowThatDoesNotFitEndsTheFetch) {
  std::atomic<int> asked{0};
  // The plan finds room, the first window finds none.
  room_ = [&] { return asked.fetch_add(1) == 0 ? uint64_t{1} << 40 : 0; };
  const auto hot = Fetched();
  EXPECT_EQ(hot->statistics().listed, leaves_.size());
  EXPECT_EQ(hot->statistics().fetched, 0u);
  EXPECT_EQ(LeavesInMemory(), 0u);
}

TEST_F(HotPagesTest, IfTheBudgetIsSmallerThanTheListUsedPagesComeFirst) {
  HotPageList list;
  uint64_t bytes_used = 0;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    (i % 3 == 0 ? list.used : list.others).push_back(leaves_[i]);
    if (i % 3 == 0) bytes_used += BytesOf(leaves_[i]);
  }
  ASSERT_TRUE(WriteHotPages(*storage_, kDirectory, list).ok());
  std::atomic<int> asked{0};
  room_ = [&] { return asked.fetch_add(1) == 0 ? bytes_used : UINT64_MAX; };
  EXPECT_EQ(Fetched()->statistics().fetched, list.used.size());
  for (const PageId leaf : list.used) EXPECT_TRUE(InMemory(leaf));
  for (const PageId leaf : list.others) EXPECT_FALSE(InMemory(leaf));
}

// Such pages take several times the bytes of their windows.
TEST_F(HotPagesTest, CompressedPagesAreFetchedOnlyWhileTheyFitIntoMemory) {
  BwTreeOptions options = SmallPages();
  options.leaf_page_bytes = 4 << 10;
  options.compression = Compression::kZstd;
  StoredTree t(options);
  for (uint64_t i = 0; i < 200; ++i) t.Put(i, std::string(400, 'x'));
  t.Flush();
  HotPageList list;
  list.used = t.Pages(0);
  const uint64_t before = t.tree().statistics().bytes;
  while (t.Evict() != 0) {
  }
  const uint64_t inner_bytes = t.tree().statistics().bytes;
  const uint64_t limit = (before - inner_bytes) / 2;
  uint64_t disk_bytes = 0;
  for (const PageId leaf : list.used) disk_bytes += t.ImageOf(leaf).newest().length_bound();
  ASSERT_LT(2 * disk_bytes, limit);  // the pages are one window, which seems to fit
  ASSERT_TRUE(WriteHotPages(*storage_, kDirectory, list).ok());
  const auto fetched_bytes = [&] { return t.tree().statistics().bytes - inner_bytes; };
  const HotPages hot({RealRuntime(), *storage_, kDirectory, t.environment(), t.store(), t, t,
                      [&] { return limit - std::min(limit, fetched_bytes()); }},
                     /*threads=*/1);
  while (!hot.ended()) RealRuntime().Yield();
  EXPECT_EQ(hot.statistics().listed, list.used.size());
  EXPECT_GT(hot.statistics().fetched, list.used.size() / 4);
  EXPECT_LE(fetched_bytes(), limit);
}

TEST_F(HotPagesTest, TheListIsKeptUntilTheFetchHasEnded) {
  std::atomic<bool> reached{false}, released{false};
  t_.AtPoint("page_cache.hot.before_read", [&] {
    reached.store(true);
    while (!released.load()) RealRuntime().Yield();
  });
  const auto hot = New();
  while (!reached.load()) RealRuntime().Yield();
  hot->Record();
  EXPECT_EQ(ListOnDisk().size(), leaves_.size());
  released.store(true);
  while (!hot->ended()) RealRuntime().Yield();
  t_.ExpectRight();
  hot->Record();
  EXPECT_EQ(ListOnDisk().size(), leaves_.size());
}

TEST_F(HotPagesTest, AShortageOfDescriptorsEndsTheFetch) {
  const int fault = t_.disk().AddFault(
      {.action = DiskFault::Action::kShortage, .kinds = kDiskOpen | kDiskRead, .path_contains = "base-"});
  EXPECT_EQ(Fetched()->statistics().fetched, 0u);
  EXPECT_GE(t_.disk().hits(fault), 1u);
  t_.disk().RemoveFault(fault);
  t_.ExpectRight();
}

TEST_F(HotPagesTest, TheEndOfTheObjectWaitsForTheReadsInFlightOnly) {
  room_ = [] { return uint64_t{1} << 20; };  // windows of 16 KiB
  t_.disk().HoldOperations(kDiskRead, "base-");
  auto hot = New();
  while (t_.disk().held_operations() == 0) RealRuntime().Yield();
  const auto end = RealRuntime().StartThread("end", [&] { hot.reset(); });
  t_.disk().HoldOperations(0);
  end->Join();
  t_.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
