// The two lineages of checkpoints: by themselves, with large mapping tables; and in stores that are restarted, damaged
// and without power. The ranges are as small as they can be, so that small stores have lineages of many files.
#include "dc/checkpoint/checkpoint_lineages.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/disk_fault.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/checkpoint/checkpoint_world_fixture.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_fixture.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/page_address.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Images = std::map<PageId, std::vector<PageAddress>>;

constexpr TableId kTable = CheckpointWorld::kTable;
constexpr CheckpointLineagesOptions kSmallRanges{.min_range_bytes = 1};

Images ImagesOf(MappingTable& pages, ReclamationDomain& domain) {
  Images images;
  for (uint32_t number = 1; number <= pages.last_id(); ++number) {
    const ReclamationDomain::Guard guard(domain);
    const ImageParts parts = pages.Image(PageId(number));
    if (!parts.empty()) images[PageId(number)].assign(parts.all().begin(), parts.all().end());
  }
  return images;
}

// --- The files alone: a mapping table without trees.

class ManyPagesTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kPages = 200'000;
  static constexpr uint64_t kImageBytes = 14;  // of a page with one part, in a file

  ManyPagesTest() : storage_(NewMemoryStorage(RealRuntime())), pages_(std::move(*MappingTable::Create(kPages + 1000))) {
    EXPECT_TRUE(storage_->CreateDirectory("/pages").ok());
    for (uint32_t page = 1; page <= kPages; ++page) pages_->Restore(PageId(page), ImageParts(NextAddress()));
    Begin({});
  }

  PageAddress NextAddress() { return PageAddress::Make(1, kSegmentHeaderBytes + ++addresses_ % 8'000'000 * 128, 100); }

  void Begin(const RecoveredLineages& found) {
    lineages_ = std::make_unique<CheckpointLineages>(*pages_, domain_, found, CheckpointLineagesOptions());
    auto set = CheckpointSet::Open(*storage_, "/pages", CheckpointWorld::kDc,
                                   found.opened.empty() ? CheckpointNumber() : found.opened.back().number);
    ASSERT_TRUE(set.ok()) << set.status().ToString();
    set_ = std::move(*set);
  }
  void Change(PageId page) {
    const ReclamationDomain::Guard guard(domain_);
    ASSERT_TRUE(pages_->ClaimImage(page));
    ASSERT_TRUE(pages_->SetImage(page, ImageParts(NextAddress()), domain_));
    pages_->ReleaseImage(page);
  }
  void ChangeSome(int count) {
    for (int i = 0; i < count; ++i) Change(PageId(1 + static_cast<uint32_t>(random_.Below(kPages))));
  }
  // Takes a checkpoint; returns the bytes of its file.
  uint64_t Take(bool complete = false) {
    lineages_->Begin(complete);
    lineages_->End();
    CheckpointHead head{.number = set_->next(), .dc = CheckpointWorld::kDc, .incarnation = DcIncarnation(1)};
    head.next_segment = 2;
    lineages_->FillHead(&head);
    ancestors_ = head.ancestors.size();
    auto writer = CheckpointWriter::Create(*storage_, "/pages", head);
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    EXPECT_TRUE((*writer)->AddSegment({.number = 1, .kind = SegmentKind::kBase, .written_bytes = 1 << 30}).ok());
    const Status added = lineages_->AddPages(writer->get());
    EXPECT_TRUE(added.ok()) << added.ToString();
    CheckpointAncestor file;
    const Status completed = set_->Complete(std::move(*writer), &file);
    EXPECT_TRUE(completed.ok()) << completed.ToString();
    lineages_->Completed(file);
    return uint64_t{file.blocks} << 16;
  }
  uint64_t BytesOfFiles() {
    uint64_t bytes = 0;
    const Result<std::vector<std::string>> names = storage_->List("/pages");
    EXPECT_TRUE(names.ok());
    for (const std::string& name : *names) {
      bytes += *(*storage_->Open("/pages/" + name, {}))->Size();
    }
    return bytes;
  }
  void ExpectRight() {
    CheckpointKeeper keeper;
    const auto read = ReadCheckpoint(*storage_, "/pages", set_->newest(), CheckpointWorld::kDc, &keeper);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(keeper.content.pages == ImagesOf(*pages_, domain_));
  }

  Random random_{7};
  uint64_t addresses_ = 0;
  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<MappingTable> pages_;
  ReclamationDomain domain_;
  std::unique_ptr<CheckpointLineages> lineages_;
  std::unique_ptr<CheckpointSet> set_;
  size_t ancestors_ = 0;
};

TEST_F(ManyPagesTest, ACheckpointCostsItsChangesAndAPartOfTheRest) {
  const uint64_t complete = Take();
  EXPECT_GE(complete, kPages * kImageBytes);
  EXPECT_EQ(Take(), complete) << "the other lineage begins, too";
  constexpr int kChanges = 500;
  for (int round = 0; round < 60; ++round) {
    ChangeSome(kChanges);
    const uint64_t bytes = Take();
    // The changes of two intervals; a range of as many bytes, of 1/64 of all, or of 256 KiB; the index.
    const uint64_t changes = uint64_t{2} * kChanges * kImageBytes;
    EXPECT_LE(bytes, changes + (256 << 10) + (128 << 10)) << round;
    EXPECT_GT(ancestors_, 0u);
    if (round % 10 == 9) ExpectRight();
  }
}

TEST_F(ManyPagesTest, OldFilesGoSoThatTheirBytesAreBounded) {
  const uint64_t complete = Take();
  Take();
  for (int round = 0; round < 150; ++round) {
    ChangeSome(1000);
    Take();
    ASSERT_LE(BytesOfFiles(), 2 * (3 * complete) + (1 << 20)) << round;
    ASSERT_LE(ancestors_, 2 * 64u);
  }
  ExpectRight();
  // Without changes, each round of ranges replaces all that was before.
  for (int round = 0; round < 60; ++round) Take();
  EXPECT_LE(BytesOfFiles(), 2 * (2 * complete) + (1 << 20));
  ExpectRight();
}

TEST_F(ManyPagesTest, MostPagesChangedOrAFullDiskMakeACompleteFile) {
  const uint64_t complete = Take();
  Take();
  ChangeSome(10);
  EXPECT_LT(Take(), complete / 2);
  ChangeSome(10);
  EXPECT_GE(Take(/*complete=*/true), complete);
  EXPECT_EQ(ancestors_, 0u);
  ExpectRight();
  for (uint32_t page = 1; page <= kPages; page += 2) Change(PageId(page));
  EXPECT_GE(Take(), complete);
  EXPECT_EQ(ancestors_, 0u);
  EXPECT_GE(Take(), complete) << "the other lineage has not had these changes";
  ExpectRight();
}

TEST_F(ManyPagesTest, FreedPagesAreNotInLaterCheckpoints) {
  Take();
  Take();
  const auto free = [&](uint32_t first, uint32_t step) {
    for (uint32_t page = first; page < 20'000; page += step) {
      ImageParts parts;
      const ReclamationDomain::Guard guard(domain_);
      if (pages_->HasImage(PageId(page))) ASSERT_TRUE(pages_->TakeImage(PageId(page), &parts, domain_));
    }
  };
  for (int round = 0; round < 8; ++round) {
    free(1 + static_cast<uint32_t>(round), 97);
    ChangeSome(50);
    Take();
    EXPECT_GT(ancestors_, 0u);
    ExpectRight();
  }
}

// --- Stores.

class LineagesInAStoreTest : public ::testing::Test {
 protected:
  LineagesInAStoreTest() : world_(1, kSmallRanges) { Fill(&world_); }

  static void Fill(CheckpointWorld* world) {
    world->Create(kTable);
    world->Fill(0, 3000);
    // Both lineages begin with complete files.
    EXPECT_TRUE(world->Take().ok());
    EXPECT_TRUE(world->Take().ok());
  }
  // Changes a few pages, and takes a checkpoint that has ancestors.
  static void Round(CheckpointWorld* world, int round) {
    const auto first = static_cast<uint64_t>(round * 577 % 2900);
    world->Put(first, Concat("value of round ", round));
    world->Put((first + 1500) % 3000, Concat("another of round ", round));
    world->Delete((first + 50) % 3000);
    const Status taken = world->Take();
    ASSERT_TRUE(taken.ok()) << taken.ToString();
  }
  void Restart(uint64_t expected) {
    world_.End();
    const Status begun = world_.Begin();
    ASSERT_TRUE(begun.ok()) << begun.ToString();
    EXPECT_EQ(world_.incarnation().found.opened.value, expected);
    world_.ExpectRight();
  }
  uint64_t Newest() { return world_.Checkpoints().front(); }
  CheckpointContent Content(uint64_t number) {
    CheckpointKeeper keeper;
    const auto read =
        ReadCheckpoint(world_.storage(), world_.directory(), CheckpointNumber(number), CheckpointWorld::kDc, &keeper);
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    return keeper.content;
  }
  // Between two checkpoints nothing writes pages, so the newest one has all images.
  void ExpectSameImages() {
    CheckpointIncarnation& incarnation = world_.incarnation();
    EXPECT_TRUE(Content(Newest()).pages == ImagesOf(*incarnation.pages, incarnation.domain));
  }

  CheckpointWorld world_;
};

TEST_F(LineagesInAStoreTest, EveryCheckpointHasAllPagesAlsoAfterRestarts) {
  for (int round = 0; round < 40; ++round) {
    Round(&world_, round);
    if (HasFatalFailure()) return;
    ExpectSameImages();
    EXPECT_FALSE(Content(Newest()).head.ancestors.empty()) << round;
    // Restarts come in both lineages, and after both of them were continued.
    if (round % 3 == 0 || round % 7 == 6) Restart(Newest());
    if (HasFailure()) return;
  }
  EXPECT_GT(world_.Checkpoints().size(), 4u);
}

// A page changes once. The next two checkpoints belong to different lineages, and each has the change.
TEST_F(LineagesInAStoreTest, AChangeIsInTheNextCheckpointOfEachLineage) {
  world_.Put(700, "changed once");
  ASSERT_TRUE(world_.Take().ok());
  world_.Put(2500, "another page");
  ASSERT_TRUE(world_.Take().ok());
  ExpectSameImages();
  Restart(Newest());
}

// The start opens one lineage; the next checkpoint belongs to the other one, which lacks the last interval.
TEST_F(LineagesInAStoreTest, AChangeOfTheLastIntervalIsKnownAfterAStart) {
  Round(&world_, 1);
  world_.Put(700, "changed once");
  ASSERT_TRUE(world_.Take().ok());
  Restart(Newest());
  world_.Put(2500, "another page");
  ASSERT_TRUE(world_.Take().ok());
  EXPECT_FALSE(Content(Newest()).head.ancestors.empty());
  ExpectSameImages();
  Restart(Newest());
}

TEST_F(LineagesInAStoreTest, DroppedTablesAreGoneAlsoAfterAStart) {
  const TableId other(9);
  world_.Create(other);
  world_.Fill(0, 300, 0, other);
  for (int round = 0; round < 3; ++round) Round(&world_, round);
  world_.Drop(other);
  world_.incarnation().domain.Collect();
  for (int round = 3; round < 8; ++round) {
    Round(&world_, round);
    ExpectSameImages();
    Restart(Newest());
    if (HasFailure()) return;
  }
}

TEST_F(LineagesInAStoreTest, FilesThatACheckpointNeedsAreKept) {
  for (int round = 0; round < 6; ++round) Round(&world_, round);
  const std::vector<uint64_t> found = world_.Checkpoints();
  std::set<uint64_t> needed;
  for (const uint64_t kept : {found[0], found[1]}) {
    needed.insert(kept);
    for (const CheckpointAncestor& file : Content(kept).head.ancestors) needed.insert(file.number.value);
  }
  EXPECT_EQ(std::set<uint64_t>(found.begin(), found.end()), needed);
  EXPECT_GT(needed.size(), 4u);
  Restart(found[0]);
}

// Pages are split and written after the first capture.
TEST_F(LineagesInAStoreTest, ImagesThatChangeWhileACheckpointIsTakenAreThoseOfItsEnd) {
  bool done = false;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "checkpoint.captured" || std::exchange(done, true)) return;
    for (uint64_t i = 0; i < 200; ++i) world_.Put(10'000 + i, Concat("more ", i));
  });
  const Position before = world_.applied();
  ASSERT_TRUE(world_.incarnation().checkpointer->Take([&] { return before; }).ok());
  testing::SetPointHandler({});
  EXPECT_TRUE(done);
  ExpectSameImages();
  Restart(Newest());
}

TEST_F(LineagesInAStoreTest, TheChangesOfAFailedCheckpointAreInTheNextOne) {
  Round(&world_, 0);
  for (const std::string path : {".tmp", ".seg"}) {
    world_.Put(700, "changed before " + path);
    world_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite, .path_contains = path});
    EXPECT_EQ(world_.Take(), ErrorCode::kResourceExhausted);
    world_.disk().RemoveAllFaults();
    ASSERT_TRUE(world_.Take().ok());
    ExpectSameImages();
    ASSERT_TRUE(world_.Take().ok());
    ExpectSameImages();
    Restart(Newest());
  }
}

// No file belongs to both checkpoints, so one of them is always whole.
TEST_F(LineagesInAStoreTest, DamageOfAnyFileLeavesOneOfTheTwoWhole) {
  for (int round = 0; round < 8; ++round) Round(&world_, round);
  const std::vector<uint64_t> found = world_.Checkpoints();
  world_.End();
  std::set<uint64_t> of_newest = {found[0]};
  for (const CheckpointAncestor& file : Content(found[0]).head.ancestors) of_newest.insert(file.number.value);
  EXPECT_GT(of_newest.size(), 2u);
  for (const uint64_t number : found) {
    const std::string name = CheckpointName(CheckpointNumber(number));
    const uint64_t expected = of_newest.contains(number) ? found[1] : found[0];
    for (const uint64_t at : {uint64_t{20}, uint64_t{100}, uint64_t{5000}}) {
      ASSERT_TRUE(world_.disk().FlipBit(world_.Path(name), at, 3).ok());
      Restart(expected);
      world_.End();
      ASSERT_TRUE(world_.disk().FlipBit(world_.Path(name), at, 3).ok());
    }
    const std::string bytes = world_.ReadFiles().at(name);
    world_.Remove(name);
    if (number != found[0] && number != found[1]) Restart(expected);
    world_.End();
    world_.Write(name, bytes);
    if (HasFailure()) return;
  }
  Restart(found[0]);
}

// The lineage of a checkpoint that was passed over is damaged; a checkpoint that continued it would be, too.
TEST_F(LineagesInAStoreTest, AfterAFallBackTheNextCheckpointDoesNotContinueTheDamagedLineage) {
  // Many tables make complete files of several blocks.
  for (uint32_t table = 100; table < 3100; ++table) world_.Create(TableId(table));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world_.Take().ok());
  for (int round = 0; round < 6; ++round) Round(&world_, round);
  const std::vector<uint64_t> found = world_.Checkpoints();
  const CheckpointLineage ancestors = Content(found[0]).head.ancestors;
  ASSERT_GT(ancestors.size(), 1u);
  world_.End();
  // The damage is not in the last block of the complete file, which a start looks at.
  ASSERT_GT(ancestors.front().blocks, 1u);
  const std::string damaged = CheckpointName(ancestors.front().number);
  ASSERT_TRUE(world_.disk().FlipBit(world_.Path(damaged), 5000, 1).ok());
  Restart(found[1]);
  world_.Put(1, "after the damage");
  ASSERT_TRUE(world_.Take().ok());
  EXPECT_TRUE(Content(Newest()).head.ancestors.empty());
  ExpectSameImages();
  const uint64_t newest = Newest();
  EXPECT_EQ(newest, found[0] + 1);
  Restart(newest);
  Round(&world_, 7);
  Restart(newest + 1);
}

// The first checkpoint after a fall-back is completed, but the name of the one that was passed over cannot be removed
// durably yet. The later checkpoints of both lineages name only files that are there.
TEST_F(LineagesInAStoreTest, ACompletedFileCountsAlthoughAPassedOverOneCannotBeRemoved) {
  for (int round = 0; round < 6; ++round) Round(&world_, round);
  const std::vector<uint64_t> found = world_.Checkpoints();
  world_.End();
  ASSERT_TRUE(world_.disk().FlipBit(world_.Path(CheckpointName(CheckpointNumber(found[0]))), 100, 1).ok());
  Restart(found[1]);
  // The segments' names and the checkpoint's own name are synced first.
  bool renamed = false;
  const int shortage = world_.disk().AddFault({.action = DiskFault::Action::kShortage,
                                               .kinds = kDiskName | kDiskSyncDirectory,
                                               .predicate =
                                                   [&](const DiskOperation& operation) {
                                                     const bool sync = operation.kind == kDiskSyncDirectory;
                                                     if (!sync) renamed |= operation.path.ends_with(".tmp");
                                                     return sync && renamed;
                                                   },
                                               .skip = 1,
                                               .count = 1});
  world_.Put(1, "after the damage");
  EXPECT_EQ(world_.Take(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(world_.disk().hits(shortage), 1u);
  world_.disk().RemoveAllFaults();
  EXPECT_EQ(Newest(), found[0] + 1) << "the checkpoint is completed";
  for (int round = 6; round < 12; ++round) {
    Round(&world_, round);
    if (HasFatalFailure()) return;
    ExpectSameImages();
    if (HasFailure()) return;
  }
  Restart(Newest());
}

// The damage is not in the last block of a file, so a start that opens the other lineage does not see it.
TEST_F(LineagesInAStoreTest, AfterDamageWasFoundTwoCompleteFilesReplaceAllOthers) {
  for (int round = 0; round < 6; ++round) Round(&world_, round);
  const uint64_t damaged = Newest();
  ASSERT_TRUE(world_.disk().FlipBit(world_.Path(CheckpointName(CheckpointNumber(damaged))), 100, 1).ok());
  world_.incarnation().checkpointer->ReplaceFiles();
  // The request outlives a checkpoint that fails.
  world_.disk().AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite, .path_contains = ".tmp"});
  world_.Put(1, "before the failure");
  EXPECT_EQ(world_.Take(), ErrorCode::kResourceExhausted);
  world_.disk().RemoveAllFaults();
  for (int round = 6; round < 8; ++round) {
    Round(&world_, round);
    EXPECT_TRUE(Content(Newest()).head.ancestors.empty()) << round;
    ExpectSameImages();
    Restart(Newest());  // the second file is complete also after a start
    if (HasFailure()) return;
  }
  // A start keeps a file whose first block it does not understand.
  EXPECT_EQ(world_.Checkpoints(), (std::vector<uint64_t>{damaged + 2, damaged + 1, damaged}));
  // Both can be opened, and both lineages go on.
  Round(&world_, 8);
  EXPECT_FALSE(Content(Newest()).head.ancestors.empty());
  ASSERT_TRUE(world_.disk().FlipBit(world_.Path(CheckpointName(CheckpointNumber(damaged + 3))), 100, 1).ok());
  Restart(damaged + 2);
}

TEST_F(LineagesInAStoreTest, DamageThatIsFoundWhileACheckpointIsTakenMakesTheNextTwoComplete) {
  for (int round = 0; round < 4; ++round) Round(&world_, round);
  bool done = false;
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "checkpoint.captured" && !std::exchange(done, true)) world_.incarnation().checkpointer->ReplaceFiles();
  });
  Round(&world_, 4);
  testing::SetPointHandler({});
  EXPECT_TRUE(done);
  EXPECT_FALSE(Content(Newest()).head.ancestors.empty());
  for (int round = 5; round < 8; ++round) {
    Round(&world_, round);
    EXPECT_EQ(Content(Newest()).head.ancestors.empty(), round < 7) << round;
  }
}

// Such a file has no ancestors. It becomes the ancestor of files of this version.
TEST(LineagesOfOldFilesTest, AFileOfFormatVersion3IsContinued) {
  CheckpointWorld world(1, kSmallRanges);
  world.Create(kTable);
  world.Fill(0, 3000);
  ASSERT_TRUE(world.Take().ok());
  world.End();
  // The first checkpoint of a store has only records that version 3 has, too.
  const std::string name = CheckpointName(CheckpointNumber(1));
  std::string bytes = world.ReadFiles().at(name);
  uint32_t predecessor = 0;
  for (size_t at = 0; at < bytes.size(); at += kCheckpointBlockBytes) {
    StoreU16(bytes.data() + at + 8, 3);
    StoreU32(bytes.data() + at + 40, predecessor);
    predecessor = Crc32c(bytes.data() + at + 8, kCheckpointBlockBytes - 8);
    StoreU32(bytes.data() + at + 4, predecessor);
  }
  world.Write(name, bytes);
  for (uint64_t number = 2; number <= 6; ++number) {
    const Status begun = world.Begin();
    ASSERT_TRUE(begun.ok()) << begun.ToString();
    world.ExpectRight();
    world.Put(number * 400, Concat("value ", number));
    ASSERT_TRUE(world.Take().ok());
    CheckpointKeeper keeper;
    const auto read =
        ReadCheckpoint(world.storage(), world.directory(), CheckpointNumber(number), CheckpointWorld::kDc, &keeper);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(keeper.content.pages == ImagesOf(*world.incarnation().pages, world.incarnation().domain));
    const CheckpointLineage& ancestors = keeper.content.head.ancestors;
    EXPECT_EQ(ancestors.empty(), number == 2);
    if (number == 3) EXPECT_EQ(ancestors.front().number, CheckpointNumber(1));
    world.End();
  }
}

TEST_F(LineagesInAStoreTest, WithoutAFileOfTheOtherLineageTheNextCheckpointIsComplete) {
  for (int round = 0; round < 6; ++round) Round(&world_, round);
  const std::vector<uint64_t> found = world_.Checkpoints();
  world_.Remove(CheckpointName(Content(found[1]).head.ancestors.front().number));
  Restart(found[0]);
  Round(&world_, 7);
  EXPECT_TRUE(Content(Newest()).head.ancestors.empty());
  Restart(Newest());
}

TEST(LineagesCrashTest, PowerMayGoAtAnyMoment) {
  int crashes = 0;
  for (uint64_t n = 1;; ++n) {
    CheckpointWorld world(n, kSmallRanges);
    world.Create(kTable);
    world.Fill(0, 800);
    for (int i = 0; i < 4; ++i) {
      world.Put(static_cast<uint64_t>(i) * 190, Concat("value ", i));
      ASSERT_TRUE(world.Take().ok());
    }
    ASSERT_GT(world.Checkpoints().size(), 2u) << "the kept ones have ancestors";
    world.Put(300, "the last one");
    world.disk().CrashAfter(n);
    const Status taken = world.Take();
    if (world.disk().crashes() == 0) {
      EXPECT_TRUE(taken.ok());
      break;
    }
    ++crashes;
    const Position told = world.stable();
    world.Crash(n);
    world.disk().CrashAfter(0);
    // The start continues both lineages, or begins one anew. Each of the next checkpoints is opened, too.
    for (int start = 0; start < 3; ++start) {
      const Status begun = world.Begin();
      ASSERT_TRUE(begun.ok()) << n << ": " << begun.ToString();
      EXPECT_GE(world.incarnation().found.position, told);
      EXPECT_EQ(world.incarnation().found.opened.value, world.Checkpoints().front());
      world.ExpectRight();
      world.Put(static_cast<uint64_t>(start) * 260, Concat("after start ", start));
      ASSERT_TRUE(world.Take().ok());
      world.End();
    }
  }
  EXPECT_GT(crashes, 5);
}

}  // namespace
}  // namespace deut::dc
