#include "dc/tables/table_reaper.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/forwarding_runtime.h"
#include "common/testing/leaping_runtime.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class TableReaperTest : public ::testing::Test {
 protected:
  ~TableReaperTest() override { testing::SetPointHandler(nullptr); }

  // Returns a table of many small pages, which no thread can see.
  Table* Doomed() {
    auto tree = BwTree::Create(BwTreeEnvironment{*world_.table, world_.domain, world_.consolidation}, SmallPages());
    EXPECT_TRUE(tree.ok());
    for (uint64_t key = 0; key < kRecords; ++key) {
      EXPECT_TRUE((*tree)->Put(KeyOf(key), std::string(100, 'v'), V(1 + key)).ok());
    }
    return new Table{.id = TableId{1}, .name = "dropped", .tree = std::move(*tree)};
  }
  static void Until(const std::function<bool()>& condition) {
    while (!condition()) RealRuntime().Yield();
  }

  static constexpr uint64_t kRecords = 3000;
  TestTree world_;
};

TEST_F(TableReaperTest, AllPagesOfADoomedTableAreFreed) {
  const uint64_t before = world_.table->used();
  Table* const table = Doomed();
  const uint64_t pages = world_.table->used() - before;
  ASSERT_GT(pages, 2 * TableReaper::kPagesPerStep);
  TableReaper reaper(RealRuntime());
  reaper.Add(table);
  Until([&] { return reaper.tables() == 0; });
  EXPECT_EQ(reaper.pages_freed(), pages);
  EXPECT_EQ(reaper.bytes(), 0u);
  EXPECT_EQ(world_.table->used(), before);
}

#ifdef DEUT_TEST_POINTS
TEST_F(TableReaperTest, ItWorksInStepsAndWhoAddsDoesNotWait) {
  Table* const table = Doomed();
  Table* const second = Doomed();
  const uint64_t bytes = table->tree->statistics().bytes + second->tree->statistics().bytes;
  Event reached, go;
  std::atomic<int> steps{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "table_reaper.step" || steps.fetch_add(1) != 1) return;
    reached.Signal(RealRuntime());
    go.Wait(RealRuntime(), kNoDeadline);
  });
  TableReaper reaper(RealRuntime());
  reaper.Add(table);
  reached.Wait(RealRuntime(), kNoDeadline);
  reaper.Add(second);
  EXPECT_EQ(reaper.tables(), 2u);
  EXPECT_EQ(reaper.pages_freed(), TableReaper::kPagesPerStep);
  EXPECT_LT(reaper.bytes(), bytes);
  EXPECT_GT(reaper.bytes(), second->tree->statistics().bytes);
  go.Signal(RealRuntime());
  Until([&] { return reaper.tables() == 0; });
  EXPECT_EQ(reaper.bytes(), 0u);
  EXPECT_GT(steps.load(), 4);
}

// The clock passes a millisecond in each step, and otherwise only while a thread waits.
TEST_F(TableReaperTest, ItPausesForAsLongAsAStepTook) {
  constexpr Duration kStep = std::chrono::milliseconds(1);
  testing::LeapingRuntime runtime;
  Event added;
  std::atomic<int> steps{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "table_reaper.step") return;
    added.Wait(RealRuntime(), kNoDeadline);  // a pause that begins while a table is being added may be shorter
    steps.fetch_add(1);
    runtime.Pass(kStep);
  });
  TableReaper reaper(runtime);
  reaper.Add(Doomed());
  added.Signal(RealRuntime());
  Until([&] { return reaper.tables() == 0; });
  ASSERT_GT(steps.load(), 2);
  EXPECT_EQ(runtime.passed(), kStep * (2 * steps.load() - 1)) << "there is no pause behind the last step";
}

TEST_F(TableReaperTest, StopEndsAPause) {
  class Endless final : public testing::ForwardingRuntime {
   public:
    bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
      if (deadline == kNoDeadline) return ForwardingRuntime::Wait(word, expected, deadline);
      pausing.Signal(RealRuntime());
      return ForwardingRuntime::Wait(word, expected, kNoDeadline);
    }
    Event pausing;
  };
  Endless runtime;
  TableReaper reaper(runtime);
  reaper.Add(Doomed());
  runtime.pausing.Wait(RealRuntime(), kNoDeadline);
  reaper.Stop();
  EXPECT_EQ(reaper.tables(), 0u);
}

TEST_F(TableReaperTest, StopFreesTheRestAtOnce) {
  Table* const table = Doomed();
  Table* const second = Doomed();
  Event reached, go;
  std::atomic<int> steps{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "table_reaper.step" || steps.fetch_add(1) != 0) return;
    reached.Signal(RealRuntime());
    go.Wait(RealRuntime(), kNoDeadline);
  });
  TableReaper reaper(RealRuntime());
  reaper.Add(table);
  reached.Wait(RealRuntime(), kNoDeadline);
  reaper.Add(second);
  std::unique_ptr<Thread> stopping = RealRuntime().StartThread("stopping", [&] { reaper.Stop(); });
  go.Signal(RealRuntime());
  stopping.reset();
  EXPECT_EQ(reaper.tables(), 0u);
  EXPECT_EQ(reaper.bytes(), 0u);
}
#endif  // DEUT_TEST_POINTS

TEST_F(TableReaperTest, ATableThatIsAddedAfterStopIsFreedByWhoAddsIt) {
  const uint64_t before = world_.table->used();
  TableReaper reaper(RealRuntime());
  reaper.Stop();
  reaper.Add(Doomed());
  EXPECT_EQ(reaper.tables(), 0u);
  EXPECT_EQ(world_.table->used(), before);
}

}  // namespace
}  // namespace deut::dc
