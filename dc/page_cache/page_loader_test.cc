#include "dc/page_cache/page_loader.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/io/disk_fault.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_cache/damaged_pages.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kNumber = 20;

// Returns the tree; the test decides what happens between two look-ups.
class Source final : public TreeSource {
 public:
  explicit Source(StoredTree& tree) : tree_(tree) {}
  BwTree* FindTree(TableId table) override {
    // The looks of a load: at its start, before its read, after it.
    if (looks_++ == 2 && between) between();
    return gone ? nullptr : tree_.FindTree(table);
  }

  std::function<void()> between;
  bool gone = false;

 private:
  StoredTree& tree_;
  int looks_ = 0;
};

class PageLoaderTest : public ::testing::Test {
 protected:
  PageLoaderTest() {
    t_.FillSettled(100);
    leaf_ = t_.LeafOf(kNumber);
    EXPECT_TRUE(t_.Evict(leaf_));
  }

  std::unique_ptr<PageLoader> NewLoader(TreeSource& source, DamagedPages* damaged = nullptr,
                                        const PageLoaderOptions& options = {}) {
    return *PageLoader::Create(RealRuntime(), source, t_.domain(), t_.store(), damaged, options);
  }
  Status Load(TreeSource& source) {
    const auto loader = NewLoader(source);
    const std::string key = KeyOf(kNumber);
    return loader->Load(StoredTree::kTable, Target(key, Side::kAt));
  }
  bool in_memory() { return t_.HeadOf(leaf_) != nullptr; }

  StoredTree t_;
  PageId leaf_;
};

TEST_F(PageLoaderTest, BringsTheLeafThatIsNamedIntoMemory) {
  const auto loader = NewLoader(t_);
  const std::string key = KeyOf(kNumber);
  ASSERT_TRUE(loader->Load(StoredTree::kTable, Target(key, Side::kAt)).ok());
  EXPECT_TRUE(in_memory());
  EXPECT_EQ(loader->loads(), 1u);
  // A page that is in memory is not read.
  const uint64_t reads = t_.disk().counts().reads;
  ASSERT_TRUE(loader->Load(StoredTree::kTable, Target(key, Side::kAt)).ok());
  EXPECT_EQ(loader->loads(), 1u);
  EXPECT_EQ(t_.disk().counts().reads, reads);
  t_.ExpectRight();
}

TEST_F(PageLoaderTest, TheLeafBelowAKeyIsTheOneOnItsLeft) {
  // The low key of the leaf's right neighbour: the page `below` it is the leaf.
  std::string high;
  t_.Walk(0, [&](const VisitedPage& page) {
    if (page.id == leaf_) high = page.high;
  });
  ASSERT_FALSE(high.empty());
  const auto loader = NewLoader(t_);
  ASSERT_TRUE(loader->Load(StoredTree::kTable, Target(high, Side::kAt)).ok());
  EXPECT_FALSE(in_memory());
  ASSERT_TRUE(loader->Load(StoredTree::kTable, Target(high, Side::kBelow)).ok());
  EXPECT_TRUE(in_memory());
}

TEST_F(PageLoaderTest, ATableThatIsGoneOrGoesMeanwhileIsNoError) {
  Source source(t_);
  source.gone = true;
  EXPECT_TRUE(Load(source).ok());
  Source later(t_);
  later.between = [&] { later.gone = true; };
  EXPECT_TRUE(Load(later).ok());
  EXPECT_FALSE(in_memory());
}

TEST_F(PageLoaderTest, DamageIsSaidAndChangesNothing) {
  const ImageParts image = t_.ImageOf(leaf_);
  t_.FlipBit(image, 0, /*at=*/100, 2);
  const Status status = Load(t_);
  EXPECT_EQ(status, ErrorCode::kCorruption);
  EXPECT_FALSE(in_memory());
  t_.FlipBit(image, 0, /*at=*/100, 2);
  t_.disk().AddFault({.kinds = kDiskRead, .count = 1});
  EXPECT_EQ(Load(t_), ErrorCode::kIoError);
  EXPECT_FALSE(in_memory());
  EXPECT_TRUE(Load(t_).ok());
  EXPECT_TRUE(in_memory());
  t_.ExpectRight();
}

TEST_F(PageLoaderTest, AShortageOfDescriptorsOrMemoryIsNoDamage) {
  DamagedPages damaged(RealRuntime());
  const auto loader = NewLoader(t_, &damaged);
  const std::string key = KeyOf(kNumber);
  const int fault =
      t_.disk().AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskOpen | kDiskRead, .count = 1});
  EXPECT_EQ(loader->Load(StoredTree::kTable, Target(key, Side::kAt)), ErrorCode::kResourceExhausted);
  EXPECT_EQ(t_.disk().hits(fault), 1u);
  EXPECT_EQ(damaged.count(), 0u);
  EXPECT_TRUE(loader->Load(StoredTree::kTable, Target(key, Side::kAt)).ok()) << "tried again at once";
  EXPECT_TRUE(in_memory());
}

TEST_F(PageLoaderTest, AFailedReadIsNoErrorIfThePageHasAnotherImageByThen) {
  Source source(t_);
  const ImageParts image = t_.ImageOf(leaf_);
  t_.FlipBit(image, 0, /*at=*/100, 2);
  source.between = [&] {
    // While the damaged part is read, another thread writes the page anew. (For that thread the part is undamaged
    // again.)
    t_.FlipBit(image, 0, /*at=*/100, 2);
    RealRuntime()
        .StartThread("other",
                     [&] {
                       ASSERT_TRUE(t_.Load(kNumber).ok());
                       for (int i = 0; i < 5; ++i) t_.Put(kNumber, "newer");
                       t_.Flush(leaf_);
                       ASSERT_TRUE(t_.Evict(leaf_));
                     })
        ->Join();
  };
  const Status status = Load(source);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_NE(t_.ImageOf(leaf_).newest(), image.newest());
  EXPECT_FALSE(in_memory());
  EXPECT_TRUE(Load(t_).ok());
  t_.ExpectRight();
}

TEST_F(PageLoaderTest, ManyAtOnceBringItInOnce) {
  const auto loader = NewLoader(t_);
  for (int round = 0; round < 20; ++round) {
    const uint64_t bytes = t_.tree().statistics().bytes;
    std::atomic<int> ready{0};
    std::vector<std::unique_ptr<Thread>> threads;
    constexpr int kThreads = 4;
    for (int i = 0; i < kThreads; ++i) {
      threads.push_back(RealRuntime().StartThread("loads", [&] {
        ready.fetch_add(1);
        while (ready.load() < kThreads) RealRuntime().Yield();
        const std::string key = KeyOf(kNumber);
        const Status status = loader->Load(StoredTree::kTable, Target(key, Side::kAt));
        EXPECT_TRUE(status.ok()) << status.ToString();
        RecordBatch batch;
        EXPECT_EQ(t_.tree().Read(key, &batch), BwTree::Found::kYes);
      }));
    }
    for (auto& thread : threads) thread->Join();
    EXPECT_TRUE(in_memory());
    EXPECT_TRUE(IsClean(t_.HeadOf(leaf_)));
    // The page counts once.
    EXPECT_EQ(t_.tree().statistics().bytes, bytes + ChainBytes(t_.HeadOf(leaf_)));
    ASSERT_TRUE(t_.Evict(leaf_));
    EXPECT_EQ(t_.tree().statistics().bytes, bytes);
  }
  EXPECT_LE(loader->loads(), 80u);
  t_.ExpectRight();
}

}  // namespace
}  // namespace deut::dc
