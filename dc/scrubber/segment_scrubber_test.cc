// The scrubber finds damage, reports it once, and lets all other work continue.
#include "dc/scrubber/segment_scrubber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/forwarding_runtime.h"
#include "common/testing/recorded_log.h"
#include "common/testing/test_points.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_fixture.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/segment_store.h"
#include "dc/verify/store_on_disk.h"

namespace deut::dc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DcId kDc{7};

// A store with pages 1 to 40, each with one part that the mapping table knows.
class SegmentScrubberTest : public ::testing::Test {
 protected:
  SegmentScrubberTest() {
    SegmentStoreOptions options;
    options.segment_bytes = 64 << 10;
    options.append_buffer_bytes = 16 << 10;
    store_ = *SegmentStore::Create(*storage_, RealRuntime(), "/pages", kDc, options);
    pages_ = *MappingTable::Create(1000);
    auto appender = *store_->NewAppender(SegmentKind::kBase);
    parts_.emplace_back();
    for (uint32_t page = 1; page <= 40; ++page) {
      const auto address = appender->Append({.page = PageId(page), .table = TableId(1)}, std::string(5000, 'x'));
      EXPECT_TRUE(address.ok() && appender->Write().ok());
      pages_->Restore(PageId(page), ImageParts(*address));
      parts_.push_back(*address);
    }
    pages_->RestoreFree(40);
  }

  void Flip(PageAddress part) {
    const std::string path = Concat("/pages/", SegmentName(SegmentKind::kBase, part.segment()));
    ASSERT_TRUE(disk_.FlipBit(path, part.offset() + 100, 3).ok());
  }
  std::unique_ptr<SegmentScrubber> Scrubber(const ScrubberOptions& options = {.bytes_per_second = 0}) {
    return std::make_unique<SegmentScrubber>(RealRuntime(), *pages_, domain_, *store_, options);
  }

  FaultyDisk disk_{RealRuntime(), 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<MappingTable> pages_;
  ReclamationDomain domain_;
  std::vector<PageAddress> parts_;  // parts by page
  ::deut::testing::RecordedLog log_;
};

TEST_F(SegmentScrubberTest, AnIntactStoreIsReadCompletely) {
  const auto scrubber = Scrubber();
  ASSERT_TRUE(scrubber->Scrub().ok());
  ASSERT_TRUE(scrubber->Scrub().ok());
  const ScrubberStatistics statistics = scrubber->statistics();
  EXPECT_EQ(statistics.rounds, 2u);
  EXPECT_EQ(statistics.errors, 0u);
  EXPECT_GE(statistics.bytes, 2u * 40 * 5000);
  EXPECT_LE(statistics.bytes, 2 * store_->totals().written_bytes);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre());
}

TEST_F(SegmentScrubberTest, AShortageOfDescriptorsIsNoDamage) {
  store_.reset();
  store_ = *SegmentStore::Create(*storage_, RealRuntime(), "/other", kDc, {});
  auto appender = *store_->NewAppender(SegmentKind::kBase);
  ASSERT_TRUE(appender->Append({.page = PageId(1), .table = TableId(1)}, std::string(5000, 'x')).ok());
  ASSERT_TRUE(appender->Write().ok());
  const auto scrubber = Scrubber();
  const int fault = disk_.AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskOpen, .count = 1});
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(disk_.hits(fault), 1u);
  EXPECT_EQ(scrubber->statistics().errors, 0u);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre());
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_GE(scrubber->statistics().bytes, 5000u);
}

TEST_F(SegmentScrubberTest, EachDamageIsToldOnceWithItsPages) {
  ASSERT_EQ(parts_[2].segment(), parts_[4].segment());
  for (const uint32_t page : {2u, 4u, 33u}) Flip(parts_[page]);
  const auto scrubber = Scrubber();
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(scrubber->statistics().errors, 3u);
  const auto tells = [&](uint32_t page) {
    return AllOf(HasSubstr(Concat("segment ", parts_[page].segment(), ", found by scrubbing")),
                 HasSubstr(Concat(": offset ", parts_[page].offset() + 4)),
                 HasSubstr(Concat("the image on disk of 1 page lies there: ", page, ";")),
                 HasSubstr("what to do: look at the disk, stop the data component and run `deut dc verify`"));
  };
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(tells(2), tells(4), tells(33)));
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(scrubber->statistics().errors, 3u);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre());
  Flip(parts_[7]);
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(scrubber->statistics().errors, 4u);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(tells(7)));
}

TEST_F(SegmentScrubberTest, ADamagedPartThatNobodyNeedsIsToldSo) {
  Flip(parts_[5]);
  (void)pages_->RestoreUnnamed(PageId(5), domain_);
  const auto scrubber = Scrubber();
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(HasSubstr("no page's image lies there now")));
}

// The checksum of such a part is right.
TEST_F(SegmentScrubberTest, APartThatDoesNotDecompressIsDamage) {
  auto appender = *store_->NewAppender(SegmentKind::kBase);
  const PartHeader header{.page = PageId(41), .table = TableId(1), .packed = true};
  // 500 times 'a', compressed with LZ4; the second part says that it has one byte more.
  std::string packed("\x02\x00\x00\x00\xF4\x01\x00\x00\x1F\x61\x01\x00\xFF\xDC\x50\x61\x61\x61\x61\x61", 20);
  ASSERT_TRUE(appender->Append(header, packed).ok());
  packed[4] = '\xF5';
  const auto damaged = appender->Append(header, packed);
  ASSERT_TRUE(damaged.ok() && appender->Write().ok());
  const auto scrubber = Scrubber();
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(scrubber->statistics().errors, 1u);
  EXPECT_THAT(log_.TakeErrors(),
              ElementsAre(AllOf(HasSubstr(Concat("segment ", damaged->segment(), ", found by scrubbing")),
                                HasSubstr(Concat(": offset ", damaged->offset() + kPartHeaderBytes)),
                                HasSubstr("does not decompress"))));
}

TEST_F(SegmentScrubberTest, AFileThatCannotBeReadIsDamage) {
  const std::string path = Concat("/pages/", SegmentName(SegmentKind::kBase, parts_[1].segment()));
  DiskFault fault;
  fault.action = DiskFault::Action::kIoError;
  fault.kinds = kDiskRead;
  fault.path_contains = path;
  disk_.AddFault(fault);
  const auto scrubber = Scrubber();
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(scrubber->statistics().errors, 1u);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(HasSubstr("injected error")));
}

// Checkpoints 2 and 3 could be opened by a start; 3 needs the file of 1.
class CheckpointScrubTest : public SegmentScrubberTest {
 protected:
  CheckpointScrubTest() {
    EXPECT_TRUE(storage_->CreateDirectory("/checkpoints").ok());
    const CheckpointAncestor first = WriteCheckpoint(1);
    WriteCheckpoint(2);
    WriteCheckpoint(3, {first});
  }

  static std::string PathOf(uint64_t number) { return "/checkpoints/" + CheckpointName(CheckpointNumber(number)); }
  // Writes a file with 4,002 pages in several blocks; with ancestors it has two of them.
  CheckpointAncestor WriteCheckpoint(uint64_t number, const CheckpointLineage& ancestors = {}) {
    CheckpointContent content = ContentWith(number, 4000);
    content.head.ancestors = ancestors;
    if (!ancestors.empty()) {
      content.head.pages = {.first = PageId(1), .end = PageId(30)};
      std::erase_if(content.pages, [](const auto& page) { return page.first >= PageId(30); });
    }
    const auto writer = CheckpointWriter::Create(*storage_, "/checkpoints", content.head);
    EXPECT_TRUE(writer.ok()) << writer.status().ToString();
    EXPECT_TRUE(AddAll(**writer, content).ok());
    const Status finished = (*writer)->Finish();
    EXPECT_TRUE(finished.ok()) << finished.ToString();
    return (*writer)->AsAncestor();
  }
  std::unique_ptr<SegmentScrubber> CheckpointScrubber(Runtime& runtime = RealRuntime(),
                                                      const ScrubberOptions& options = {.bytes_per_second = 0}) {
    return std::make_unique<SegmentScrubber>(
        runtime, *pages_, domain_, *store_, options,
        ScrubbedCheckpoints{.folder = {storage_.get(), "/checkpoints", ContentWith(1, 0).head.dc},
                            .on_damaged_checkpoint = [this] { ++told_; }});
  }

  int told_ = 0;
};

TEST_F(CheckpointScrubTest, BothCheckpointsAreReadWithTheirAncestors) {
  uint64_t bytes = 0;
  for (uint64_t number = 1; number <= 3; ++number) bytes += *(*storage_->Open(PathOf(number), {}))->Size();
  const auto scrubber = CheckpointScrubber();
  ASSERT_TRUE(scrubber->Scrub().ok());
  const auto without = Scrubber();
  ASSERT_TRUE(without->Scrub().ok());
  // The first block of each file, which has index and pages, is read twice.
  EXPECT_EQ(scrubber->statistics().bytes, without->statistics().bytes + bytes + 3 * kCheckpointBlockBytes);
  EXPECT_EQ(scrubber->statistics().errors, 0u);
  EXPECT_EQ(told_, 0);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre());
}

TEST_F(CheckpointScrubTest, DamageOfAnyOfTheirFilesIsTold) {
  for (uint64_t number = 1; number <= 3; ++number) {
    const auto scrubber = CheckpointScrubber();
    // Only the file of 3 has a single block.
    const uint64_t at = number == 3 ? 100 : kCheckpointBlockBytes + 100;
    ASSERT_TRUE(disk_.FlipBit(PathOf(number), at, 3).ok());
    told_ = 0;
    for (int round = 1; round <= 2; ++round) {
      ASSERT_TRUE(scrubber->Scrub().ok());
      EXPECT_EQ(told_, round) << "until the files are replaced";
      EXPECT_EQ(scrubber->statistics().errors, 1u) << "each place counts once";
    }
    const uint64_t checkpoint = number == 2 ? 2 : 3;
    EXPECT_THAT(log_.TakeErrors(),
                ElementsAre(AllOf(HasSubstr(Concat("checkpoint ", checkpoint, " is damaged, found by scrubbing")),
                                  HasSubstr(PathOf(number)), HasSubstr("deut dc verify"))));
    ASSERT_TRUE(disk_.FlipBit(PathOf(number), at, 3).ok());
    ASSERT_TRUE(scrubber->Scrub().ok());
    EXPECT_EQ(told_, 2);
  }
}

TEST_F(CheckpointScrubTest, AMissingAncestorIsTold) {
  ASSERT_TRUE(storage_->Remove(PathOf(1)).ok());
  const auto scrubber = CheckpointScrubber();
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(told_, 1);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(HasSubstr("checkpoint 3 needs it and it is not there")));
}

// Two newer checkpoints are completed, and all older files removed, after the scrubber has listed the folder.
TEST_F(CheckpointScrubTest, ACheckpointThatIsRemovedMeanwhileIsNoDamage) {
  bool done = false;
  ::deut::testing::SetPointHandler([&](std::string_view point) {
    if (point != "scrub.before_checkpoint" || std::exchange(done, true)) return;
    for (const uint64_t number : {4, 5}) WriteCheckpoint(number);
    for (const uint64_t number : {1, 2, 3}) EXPECT_TRUE(storage_->Remove(PathOf(number)).ok());
  });
  const auto scrubber = CheckpointScrubber();
  const Status scrubbed = scrubber->Scrub();
  ::deut::testing::SetPointHandler({});
  EXPECT_TRUE(scrubbed.ok()) << scrubbed.ToString();
  EXPECT_TRUE(done);
  EXPECT_EQ(told_, 0);
  EXPECT_EQ(scrubber->statistics().errors, 0u);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre());
}

// Starts no thread, and leaps over waits, each time after a call of `before_wait`.
class LeapingTime final : public ::deut::testing::ForwardingRuntime {
 public:
  MonotonicTime Now() override { return MonotonicTime(passed_); }
  std::unique_ptr<Thread> StartThread(std::string /*name*/, std::function<void()> /*body*/) override { return nullptr; }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (deadline == kNoDeadline) return ForwardingRuntime::Wait(word, expected, deadline);
    if (before_wait) before_wait();
    passed_ = std::max(passed_, deadline.time_since_epoch());
    return false;
  }

  std::function<void()> before_wait;

 private:
  Duration passed_{};
};

// As long as the scrubber reads its file, a removed segment takes room on the disk: minutes for a long one.
TEST_F(SegmentScrubberTest, ASegmentThatIsRemovedMeanwhileIsGivenUp) {
  SegmentStoreOptions options;
  options.segment_bytes = 2 << 20;
  store_.reset();
  store_ = *SegmentStore::Create(*storage_, RealRuntime(), "/long", kDc, options);
  auto appender = *store_->NewAppender(SegmentKind::kBase);
  std::vector<PageAddress> parts;
  for (uint32_t page = 1; page <= 350; ++page) {
    parts.push_back(*appender->Append({.page = PageId(page), .table = TableId(1)}, std::string(5000, 'x')));
    ASSERT_EQ(parts.back().segment(), parts.front().segment());
  }
  ASSERT_TRUE(appender->Write().ok());
  appender.reset();
  LeapingTime time;
  int waits = 0;
  time.before_wait = [&] {
    if (++waits != 1) return;
    for (const PageAddress part : parts) store_->MarkDead(part);
    store_->BeginCheckpoint(CheckpointNumber(1));
    ASSERT_EQ(*store_->RemoveDeadSegments(CheckpointNumber(1)), 1u);
  };
  SegmentScrubber scrubber(time, *pages_, domain_, *store_, {.bytes_per_second = 1 << 20});
  ASSERT_TRUE(scrubber.Scrub().ok());
  EXPECT_EQ(scrubber.statistics().errors, 0u);
  EXPECT_LT(scrubber.statistics().bytes, 1u << 20);
}

// As long as the scrubber reads a removed file, the file takes room on the disk.
TEST_F(CheckpointScrubTest, AFileThatIsRemovedMeanwhileIsGivenUp) {
  LeapingTime time;
  int waits = 0;
  uint64_t bytes_read = 0;
  std::unique_ptr<SegmentScrubber> scrubber = CheckpointScrubber(time, {.bytes_per_second = 1 << 20});
  time.before_wait = [&] {
    if (++waits != 1) return;
    for (const uint64_t number : {4, 5}) WriteCheckpoint(number);
    for (const uint64_t number : {1, 2, 3}) EXPECT_TRUE(storage_->Remove(PathOf(number)).ok());
    bytes_read = scrubber->statistics().bytes;
  };
  ASSERT_TRUE(scrubber->Scrub().ok());
  EXPECT_EQ(bytes_read, kCheckpointBlockBytes) << "the first block of 3";
  const auto without = Scrubber();
  ASSERT_TRUE(without->Scrub().ok());
  EXPECT_EQ(scrubber->statistics().bytes, without->statistics().bytes + kCheckpointBlockBytes);
  EXPECT_EQ(told_, 0);
}

// The thread scrubs at its pace. It ends on request, in the middle of a round and in the pause after it.
TEST_F(SegmentScrubberTest, TheThreadScrubs) {
  Flip(parts_[9]);
  {
    const auto scrubber = Scrubber({.bytes_per_second = 1 << 30, .pause = milliseconds(1)});
    while (scrubber->statistics().rounds < 3) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
    EXPECT_EQ(scrubber->statistics().errors, 1u);
  }
  {
    const auto scrubber = Scrubber({.bytes_per_second = 1 << 30, .pause = std::chrono::hours(1)});
    while (scrubber->statistics().rounds < 1) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
  }
  const MonotonicTime begin = RealRuntime().Now();
  {
    const auto scrubber = Scrubber({.bytes_per_second = 1});
    while (scrubber->statistics().bytes == 0) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
    EXPECT_EQ(scrubber->statistics().rounds, 0u);
  }
  EXPECT_LT(RealRuntime().Now() - begin, seconds(60));
}

TEST_F(SegmentScrubberTest, ThePaceIsKept) {
  const auto scrubber = Scrubber({.bytes_per_second = 2 << 20, .pause = std::chrono::hours(1)});
  const MonotonicTime begin = RealRuntime().Now();
  while (scrubber->statistics().rounds < 1) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
  EXPECT_GE(RealRuntime().Now() - begin, milliseconds(90)) << "200,000 bytes at two MiB a second";
}

uint64_t Counter(RecordStore& records, std::string_view name) {
  std::vector<CounterValue> counters;
  records.AppendCounters(&counters);
  for (const CounterValue& counter : counters) {
    if (counter.name == name) return counter.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

// In a data component the counters report the damage, pages in memory are still served, and the process continues.
TEST(ScrubbedDataComponentTest, CountsAndGoesOn) {
  const ::deut::testing::RecordedLog log;
  StoreOnDisk store;
  store.Fill(1000);
  const StoreOnDisk::Part part = store.Parts().front();
  store.Start();
  RecordStore& records = store.running();
  ASSERT_TRUE(records.Scrub().ok());
  EXPECT_EQ(Counter(records, "scrub_errors"), 0u);
  EXPECT_GT(Counter(records, "scrubbed_bytes"), 0u);
  store.Flip(part.path, part.address.offset() + 50, 1);
  ASSERT_TRUE(records.Scrub().ok());
  EXPECT_EQ(Counter(records, "scrub_errors"), 1u);
  EXPECT_GE(Counter(records, "scrub_rounds"), 2u);
  store.Put(StoreOnDisk::kAccounts, "key 000001", "goes on");
  store.Checkpoint();
  RecordBatch answer;
  ASSERT_TRUE(records.operations().Read(StoreOnDisk::kAccounts, "key 000001", &answer).ok());
  EXPECT_EQ(RecordBatch::Iterator(answer).record().value, "goes on");
  store.Stop();
}

}  // namespace
}  // namespace deut::dc
