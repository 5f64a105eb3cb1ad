#include "dc/checkpoint/recovery.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/disk_fault.h"
#include "common/runtime/runtime.h"
#include "dc/checkpoint/checkpoint_world_fixture.h"
#include "dc/checkpoint/inner_pages.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_fixture.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/segment_format.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr TableId kTable = CheckpointWorld::kTable;
constexpr uint64_t kRecords = 600;

// Two checkpoints of a tree of three levels, with no running incarnation. The newer checkpoint has parts of its own
// in segments of its own.
class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() {
    world_.Create(kTable);
    world_.Fill(0, kRecords);
    EXPECT_TRUE(world_.Take().ok());
    older_ = world_.applied();
    world_.End();  // so that later parts go to other segments
    EXPECT_TRUE(world_.Begin().ok());
    world_.Fill(0, kRecords / 2, /*round=*/1);
    EXPECT_TRUE(world_.Take().ok());
    newer_ = world_.applied();
    world_.End();
    EXPECT_EQ(world_.Checkpoints(), (std::vector<uint64_t>{2, 1}));
  }

  std::string NameOf(uint64_t number) { return CheckpointName(CheckpointNumber(number)); }

  // Checks that no incarnation starts on this directory, and that the directory stays unchanged to the last byte.
  void ExpectRefused(ErrorCode code, std::string_view why = {},
                     const RecoveryOptions& options = CheckpointWorld::Options()) {
    const CheckpointWorld::Files before = world_.ReadFiles();
    const Status status = world_.Begin(options);
    EXPECT_EQ(status, code) << status.ToString();
    EXPECT_NE(status.message().find(why), std::string_view::npos) << status.ToString();
    EXPECT_TRUE(world_.ReadFiles() == before);
  }
  void ExpectOpens(uint64_t number) {
    const Status status = world_.Begin();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(world_.incarnation().found.opened.value, number);
    EXPECT_EQ(world_.incarnation().found.position, number == 2 ? newer_ : older_);
    EXPECT_EQ(world_.incarnation().found.stable, older_);
    EXPECT_EQ(world_.incarnation().found.oldest_kept.value, 1u);
    world_.ExpectRight();
    world_.End();
  }
  // Flips a bit of the file while `then` runs.
  template <typename Then>
  void WithFlippedBit(const std::string& name, uint64_t at, const Then& then) {
    ASSERT_TRUE(world_.disk().FlipBit(world_.Path(name), at, static_cast<int>(at % 8)).ok());
    then();
    ASSERT_TRUE(world_.disk().FlipBit(world_.Path(name), at, static_cast<int>(at % 8)).ok());
  }

  CheckpointContent Content(uint64_t number) {
    CheckpointKeeper keeper;
    EXPECT_TRUE(
        ReadCheckpoint(world_.storage(), world_.directory(), CheckpointNumber(number), CheckpointWorld::kDc, &keeper)
            .ok());
    return keeper.content;
  }
  // Writes a third, complete checkpoint with this content.
  void WriteCheckpoint(CheckpointContent content) {
    content.head.number = CheckpointNumber(3);
    auto writer = CheckpointWriter::Create(world_.storage(), world_.directory(), content.head);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(AddAll(**writer, content).ok());
    const Status finished = (*writer)->Finish();
    ASSERT_TRUE(finished.ok()) << finished.ToString();
  }

  CheckpointWorld world_;
  Position older_;
  Position newer_;
};

TEST_F(RecoveryTest, AnEmptyDirectoryIsAnEmptyDataComponent) {
  const auto recovered =
      RecoverPages(world_.storage(), RealRuntime(), "/elsewhere", CheckpointWorld::kDc, CheckpointWorld::Options());
  ASSERT_TRUE(recovered.ok());
  EXPECT_TRUE(recovered->tables.empty());
  EXPECT_EQ(recovered->found.position, Position());
  EXPECT_EQ(recovered->found.opened.value, 0u);
  EXPECT_EQ(recovered->pages->used(), 0u);
}

TEST_F(RecoveryTest, TheNewestCheckpointIsOpened) {
  ExpectOpens(2);
  // One thread gives the same result as several.
  RecoveryOptions alone = CheckpointWorld::Options();
  alone.threads = 1;
  ASSERT_TRUE(world_.Begin(alone).ok());
  world_.ExpectRight();
}

TEST_F(RecoveryTest, HowFarItHasComeIsTold) {
  RecoveryProgress progress;
  EXPECT_EQ(progress.Text(), "recovering: looking for a checkpoint");
  RecoveryOptions options = CheckpointWorld::Options();
  options.progress = &progress;
  ASSERT_TRUE(world_.Begin(options).ok());
  const size_t segments = Content(2).segments.size();
  EXPECT_GT(segments, 1u);
  EXPECT_EQ(progress.checkpoint, 2u);
  EXPECT_EQ(progress.segments, segments);
  EXPECT_EQ(progress.segments_checked, segments);
  EXPECT_GT(progress.inner_pages, 1u);
  EXPECT_EQ(progress.inner_pages_loaded, progress.inner_pages);
  EXPECT_EQ(progress.Text(),
            Concat("recovering: checkpoint 2, ", segments, " of ", segments, " segments checked, ",
                   progress.inner_pages.load(), " of ", progress.inner_pages.load(), " inner pages loaded"));
  world_.End();

  // A cancelled recovery changes nothing, and a later one counts its progress from the start.
  progress.given_up = true;
  ExpectRefused(ErrorCode::kCancelled, "given up", options);
  progress.given_up = false;
  ASSERT_TRUE(world_.Begin(options).ok());
  EXPECT_EQ(progress.segments_checked, segments);
}

// No thread continues before two are waiting for the disk.
TEST_F(RecoveryTest, SeveralSegmentsAreLookedAtAtOnce) {
  RecoveryOptions options = CheckpointWorld::Options();
  options.threads = 2;
  world_.disk().HoldOperations(kDiskOpen, ".seg");
  Status begun;
  const auto start = RealRuntime().StartThread("start", [&] { begun = world_.Begin(options); });
  while (world_.disk().held_operations() < 2) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
  world_.disk().HoldOperations(0);
  start->Join();
  EXPECT_TRUE(begun.ok()) << begun.ToString();
  world_.ExpectRight();
}

TEST_F(RecoveryTest, ARefusalNamesBothCheckpointsAndTheRemedy) {
  WithFlippedBit(NameOf(2), 100, [&] {
    WithFlippedBit(NameOf(1), 100, [&] {
      const Status refused = world_.Begin();
      for (const std::string& piece :
           {NameOf(2), NameOf(1), std::string("Nothing was deleted or changed"), std::string("deut dc verify")}) {
        EXPECT_NE(refused.message().find(piece), std::string_view::npos) << refused.ToString();
      }
    });
  });
}

TEST_F(RecoveryTest, OpeningChangesNothing) {
  const CheckpointWorld::Files before = world_.ReadFiles();
  ASSERT_TRUE(world_.Begin().ok());
  EXPECT_TRUE(world_.ReadFiles() == before);
}

TEST_F(RecoveryTest, RecordsAreEstimatedFromSomePages) {
  ASSERT_TRUE(world_.Begin().ok());
  const ReclamationDomain::Guard guard(world_.incarnation().domain);
  EXPECT_NEAR(static_cast<double>(world_.incarnation().tables.FindTree(kTable)->statistics().records), kRecords,
              kRecords / 4.0);
}

TEST_F(RecoveryTest, AnyDamageOfTheNewestMakesTheOlderOneTheStart) {
  const uint64_t bytes = world_.ReadFiles().at(NameOf(2)).size();
  for (uint64_t at = 0; at < bytes; at += at < 4096 ? 61 : 4093) {
    WithFlippedBit(NameOf(2), at, [&] { ExpectOpens(1); });
    if (HasFailure()) return;
  }
  ExpectOpens(2);
}

TEST_F(RecoveryTest, AfterAFallBackNoOlderCheckpointIsLeftToFallBackTo) {
  ASSERT_TRUE(world_.Begin().ok());
  world_.Fill(0, 100, /*round=*/2);
  ASSERT_TRUE(world_.Take().ok());
  EXPECT_EQ(world_.stable(), newer_);
  world_.End();
  WithFlippedBit(NameOf(3), 50, [&] {
    ASSERT_TRUE(world_.Begin().ok());
    EXPECT_EQ(world_.incarnation().found.opened.value, 2u);
    // The stable position is the checkpoint's own, not that of checkpoint 1, which is gone.
    EXPECT_EQ(world_.stable(), newer_);
    world_.ExpectRight();
    world_.End();
  });
}

TEST_F(RecoveryTest, ANewestThatIsCutOffOrHasMoreBehindItIsDamaged) {
  const std::string whole = world_.ReadFiles().at(NameOf(2));
  for (const std::string& bytes :
       {std::string(), whole.substr(0, 4096), whole.substr(0, whole.size() - 4096), whole + std::string(4096, '\0')}) {
    world_.Write(NameOf(2), bytes);
    ExpectOpens(1);
  }
  world_.Write(NameOf(2), whole);
  ExpectOpens(2);
}

TEST_F(RecoveryTest, AReadErrorIsNoReasonToFallBack) {
  const CheckpointWorld::Files before = world_.ReadFiles();
  world_.disk().AddFault({.kinds = kDiskRead, .path_contains = NameOf(2), .count = 1});
  EXPECT_EQ(world_.Begin(), ErrorCode::kIoError);
  EXPECT_TRUE(world_.ReadFiles() == before);
  ExpectOpens(2);
}

TEST_F(RecoveryTest, TwoDamagedCheckpointsAreRefusedAndNothingIsChanged) {
  WithFlippedBit(NameOf(2), 100, [&] {
    WithFlippedBit(NameOf(1), 100, [&] { ExpectRefused(ErrorCode::kCorruption, NameOf(2)); });
    // The start is also refused if one of them is missing.
    const std::string older = world_.ReadFiles().at(NameOf(1));
    world_.Remove(NameOf(1));
    ExpectRefused(ErrorCode::kCorruption, NameOf(2));
    world_.Write(NameOf(1), older);
    ExpectOpens(1);
  });
}

TEST_F(RecoveryTest, ACheckpointOlderThanTwoGenerationsIsNotOpened) {
  // A crash between completing 3 and removing 1 may leave this state. 2 and 3 are damaged.
  WriteCheckpoint(Content(2));
  WithFlippedBit(NameOf(3), 50,
                 [&] { WithFlippedBit(NameOf(2), 50, [&] { ExpectRefused(ErrorCode::kCorruption, NameOf(3)); }); });
}

// A folder without its checkpoints would be taken for a new one, or an older checkpoint for the newest.
TEST_F(RecoveryTest, S2CheckpointsThatWereToldAndAreMissingAreRefused) {
  RecoveryOptions told = CheckpointWorld::Options();
  told.oldest_required = CheckpointNumber(1);
  const CheckpointWorld::Files both = world_.ReadFiles();
  world_.Remove(NameOf(2));
  ASSERT_TRUE(world_.Begin(told).ok());
  EXPECT_EQ(world_.incarnation().found.opened.value, 1u);
  world_.End();
  told.oldest_required = CheckpointNumber(2);
  ExpectRefused(ErrorCode::kCorruption,
                Concat(NameOf(2),
                       " or a later checkpoint is missing: dc_state says that it was "
                       "completed, only the older ",
                       NameOf(1), ". Nothing was deleted"),
                told);
  world_.Remove(NameOf(1));
  told.oldest_required = CheckpointNumber(1);
  ExpectRefused(ErrorCode::kCorruption, Concat(NameOf(1), " or a later checkpoint is missing"), told);
  told.oldest_required = CheckpointNumber();
  ASSERT_TRUE(world_.Begin(told).ok());
  EXPECT_EQ(world_.incarnation().found.opened.value, 0u);
  world_.End();
  // The older checkpoint is no valid start either if the newer one cannot be read.
  world_.Write(NameOf(1), both.at(NameOf(1)));
  world_.Write(NameOf(2), both.at(NameOf(2)));
  told.oldest_required = CheckpointNumber(2);
  WithFlippedBit(NameOf(2), 100, [&] { ExpectRefused(ErrorCode::kCorruption, NameOf(2), told); });
  ASSERT_TRUE(world_.Begin(told).ok());
  EXPECT_EQ(world_.stable(), newer_);
}

// The whole folder of the pages may be missing. A refused start does not create it.
TEST_F(RecoveryTest, AMissingFolderOfCheckpointsThatWereToldIsNotMade) {
  RecoveryOptions told = CheckpointWorld::Options();
  told.oldest_required = CheckpointNumber(1);
  const auto refused = RecoverPages(world_.storage(), RealRuntime(), "/elsewhere", CheckpointWorld::kDc, told);
  EXPECT_EQ(refused.status(), ErrorCode::kCorruption);
  EXPECT_NE(refused.status().message().find("the folder itself is not there"), std::string::npos);
  EXPECT_FALSE(*world_.storage().Exists("/elsewhere"));
}

TEST_F(RecoveryTest, ACheckpointOfALaterVersionIsRefusedNotSkipped) {
  std::string bytes = world_.ReadFiles().at(NameOf(2));
  // In the first block, the version is at offset 8, and at 4 the checksum of all bytes behind itself.
  StoreU16(bytes.data() + 8, 1000);
  StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8, (64 << 10) - 8)));
  world_.Write(NameOf(2), bytes);
  ExpectRefused(ErrorCode::kVersionMismatch, NameOf(2));
}

TEST_F(RecoveryTest, AnotherDataComponentsCheckpointsAreRefused) {
  const CheckpointWorld::Files before = world_.ReadFiles();
  const auto recovered =
      RecoverPages(world_.storage(), RealRuntime(), world_.directory(), DcId(8), CheckpointWorld::Options());
  EXPECT_EQ(recovered.status(), ErrorCode::kCorruption);
  EXPECT_TRUE(world_.ReadFiles() == before);
}

TEST_F(RecoveryTest, MorePagesThanTheLimitAreRefused) {
  RecoveryOptions few = CheckpointWorld::Options();
  few.max_pages = 10;
  ExpectRefused(ErrorCode::kResourceExhausted, "the limit is 10", few);
}

// --- Segments.

TEST_F(RecoveryTest, AMissingSegmentOfTheNewestMakesTheOlderOneTheStart) {
  // A segment that the older checkpoint does not name.
  std::string only_newer;
  const CheckpointContent older = Content(1);
  for (const SegmentExtent& segment : Content(2).segments) {
    bool named = false;
    for (const SegmentExtent& other : older.segments) named |= other.number == segment.number;
    if (!named) only_newer = SegmentName(segment.kind, segment.number);
  }
  ASSERT_FALSE(only_newer.empty());
  const std::string bytes = world_.ReadFiles().at(only_newer);
  world_.Remove(only_newer);
  ExpectOpens(1);
  for (const std::string& damaged : {std::string(), bytes.substr(0, 4096), bytes.substr(0, bytes.size() - 4096)}) {
    world_.Write(only_newer, damaged);
    ExpectOpens(1);
  }
  std::string other_header = bytes;
  other_header[17] = static_cast<char>(other_header[17] ^ 1);
  world_.Write(only_newer, other_header);
  ExpectOpens(1);
  world_.Write(only_newer, bytes);
  ExpectOpens(2);
}

TEST_F(RecoveryTest, AMissingSegmentOfBothIsRefusedAndNothingIsChanged) {
  const SegmentExtent common = Content(1).segments.front();
  const std::string name = SegmentName(common.kind, common.number);
  const std::string bytes = world_.ReadFiles().at(name);
  world_.Remove(name);
  ExpectRefused(ErrorCode::kCorruption, name);
  world_.Write(name, bytes.substr(0, bytes.size() - 4096));
  ExpectRefused(ErrorCode::kCorruption, name);
  world_.Write(name, bytes);
  ExpectOpens(2);
}

TEST_F(RecoveryTest, ADamagedInnerPageIsRefusedByNameAndADamagedLeafWhenItIsRead) {
  const CheckpointContent content = Content(2);
  const PageId root = content.tables.front().first.second;
  size_t refused = 0;
  for (const auto& [page, parts] : content.pages) {
    const PageAddress base = parts.back();
    const std::string name = SegmentName(SegmentKind::kBase, base.segment());
    WithFlippedBit(name, base.offset() + 70, [&] {
      const CheckpointWorld::Files before = world_.ReadFiles();
      const Status status = world_.Begin();
      EXPECT_TRUE(world_.ReadFiles() == before);
      if (page == root) EXPECT_FALSE(status.ok());
      const std::string where = Concat("page ", page.value, " in segment ", base.segment(), " at ", base.offset());
      if (!status.ok()) {
        EXPECT_EQ(status, ErrorCode::kCorruption);
        EXPECT_NE(status.message().find(where), std::string_view::npos) << status.ToString();
        ++refused;
        return;
      }
      const auto found = world_.Scan();
      EXPECT_EQ(found.status(), ErrorCode::kCorruption);
      EXPECT_NE(found.status().message().find(where), std::string_view::npos) << found.status().ToString();
    });
    world_.End();
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 2u);
  EXPECT_LT(refused, content.pages.size() / 2);
  ExpectOpens(2);
}

// A run may fail because of bytes of other pages. The first read behind the headers of segments is the root's.
TEST_F(RecoveryTest, AnInnerPageWhoseRunCannotBeReadIsReadAlone) {
  const auto fail = [this](uint64_t count) {
    return world_.disk().AddFault(
        {.kinds = kDiskRead, .path_contains = "/base-", .offset_from = kSegmentHeaderBytes, .count = count});
  };
  const int once = fail(1);
  ExpectOpens(2);
  EXPECT_EQ(world_.disk().hits(once), 1u);
  world_.disk().RemoveFault(once);
  const CheckpointWorld::Files before = world_.ReadFiles();
  const int twice = fail(2);
  EXPECT_EQ(world_.Begin(), ErrorCode::kIoError);
  EXPECT_EQ(world_.disk().hits(twice), 2u);
  EXPECT_TRUE(world_.ReadFiles() == before);
}

// --- The content of a checkpoint must be consistent.

TEST_F(RecoveryTest, AnInnerPageThatNamesAnIdWithoutAnImageIsRefused) {
  CheckpointContent content = Content(2);
  const PageId root = content.tables.front().first.second;
  for (const auto& [page, parts] : Content(2).pages) {
    if (page == root) continue;
    CheckpointContent without = content;
    without.pages.erase(page);
    WriteCheckpoint(without);
    ExpectRefused(ErrorCode::kCorruption, "names a page that has no image");
    if (HasFailure()) return;
  }
  world_.Remove(NameOf(3));
  ExpectOpens(2);
}

TEST_F(RecoveryTest, APageThatTwoTablesNameIsRefused) {
  CheckpointContent content = Content(2);
  const PageId root = content.tables.front().first.second;
  for (const auto& [page, parts] : content.pages) {
    if (page == root) continue;
    CheckpointContent twice = content;
    twice.tables.push_back({{TableId(kTable.value + 1), page}, "another table"});
    WriteCheckpoint(twice);
    ExpectRefused(ErrorCode::kCorruption);
    break;
  }
}

TEST_F(RecoveryTest, IdsThatNobodyNamesAreFreeAndTheirPartsDead) {
  CheckpointContent content = Content(2);
  const PageId stray(content.head.next_page.value + 5);
  // Parts of a page that was allocated and written, and never became part of a tree.
  const PageAddress part = content.pages.begin()->second.back();
  content.pages[stray] = {part};
  content.head.next_page = PageId(stray.value + 3);
  const size_t named = content.pages.size() - 1;
  WriteCheckpoint(content);
  const Status begun = world_.Begin();
  ASSERT_TRUE(begun.ok()) << begun.ToString();
  CheckpointIncarnation& incarnation = world_.incarnation();
  EXPECT_EQ(incarnation.pages->used(), named);
  EXPECT_EQ(incarnation.pages->last_id(), stray.value + 2);
  EXPECT_FALSE(incarnation.pages->HasImage(stray));
  uint64_t live = 0;
  for (const auto& [page, parts] : content.pages) {
    if (page == stray) continue;
    for (const PageAddress address : parts) live += address.length_bound();
  }
  EXPECT_EQ(incarnation.store->totals().live_bytes, live);
  // The free ids are allocated again.
  world_.Fill(kRecords, 3 * kRecords, /*round=*/2);
  ASSERT_TRUE(world_.Take().ok());
  world_.End();
  ASSERT_TRUE(world_.Begin().ok());
  world_.ExpectRight();
}

// The page is in two groups of blocks, which threads read side by side. So the reader notices only at the end that the
// file is out of order. All checksums are right.
TEST_F(RecoveryTest, APageThatComesTwiceMakesTheOlderOneTheStart) {
  constexpr uint32_t kPages = 100'000;
  constexpr size_t kBlocksOfAGroup = 16;
  CheckpointContent content = Content(2);
  content.head.ancestors.clear();
  content.head.pages = PageRange();
  content.recent.clear();
  const PageAddress part = content.pages.begin()->second.back();
  const uint32_t first = content.head.next_page.value;
  for (uint32_t page = first; page < kPages; ++page) content.pages[PageId(page)] = {part};
  content.head.next_page = PageId(kPages);
  WriteCheckpoint(content);
  RecoveryOptions options = CheckpointWorld::Options();
  options.max_pages = 1 << 17;
  ASSERT_TRUE(world_.Begin(options).ok());
  EXPECT_EQ(world_.incarnation().found.opened.value, 3u);
  world_.End();

  std::string bytes = world_.ReadFiles().at(NameOf(3));
  ASSERT_GT(bytes.size(), (kBlocksOfAGroup + 1) * kCheckpointBlockBytes);
  char* const block = bytes.data() + kBlocksOfAGroup * kCheckpointBlockBytes;
  // Type and number of parts stand before the id.
  StoreU32(block + kCheckpointBlockHeaderBytes + 2, first);
  uint32_t predecessor = PredecessorOfCheckpointBlock(std::string_view(block, kCheckpointBlockBytes));
  for (size_t at = kBlocksOfAGroup * kCheckpointBlockBytes; at < bytes.size(); at += kCheckpointBlockBytes) {
    char* const sealed = bytes.data() + at;
    const uint16_t version = LoadU16(sealed + 8);
    predecessor = SealCheckpointBlock({.checkpoint = CheckpointNumber(3),
                                       .dc = CheckpointWorld::kDc,
                                       .offset = at,
                                       .predecessor = predecessor,
                                       .last = at + kCheckpointBlockBytes == bytes.size(),
                                       .payload_bytes = LoadU32(sealed + 12),
                                       .version = HasTableOptions(version) ? version : uint16_t{0}},
                                      sealed);
  }
  world_.Write(NameOf(3), bytes);
  for (const int threads : {1, 4}) {
    options.threads = threads;
    const Status begun = world_.Begin(options);
    ASSERT_TRUE(begun.ok()) << begun.ToString();
    EXPECT_EQ(world_.incarnation().found.opened.value, 2u);
    world_.End();
  }
}

// Threads look at the ids in ranges of 65,536.
TEST_F(RecoveryTest, IdsThatNobodyNamesAreFreeInEachRange) {
  CheckpointContent content = Content(2);
  const size_t named = content.pages.size();
  uint64_t live = 0;
  for (const auto& [page, parts] : content.pages) {
    for (const PageAddress address : parts) live += address.length_bound();
  }
  const PageAddress part = content.pages.begin()->second.back();
  const std::vector<uint32_t> strays = {content.head.next_page.value + 5, 65'536, 65'537, 131'072, 200'000, 262'143};
  for (const uint32_t stray : strays) content.pages[PageId(stray)] = {part};
  content.head.next_page = PageId(262'147);
  WriteCheckpoint(content);
  RecoveryOptions options = CheckpointWorld::Options();
  options.max_pages = 1 << 19;
  for (const int threads : {1, 4}) {
    options.threads = threads;
    const Status begun = world_.Begin(options);
    ASSERT_TRUE(begun.ok()) << begun.ToString();
    MappingTable& pages = *world_.incarnation().pages;
    EXPECT_EQ(pages.used(), named);
    EXPECT_EQ(pages.last_id(), 262'146u);
    for (const uint32_t stray : strays) EXPECT_FALSE(pages.HasImage(PageId(stray))) << stray;
    EXPECT_EQ(world_.incarnation().store->totals().live_bytes, live);
    world_.ExpectRight();
    world_.End();
  }
}

TEST_F(RecoveryTest, SegmentsThatTheOpenedCheckpointDoesNotNameStayUntilTheNextIsComplete) {
  const std::string stray = SegmentName(SegmentKind::kBase, 777);
  // A segment of an incarnation that ended before its first checkpoint.
  std::string header(kSegmentHeaderBytes, '\0');
  EncodeSegmentHeader(
      {.kind = SegmentKind::kBase, .number = 777, .dc = CheckpointWorld::kDc, .capacity_bytes = 1 << 20},
      header.data());
  world_.Write(stray, header);
  const auto has = [&] {
    const std::vector<std::string> names = world_.Names();
    return std::find(names.begin(), names.end(), stray) != names.end();
  };
  ASSERT_TRUE(world_.Begin().ok());
  EXPECT_TRUE(has());
  world_.Fill(0, 10, 3);
  EXPECT_TRUE(has());
  EXPECT_GT(world_.incarnation().store->next_segment(), 777u);  // no number is used twice
  ASSERT_TRUE(world_.Take().ok());
  EXPECT_FALSE(has());
  world_.ExpectRight();
}

TEST_F(RecoveryTest, DroppedTablesStayDropped) {
  ASSERT_TRUE(world_.Begin().ok());
  world_.Create(TableId(9));
  world_.Fill(0, 50, 0, TableId(9));
  world_.Drop(kTable);
  ASSERT_TRUE(world_.Take().ok());
  world_.End();
  ASSERT_TRUE(world_.Begin().ok());
  world_.ExpectRight();
  const auto again = world_.incarnation().tables.Create(kTable, "again");
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(*again);
}

TEST(SampledLeavesTest, AllOfASmallTreeAndSomeOfEachPartOfALargeOne) {
  EXPECT_TRUE(SampledLeaves(0).empty());
  EXPECT_EQ(SampledLeaves(3), (std::vector<size_t>{0, 1, 2}));
  for (const size_t leaves : {size_t{33}, size_t{1000}, size_t{45'000'000}}) {
    const std::vector<size_t> places = SampledLeaves(leaves);
    ASSERT_EQ(places.size(), 32u);
    for (size_t i = 0; i < places.size(); ++i) {
      EXPECT_GE(places[i], i * leaves / 32);
      EXPECT_LT(places[i], (i + 1) * leaves / 32);
    }
  }
}

}  // namespace
}  // namespace deut::dc
