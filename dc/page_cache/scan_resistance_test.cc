// PageEvictor and long scans: which pages stay in memory while scans go over more pages than memory holds. Also that
// the clock treats all tables alike, and that inner pages stay.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_load.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_loader.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

// Waits until another thread has made the condition true.
template <typename Condition>
[[nodiscard]] bool Until(const Condition& condition) {
  const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(30);
  while (!condition()) {
    if (RealRuntime().Now() > limit) return false;
    RealRuntime().Yield();
  }
  return true;
}

// A table whose leaves are on storage, and have eight times the memory budget. The budget counts leaves only.
class ScanResistanceTest : public ::testing::Test, public TableList {
 protected:
  static constexpr uint64_t kRecords = 8'000;
  static constexpr uint64_t kBudgets = 8;

  ScanResistanceTest() {
    t_.FillSettled(kRecords);
    leaves_ = t_.Pages(0);
    const uint64_t all = t_.tree().statistics().bytes;
    while (t_.Evict() != 0) {
    }
    DEUT_CHECK(InMemory(leaves_) == 0);
    inner_bytes_ = t_.tree().statistics().bytes;
    leaf_bytes_ = (all - inner_bytes_) / leaves_.size();
    limit_.store((all - inner_bytes_) / kBudgets);
  }
  void TearDown() override { evictor_.reset(); }

  std::vector<TableId> LiveTables() override { return {StoredTree::kTable}; }

  void Start() { Start(t_, *this); }
  void Start(TreeSource& trees, TableList& tables) {
    auto created = PageEvictor::Create(
        RealRuntime(), t_.environment(), t_.store(), trees, tables, *loader_,
        PageEvictor::BudgetOfPages([this] { return used(); },
                                   std::function<uint64_t()>([this] { return limit_.load(); })),
        /*merge_interval=*/std::chrono::hours(1), [](const Status& status) { ADD_FAILURE() << status.ToString(); });
    ASSERT_TRUE(created.ok());
    evictor_ = std::move(*created);
    started_.store(evictor_.get());
  }
  uint64_t used() {
    // Memory counts as full until `wanted` pages have been evicted.
    if (const uint64_t wanted = wanted_.load(); wanted != 0) {
      const PageEvictor* const evictor = started_.load();
      return evictor == nullptr || evictor->evictions() >= wanted ? 0 : limit_.load() + 1;
    }
    const uint64_t bytes = t_.tree().statistics().bytes;
    return bytes - std::min(bytes, inner_bytes_);
  }
  // Lets the evictor work until it has evicted `pages` more pages.
  void SwapOut(uint64_t pages) {
    const uint64_t wanted = evictor_->evictions() + pages;
    wanted_.store(wanted);
    evictor_->WakeIfOverHighMark();
    ASSERT_TRUE(Until([&] { return evictor_->evictions() >= wanted; }));
  }

  void Load(const Target& target, PageStay stay) {
    evictor_->WakeIfOverHighMark();
    evictor_->WaitForMemory(PageEvictor::Purpose::kToRead);
    ASSERT_TRUE(loader_->Load(StoredTree::kTable, target, stay).ok());
  }
  void Read(uint64_t number) {
    const std::string key = KeyOf(number);
    RecordBatch batch;
    while (t_.tree().Read(key, &batch) == BwTree::Found::kNotLoaded) Load(Target(key, Side::kAt), PageStay::kLasting);
    ASSERT_EQ(batch.size(), 1u);
  }
  // Scans the whole table, as RecordOperations does.
  void ScanAll() {
    ScanCursor cursor;
    RecordBatch batch;
    uint64_t records = 0;
    while (!cursor.complete) {
      ScanBudget budget;
      batch.Clear();
      if (!t_.tree().ScanAscending(&cursor, &budget, &batch)) {
        Load(Target(cursor.low, Side::kAt), cursor.is_long() ? PageStay::kTransient : PageStay::kLasting);
      }
      records += batch.size();
    }
    ASSERT_EQ(records, kRecords);
  }
  // The leaves of `count` records, `step` records apart. Each leaf has another parent if the step is large.
  std::vector<PageId> LeavesOf(uint64_t first, uint64_t step, uint64_t count) {
    std::vector<PageId> leaves;
    for (uint64_t i = 0; i < count; ++i) leaves.push_back(t_.LeafOf(first + i * step));
    return leaves;
  }
  size_t InMemory(const std::vector<PageId>& leaves) {
    return static_cast<size_t>(
        std::ranges::count_if(leaves, [this](PageId leaf) { return t_.HeadOf(leaf) != nullptr; }));
  }

  StoredTree t_;
  const std::unique_ptr<PageLoader> loader_ = *PageLoader::Create(RealRuntime(), t_, t_.domain(), t_.store());
  std::vector<PageId> leaves_;
  uint64_t inner_bytes_ = 0;
  uint64_t leaf_bytes_ = 0;
  std::atomic<uint64_t> limit_{0};
  std::atomic<uint64_t> wanted_{0};
  std::atomic<PageEvictor*> started_{nullptr};
  std::unique_ptr<PageEvictor> evictor_;
};

constexpr uint64_t kHot = 30;
constexpr uint64_t kHotStep = 260;

TEST_F(ScanResistanceTest, AScanOfEightBudgetsLeavesAllPagesThatWereReadByPoints) {
  const std::vector<PageId> hot = LeavesOf(0, kHotStep, kHot);
  Start();
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < kHot; ++i) Read(i * kHotStep);
  }
  ScanAll();
  EXPECT_GT(evictor_->evictions(), leaves_.size() / 4 * 3);
  EXPECT_EQ(InMemory(hot), kHot);
}

TEST_F(ScanResistanceTest, PagesThatNobodyUsesAnyMoreLeaveWhileScansGoOn) {
  const std::vector<PageId> hot = LeavesOf(0, kHotStep, kHot);
  Start();
  for (uint64_t i = 0; i < kHot; ++i) Read(i * kHotStep);
  int scans = 0;
  while (InMemory(hot) > kHot / 4) {  // the last scan has loaded some of them
    ASSERT_LT(++scans, 60);
    ScanAll();
  }
}

TEST_F(ScanResistanceTest, PagesThatWereReadAheadAndNotUsedLeaveFirst) {
  constexpr uint64_t kLasting = 20, kAhead = 10, kUsedLater = 2, kStep = 600;
  const std::vector<PageId> lasting = LeavesOf(0, 300, kLasting);
  const std::vector<PageId> ahead = LeavesOf(450, kStep, kAhead);
  std::vector<PageId> used_later;
  for (uint64_t i = 0; i < kUsedLater; ++i) used_later.push_back(t_.LeafOf(450 + 3 * i * kStep));
  limit_.store(uint64_t{1} << 40);
  Start();
  for (uint64_t i = 0; i < kLasting; ++i) Read(i * 300);
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kAhead; ++i) keys.push_back(KeyOf(450 + i * kStep));
  loader_->ReadAhead(StoredTree::kTable, keys, Side::kAt);
  ASSERT_TRUE(Until([&] { return InMemory(ahead) == kAhead; }));
  for (uint64_t i = 0; i < kUsedLater; ++i) Read(450 + 3 * i * kStep);
  // Without the mark for transient pages, the lasting ones would now leave first.
  for (const PageId leaf : lasting) t_.pages().TestAndClearUsed(leaf);
  for (const PageId leaf : used_later) t_.pages().TestAndClearUsed(leaf);
  SwapOut(kAhead - kUsedLater - 1);
  EXPECT_EQ(InMemory(lasting), kLasting);
  EXPECT_EQ(InMemory(used_later), kUsedLater);
  EXPECT_LE(InMemory(ahead), kUsedLater + 1);
}

TEST_F(ScanResistanceTest, AFewPagesOfEachScanCountAsReadByPoints) {
  limit_.store(uint64_t{1} << 40);
  Start();
  for (int scan = 0; scan < 2; ++scan) {
    if (scan == 1) {
      for (const PageId leaf : leaves_) t_.pages().TestAndClearUsed(leaf);
    }
    ScanAll();
    uint64_t lasting = 0, used = 0;
    for (const PageId leaf : leaves_) {
      lasting += t_.pages().transient(leaf) ? 0 : 1;
      used += t_.pages().used(leaf) ? 1 : 0;
    }
    EXPECT_EQ(lasting, ScanCursor::kPagesOfShortScan);
    // A page that is loaded has its second chance, also among the transient ones. Later scans give no further one.
    EXPECT_EQ(used, scan == 0 ? leaves_.size() : ScanCursor::kPagesOfShortScan);
  }
}

TEST_F(ScanResistanceTest, AnUpdateLeavesATransientPageTransientAndAReadDoesNot) {
  limit_.store(uint64_t{1} << 40);
  Start();
  const PageId leaf = t_.LeafOf(100);
  const std::string key = KeyOf(100);
  Load(Target(key, Side::kAt), PageStay::kTransient);
  t_.pages().TestAndClearUsed(leaf);
  t_.Put(100, "updated");
  {
    const ReclamationDomain::Guard guard(t_.domain());
    const std::string_view keys[] = {key};
    BwTree::LeafHint hint;
    t_.tree().FindLeaves(keys, &hint);
  }
  EXPECT_TRUE(t_.pages().transient(leaf));
  EXPECT_TRUE(t_.pages().used(leaf));
  Read(100);
  EXPECT_FALSE(t_.pages().transient(leaf));
}

TEST_F(ScanResistanceTest, UpdatesOfAPageThatHasLeftMemoryAreLasting) {
  const PageId leaf = t_.LeafOf(100);
  ASSERT_TRUE(loader_->Load(StoredTree::kTable, Target(KeyOf(100), Side::kAt), PageStay::kTransient).ok());
  ASSERT_TRUE(t_.Evict(leaf));
  t_.Put(100, "updated");
  EXPECT_TRUE(IsStub(t_.HeadOf(leaf)));
  EXPECT_FALSE(t_.pages().transient(leaf));
}

TEST_F(ScanResistanceTest, InnerPagesStayWhenAllLeavesHaveLeft) {
  Start();
  for (uint64_t i = 0; i < kRecords; i += 100) Read(i);
  limit_.store(1);
  evictor_->WakeIfOverHighMark();
  EXPECT_TRUE(Until([&] { return InMemory(leaves_) == 0; }));
  evictor_.reset();
  EXPECT_GE(t_.tree().root_level(), 2);
  for (uint8_t level = 1; level <= t_.tree().root_level(); ++level) {
    const std::vector<PageId> inner = t_.Pages(level);
    EXPECT_EQ(InMemory(inner), inner.size());
  }
}

// Beside the table of the fixture, another one whose pages are in memory.
class TwoTablesTest : public ScanResistanceTest, public TreeSource {
 protected:
  static constexpr TableId kOther{6};

  TwoTablesTest() {
    for (uint64_t i = 0; i < 1'000; ++i) DEUT_CHECK(other_->Put(KeyOf(i), StoredTree::kValue, V(i + 1)).ok());
    BwTree::Walk walk;
    Lister lister(&others_);
    while (!walk.complete) other_->VisitPages(0, &walk, &lister);
  }
  // Its pages must not outlive the evictor's last step.
  ~TwoTablesTest() override { evictor_.reset(); }

  BwTree* FindTree(TableId table) override { return table == kOther ? other_.get() : t_.FindTree(table); }
  std::vector<TableId> LiveTables() override { return {StoredTree::kTable, kOther}; }

  class Lister final : public PageVisitor {
   public:
    explicit Lister(std::vector<PageId>* pages) : pages_(*pages) {}
    void Visit(const VisitedPage& page) override { pages_.push_back(page.id); }

   private:
    std::vector<PageId>& pages_;
  };

  const std::unique_ptr<BwTree> other_ = *BwTree::Create(t_.environment(), SmallPages(), kOther);
  std::vector<PageId> others_;
};

// If each round began with the first table, the hand would pass that table in each round, and the last one once in many
// rounds.
TEST_F(TwoTablesTest, TheHandGoesOnInTheTableWhereItHasStopped) {
  constexpr uint64_t kFirst = 20;
  ASSERT_GT(others_.size(), 60u);
  limit_.store(uint64_t{1} << 40);
  Start(*this, *this);
  for (uint64_t i = 0; i < kFirst; ++i) Read(i * 300);
  const std::vector<PageId> first = LeavesOf(0, 300, kFirst);
  for (const PageId leaf : others_) t_.pages().TestAndClearUsed(leaf);
  SwapOut(5);  // the hand takes the marks of the first table, and evicts pages of the other one
  SwapOut(5);
  EXPECT_EQ(InMemory(first), kFirst);
  EXPECT_LE(InMemory(others_), others_.size() - 10);
}

// A table with a few pages ends with the step that evicts one of them. Other tables would never be visited.
TEST_F(TwoTablesTest, TheHandLeavesATableThatItHasPassed) {
  limit_.store(uint64_t{1} << 40);
  Start(*this, *this);
  // The hand goes to the left, so it passes the page of the first record last.
  const std::vector<PageId> last = {t_.LeafOf(0)};
  for (const PageId leaf : others_) t_.pages().TestAndClearUsed(leaf);
  Read(0);
  t_.pages().TestAndClearUsed(last[0]);
  SwapOut(1);
  EXPECT_EQ(InMemory(last), 0u);
  EXPECT_EQ(InMemory(others_), others_.size());
  Read(0);
  t_.pages().TestAndClearUsed(last[0]);
  SwapOut(1);
  EXPECT_EQ(InMemory(last), 1u);
  EXPECT_LT(InMemory(others_), others_.size());
}

}  // namespace
}  // namespace deut::dc
