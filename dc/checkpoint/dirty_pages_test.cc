// Which pages a checkpoint visits: the marks of dirty pages (dc/bwtree/mapping_table.h), their races with changes of
// pages, and updates that move to another page before the checkpoint has visited theirs.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/io/disk_fault.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/page_visitor.h"
#include "dc/checkpoint/checkpoint_world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr TableId kTable = CheckpointWorld::kTable;

class DirtyPages : public ::testing::Test {
 protected:
  // All pages are in a checkpoint. The next changes begin from that.
  DirtyPages() {
    world_.Create(kTable);
    world_.Fill(0, 300);
    EXPECT_TRUE(world_.Take().ok());
  }
  ~DirtyPages() override { testing::SetPointHandler({}); }

  // Starts from the newest checkpoint. Redo applies only updates behind its position.
  void ExpectRightAfterAStart() {
    testing::SetPointHandler({});
    world_.End();
    const Status begun = world_.Begin();
    ASSERT_TRUE(begun.ok()) << begun.ToString();
    world_.ExpectRight();
  }

  // Calls `then` when the checkpoint passes the point for the first time.
  void AtPoint(std::string_view point, std::function<void()> then) {
    testing::SetPointHandler(
        [point, then = std::move(then), done = std::make_shared<bool>(false)](std::string_view name) {
          if (name == point && !std::exchange(*done, true)) then();
        });
  }

  // The table is never dropped, so its tree outlives the guard.
  BwTree& tree() {
    const ReclamationDomain::Guard guard(world_.incarnation().domain);
    return *world_.incarnation().tables.FindTree(kTable);
  }

  // Writes all leaves, as the page evictor does.
  void WriteLeaves() {
    class Adder final : public PageVisitor {
     public:
      Adder(BwTree& tree, PageFlusher& flusher) : tree_(tree), flusher_(flusher) {}
      void Visit(const VisitedPage& page) override { flusher_.Add(tree_, page.id); }

     private:
      BwTree& tree_;
      PageFlusher& flusher_;
    };
    CheckpointIncarnation& incarnation = world_.incarnation();
    const auto flusher = PageFlusher::Create(incarnation.trees(), *incarnation.store, incarnation.tables);
    ASSERT_TRUE(flusher.ok());
    {
      const ReclamationDomain::Guard guard(incarnation.domain);
      Adder adder(tree(), **flusher);
      for (BwTree::Walk walk; !walk.complete;) tree().VisitPages(/*level=*/0, &walk, &adder);
    }
    ASSERT_TRUE((*flusher)->Write().ok());
  }

  // Merges leaves until there is nothing left to merge. Returns their number.
  uint64_t MergeLeaves() {
    const uint64_t before = tree().statistics().merges;
    for (bool again = true; again;) {
      BwTree::MergeReport report;
      for (BwTree::Walk walk; !walk.complete;) tree().MergePages(/*level=*/0, &walk, &report);
      again = report.merged != 0;
    }
    return tree().statistics().merges - before;
  }

  size_t RootTerms() {
    const ReclamationDomain::Guard guard(world_.incarnation().domain);
    return InnerTerms(world_.incarnation().pages->Load(tree().root())).count();
  }

  CheckpointWorld world_;
};

TEST_F(DirtyPages, AnUpdateOfAWrittenPageIsInTheNextCheckpoint) {
  world_.Put(5, "late");
  world_.Delete(290);
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

TEST_F(DirtyPages, AnUpdateOfAnEvictedPageIsInTheNextCheckpoint) {
  world_.Evict();
  world_.Put(5, "blind");
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

// The thread has marked the page, but not changed it yet, when a checkpoint takes the marks. That checkpoint need not
// contain the update. The next one has no other mark for it.
TEST_F(DirtyPages, ACheckpointWaitsForAThreadThatIsBetweenItsMarkAndItsUpdate) {
  std::unique_ptr<Thread> other;
  Event go_on;
  std::atomic<bool> begun{false};
  Status taken;
  testing::SetPointHandler([&](std::string_view point) {
    // With the step the checkpoint waits for this update before its pass. Without it, the pass goes by first.
    if (point == "checkpoint.waits_for_guards" || point == "checkpoint.after_pass") go_on.Signal(RealRuntime());
    if (point != "bwtree.change.before_cas" || begun.exchange(true)) return;
    // The position before this update.
    const Position position{Lsn(world_.applied().commit.value - 1), 0};
    other = RealRuntime().StartThread(
        "takes", [&, position] { taken = world_.incarnation().checkpointer->Take([&] { return position; }); });
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  world_.Put(5, "late");
  ASSERT_NE(other, nullptr);
  other->Join();
  testing::SetPointHandler({});
  ASSERT_TRUE(taken.ok()) << taken.ToString();
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

TEST_F(DirtyPages, WhatACheckpointCouldNotWriteIsInTheNextOne) {
  world_.Put(5, "late");
  const int fault =
      world_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite, .path_contains = ".seg"});
  EXPECT_EQ(world_.Take(), ErrorCode::kResourceExhausted);
  EXPECT_GT(world_.disk().hits(fault), 0u);
  world_.disk().RemoveAllFaults();
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

// The checkpoint takes the marks a second time, for the inner pages. Those of leaves are for the next checkpoint.
TEST_F(DirtyPages, AnUpdateBehindThePassIsInTheNextCheckpoint) {
  AtPoint("checkpoint.after_pass", [&] { world_.Put(5, "late"); });
  ASSERT_TRUE(world_.Take().ok());
  testing::SetPointHandler({});
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

// The image of the leaf is narrower than its parent's old image says. The root, which a checkpoint visits in any case,
// is not changed.
TEST_F(DirtyPages, TheParentOfAPageThatWasSplitBehindThePassIsWritten) {
  uint64_t next = 300;
  const auto put = [&] { world_.Put(next++, std::string(40, 'x')); };
  // The last inner page below the root gets room for more terms.
  while (tree().root_level() < 2) put();
  for (const size_t before = RootTerms(); RootTerms() == before;) put();
  ASSERT_TRUE(world_.Take().ok());
  const size_t terms = RootTerms();
  AtPoint("checkpoint.after_pass", [&] {
    for (const uint64_t splits = tree().statistics().splits; tree().statistics().splits == splits;) put();
    WriteLeaves();
  });
  ASSERT_TRUE(world_.Take().ok());
  ASSERT_EQ(RootTerms(), terms);
  ExpectRightAfterAStart();
}

// While the gate is closed pages grow. So the pass also writes pages that were split since the marks were taken.
TEST_F(DirtyPages, LittleIsLeftToWriteWhileTheGateIsClosed) {
  int inner_pages = 0;
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "checkpoint.before_pass") world_.Fill(300, 600);
    if (point != "checkpoint.after_pass") return;
    const ReclamationDomain::Guard guard(world_.incarnation().domain);
    for (uint64_t id = 0; id <= world_.incarnation().pages->last_id(); ++id) {
      EXPECT_TRUE(id == 0 || world_.incarnation().pages->HasImage(PageId(static_cast<uint32_t>(id)))) << id;
    }
    class Checker final : public PageVisitor {
     public:
      void Visit(const VisitedPage& page) override {
        ++visited;
        EXPECT_TRUE(IsClean(page.word.head())) << page.id.value;
      }
      int visited = 0;
    };
    Checker checker;
    for (uint8_t level = 1; level <= tree().root_level(); ++level) {
      for (BwTree::Walk walk; !walk.complete;) tree().VisitPages(level, &walk, &checker);
    }
    inner_pages = checker.visited;
  });
  ASSERT_TRUE(world_.Take().ok());
  EXPECT_GT(inner_pages, 2);
  ExpectRightAfterAStart();
}

TEST_F(DirtyPages, AnUpdateWhosePageIsSplitBeforeItsVisitIsInTheCheckpoint) {
  world_.Put(2, "early");
  world_.Put(9, "early");
  AtPoint("checkpoint.before_pass", [&] {
    const uint64_t splits = tree().statistics().splits;
    for (uint64_t i = 0; i < 12; ++i) {
      if (i != 2 && i != 9) world_.Put(i, std::string(300, 'x'));
    }
    EXPECT_GT(tree().statistics().splits, splits + 1);
  });
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

// The left neighbour was written before, and its mark for the merge comes behind the taking of the marks.
TEST_F(DirtyPages, AnUpdateWhosePageIsMergedAwayBeforeItsVisitIsInTheCheckpoint) {
  for (uint64_t i = 0; i < 300; ++i) {
    if (i % 20 != 0) world_.Delete(i);
  }
  ASSERT_TRUE(world_.Take().ok());
  for (uint64_t i = 100; i < 200; i += 20) world_.Put(i, "early");
  AtPoint("checkpoint.before_pass", [&] {
    world_.incarnation().consolidation.store(world_.applied().commit.value + 1);
    EXPECT_GT(MergeLeaves(), 3u);
  });
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

TEST_F(DirtyPages, ATableThatIsCreatedBehindThePassIsInTheCheckpoint) {
  constexpr TableId kOther(9);
  AtPoint("checkpoint.after_pass", [&] {
    world_.Create(kOther);
    world_.Fill(0, 100, 0, kOther);
  });
  ASSERT_TRUE(world_.Take().ok());
  world_.Put(7, "late", kOther);
  ASSERT_TRUE(world_.Take().ok());
  ExpectRightAfterAStart();
}

}  // namespace
}  // namespace deut::dc
