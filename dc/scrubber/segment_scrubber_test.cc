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
