#include "dc/checkpoint/checkpointer.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/io/disk_fault.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_visitor.h"
#include "dc/checkpoint/checkpoint_world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Action = DiskFault::Action;
constexpr TableId kTable = CheckpointWorld::kTable;

// Returns a world with two checkpoints and changes after them. The next checkpoint writes parts of both kinds, in new
// segments and old ones.
std::unique_ptr<CheckpointWorld> WithTwoCheckpoints(uint64_t seed = 1) {
  auto world = std::make_unique<CheckpointWorld>(seed);
  world->Create(kTable);
  world->Fill(0, 300);
  EXPECT_TRUE(world->Take().ok());
  world->Fill(100, 120, /*round=*/1);
  EXPECT_TRUE(world->Take().ok());
  world->Fill(200, 400, /*round=*/2);
  world->Put(5, "a lone update");
  world->Delete(6);
  return world;
}

TEST(Checkpointer, TheStablePositionIsThatOfTheOlderGeneration) {
  CheckpointWorld world;
  EXPECT_EQ(world.stable(), Position());
  world.Create(kTable);
  std::vector<Position> taken;
  for (int round = 0; round < 4; ++round) {
    world.Fill(0, 100, round);
    ASSERT_TRUE(world.Take().ok());
    taken.push_back(world.applied());
    // The first checkpoint has no predecessor.
    EXPECT_EQ(world.stable(), taken[round == 0 ? 0 : static_cast<size_t>(round) - 1]);
    EXPECT_EQ(world.incarnation().checkpointer->taken(), static_cast<uint64_t>(round) + 1);
  }
  // In the next incarnation the same two generations count.
  world.End();
  ASSERT_TRUE(world.Begin().ok());
  EXPECT_EQ(world.incarnation().found.position, taken[3]);
  EXPECT_EQ(world.stable(), taken[2]);
  world.Fill(0, 100, 9);
  ASSERT_TRUE(world.Take().ok());
  EXPECT_EQ(world.stable(), taken[3]);
}

TEST(Checkpointer, TwoGenerationsOfFilesAreKeptAndNothingElse) {
  CheckpointWorld world;
  world.Create(kTable);
  for (uint64_t k = 1; k <= 5; ++k) {
    world.Fill(0, 200, static_cast<int>(k));
    ASSERT_TRUE(world.Take().ok());
    EXPECT_EQ(world.Checkpoints(), k == 1 ? std::vector<uint64_t>{1} : (std::vector<uint64_t>{k, k - 1}));
    for (const std::string& name : world.Names()) EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
}

// Otherwise a TC could rely on a checkpoint whose loss would stay unnoticed.
TEST(Checkpointer, S2ThePositionIsToldOnceTheCheckpointIsRecorded) {
  CheckpointWorld world;
  world.Create(kTable);
  std::vector<uint64_t> recorded;
  Position told;
  const auto record = [&](CheckpointNumber oldest_kept) {
    recorded.push_back(oldest_kept.value);
    told = world.stable();
    return Status::Ok();
  };
  world.Fill(0, 200, 1);
  ASSERT_TRUE(world.Take(record).ok());
  EXPECT_EQ(recorded, (std::vector<uint64_t>{1}));
  EXPECT_EQ(told, Position());
  const Position first = world.applied();
  EXPECT_EQ(world.stable(), first);
  world.Fill(0, 200, 2);
  ASSERT_TRUE(world.Take(record).ok());
  const Position second = world.applied();
  world.Fill(0, 200, 3);
  const auto full = [](CheckpointNumber) { return Status(ErrorCode::kResourceExhausted, "no room for the number"); };
  EXPECT_EQ(world.Take(full), ErrorCode::kResourceExhausted);
  EXPECT_EQ(world.Checkpoints(), (std::vector<uint64_t>{3, 2}));
  EXPECT_EQ(world.stable(), first) << "checkpoint 2 is not recorded as the one that has to be there";
  const Position third = world.applied();
  ASSERT_TRUE(world.Take(record).ok());
  EXPECT_EQ(told, first);
  EXPECT_EQ(recorded, (std::vector<uint64_t>{1, 1, 3}));
  EXPECT_LT(second, third);
  EXPECT_EQ(world.stable(), third);
}

TEST(Checkpointer, SegmentsThatNeitherGenerationNamesAreRemoved) {
  CheckpointWorld world;
  world.Create(kTable);
  size_t most = 0;
  for (int round = 0; round < 12; ++round) {
    world.Fill(0, 2000, round);  // all pages are written again
    ASSERT_TRUE(world.Take().ok());
    most = std::max<size_t>(most, world.incarnation().store->totals().segments);
  }
  const StoreTotals totals = world.incarnation().store->totals();
  EXPECT_GT(totals.segments_removed, most);
  EXPECT_LE(totals.segments, totals.segments_created / 2);
  // The files are gone, too.
  EXPECT_EQ(world.Names().size(), totals.segments + 2);
  world.End();
  ASSERT_TRUE(world.Begin().ok());
  world.ExpectRight();
}

// Records the disk's operations, in order: "write base", "sync delta", "rename", ...
class Recorder {
 public:
  explicit Recorder(CheckpointWorld& world) {
    world.disk().AddFault({.predicate = [this](const DiskOperation& operation) {
      Note(operation);
      return false;
    }});
  }
  size_t First(std::string_view what) const {
    return static_cast<size_t>(std::find(done_.begin(), done_.end(), what) - done_.begin());
  }
  size_t Last(std::string_view what) const {
    const auto found = std::find(done_.rbegin(), done_.rend(), what);
    return found == done_.rend() ? done_.size() : static_cast<size_t>(done_.rend() - found) - 1;
  }
  bool Has(std::string_view what) const { return First(what) != done_.size(); }
  size_t size() const { return done_.size(); }

 private:
  void Note(const DiskOperation& operation) {
    const std::string& path = operation.path;
    const bool checkpoint = path.find("checkpoint-") != std::string::npos;
    const std::string on = checkpoint ? "checkpoint" : path.ends_with(".seg") ? "segment" : "directory";
    switch (operation.kind) {
      case kDiskRead:
        return done_.push_back("read " + on);
      case kDiskWrite:
        return done_.push_back("write " + on);
      case kDiskSync:
        return done_.push_back("sync " + on);
      case kDiskSyncDirectory:
        return done_.push_back("sync directory");
      case kDiskName:
        return done_.push_back("name " + on);
      default:
        return;
    }
  }

  std::vector<std::string> done_;
};

TEST(Checkpointer, EverythingIsDurableBeforeItIsNamed) {
  const auto world = WithTwoCheckpoints();
  const Recorder recorder(*world);
  size_t at_position = SIZE_MAX;
  ASSERT_TRUE(world->incarnation()
                  .checkpointer
                  ->Take([&] {
                    at_position = recorder.size();
                    return world->applied();
                  })
                  .ok());
  // Rule X6: the position is read first.
  EXPECT_EQ(at_position, 0u);
  for (const char* const step : {"write segment", "sync segment", "write checkpoint", "sync checkpoint",
                                 "read checkpoint", "name checkpoint", "sync directory", "name segment"}) {
    EXPECT_TRUE(recorder.Has(step)) << step;
  }
  EXPECT_LT(recorder.Last("write segment"), recorder.First("sync segment"));
  EXPECT_LT(recorder.Last("sync segment"), recorder.First("write checkpoint"));
  // The names of new segments are durable, too.
  EXPECT_LT(recorder.First("sync directory"), recorder.First("write checkpoint"));
  EXPECT_LT(recorder.Last("write checkpoint"), recorder.First("sync checkpoint"));
  EXPECT_LT(recorder.First("sync checkpoint"), recorder.First("read checkpoint"));
  // Then the checkpoint is renamed, and the rename is made durable; the old checkpoint is removed last.
  EXPECT_LT(recorder.Last("read checkpoint"), recorder.Last("sync directory"));
  EXPECT_GT(recorder.Last("name checkpoint"), recorder.Last("sync directory"));
}

TEST(Checkpointer, TheGateIsClosedForTheStructureOnlyAndOpenAgainWhateverHappens) {
  const auto world = WithTwoCheckpoints();
  std::vector<std::string> seen;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "checkpoint.after_pass" && point != "checkpoint.before_snapshot") return;
    seen.push_back(Concat(point, world->incarnation().gate.closed() ? " closed" : " open"));
  });
  ASSERT_TRUE(world->Take().ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"checkpoint.after_pass open", "checkpoint.before_snapshot closed"}));
  EXPECT_FALSE(world->incarnation().gate.closed());
  for (const std::string path : {".seg", "checkpoint-"}) {
    world->Fill(0, 100, 5);
    world->disk().AddFault({.action = Action::kNoSpace, .kinds = kDiskWrite, .path_contains = path});
    EXPECT_EQ(world->Take(), ErrorCode::kResourceExhausted);
    EXPECT_FALSE(world->incarnation().gate.closed());
    world->disk().RemoveAllFaults();
  }
  // The error occurs while the gate is closed: pages that are split after the pass must be written, and there is no
  // room.
  bool done = false;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "checkpoint.after_pass" || std::exchange(done, true)) return;
    world->Fill(500, 700, 6);
    world->disk().AddFault({.action = Action::kNoSpace, .kinds = kDiskWrite, .path_contains = ".seg"});
  });
  EXPECT_EQ(world->Take(), ErrorCode::kResourceExhausted);
  EXPECT_FALSE(world->incarnation().gate.closed());
  testing::SetPointHandler({});
  world->disk().RemoveAllFaults();
  ASSERT_TRUE(world->Take().ok());
  world->End();
  ASSERT_TRUE(world->Begin().ok());
  world->ExpectRight();
}

TEST(Checkpointer, ATableThatIsCreatedWhileTheStructureIsTakenDownIsNotInIt) {
  const auto world = WithTwoCheckpoints();
  std::unique_ptr<Thread> other;
  std::atomic<bool> begun{false};
  std::atomic<bool> created{false};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "checkpoint.before_snapshot" || other != nullptr) return;
    other = RealRuntime().StartThread("creates", [&] {
      begun.store(true);
      world->Create(TableId(9));
      created.store(true);
    });
    // The other thread waits. It gets enough time to continue, if it did not.
    while (!begun.load()) RealRuntime().Yield();
    for (int i = 0; i < 50; ++i) RealRuntime().Yield();
    EXPECT_FALSE(created.load());
  });
  const Position before = world->applied();
  ASSERT_TRUE(world->incarnation().checkpointer->Take([&] { return before; }).ok());
  testing::SetPointHandler({});
  ASSERT_NE(other, nullptr);
  other->Join();
  world->End();
  const auto recovered =
      RecoverPages(world->storage(), RealRuntime(), world->directory(), CheckpointWorld::kDc, world->Options());
  ASSERT_TRUE(recovered.ok());
  ASSERT_EQ(recovered->tables.size(), 1u);
  EXPECT_EQ(recovered->tables[0].id, kTable);
  ASSERT_TRUE(world->Begin().ok());
  world->ExpectRight();
}

// Returns a page of level 1 that was split off and that no parent names yet; kNoPage: there is none.
PageId UnpostedInnerPage(BwTree& tree) {
  class Lister final : public PageVisitor {
   public:
    void Visit(const VisitedPage& page) override {
      named.insert(page.id);
      const Fence& fence = *page.word.head()->fence;
      if (fence.bounded()) siblings.insert(fence.sibling);
    }
    std::set<PageId> named;
    std::set<PageId> siblings;
  };
  if (tree.root_level() < 2) return kNoPage;  // the only page of level 1 is the root
  Lister lister;
  for (BwTree::Walk walk; !walk.complete;) tree.VisitPages(/*level=*/1, &walk, &lister);
  for (const PageId sibling : lister.siblings) {
    if (!lister.named.contains(sibling)) return sibling;
  }
  return kNoPage;
}

// A thread stops between the two steps of a split of an inner page. The pass of a checkpoint writes both halves, while
// their parent names only the left one, for all keys of both. Recovery would refuse these images. But the checkpoint
// waits for the term before it takes the structure, so the folder opens.
TEST(Checkpointer, ASplitOfAnInnerPageThatIsNotPostedDuringThePassIsWholeInTheCheckpoint) {
  CheckpointWorld world;
  world.Create(kTable);
  for (uint64_t i = 0; i < 1000; ++i) world.Put(i, Concat("value ", i));  // no page was written
  {
    const ReclamationDomain::Guard guard(world.incarnation().domain);
    ASSERT_GE(world.incarnation().tables.FindTree(kTable)->root_level(), 2);
  }
  std::atomic<bool> begun{false};
  Event split;
  Event after_pass;
  std::unique_ptr<Thread> other;
  const auto put_until_an_inner_page_is_split = [&] {
    for (uint64_t i = 1000; i < 5000 && !begun.load(); ++i) world.Put(i, Concat("value ", i));
    split.Signal(RealRuntime());  // also if there was none
  };
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "checkpoint.before_pass") {
      other = RealRuntime().StartThread("splits", put_until_an_inner_page_is_split);
      split.Wait(RealRuntime(), kNoDeadline);
    }
    if (point == "checkpoint.after_pass") after_pass.Signal(RealRuntime());
    if (point != "bwtree.split.before_post" || begun.load()) return;
    const PageId right = UnpostedInnerPage(*world.incarnation().tables.FindTree(kTable));
    if (right == kNoPage || begun.exchange(true)) return;
    // No thread that meets the split posts its term meanwhile.
    testing::SetCasHandler([](std::string_view name) { return name == "bwtree.post.cas"; });
    split.Signal(RealRuntime());
    after_pass.Wait(RealRuntime(), kNoDeadline);
    EXPECT_TRUE(world.incarnation().pages->HasImage(right));
    EXPECT_EQ(UnpostedInnerPage(*world.incarnation().tables.FindTree(kTable)), right);
    testing::SetCasHandler({});
  });
  const Position position = world.applied();
  const Status taken = world.incarnation().checkpointer->Take([&] { return position; });
  ASSERT_TRUE(begun.load());
  other->Join();
  testing::SetPointHandler({});
  ASSERT_TRUE(taken.ok()) << taken.ToString();
  world.End();
  const Status opened = world.Begin();
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(world.incarnation().found.opened.value, 1u);
  world.ExpectRight();
}

// Evicts and updates all leaves again and again, until a checkpoint has to load them because they have the largest
// number of parts. Returns the number of pages that this checkpoint has loaded.
uint64_t TakeUntilOneLoads(CheckpointWorld& world) {
  const PageLoader& loader = *world.incarnation().loader;
  for (int round = 1;; ++round) {
    DEUT_CHECK(round < 100);
    world.Evict();
    // Each leaf gets fewer updates than it accepts without being loaded.
    for (uint64_t i = 0; i < 500; i += 3) world.Put(i, Concat("round ", round));
    const uint64_t loads = loader.loads();
    const Status taken = world.Take();
    EXPECT_TRUE(taken.ok()) << taken.ToString();
    if (loader.loads() != loads) return loader.loads() - loads;
    EXPECT_EQ(world.incarnation().waits_for_memory, 0u);
  }
}

TEST(Checkpointer, ItWaitsForRoomBeforeEachBatchOfPagesThatItBringsIn) {
  const auto world = WithTwoCheckpoints();
  world->Fill(0, 500);
  ASSERT_TRUE(world->Take().ok());
  const uint64_t loads = TakeUntilOneLoads(*world);
  const uint64_t waits = world->incarnation().waits_for_memory;
  EXPECT_LT(waits, loads) << "several pages are loaded together";
  EXPECT_GE(waits * Checkpointer::kMaxLoadedPerBatch, loads);
  world->ExpectRight();
}

TEST(Checkpointer, PagesThatItBringsInAreTransient) {
  const auto world = WithTwoCheckpoints();
  world->Fill(0, 500);
  ASSERT_TRUE(world->Take().ok());
  const uint64_t loads = TakeUntilOneLoads(*world);
  CheckpointIncarnation& incarnation = world->incarnation();
  uint64_t transient = 0;
  for (uint64_t id = 1; id <= incarnation.pages->last_id(); ++id) {
    transient += incarnation.pages->transient(PageId(static_cast<uint32_t>(id))) ? 1 : 0;
  }
  EXPECT_EQ(transient, loads);
}

// One of the pages that are loaded together cannot be read. Its updates are in no image.
TEST(Checkpointer, APageThatCannotBeReadPostponesItAlsoIfOthersAreLoadedWithIt) {
  const auto world = WithTwoCheckpoints();
  world->Fill(0, 500);
  ASSERT_TRUE(world->Take().ok());
  world->disk().AddFault({.kinds = kDiskRead, .path_contains = "base-", .skip = 2, .count = 1});
  Status taken;
  for (int round = 1; taken.ok(); ++round) {
    ASSERT_LT(round, 100);
    world->Evict();
    for (uint64_t i = 0; i < 500; i += 3) world->Put(i, Concat("round ", round));
    taken = world->Take();
  }
  EXPECT_EQ(taken, ErrorCode::kUnavailable) << taken.ToString();
  EXPECT_GT(world->incarnation().loader->loads(), 2u);
  EXPECT_LT(world->stable(), world->applied());
  // The next one finds all pages whose updates it must contain.
  ASSERT_TRUE(world->Take().ok());
  world->End();
  ASSERT_TRUE(world->Begin().ok());
  EXPECT_EQ(world->incarnation().found.position, world->applied());
  world->ExpectRight();
}

TEST(Checkpointer, OneIsTakenAtATime) {
  const auto world = WithTwoCheckpoints();
  std::vector<std::unique_ptr<Thread>> threads;
  const Position position = world->applied();
  for (int i = 0; i < 3; ++i) {
    threads.push_back(RealRuntime().StartThread("takes", [&] {
      const Status taken = world->incarnation().checkpointer->Take([&] { return position; });
      EXPECT_TRUE(taken.ok()) << taken.ToString();
    }));
  }
  for (auto& thread : threads) thread->Join();
  EXPECT_EQ(world->Checkpoints(), (std::vector<uint64_t>{5, 4}));
  EXPECT_EQ(world->stable(), position);
}

TEST(Checkpointer, FreedIdsAreUsedAgainAfterACheckpointThatBeganLaterIsComplete) {
  const auto world = WithTwoCheckpoints();
  world->Create(TableId(8));
  world->Fill(0, 300, 0, TableId(8));
  ASSERT_TRUE(world->Take().ok());
  const uint64_t full = world->incarnation().pages->used();
  world->Drop(TableId(8));
  world->incarnation().domain.Collect();
  EXPECT_EQ(world->incarnation().pages->used(), full);
  // The ids are not reused after a failed checkpoint.
  world->disk().AddFault({.action = Action::kNoSpace, .kinds = kDiskWrite, .path_contains = "checkpoint-"});
  EXPECT_EQ(world->Take(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(world->incarnation().pages->used(), full);
  world->disk().RemoveAllFaults();
  ASSERT_TRUE(world->Take().ok());
  EXPECT_LT(world->incarnation().pages->used(), full - 10);
  // The table stays dropped.
  world->End();
  ASSERT_TRUE(world->Begin().ok());
  EXPECT_EQ(world->incarnation().tables.LiveTables(), std::vector<TableId>{kTable});
  const auto again = world->incarnation().tables.Create(TableId(8), "again");
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(*again);
}

// --- A disk that fails, at each of its operations in turn.

// Calls `check` with the outcome of a checkpoint whose n-th operation failed, for each n. Returns the number of
// operations.
template <typename Check>
int AtEachOperation(Action action, uint32_t kinds, const Check& check) {
  for (uint64_t n = 0;; ++n) {
    const auto world = WithTwoCheckpoints(/*seed=*/n + 1);
    const int fault = world->disk().AddFault({.action = action, .kinds = kinds, .skip = n, .count = 1});
    const Status taken = world->Take();
    const bool struck = world->disk().hits(fault) > 0;
    world->disk().RemoveAllFaults();
    if (!struck) {
      EXPECT_TRUE(taken.ok()) << taken.ToString();
      return static_cast<int>(n);
    }
    SCOPED_TRACE(Concat("operation ", n, ": ", taken.ToString()));
    check(*world, taken, n);
    if (::testing::Test::HasFailure()) return static_cast<int>(n);
  }
}

TEST(Checkpointer, WantOfSpaceAnywhereLeavesTheOlderGenerationsAndTheNextOneSucceeds) {
  const int operations = AtEachOperation(Action::kNoSpace, kDiskWrite | kDiskAllocate | kDiskName,
                                         [](CheckpointWorld& world, const Status& taken, uint64_t n) {
                                           EXPECT_TRUE(taken.ok() || taken == ErrorCode::kResourceExhausted);
                                           EXPECT_TRUE(world.incarnation().store->fatal().ok());
                                           const uint64_t before = world.incarnation().checkpointer->taken();
                                           EXPECT_EQ(before, taken.ok() ? 3u : 2u);
                                           if (n % 3 == 0) {  // checks the result of a start now
                                             world.Crash(n);
                                             ASSERT_TRUE(world.Begin().ok());
                                             world.ExpectRight();
                                           }
                                           world.Fill(50, 60, /*round=*/7);
                                           const Status next = world.Take();
                                           ASSERT_TRUE(next.ok()) << next.ToString();
                                           world.Crash(n);
                                           ASSERT_TRUE(world.Begin().ok());
                                           EXPECT_EQ(world.incarnation().found.position, world.applied());
                                           world.ExpectRight();
                                         });
  EXPECT_GT(operations, 5);
}

TEST(Checkpointer, AnyOtherErrorIsToldAndNeverTakenForWantOfSpace) {
  const int operations = AtEachOperation(Action::kIoError, kDiskChanging | kDiskRead | kDiskOpen,
                                         [](CheckpointWorld& world, const Status& taken, uint64_t n) {
                                           EXPECT_NE(taken, ErrorCode::kResourceExhausted);
                                           const Position stable = world.stable();
                                           // The process ends; the older generations still exist.
                                           world.Crash(n);
                                           const Status begun = world.Begin();
                                           ASSERT_TRUE(begun.ok()) << begun.ToString();
                                           EXPECT_GE(world.incarnation().found.position, stable);
                                           if (taken.ok())
                                             EXPECT_EQ(world.incarnation().found.position, world.applied());
                                           world.ExpectRight();
                                           ASSERT_TRUE(world.Take().ok());
                                         });
  EXPECT_GT(operations, 10);
}

TEST(Checkpointer, AfterAFailedSyncOfASegmentNothingWorksAnyMore) {
  for (const Action action : {Action::kIoError, Action::kNoSpace}) {
    for (const uint32_t kind : {uint32_t{kDiskSync}, uint32_t{kDiskSyncDirectory}}) {
      const auto world = WithTwoCheckpoints();
      const Position stable = world->stable();
      world->disk().AddFault({.action = action, .kinds = kind, .count = 1});
      EXPECT_EQ(world->Take(), ErrorCode::kIoError);
      EXPECT_EQ(world->incarnation().store->fatal(), ErrorCode::kIoError);
      // The disk works again, but a repeated sync would lose the data that was written before.
      EXPECT_EQ(world->Take(), ErrorCode::kIoError);
      EXPECT_EQ(world->stable(), stable);
      EXPECT_EQ(world->Checkpoints(), (std::vector<uint64_t>{2, 1}));
      for (uint64_t seed = 0; seed < 5; ++seed) {
        world->Crash(seed);
        ASSERT_TRUE(world->Begin().ok());
        world->ExpectRight();
      }
    }
  }
}

TEST(Checkpointer, AFlippedBitInWhatIsWrittenIsFoundBeforeTheOldOneIsRemoved) {
  const auto world = WithTwoCheckpoints();
  world->disk().AddFault({.action = Action::kFlipBit, .kinds = kDiskWrite, .path_contains = "checkpoint-", .count = 1});
  EXPECT_EQ(world->Take(), ErrorCode::kCorruption);
  EXPECT_EQ(world->Checkpoints(), (std::vector<uint64_t>{2, 1}));
  world->End();
  ASSERT_TRUE(world->Begin().ok());
  world->ExpectRight();
}

TEST(Checkpointer, PowerMayGoAtAnyMoment) {
  int crashes = 0;
  for (uint64_t n = 1;; ++n) {
    const auto world = WithTwoCheckpoints(/*seed=*/n);
    const Position stable = world->stable();
    world->disk().CrashAfter(n);
    const Status taken = world->Take();
    if (world->disk().crashes() == 0) {
      EXPECT_TRUE(taken.ok());
      break;
    }
    ++crashes;
    const Position told = world->stable();
    world->Crash(n);
    const Status begun = world->Begin();
    ASSERT_TRUE(begun.ok()) << n << ": " << begun.ToString();
    EXPECT_GE(world->incarnation().found.position, std::max(stable, told));
    world->ExpectRight();
    ASSERT_TRUE(world->Take().ok());
  }
  EXPECT_GT(crashes, 10);
}

}  // namespace
}  // namespace deut::dc
