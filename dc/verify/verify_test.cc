// Verify finds no damage in an intact directory, and finds every damage. Parts that do not fit their tree are in
// tree_walk_test.cc.
#include "dc/verify/verify.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/base/compression.h"
#include "common/base/concat.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/verify/checkpoint_contents.h"
#include "dc/verify/store_on_disk.h"
#include "dc/verify/verify_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// Returns the checkpoint files in ascending order.
std::vector<std::string> Checkpoints(StoreOnDisk& store) {
  std::vector<std::string> paths;
  for (const std::string& path : store.Files()) {
    if (Has(path, "/checkpoint-")) paths.push_back(path);
  }
  return paths;
}

TEST(VerifyTest, AFolderThatTheDataComponentLeavesIsClean) {
  StoreOnDisk store;
  store.Fill(6000);
  const std::map<std::string, std::string> before = store.Bytes();
  const VerifyReport report = Verified(store);
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_EQ(store.Bytes(), before);
  ASSERT_EQ(report.checkpoints.size(), 2u);
  const CheckpointReport& newest = report.checkpoints[0];
  EXPECT_TRUE(newest.whole() && report.checkpoints[1].whole());
  ASSERT_EQ(newest.tables.size(), 3u);
  EXPECT_EQ(newest.tables[0].records, store.records(StoreOnDisk::kAccounts));
  EXPECT_EQ(newest.tables[1].records, store.records(StoreOnDisk::kOrders));
  EXPECT_EQ(newest.tables[2].root.value, 0u);
  EXPECT_GE(newest.tables[0].levels.size(), 3u);
  EXPECT_GT(newest.tables[0].delta_parts, 0u);
  uint64_t pages = 0;
  for (const TableReport& table : newest.tables) {
    for (size_t i = 1; i < table.levels.size(); ++i) EXPECT_EQ(table.levels[i].entries, table.levels[i - 1].pages);
    for (const LevelReport& level : table.levels) pages += level.pages;
  }
  EXPECT_EQ(pages, newest.pages);
  EXPECT_EQ(newest.unreached_pages, 0u);
  EXPECT_GT(newest.live_bytes, 0u);
}

RecordStoreOptions Compressed() {
  RecordStoreOptions options = StoreOnDisk::SmallPages();
  options.tree.compression = Compression::kZstd;
  return options;
}

TEST(VerifyTest, AFolderWithCompressedPagesIsClean) {
  StoreOnDisk store(NewMemoryStorage(RealRuntime()), Compressed());
  store.Fill(3000);
  EXPECT_TRUE(std::ranges::any_of(store.Parts(), [](const auto& part) { return part.header.packed; }));
  const VerifyReport report = Verified(store);
  EXPECT_TRUE(report.clean()) << ReportText(report);
  ASSERT_EQ(report.checkpoints[0].tables.size(), 3u);
  EXPECT_EQ(report.checkpoints[0].tables[0].compression, Compression::kZstd);
  EXPECT_EQ(report.checkpoints[0].tables[0].records, store.records(StoreOnDisk::kAccounts));
  EXPECT_TRUE(Has(ReportText(report), "compressed with zstd"));
  EXPECT_TRUE(store.TryStart().ok());
}

// The checksum of such a part is right.
TEST(VerifyTest, APageThatDoesNotDecompressIsFound) {
  StoreOnDisk store(NewMemoryStorage(RealRuntime()), Compressed());
  store.Fill(1000);
  const auto contents = ReadContents(store.storage(), StoreOnDisk::PathOf("pages"), CheckpointNumber(4),
                                     StoreOnDisk::kDc, WithImages::kYes);
  ASSERT_TRUE(contents.ok());
  std::vector<StoreOnDisk::Part> live;
  for (const StoreOnDisk::Part& part : store.Parts()) {
    const auto place = contents->images.Find(part.header.page);
    if (!part.header.packed || part.header.level != 0 || !place.has_value()) continue;
    if (std::ranges::count(contents->images.parts(*place), part.address) != 0) live.push_back(part);
  }
  ASSERT_FALSE(live.empty());
  StoreOnDisk::Part part = live[live.size() / 2];
  constexpr size_t kContentBytesAt = 4;
  StoreU32(part.payload.data() + kContentBytesAt, LoadU32(part.payload.data() + kContentBytesAt) + 1);
  store.Put(part);
  const VerifyReport report = Verified(store);
  EXPECT_TRUE(Found(
      report, Damaged::kPage,
      {Concat("page ", part.header.page.value, " in segment ", part.address.segment(), " at ", part.address.offset()),
       part.path, "does not decompress"}))
      << ReportText(report);
  EXPECT_TRUE(Found(report, Damaged::kSegment,
                    {Concat(part.path, ": offset ", part.address.offset() + kPartHeaderBytes), "does not decompress"}))
      << ReportText(report);
}

TEST(VerifyTest, AFreshDirectoryIsClean) {
  StoreOnDisk store;
  store.Start();
  store.Stop();
  VerifyReport report = Verified(store);
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_TRUE(report.checkpoints.empty());
  EXPECT_EQ(VerdictLine(report), "dc verify: clean, 0 pages, 0 records in 0 tables, 0 segments, 0 checkpoints");
  store.Start();
  store.Create(StoreOnDisk::kAccounts);
  store.Put(StoreOnDisk::kAccounts, "a", "b");
  store.Checkpoint();
  store.Stop();
  report = Verified(store);
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_EQ(VerdictLine(report), "dc verify: clean, 1 pages, 1 records in 1 tables, 1 segments, 1 checkpoints");
}

TEST(VerifyTest, AFolderThatCannotBeCheckedIsNeitherCleanNorDamaged) {
  StoreOnDisk store;
  EXPECT_EQ(Verify(store).status(), ErrorCode::kNotFound);
  ASSERT_TRUE(store.storage().CreateDirectory(std::string(StoreOnDisk::kDirectory)).ok());
  EXPECT_EQ(Verify(store).status(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(store.storage().List(std::string(StoreOnDisk::kDirectory))->empty()) << "nothing was made in it";
  ASSERT_TRUE(store.storage().CreateDirectory("/store/dc").ok());
  const auto above = VerifyDirectory(store.storage(), RealRuntime(), "/store", {});
  EXPECT_TRUE(Has(above.status().message(), "that of an embedded store is /store/dc")) << above.status().ToString();
  store.Fill(100);
  {
    const auto lock = store.storage().Lock(StoreOnDisk::PathOf("lock"));
    ASSERT_TRUE(lock.ok());
    const auto report = Verify(store);
    EXPECT_EQ(report.status(), ErrorCode::kUnavailable);
    EXPECT_TRUE(Has(report.status().message(), "stop the data component first")) << report.status().ToString();
  }
  EXPECT_TRUE(Verified(store).clean());
}

// Images of pages that no root leads to, and files left by a crash, are reported and are no damage.
TEST(VerifyTest, UnneededFilesAreReported) {
  StoreOnDisk store;
  store.Fill(1000);
  auto contents = ReadContents(store.storage(), StoreOnDisk::PathOf("pages"), CheckpointNumber(4), StoreOnDisk::kDc,
                               WithImages::kYes);
  ASSERT_TRUE(contents.ok()) << contents.status().ToString();
  CheckpointHead head = contents->head;
  head.number = CheckpointNumber(5);
  auto writer = CheckpointWriter::Create(store.storage(), StoreOnDisk::PathOf("pages"), head);
  ASSERT_TRUE(writer.ok());
  const CheckpointContents::Table& kept = contents->tables[0];
  ASSERT_TRUE((*writer)->AddTable({.id = kept.id, .root = kept.root, .name = kept.name}).ok());
  for (const SegmentExtent& segment : contents->segments) ASSERT_TRUE((*writer)->AddSegment(segment).ok());
  for (size_t i = 0; i < contents->images.size(); ++i) {
    ASSERT_TRUE((*writer)->AddPage(contents->images.page(i), contents->images.parts(i)).ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  const std::string last = store.Parts().back().path;
  store.Replace(StoreOnDisk::PathOf("pages/checkpoint-000000000009.tmp"), "half a checkpoint");
  store.Replace(StoreOnDisk::PathOf("pages/base-0000000000ff.seg"), std::string(5000, 'x'));
  store.Replace(StoreOnDisk::PathOf("notes.txt"), "not ours");
  // Half a batch, behind the bytes that a checkpoint names.
  const uint64_t end = store.Read(last).size();
  store.Write(last, end, std::string(5000, 'y'));
  const VerifyReport report = Verified(store);
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_GT(report.checkpoints[0].unreached_pages, 0u);
  EXPECT_GT(report.checkpoints[0].unreached_bytes, 0u);
  EXPECT_EQ(report.notes.size(), 3u) << ReportText(report);
  uint64_t tails = 0;
  for (const SegmentReport& segment : report.segments) tails += segment.tail_bytes;
  EXPECT_EQ(tails, 10000u);
}

RecordStoreOptions FetchingPages() {
  RecordStoreOptions options = StoreOnDisk::SmallPages();
  options.fetch_hot_pages = true;
  return options;
}

TEST(VerifyTest, AListOfHotPagesBelongsToTheFolder) {
  StoreOnDisk store(NewMemoryStorage(RealRuntime()), FetchingPages());
  store.Start();
  store.Create(StoreOnDisk::kAccounts);
  for (int i = 0; i < 100; ++i) store.Put(StoreOnDisk::kAccounts, Concat("key", i), std::string(50, 'v'));
  while (store.Counter("hot_pages_fetching") != 0) RealRuntime().Yield();
  store.Checkpoint();
  store.Stop();
  VerifyReport report = Verified(store);
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_TRUE(report.notes.empty()) << ReportText(report);
  ASSERT_TRUE(report.hot_pages.has_value());
  EXPECT_GT(*report.hot_pages, 1u);
  // Damage of it is damage of the disk, although a start only becomes slower.
  store.Flip(StoreOnDisk::PathOf("pages/hot_pages"), 20, 1);
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kHotPages, {"checksum"})) << ReportText(report);
  EXPECT_FALSE(report.hot_pages.has_value());
  EXPECT_TRUE(report.checkpoints[0].whole());
  EXPECT_TRUE(store.TryStart().ok());
  // A crash may leave an unfinished list; a later program, another one.
  store.Replace(StoreOnDisk::PathOf("pages/hot_pages"), "what a later program writes there");
  store.Replace(StoreOnDisk::PathOf("pages/hot_pages.tmp"), "half");
  report = Verified(store);
  EXPECT_TRUE(report.clean()) << ReportText(report);
  EXPECT_EQ(report.notes.size(), 2u) << ReportText(report);
  EXPECT_TRUE(store.TryStart().ok());
}

// --- Flipped bits.

// Returns whether Verify reports the damaged store: by any finding, or by a foreign format version.
bool Reported(StoreOnDisk& store) {
  const auto report = Verify(store);
  return report.ok() ? !report->clean() : report.status() == ErrorCode::kVersionMismatch;
}

TEST(VerifyTest, AFlippedBitAnywhereIsFound) {
  StoreOnDisk store;
  store.Fill(40);
  const std::map<std::string, std::string> before = store.Bytes();
  const uint64_t step = std::getenv("DEUT_VERIFY_STEP") != nullptr ? std::stoull(std::getenv("DEUT_VERIFY_STEP")) : 61;
  Random random(1);
  uint64_t flips = 0;
  for (const auto& [path, bytes] : before) {
    // Every byte of the fields, and some of the rest. A checkpoint names everything in these files.
    const uint64_t dense = Has(path, "dc_state") ? 60 : 256;
    for (uint64_t at = 0; at < bytes.size(); at += at < dense ? 1 : 1 + random.Below(2 * step - 1)) {
      const int bit = static_cast<int>(random.Below(8));
      store.Flip(path, at, bit);
      EXPECT_TRUE(Reported(store)) << path << " offset " << at << " bit " << bit;
      store.Flip(path, at, bit);
      ++flips;
    }
  }
  EXPECT_GT(flips, 1000u);
  EXPECT_EQ(store.Bytes(), before);
  EXPECT_TRUE(Verified(store).clean());
}

// Returns true if damage is reported at an offset inside the part.
bool FoundIn(const VerifyReport& report, const StoreOnDisk::Part& part) {
  const std::string place = Concat(part.path, ": offset ");
  return std::ranges::any_of(report.findings, [&](const Finding& finding) {
    if (finding.what != Damaged::kSegment || !finding.text.starts_with(place)) return false;
    const uint64_t offset = std::stoull(finding.text.substr(place.size()));
    return offset >= part.address.offset() && offset < part.address.offset() + PartBytesInUnits(part.payload.size());
  });
}

// Flips bits in every field of every part, in its payload and behind it. The part is reported by its place, and also
// the page if one needs it.
TEST(VerifyTest, AFlippedBitInAPartNamesPlaceAndPage) {
  StoreOnDisk store;
  store.Fill(400);
  const auto contents = ReadContents(store.storage(), StoreOnDisk::PathOf("pages"), CheckpointNumber(4),
                                     StoreOnDisk::kDc, WithImages::kYes);
  ASSERT_TRUE(contents.ok());
  uint64_t needed = 0;
  for (const StoreOnDisk::Part& part : store.Parts()) {
    const auto place = contents->images.Find(part.header.page);
    const bool is_needed = place.has_value() && std::ranges::count(contents->images.parts(*place), part.address) != 0;
    const uint64_t end = PartBytes(part.payload.size());
    for (const uint64_t field : {0u, 4u, 8u, 10u, 11u, 12u, 16u, 24u, 32u, 36u, 40u, 70u}) {
      const uint64_t at = part.address.offset() + std::min<uint64_t>(field, end - 1);
      store.Flip(part.path, at, 1);
      const VerifyReport report = Verified(store);
      EXPECT_TRUE(FoundIn(report, part)) << field << "\n" << ReportText(report);
      if (is_needed) {
        EXPECT_TRUE(Found(report, Damaged::kPage, {Concat("page ", part.header.page.value, " in segment ")}))
            << field << "\n"
            << ReportText(report);
        EXPECT_FALSE(report.checkpoints[0].whole());
        ++needed;
      }
      store.Flip(part.path, at, 1);
    }
  }
  EXPECT_GT(needed, 100u);
  EXPECT_TRUE(Verified(store).clean());
}

// A part that both checkpoints name is reported once, for the newer one's page. A part that only the older one names
// is reported for the older one.
TEST(VerifyTest, DamageThatBothCheckpointsNameIsReportedOnce) {
  StoreOnDisk store;
  store.Fill(2000);
  std::map<PageAddress, int> names;  // 1: the older checkpoint, 2: the newer one
  for (const uint64_t number : {3u, 4u}) {
    const auto contents = ReadContents(store.storage(), StoreOnDisk::PathOf("pages"), CheckpointNumber(number),
                                       StoreOnDisk::kDc, WithImages::kYes);
    ASSERT_TRUE(contents.ok());
    for (size_t i = 0; i < contents->images.size(); ++i) {
      for (const PageAddress part : contents->images.parts(i)) names[part] |= number == 3 ? 1 : 2;
    }
  }
  for (const auto& [which, newest, older] : {std::tuple(1, 0, 1), {2, 1, 0}, {3, 1, 0}}) {
    const auto found = std::ranges::find_if(names, [&](const auto& each) { return each.second == which; });
    ASSERT_NE(found, names.end()) << which;
    const std::vector<StoreOnDisk::Part> parts = store.Parts();
    const auto part = std::ranges::find(parts, found->first, &StoreOnDisk::Part::address);
    ASSERT_NE(part, parts.end());
    const std::string path = part->path;
    store.Flip(path, found->first.offset() + 50, 1);
    const VerifyReport report = Verified(store);
    EXPECT_EQ(std::ranges::count(report.findings, Damaged::kPage, &Finding::what), newest) << ReportText(report);
    EXPECT_EQ(std::ranges::count(report.findings, Damaged::kOlderPage, &Finding::what), older) << ReportText(report);
    EXPECT_EQ(report.checkpoints[0].whole(), which == 1);
    EXPECT_EQ(report.checkpoints[1].whole(), which == 2);
    store.Flip(path, found->first.offset() + 50, 1);
  }
}

TEST(VerifyTest, OneDamagedPartHidesNoOther) {
  StoreOnDisk store;
  store.Fill(2000);
  std::map<std::string, std::vector<uint64_t>> offsets;
  for (const StoreOnDisk::Part& part : store.Parts()) offsets[part.path].push_back(part.address.offset());
  for (const auto& [path, parts] : offsets) {
    store.Flip(path, parts.front() + 50, 3);
    if (parts.size() > 4) store.Flip(path, parts[parts.size() - 2] + 50, 3);
  }
  const VerifyReport report = Verified(store);
  uint64_t expected = 0;
  for (const auto& [path, parts] : offsets) expected += parts.size() > 4 ? 2 : 1;
  EXPECT_EQ(std::ranges::count(report.findings, Damaged::kSegment, &Finding::what), expected) << ReportText(report);
}

// --- Whole files.

TEST(VerifyTest, MissingCutAndSwappedSegments) {
  StoreOnDisk store;
  store.Fill(2000);
  const std::map<std::string, std::string> before = store.Bytes();
  std::vector<std::string> segments;
  for (const auto& [path, bytes] : before) {
    if (Has(path, ".seg")) segments.push_back(path);
  }
  ASSERT_GE(segments.size(), 4u);
  for (const std::string& path : segments) {
    ASSERT_TRUE(store.storage().Remove(path).ok());
    EXPECT_TRUE(Found(Verified(store), Damaged::kSegment, {path, "is not there"}));
    for (const size_t cut : {size_t{0}, size_t{100}, size_t{4096}, before.at(path).size() - 1}) {
      store.Replace(path, std::string_view(before.at(path)).substr(0, cut));
      const VerifyReport report = Verified(store);
      EXPECT_TRUE(Found(report, Damaged::kSegment, {path})) << cut << ReportText(report);
    }
    store.Replace(path, before.at(path));
  }
  // Two segments of one kind are swapped: the headers no longer match the names.
  store.Replace(segments[0], before.at(segments[1]));
  store.Replace(segments[1], before.at(segments[0]));
  VerifyReport report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kSegment, {segments[0], "the header is of segment"})) << ReportText(report);
  EXPECT_TRUE(Found(report, Damaged::kSegment, {segments[1], "the header is of segment"}));
  // With the headers corrected, the parts still do not match.
  store.Write(segments[0], 0, std::string_view(before.at(segments[0])).substr(0, 4096));
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kSegment, {segments[0], "the page part says it is at segment"}))
      << ReportText(report);
}

TEST(VerifyTest, DamagedCheckpoints) {
  StoreOnDisk store;
  store.Fill(500);
  const std::map<std::string, std::string> before = store.Bytes();
  const std::vector<std::string> checkpoints = Checkpoints(store);
  ASSERT_EQ(checkpoints.size(), 2u);
  store.Flip(checkpoints[1], 5000, 2);
  VerifyReport report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kCheckpoint, {checkpoints[1], "checksum"})) << ReportText(report);
  EXPECT_FALSE(report.checkpoints[0].readable);
  EXPECT_TRUE(report.checkpoints[1].whole());
  EXPECT_TRUE(Has(ReportText(report), "a start falls back to it"));
  // A page of the older checkpoint is damaged, too. That is found although the newer checkpoint cannot be read.
  const auto contents = ReadContents(store.storage(), StoreOnDisk::PathOf("pages"), CheckpointNumber(3),
                                     StoreOnDisk::kDc, WithImages::kYes);
  ASSERT_TRUE(contents.ok());
  const PageAddress base = contents->images.parts(0).back();
  store.Flip(StoreOnDisk::PathOf(Concat("pages/", SegmentName(SegmentKind::kBase, base.segment()))), base.offset() + 60,
             2);
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kOlderPage, {"checkpoint 3"})) << ReportText(report);
  EXPECT_TRUE(Has(ReportText(report), "no checkpoint is whole: restore")) << ReportText(report);
  for (const auto& [path, bytes] : before) store.Replace(path, bytes);
  store.Flip(checkpoints[0], 5000, 2);
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kCheckpoint, {checkpoints[0]})) << ReportText(report);
  EXPECT_TRUE(report.checkpoints[0].whole());
  EXPECT_TRUE(Has(ReportText(report), "a start will find everything"));
  // One checkpoint lies in the other's place.
  store.Replace(checkpoints[0], before.at(checkpoints[1]));
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kCheckpoint, {checkpoints[0], "a block of checkpoint 4"})) << ReportText(report);
}

TEST(VerifyTest, DamagedState) {
  StoreOnDisk store;
  store.Fill(500);
  const std::string path = StoreOnDisk::PathOf("dc_state");
  store.Flip(path, 20, 1);
  VerifyReport report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kState, {path, "checksum"})) << ReportText(report);
  EXPECT_EQ(report.damages, 1u) << "the pages are checked all the same\n" << ReportText(report);
  ASSERT_TRUE(store.storage().Remove(path).ok());
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kState, {"no dc_state"})) << ReportText(report);
  EXPECT_EQ(report.damages, 1u) << ReportText(report);
  // An intact state, but older than the pages.
  DcState old;
  old.dc = StoreOnDisk::kDc;
  store.Replace(path, EncodeDcState(old));
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kState, {"incarnation 0", "of 1"})) << ReportText(report);
  // A state that names checkpoints which no longer exist.
  old.number = IncarnationNumber(1);
  old.oldest_kept = CheckpointNumber(1000);
  store.Replace(path, EncodeDcState(old));
  report = Verified(store);
  EXPECT_TRUE(Found(report, Damaged::kCheckpoint, {CheckpointName(CheckpointNumber(1000)), "missing"}))
      << ReportText(report);
}

// --- Any bytes.

TEST(VerifyTest, GarbageNeverCrashesIt) {
  StoreOnDisk store;
  store.Fill(300);
  const std::map<std::string, std::string> before = store.Bytes();
  Random random(7);
  uint64_t reported = 0;
  constexpr uint64_t kRounds = 400;
  for (uint64_t round = 0; round < kRounds; ++round) {
    auto victim = before.begin();
    std::advance(victim, static_cast<int64_t>(random.Below(before.size())));
    std::string bytes = victim->second;
    const uint64_t at = random.Below(bytes.size());
    for (uint64_t i = at; i < std::min<uint64_t>(bytes.size(), at + 1 + random.Below(64)); ++i) {
      bytes[i] = static_cast<char>(random.Below(2) == 0 ? 0xff : random.Next());
    }
    if (random.Below(8) == 0) bytes.resize(random.Below(bytes.size()));
    store.Replace(victim->first, bytes);
    reported += Reported(store) ? 1 : 0;
    store.Replace(victim->first, victim->second);
  }
  EXPECT_GT(reported, kRounds * 9 / 10);
}

}  // namespace
}  // namespace deut::dc
