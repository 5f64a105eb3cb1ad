#include "dc/page_cache/page_merger.h"

#include <chrono>
#include <cstdint>
#include <functional>

#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/page_cache/page_loader.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kRecords = 2000;

class PageMergerTest : public ::testing::Test {
 protected:
  PageMergerTest() { t_.Fill(0, kRecords); }

  PageMerger Merger(Duration interval) {
    return {RealRuntime(), t_.domain(), t_, t_, *loader_, interval, [this] { return stop_; }};
  }
  void DeleteMost() {
    for (uint64_t i = 0; i < kRecords; ++i) {
      if (i % 50 != 0) t_.Delete(i);
    }
  }
  void LetGo() { t_.SetConsolidation(t_.now() + 1); }
  uint64_t merges() { return t_.tree().statistics().merges; }
  // Runs rounds until 20 in a row have changed nothing, or 500 were run.
  void RunUntilDone(PageMerger* merger, const std::function<bool()>& has_room) {
    int idle = 0;
    for (int round = 0; round < 500 && idle < 20; ++round) {
      const uint64_t before = merges();
      RealRuntime().SleepUntil(merger->next());
      merger->Run(has_room);
      idle = merges() == before ? idle + 1 : 0;
    }
  }

  // False: the condition did not become true.
  [[nodiscard]] bool RunUntil(PageMerger* merger, const std::function<bool()>& condition) {
    const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(30);
    while (!condition() && RealRuntime().Now() < patience) {
      RealRuntime().SleepUntil(merger->next());
      merger->Run([] { return true; });
    }
    return condition();
  }

  StoredTree t_;
  const std::unique_ptr<PageLoader> loader_ = *PageLoader::Create(RealRuntime(), t_, t_.domain(), t_.store());
  bool stop_ = false;
};

TEST_F(PageMergerTest, MergesWhatHasShrunkAndNothingElse) {
  PageMerger merger = Merger(std::chrono::microseconds(1));
  RunUntilDone(&merger, [] { return true; });
  EXPECT_EQ(merges(), 0u);
  const size_t leaves = t_.Pages(0).size();
  DeleteMost();
  LetGo();
  EXPECT_TRUE(RunUntil(&merger, [&] { return t_.Pages(0).size() < leaves / 2; }));
  EXPECT_GT(merges(), leaves / 2);
  t_.ExpectRight();
}

TEST_F(PageMergerTest, LoadsWhatItNeedsIfThereIsRoom) {
  DeleteMost();
  LetGo();
  t_.Flush();
  ASSERT_GT(t_.Evict(), 10);
  PageMerger merger = Merger(std::chrono::microseconds(1));
  RunUntilDone(&merger, [] { return false; });
  EXPECT_EQ(loader_->loads(), 0u);
  const size_t leaves = t_.Pages(0).size();
  EXPECT_TRUE(RunUntil(&merger, [&] { return t_.Pages(0).size() < leaves / 2; }));
  EXPECT_GT(loader_->loads(), 0u);
  t_.ExpectRight();
}

// Rounds are stopped again and again, as when memory is short; each resumes where the last one was.
TEST_F(PageMergerTest, ARoundThatIsStoppedGoesOnLater) {
  for (uint64_t i = 0; i < kRecords / 2; ++i) {
    if (i % 50 != 0) t_.Delete(i);  // the other half, with which a round begins, stays
  }
  LetGo();
  int steps = 0;
  PageMerger merger(RealRuntime(), t_.domain(), t_, t_, *loader_, std::chrono::microseconds(1),
                    [&steps] { return ++steps % 2 == 0; });
  const size_t leaves = t_.Pages(0).size();
  EXPECT_TRUE(RunUntil(&merger, [&] { return t_.Pages(0).size() < leaves * 3 / 4; }));
  t_.ExpectRight();
}

TEST_F(PageMergerTest, PagesWithYoungDeletionsAreMergedLater) {
  PageMerger merger = Merger(std::chrono::microseconds(1));
  DeleteMost();
  RunUntilDone(&merger, [] { return true; });
  const size_t leaves = t_.Pages(0).size();
  LetGo();  // nothing tells the merger that the consolidation bound has risen
  EXPECT_TRUE(RunUntil(&merger, [&] { return t_.Pages(0).size() < leaves; }));
  t_.ExpectRight();
}

TEST_F(PageMergerTest, DoesNothingBeforeItsTimeAndWhenItIsToStop) {
  DeleteMost();
  LetGo();
  PageMerger later = Merger(std::chrono::hours(1));
  later.Run([] { return true; });
  EXPECT_EQ(merges(), 0u);
  EXPECT_GT(later.next(), RealRuntime().Now() + std::chrono::minutes(30));
  PageMerger stopped = Merger(std::chrono::microseconds(1));
  stop_ = true;
  RealRuntime().SleepUntil(stopped.next());
  stopped.Run([] { return true; });
  EXPECT_EQ(merges(), 0u);
}

}  // namespace
}  // namespace deut::dc
