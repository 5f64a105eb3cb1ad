#include "tc/redo_log/segment_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "common/testing/test_points.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/segment_demand.h"

namespace deut::tc {
namespace {

constexpr uint64_t kBytes = 64 << 10;

class SegmentSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(storage_->CreateDirectory("/log").ok());
    segments_ = std::make_unique<SegmentSet>(
        SegmentSetOptions{.directory = "/log", .segment_bytes = kBytes, .spares = 2}, RealRuntime(), *storage_,
        std::vector<std::shared_ptr<Segment>>{}, 1, [this] { changes_.fetch_add(1); },
        [this](const Status& status) {
          failure_ = status;
          failed_.store(true);
        });
  }

  static void Until(const std::function<bool()>& condition) {
    while (!condition()) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(50));
  }

  // Takes the next spare, as soon as there is one, for LSNs from `lsn` on.
  std::shared_ptr<Segment> Use(Lsn lsn) {
    std::shared_ptr<Segment> segment;
    Until([&] { return (segment = segments_->TakeSpare()) != nullptr; });
    segments_->Open(segment, lsn);
    return segment;
  }

  std::vector<std::string> Files() { return *storage_->List("/log"); }

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_ = disk_.Mount();
  std::atomic<int> changes_{0};
  std::atomic<bool> failed_{false};
  Status failure_;
  std::unique_ptr<SegmentSet> segments_;
};

#ifdef DEUT_TEST_POINTS
// A stop between the helper's look at the flag and its look at the word must not leave the helper asleep.
TEST_F(SegmentSetTest, StopsAHelperThatIsAboutToSleep) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> there{false}, stopping{false};
    testing::SetPointHandler([&](std::string_view name) {
      if (name != "redo_log.segments.before_stop_check") return;
      there.store(true);
      Until([&] { return stopping.load(); });
      for (int pause = 0; pause < 64; ++pause) RealRuntime().Yield();  // while Stop sets the flag and wakes
    });
    {
      SegmentSet segments(
          {.directory = "/log", .segment_bytes = kBytes, .spares = 0}, RealRuntime(), *storage_, {}, 1, [] {},
          [](const Status&) {});
      segments.Start();
      Until([&] { return there.load(); });
      stopping.store(true);
      segments.Stop();
    }
    testing::SetPointHandler({});
  }
}
#endif  // DEUT_TEST_POINTS

TEST_F(SegmentSetTest, SparesAreMadeAheadAndInOrder) {
  ASSERT_TRUE(segments_->CreateSpare().ok());
  EXPECT_EQ(changes_.load(), 1);
  segments_->Start();
  Until([&] { return segments_->spare_count() == 2; });
  for (uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(Use(Lsn(i * 800))->number(), i);
  Until([&] { return segments_->spare_count() == 2; });
  EXPECT_EQ(Files().size(), 7u);
  EXPECT_EQ(Files().front(), SegmentName(1));
  EXPECT_EQ(segments_->live_count(), 5u);
  EXPECT_EQ(segments_->spare_bytes(), 2 * (kBytes - kSegmentHeaderBytes));
}

TEST_F(SegmentSetTest, LsnsAreFoundWhereTheyAre) {
  segments_->Start();
  EXPECT_EQ(segments_->Find(Lsn(100)), nullptr);
  for (uint64_t i = 1; i <= 4; ++i) Use(Lsn(i * 800));
  EXPECT_EQ(segments_->Find(Lsn(799)), nullptr);
  EXPECT_EQ(segments_->Find(Lsn(800))->number(), 1u);
  EXPECT_EQ(segments_->Find(Lsn(2399))->number(), 2u);
  EXPECT_EQ(segments_->Find(Lsn(2400))->number(), 3u);
  EXPECT_EQ(segments_->Find(Lsn(1000000))->number(), 4u);
  EXPECT_EQ(segments_->Find(Lsn(800))->end_lsn(), Lsn(1600));
  EXPECT_EQ(segments_->first_lsn(), Lsn(800));
}

TEST_F(SegmentSetTest, SegmentsBelowTheRedoStartAreTrimmedOldestFirst) {
  constexpr uint64_t kLength = 800;  // of a segment, in LSNs
  segments_->Start();
  std::shared_ptr<Segment> held;
  for (uint64_t i = 1; i <= 8; ++i) {
    std::shared_ptr<Segment> segment = Use(Lsn(i * kLength));
    if (i == 2) held = segment;
  }
  Until([&] { return segments_->spare_count() == 2; });
  segments_->TrimTo(Lsn(kLength - 1), Lsn(8 * kLength));
  segments_->TrimTo(Lsn(4 * kLength - 1), Lsn(8 * kLength));
  Until([&] { return segments_->live_count() == 6; });
  EXPECT_EQ(segments_->first_lsn(), Lsn(3 * kLength));
  // The first segment is reused under a new number. The second, which a reader holds, is removed, and can still be
  // read.
  Until([&] { return segments_->recycled() == 1 && segments_->removed() == 1; });
  AlignedBuffer buffer(kIoAlignment);
  EXPECT_TRUE(held->file().Read(0, buffer.data(), buffer.size()).ok());
  // A segment stays until its successor holds a durable record, because before that the successor's header might not
  // be durable.
  segments_->TrimTo(Lsn(8 * kLength), Lsn(8 * kLength));
  Until([&] { return segments_->live_count() == 2; });
  EXPECT_EQ(segments_->first_lsn(), Lsn(7 * kLength));
  segments_->TrimTo(Lsn(8 * kLength), Lsn(8 * kLength + 8));
  Until([&] { return segments_->live_count() == 1; });
  // The numbers have no gap, whichever files were reused. At most twice as many files as spares are kept.
  Until([&] { return segments_->recycled() + segments_->removed() == 7; });
  EXPECT_LE(segments_->spare_count(), 4u);
  uint64_t number = 0, previous = 0;
  for (const std::string& name : Files()) {
    ASSERT_TRUE(ParseSegmentName(name, &number));
    if (previous != 0) EXPECT_EQ(number, previous + 1);
    previous = number;
  }
}

TEST_F(SegmentSetTest, AFullDiskIsWaitedFor) {
  testing::RecordedLog lines;
  disk_.SetFreeBytes(kBytes);
  segments_->Start();
  Until([&] { return segments_->spare_count() == 1 && segments_->disk_full(); });
  EXPECT_EQ(Files().size(), 1u);  // no incomplete file is left
  Until([&] { return lines.HasLineWith("no room for a segment of the redo log", " bytes are left in segments"); });
  disk_.SetFreeBytes(10 * kBytes);
  Until([&] { return segments_->spare_count() == 2; });
  Until([&] { return !segments_->disk_full(); });
  Until([&] { return lines.HasLineWith("has its spare segments again", "ms"); });
  EXPECT_FALSE(failed_.load());
}

TEST_F(SegmentSetTest, NoDescriptorForANewSegmentIsWaitedFor) {
  const int fault = disk_.AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskName, .count = 3});
  segments_->Start();
  Until([&] { return segments_->spare_count() == 2; });
  EXPECT_EQ(disk_.hits(fault), 3u);
  Until([&] { return !segments_->disk_full(); });
  EXPECT_FALSE(failed_.load()) << failure_.ToString();
}

TEST_F(SegmentSetTest, NoDescriptorForARecycledSegmentIsWaitedFor) {
  segments_->Start();
  const int fault = disk_.AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskOpen, .count = 3});
  uint64_t lsn = kFirstLsn.value;
  for (int i = 0; i < 8; ++i, lsn += kBytes) {
    Use(Lsn(lsn));
    segments_->TrimTo(Lsn(lsn), Lsn(lsn));
  }
  Until([&] { return segments_->recycled() > 0 && segments_->spare_count() >= 2 && !segments_->disk_full(); });
  EXPECT_EQ(disk_.hits(fault), 3u);
  EXPECT_FALSE(failed_.load()) << failure_.ToString();
  uint64_t number = 0, previous = 0;
  for (const std::string& name : Files()) {
    ASSERT_TRUE(ParseSegmentName(name, &number));
    if (previous != 0) EXPECT_EQ(number, previous + 1);
    previous = number;
  }
}

class WantedSegments final : public SegmentDemand {
 public:
  uint64_t Demand() override { return wanted.load(); }
  bool ClaimSpare() override { return true; }
  void GiveBackSpare() override {}

  std::atomic<uint64_t> wanted{0};
};

// Each shortage hits another step of creating and removing spares. The numbers have no gap after any of them.
TEST_F(SegmentSetTest, AShortageWhileSparesComeAndGoLeavesNoGap) {
  WantedSegments demand;
  segments_->SetDemand(&demand);
  segments_->Start();
  Until([&] { return segments_->spare_count() >= 2; });
  uint64_t lsn = kFirstLsn.value;
  for (const uint32_t kinds : {uint32_t{kDiskSyncDirectory}, uint32_t{kDiskName}, kDiskSyncDirectory | kDiskName}) {
    for (const uint64_t wanted : {uint64_t{10}, uint64_t{0}}) {
      const int fault = disk_.AddFault({.action = DiskFault::Action::kShortage, .kinds = kinds, .count = 1});
      demand.wanted.store(wanted);
      segments_->DemandChanged();
      Until([&] {
        const bool settled = wanted == 0 ? segments_->spare_count() <= 4 : segments_->spare_count() >= 12;
        return failed_.load() || (settled && disk_.hits(fault) == 1);
      });
      ASSERT_FALSE(failed_.load()) << failure_.ToString();
    }
    // A file more gets the next number.
    for (int i = 0; i < 4; ++i, lsn += kBytes) Use(Lsn(lsn));
    Until([&] { return failed_.load() || segments_->spare_count() >= 2; });
    ASSERT_FALSE(failed_.load()) << failure_.ToString();
  }
  segments_->Stop();
  uint64_t number = 0, previous = 0;
  for (const std::string& name : Files()) {
    ASSERT_TRUE(ParseSegmentName(name, &number));
    if (previous != 0) EXPECT_EQ(number, previous + 1);
    previous = number;
  }
}

TEST_F(SegmentSetTest, OtherErrorsAreReported) {
  disk_.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskAllocate});
  segments_->Start();
  Until([&] { return failed_.load(); });
  EXPECT_TRUE(failure_ == ErrorCode::kIoError) << failure_.ToString();
  EXPECT_NE(failure_.message().find(SegmentName(1)), std::string_view::npos) << failure_.ToString();
}

TEST(Segment, TheIndexFindsABlockAtOrBefore) {
  Segment segment(1, nullptr, uint64_t{64} << 20, true);
  segment.Begin(Lsn(1000));
  uint64_t offset = kSegmentHeaderBytes;
  std::vector<std::pair<Lsn, uint64_t>> blocks;
  for (uint64_t lsn = 1000; offset + 8192 <= segment.bytes(); lsn += 5000, offset += 8192) {
    segment.AddBlock(Lsn(lsn), offset);
    blocks.emplace_back(Lsn(lsn), offset);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [lsn, at] = segment.Seek(Lsn(blocks[i].first.value + 4999));
    ASSERT_LE(at, blocks[i].second);
    ASSERT_LE(blocks[i].second - at, segment.bytes() / 2048);
    ASSERT_EQ(lsn, blocks[(at - kSegmentHeaderBytes) / 8192].first);
  }
}

TEST(Segment, TheIndexOfASegmentOfUsualSizeFindsALargeBlockItself) {
  Segment segment(1, nullptr, uint64_t{128} << 20, true);
  segment.Begin(Lsn(1000));
  constexpr uint64_t kBlockBytes = 68 << 10;
  uint64_t lsn = 1000;
  for (uint64_t offset = kSegmentHeaderBytes; offset + kBlockBytes <= segment.bytes(); offset += kBlockBytes) {
    segment.AddBlock(Lsn(lsn), offset);
    ASSERT_EQ(segment.Seek(Lsn(lsn + 4999)), std::pair(Lsn(lsn), offset));
    lsn += 5000;
  }
}

}  // namespace
}  // namespace deut::tc
