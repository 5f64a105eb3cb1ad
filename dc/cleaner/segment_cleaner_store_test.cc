// The cleaner on a store whose pages belong to no tree: its pace, its choices, its room, and damaged parts. Time
// passes only in waits.
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
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "common/testing/forwarding_runtime.h"
#include "common/testing/recorded_log.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/cleaner/segment_cleaner.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/space_use.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {
namespace {

// A time of its own: a wait with a deadline leaps to it. Before each such wait it calls `before_wait`.
class LeapingTime final : public testing::ForwardingRuntime {
 public:
  MonotonicTime Now() override { return MonotonicTime(passed_); }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (deadline == kNoDeadline) return ForwardingRuntime::Wait(word, expected, deadline);
    if (before_wait) before_wait();
    passed_ = std::max(passed_, deadline.time_since_epoch());
    return false;
  }
  Duration passed() const { return passed_; }

  std::function<void()> before_wait;

 private:
  Duration passed_{};
};

constexpr size_t kPayload = 2000;      // of each part
constexpr uint64_t kPartBytes = 2048;  // what such a part takes, and its live bytes

class CleanerOnStoreTest : public ::testing::Test {
 protected:
  ~CleanerOnStoreTest() override { testing::SetPointHandler({}); }

  void Create(const SegmentStoreOptions& options) {
    store_ = std::move(*SegmentStore::Create(*storage_, RealRuntime(), kTestPages, kTestDc, options));
    segment_bytes_ = options.segment_bytes;
  }
  static SegmentStoreOptions Segments(uint64_t bytes, uint64_t reserve_bytes = 0) {
    return {.segment_bytes = bytes,
            .max_segment_bytes = 0,
            .append_buffer_bytes = 64 << 10,
            .reserve_bytes = reserve_bytes};
  }
  // Begins a new incarnation of the same store, with these options.
  void Reopen(const SegmentStoreOptions& options) {
    store_->BeginCheckpoint(CheckpointNumber(1));
    const std::vector<SegmentExtent> extents = *store_->SyncAll(CheckpointNumber(1));
    const uint64_t next = store_->next_segment();
    store_ = std::move(*SegmentStore::Open(*storage_, RealRuntime(), kTestPages, kTestDc, options, CheckpointNumber(1),
                                           extents, next));
    for (const PageAddress part : live_) ASSERT_TRUE(store_->AddLive(part.segment(), part.length_bound()).ok());
    segment_bytes_ = options.segment_bytes;
  }
  // Writes a closed segment of `parts` parts, of which those with an index for which `is_live` returns true are the
  // images of pages, and the others dead. Returns their addresses.
  std::vector<PageAddress> WriteSegment(int parts, const std::function<bool(int)>& is_live) {
    const auto appender = std::move(*store_->NewAppender(SegmentKind::kBase));
    std::vector<PageAddress> addresses;
    for (int i = 0; i < parts; ++i) {
      addresses.push_back(*appender->Append(BaseHeader(PageId(++last_page_)), std::string(kPayload, 'p')));
      EXPECT_EQ(addresses.back().segment(), addresses.front().segment());
    }
    EXPECT_TRUE(appender->Write().ok());
    for (int i = 0; i < parts; ++i) {
      if (is_live(i)) {
        pages_->Restore(PageId(last_page_ - static_cast<uint32_t>(parts - 1 - i)), ImageParts(addresses[i]));
        live_.push_back(addresses[i]);
      } else {
        store_->MarkDead(addresses[i]);
      }
    }
    return addresses;
  }
  SegmentCleaner& Cleaner(uint64_t bytes_per_second, uint64_t slack_segments) {
    cleaner_ = std::make_unique<SegmentCleaner>(
        time_, *pages_, domain_, *store_, segment_bytes_,
        CleanerOptions{.interval = Duration(), .bytes_per_second = bytes_per_second, .slack_segments = slack_segments},
        [](const Status&) {});
    return *cleaner_;
  }
  uint64_t LiveBytesOf(uint64_t segment) {
    const auto usage = store_->UsageOf(segment);
    return usage.has_value() ? usage->live_bytes : 0;
  }

  LeapingTime time_;
  FaultyDisk disk_{RealRuntime(), 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  std::unique_ptr<SegmentStore> store_;
  uint64_t segment_bytes_ = 0;
  const std::unique_ptr<MappingTable> pages_ = std::move(*MappingTable::Create(100'000));
  ReclamationDomain domain_;
  uint32_t last_page_ = 0;
  std::vector<PageAddress> live_;
  std::unique_ptr<SegmentCleaner> cleaner_;  // the last member: it uses the others
};

TEST_F(CleanerOnStoreTest, TheWaitsFollowTheProgressAlsoInDeadParts) {
  constexpr uint64_t kRate = 1 << 20;
  Create(Segments(8 << 20));
  // Only the last part is live.
  const std::vector<PageAddress> parts = WriteSegment(4000, [](int i) { return i == 3999; });
  Duration at_first_copy{};
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "bwtree.rewrite.written" && at_first_copy == Duration()) at_first_copy = time_.passed();
  });
  // Two full segments: a third of all is dead, which is cleaned at the pace.
  for (int i = 0; i < 2; ++i) (void)WriteSegment(4000, [](int) { return true; });
  ASSERT_TRUE(Cleaner(kRate, /*slack_segments=*/0).Clean().ok());
  EXPECT_EQ(LiveBytesOf(parts.front().segment()), 0u);
  // 7.8 MiB lie before the live part.
  EXPECT_GE(at_first_copy, seconds(6));
  EXPECT_GE(time_.passed(), seconds(7));
  EXPECT_LE(time_.passed(), seconds(9));
}

TEST_F(CleanerOnStoreTest, AWaitEndsWhenTheDiskBecomesShortOfSpace) {
  constexpr uint64_t kReserve = 16 << 20;
  Create(Segments(2 << 20, kReserve));
  const std::vector<PageAddress> parts = WriteSegment(1000, [](int i) { return i < 100; });
  (void)WriteSegment(1000, [](int) { return true; });
  // A kilobyte a second would take half an hour.
  SegmentCleaner& cleaner = Cleaner(/*bytes_per_second=*/1 << 10, /*slack_segments=*/0);
  int waits = 0;
  time_.before_wait = [&] {
    if (++waits == 1) disk_.SetFreeBytes(kReserve);
  };
  ASSERT_TRUE(cleaner.Clean().ok());
  EXPECT_EQ(LiveBytesOf(parts.front().segment()), 0u);
  EXPECT_EQ(waits, 1);
  EXPECT_LE(time_.passed(), seconds(1));
}

TEST_F(CleanerOnStoreTest, AChoiceKnowsOfSegmentsThatWereClosedSinceTheLastOne) {
  constexpr uint64_t kSegment = 64 << 10;
  constexpr int kParts = 29;
  Create(Segments(kSegment));
  // Enough is dead to clean at a pace, and not enough to clean without one.
  for (int i = 0; i < 20; ++i) (void)WriteSegment(kParts, [](int part) { return part % 5 < 2; });
  SegmentCleaner& cleaner = Cleaner(/*bytes_per_second=*/kSegment, /*slack_segments=*/4);
  int scans = 0;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "cleaner.before_scan" || ++scans != 1) return;
    for (int i = 0; i < 100; ++i) (void)WriteSegment(kParts, [](int part) { return part == 0; });
  });
  ASSERT_TRUE(cleaner.Clean().ok());
  EXPECT_GE(scans, 5);
  // Only the first victim was cleaned at a pace: 64 KiB and its copies.
  EXPECT_GE(time_.passed(), seconds(1));
  EXPECT_LE(time_.passed(), seconds(2));
}

TEST_F(CleanerOnStoreTest, ADamagedDeadPartKeepsNothing) {
  Create(Segments(1 << 20));
  const std::vector<PageAddress> parts = WriteSegment(300, [](int i) { return i % 4 == 0; });
  const std::string path = Concat(kTestPages, "/", SegmentName(SegmentKind::kBase, parts[0].segment()));
  ASSERT_TRUE(disk_.FlipBit(path, parts[101].offset() + 500, 3).ok());
  SegmentCleaner& cleaner = Cleaner(/*bytes_per_second=*/0, /*slack_segments=*/0);
  ASSERT_TRUE(cleaner.Clean().ok());
  EXPECT_EQ(LiveBytesOf(parts[0].segment()), 0u);
  EXPECT_EQ(cleaner.statistics().unreadable, 0u);
}

TEST_F(CleanerOnStoreTest, ADamagedLivePartKeepsOnlyItself) {
  Create(Segments(1 << 20));
  const std::vector<PageAddress> parts = WriteSegment(300, [](int i) { return i % 4 == 0; });
  const std::string path = Concat(kTestPages, "/", SegmentName(SegmentKind::kBase, parts[0].segment()));
  ASSERT_TRUE(disk_.FlipBit(path, parts[100].offset() + 500, 3).ok());
  ::deut::testing::RecordedLog log;
  SegmentCleaner& cleaner = Cleaner(/*bytes_per_second=*/0, /*slack_segments=*/0);
  ASSERT_TRUE(cleaner.Clean().ok());
  EXPECT_EQ(LiveBytesOf(parts[0].segment()), kPartBytes);
  EXPECT_EQ(cleaner.statistics().unreadable, 1u);
  EXPECT_THAT(log.TakeErrors(), ::testing::ElementsAre(::testing::HasSubstr(
                                    Concat("a segment cannot be emptied, ", kPartBytes, " live bytes stay: "))));
  // It is left alone, and its dead bytes make no other segment worth cleaning.
  const uint64_t read = cleaner.statistics().bytes_read;
  ASSERT_TRUE(cleaner.Clean().ok());
  EXPECT_EQ(cleaner.statistics().bytes_read, read);
}

// Segments that were made with a larger reserve may be longer than half of it.
TEST_F(CleanerOnStoreTest, ASegmentWhoseCopyHasNoRoomIsNotCopiedOnAFullDisk) {
  constexpr uint64_t kSegment = 16 << 10, kReserve = 16 * kSegment;
  Create(Segments(512 << 10));
  // The emptiest one has 320 KiB of live parts, the other one 64 KiB.
  const uint64_t large = WriteSegment(254, [](int i) { return i < 160; }).front().segment();
  const uint64_t small = WriteSegment(36, [](int i) { return i < 32; }).front().segment();
  Reopen(Segments(kSegment, kReserve));
  disk_.SetFreeBytes(kReserve + 2 * kSegment);
  ASSERT_TRUE(store_->IsShortOfSpace());
  ASSERT_LT(store_->RoomFor(SpaceUse::kReclaim), 160 * kPartBytes);
  SegmentCleaner& cleaner = Cleaner(/*bytes_per_second=*/0, /*slack_segments=*/8);
  const Status cleaned = cleaner.Clean();
  EXPECT_EQ(cleaned, ErrorCode::kResourceExhausted);
  EXPECT_THAT(cleaned.ToString(), ::testing::HasSubstr(Concat("segment ", large, " with ", 160 * kPartBytes, " live")));
  EXPECT_EQ(LiveBytesOf(small), 0u);
  EXPECT_EQ(LiveBytesOf(large), 160 * kPartBytes);
  EXPECT_EQ(cleaner.statistics().bytes_written, 32 * kPartBytes);
  // With enough room it is emptied.
  disk_.SetFreeBytes(3 * kReserve);
  ASSERT_FALSE(store_->IsShortOfSpace());
  SegmentCleaner& eager = Cleaner(/*bytes_per_second=*/0, /*slack_segments=*/0);
  ASSERT_TRUE(eager.Clean().ok());
  EXPECT_EQ(LiveBytesOf(large), 0u);
}

}  // namespace
}  // namespace deut::dc
