// A whole data component's use of the disk when it is idle.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(DataComponentSpaceTest, AnIdleOneGivesSpaceBackAndThenWritesNothing) {
  constexpr uint64_t kSegmentBytes = 64 << 10;
  const auto storage = NewMemoryStorage(RealRuntime());
  DataComponentOptions options = SmallServer();
  options.records.store.segment_bytes = kSegmentBytes;
  options.records.store.append_buffer_bytes = 64 << 10;
  // So that the cleaner checks again when everything is written.
  options.records.cleaner.slack_segments = 1;
  options.records.cleaner.interval = std::chrono::milliseconds(300);
  options.checkpoints.interval = std::chrono::milliseconds(5);
  auto opened = DataComponentServer::Open(options, *storage, RealRuntime());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  DataComponentServer& dc = **opened;
  const Sender tc = SayHello(dc, 1);
  CountingListener listener;
  auto stream = dc.OpenApplyLog(tc, &listener, kNoDeadline);
  ASSERT_TRUE(stream.ok());
  TestLog log;
  log.Create();
  for (int round = 0; round < 4; ++round) {
    // All records are written once, then three quarters of them repeatedly: live records lie between dead ones.
    for (int i = 0; i < 6000; ++i) {
      if (round == 0 || i / 20 % 4 != 0)
        log.Put(Concat("key", 100000 + i), Concat("round ", round, std::string(100, 'x')));
    }
    log.LowWater();
    ASSERT_TRUE((*stream)->Send(log.Take(), kNoDeadline).ok());
    ASSERT_TRUE(dc.TakeCheckpoints(log.end()).ok());
  }
  // The DC is idle from here on. The bound allows one segment of slack and six that are being written.
  const auto wanted = [&] { return Counter(dc, "storage_live_bytes") * 3 / 2 + 7 * kSegmentBytes; };
  const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(20);
  while (Counter(dc, "storage_bytes") > wanted() || Counter(dc, "storage_dead_bytes") > kSegmentBytes ||
         Counter(dc, "segments_cleaned") == 0) {
    ASSERT_LT(RealRuntime().Now(), limit) << Counter(dc, "storage_bytes") << " on disk, wanted " << wanted()
                                          << ", dead " << Counter(dc, "storage_dead_bytes");
    RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::milliseconds(1));
  }
  // The DC stops writing. (The test can only wait to see that nothing more happens.)
  const auto seen = [&] { return std::pair(Counter(dc, "checkpoints"), Counter(dc, "storage_written_bytes")); };
  bool rests = false;
  for (int i = 0; i < 20 && !rests; ++i) {
    const auto before = seen();
    RealRuntime().SleepUntil(RealRuntime().Now() + 2 * options.records.cleaner.interval);
    rests = seen() == before;
  }
  EXPECT_TRUE(rests);
  EXPECT_LE(Counter(dc, "storage_bytes"), wanted());
}

// A nearly full disk. The test admits every batch for which the acknowledgements report room, as the TC does.
class NearlyFullDiskTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSegmentBytes = 64 << 10;
  static constexpr uint64_t kReserveBytes = 16 * kSegmentBytes;

  // `growing`: segments become longer as the store grows.
  void Start(Duration checkpoint_interval, bool growing = false) {
    DataComponentOptions options = SmallServer();
    options.records.store.segment_bytes = kSegmentBytes;
    options.records.store.append_buffer_bytes = 64 << 10;
    options.records.store.reserve_bytes = kReserveBytes;
    if (growing) options.records.store.segments_before_growth = 16;
    options.records.cleaner.interval = Duration();
    options.checkpoints.interval = checkpoint_interval;
    auto opened = DataComponentServer::Open(options, *storage_, RealRuntime());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    dc_ = std::move(*opened);
    tc_ = SayHello(*dc_, 1);
    auto stream = dc_->OpenApplyLog(tc_, &listener_, kNoDeadline);
    ASSERT_TRUE(stream.ok());
    stream_ = std::move(*stream);
    log_.Create();
    ASSERT_TRUE(stream_->Send(log_.Take(), kNoDeadline).ok());
  }
  // Bytes of a hundred records, each in a page of its own once there are many.
  static constexpr uint64_t kBatchBytes = uint64_t{100} * 200;
  void PutBatch() {
    for (int i = 0; i < 100; ++i, ++number_) {
      log_.Put(Concat("key", 100000 + number_ * 7919 % 100003), std::string(150, 'x'));
    }
    log_.LowWater();
    ASSERT_TRUE(stream_->Send(log_.Take(), kNoDeadline).ok());
  }
  // Puts records while there is room for them, and until no checkpoint frees any.
  void FillWhatIsLetIn() {
    disk_.SetFreeBytes(kReserveBytes + (6 << 20));
    const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(20);
    int refused = 0;
    while (refused < 3) {
      ASSERT_LT(RealRuntime().Now(), limit);
      ASSERT_EQ(Counter(*dc_, "checkpoint_failing"), 0u) << number_ << " records";
      if (AskForSpace() >= kBatchBytes) {
        refused = 0;
        PutBatch();
      } else if (Counter(*dc_, "unflushed_bytes") == 0) {
        ++refused;  // and no checkpoint can free room
      } else {
        RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::milliseconds(1));
      }
    }
    EXPECT_GT(Counter(*dc_, "checkpoints"), 3u);
    EXPECT_GT(number_ * 200, 2u << 20);  // records were admitted, not refused from the beginning
    EXPECT_TRUE(dc_->TakeCheckpoints(log_.end()).ok());
  }
  uint64_t AskForSpace() {
    EXPECT_TRUE(stream_->Send(log_.Take(), kNoDeadline).ok());
    return listener_.last.free_bytes;
  }

  FaultyDisk disk_{RealRuntime(), 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  CountingListener listener_;
  TestLog log_;
  Sender tc_;
  std::unique_ptr<DataComponentServer> dc_;
  std::unique_ptr<ApplyLogStream> stream_;
  uint64_t number_ = 0;
};

TEST_F(NearlyFullDiskTest, X7SpaceThatACheckpointWillNeedIsNotPromised) {
  Start(Duration());
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 10; ++i) PutBatch();
    disk_.SetFreeBytes(kReserveBytes + (8 << 20));
    const uint64_t promised = AskForSpace();
    EXPECT_GT(promised, 1u << 20);
    EXPECT_GT(Counter(*dc_, "unflushed_bytes"), 0u);
    ASSERT_TRUE(dc_->TakeCheckpoints(log_.end()).ok());
    EXPECT_EQ(Counter(*dc_, "unflushed_bytes"), 0u);
    EXPECT_GE(AskForSpace(), promised);
  }
}

// A checkpoint is taken without waiting for the interval when it may need most of the remaining room.
TEST_F(NearlyFullDiskTest, X7EverythingThatIsLetInFits) {
  Start(std::chrono::hours(1));
  FillWhatIsLetIn();
}

TEST_F(NearlyFullDiskTest, EverythingThatIsLetInFitsIntoLongSegments) {
  Start(std::chrono::hours(1), /*growing=*/true);
  FillWhatIsLetIn();
}

// Segments of an incarnation that was killed between two checkpoints. (Without any checkpoint, nothing is removed
// before a TC has come: see CheckpointDriverTest.)
TEST(DataComponentSpaceTest, AnIdleOneRemovesWhatACrashLeftOver) {
  const auto storage = NewMemoryStorage(RealRuntime());
  DataComponentOptions options = SmallServer();
  options.checkpoints.interval = std::chrono::milliseconds(5);
  {
    const std::unique_ptr<DataComponentServer> first = StartServer(*storage);
    const Sender tc = SayHello(*first, 1);
    CountingListener listener;
    auto stream = first->OpenApplyLog(tc, &listener, kNoDeadline);
    ASSERT_TRUE(stream.ok());
    TestLog log;
    ASSERT_TRUE((*stream)->Send(log.Create().Take(), kNoDeadline).ok());
    ASSERT_TRUE(first->TakeCheckpoints(log.end()).ok());
  }
  const std::string path = "/data/dc/pages/base-0000000000ff.seg";
  {
    auto left = storage->Open(path, {.create = true, .writable = true});
    ASSERT_TRUE(left.ok());
    // Space was allocated, and power was lost before the first block was written.
    const std::string bytes(64 << 10, '\0');
    ASSERT_TRUE((*left)->Write(0, bytes.data(), bytes.size()).ok());
  }
  auto opened = DataComponentServer::Open(options, *storage, RealRuntime());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(20);
  while (*storage->Exists(path)) {
    ASSERT_LT(RealRuntime().Now(), limit) << "it is still there";
    RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::milliseconds(1));
  }
  EXPECT_EQ(Counter(**opened, "checkpoints"), 1u);
}

}  // namespace
}  // namespace deut::dc
