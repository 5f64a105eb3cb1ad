// PageEvictorTest: a tree and its evictor. For tests. Thread-safety: one thread, except used() and LiveTables(), which the
// evictor calls.
#ifndef DC_PAGE_CACHE_PAGE_EVICTOR_FIXTURE_H_
#define DC_PAGE_CACHE_PAGE_EVICTOR_FIXTURE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_source.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_loader.h"
#include "gtest/gtest.h"

namespace deut::dc {

// A tree and its evictor. The test sets the amount of used memory, or it is measured.
class PageEvictorTest : public ::testing::Test, public TableList {
 protected:
  static constexpr uint64_t kBudget = 512 << 10;
  static constexpr uint64_t kMeasured = UINT64_MAX;

  void TearDown() override { evictor_.reset(); }

  std::vector<TableId> LiveTables() override { return *tables_.load(); }

  void Start() { Start(uint64_t{kBudget}); }
  // `budget`: a number of bytes, or a function that returns it.
  template <typename Budget>
  void Start(Budget budget) {
    auto created = PageEvictor::Create(RealRuntime(), t_.environment(), t_.store(), t_, *this, *loader_,
                                       PageEvictor::BudgetOfPages([this] { return used(); }, std::move(budget)),
                                       /*merge_interval=*/std::chrono::seconds(1), [this](const Status& status) {
                                         last_error_.store(status.code());
                                         errors_.fetch_add(1);
                                       });
    ASSERT_TRUE(created.ok());
    evictor_ = std::move(*created);
    started_.store(evictor_.get());
  }
  uint64_t used() {
    const PageEvictor* const evictor = started_.load();
    if (evictor == nullptr) return 0;
    // Memory counts as full until `wanted` pages have been evicted.
    if (const uint64_t wanted = wanted_.load(); wanted != 0) return evictor->evictions() < wanted ? kBudget + 1 : 0;
    const uint64_t said = said_.load();
    return said != kMeasured ? said : t_.tree().statistics().bytes;
  }
  void SayUsed(uint64_t bytes) {
    said_.store(bytes);
    evictor_->WakeIfOverHighMark();
  }
  // Lets the evictor work until it has evicted `pages` more pages.
  void SwapOut(uint64_t pages) {
    const uint64_t wanted = evictor_->evictions() + pages;
    wanted_.store(wanted);
    evictor_->WakeIfOverHighMark();
    ASSERT_TRUE(Until([&] { return evictor_->evictions() >= wanted; }));
    wanted_.store(0);
  }

  // Waits until another thread has made the condition true.
  template <typename Condition>
  [[nodiscard]] static bool Until(const Condition& condition) {
    const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(30);
    while (!condition()) {
      if (RealRuntime().Now() > limit) return false;
      RealRuntime().Yield();
    }
    return true;
  }

  bool InMemory(PageId leaf) { return t_.HeadOf(leaf) != nullptr; }
  void ClearUsedMarks() {
    for (const PageId leaf : t_.Pages(0)) t_.pages().TestAndClearUsed(leaf);
  }

  StoredTree t_;
  const std::unique_ptr<PageLoader> loader_ = *PageLoader::Create(RealRuntime(), t_, t_.domain(), t_.store());
  const std::vector<TableId> the_table_{StoredTree::kTable};
  std::atomic<const std::vector<TableId>*> tables_{&the_table_};
  std::atomic<uint64_t> said_{0};
  std::atomic<uint64_t> wanted_{0};
  std::atomic<PageEvictor*> started_{nullptr};
  std::atomic<int> errors_{0};
  std::atomic<ErrorCode> last_error_{ErrorCode::kOk};
  std::unique_ptr<PageEvictor> evictor_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_EVICTOR_FIXTURE_H_
