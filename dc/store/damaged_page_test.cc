// A page that cannot be read affects only its own readers. The log continues, other pages are read, nothing is lost,
// and the damage is reported.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr uint64_t kRecords = 2000;
constexpr uint64_t kVictim = 1000;

RecordStoreOptions Options(uint64_t memory_bytes) {
  RecordStoreOptions options = SmallPages(memory_bytes);
  options.tree.leaf_page_bytes = 8192;
  options.scrubber.bytes_per_second = 0;
  return options;
}

class DamagedPageTest : public ::testing::Test {
 protected:
  explicit DamagedPageTest(uint64_t memory_bytes = 0) : world_(Options(memory_bytes), &disk_) {
    EXPECT_TRUE(world_.TryRestart().ok());
    world_.Create();
    for (uint64_t i = 0; i < kRecords; ++i) world_.Put(KeyOf(i), std::string(100, 'a'));
    world_.TryFlush();
    EXPECT_TRUE(world_.Checkpoint().ok());
    EXPECT_TRUE(world_.TryRestart().ok());
    DiskOperation read;
    const int seen = disk_.AddFault({.kinds = kDiskRead, .predicate = [&](const DiskOperation& operation) {
                                       read = operation;
                                       return false;
                                     }});
    EXPECT_TRUE(Read(kVictim).ok());
    disk_.RemoveFault(seen);
    EXPECT_NE(read.bytes, 0u);
    path_ = read.path;
    EXPECT_TRUE(world_.TryRestart().ok());
    damage_ = disk_.AddFault({.kinds = kDiskRead,
                              .path_contains = path_,
                              .offset_from = read.offset,
                              .offset_to = read.offset + read.bytes});
  }

  Status Read(uint64_t number) {
    RecordBatch batch;
    return world_.operations().Read(kTable, KeyOf(number), &batch);
  }
  void UpdateTheVictim(int times) {
    for (int i = 0; i < times; ++i) {
      world_.Put(KeyOf(kVictim), std::string(100, static_cast<char>('b' + i % 20)));
      world_.Put(KeyOf(kVictim + 1), std::string(10, static_cast<char>('b' + i % 20)));
      world_.TryFlush();
    }
  }

  void BringTheFileBack() {
    disk_.RemoveFault(damage_);
    while (!Read(kVictim).ok()) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
  }

  FaultyDisk disk_{RealRuntime(), 1};
  World world_;
  std::string path_;
  int damage_ = 0;
};

TEST_F(DamagedPageTest, TheLogGoesOnAndNothingIsLost) {
  // Far more updates than a page on storage normally accepts without being loaded.
  UpdateTheVictim(2000);
  EXPECT_FALSE(world_.broken());
  EXPECT_GE(world_.Counter("pages_damaged"), 1u);
  const Status read = Read(kVictim);
  EXPECT_EQ(read, ErrorCode::kIoError);
  for (const std::string_view piece : {std::string_view("page "), std::string_view(path_), std::string_view("table 3"),
                                       std::string_view("deut dc verify")}) {
    EXPECT_NE(read.message().find(piece), std::string_view::npos) << read.ToString();
  }
  EXPECT_TRUE(Read(0).ok());
  EXPECT_TRUE(Read(kRecords - 1).ok());
  // Checkpoints contain its updates while its image may have further parts.
  Status last;
  for (int i = 0; i < 20 && last.ok(); ++i) {
    UpdateTheVictim(10);
    last = world_.Checkpoint();
  }
  EXPECT_EQ(last, ErrorCode::kUnavailable) << last.ToString();
  EXPECT_FALSE(world_.broken());

  BringTheFileBack();
  world_.ExpectRight();
  const Status taken = world_.Checkpoint();
  EXPECT_TRUE(taken.ok()) << taken.ToString();
  EXPECT_EQ(world_.Counter("pages_damaged"), 0u);
  ASSERT_TRUE(world_.TryRestart().ok());
  world_.ExpectRight();
}

TEST_F(DamagedPageTest, TheDiskIsNotAskedAgainAndAgain) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Read(kVictim), ErrorCode::kIoError);
  UpdateTheVictim(200);
  EXPECT_FALSE(world_.broken());
  EXPECT_LT(disk_.hits(damage_), 100u);
}

TEST_F(DamagedPageTest, MoreUpdatesThanAPageMayHoldStopTheLogAndAreNotLost) {
  world_.Put(KeyOf(kVictim), std::string(10, 'b'));
  world_.TryFlush();
  for (int i = 0; i < 40 && !world_.broken(); ++i) {
    world_.Put(KeyOf(kVictim), std::string(1 << 20, static_cast<char>('b' + i % 20)));
    world_.TryFlush();
  }
  EXPECT_TRUE(world_.broken());
  EXPECT_TRUE(Read(0).ok());
  disk_.RemoveFault(damage_);
  ASSERT_TRUE(world_.TryRestart().ok());
  world_.ExpectRight();
}

// The page accepts as many updates as there is room for. When it is readable again, it takes them all.
TEST_F(DamagedPageTest, VeryManySmallUpdatesAreNoBurdenWhenItIsThereAgain) {
  Random random(1);
  while (!world_.broken()) {
    for (int i = 0; i < 1000; ++i) world_.Put(Concat(KeyOf(kVictim), random.Next()), "b");
    world_.TryFlush();
  }
  BringTheFileBack();
  uint64_t there = 0;
  for (int i = 0; i < 100; ++i) {
    const auto record = world_.records().lower_bound(Concat(KeyOf(kVictim), random.Next()));
    if (world_.Read(record->first) == record->second) ++there;
  }
  EXPECT_GE(there, 90u) << "all but those of the last thousand, perhaps";
}

// The memory is so small that the page's updates are written and evicted again and again.
class DamagedPageInLittleMemoryTest : public DamagedPageTest {
 protected:
  static constexpr uint64_t kMemory = 12 << 20;
  DamagedPageInLittleMemoryTest() : DamagedPageTest(kMemory) {}
};

TEST_F(DamagedPageInLittleMemoryTest, ItTakesNoMoreThanCanBeWrittenAsOnePage) {
  constexpr int kDeltaParts = 7;
  for (int i = 1; i < 200 && !world_.broken(); ++i) {
    world_.Put(Concat(KeyOf(kVictim), "x", i), std::string(1 << 20, static_cast<char>('a' + i % 26)));
    world_.TryFlush();
    // Waits until its image has another part.
    while (i % 11 == 0 && i <= 11 * kDeltaParts && !world_.broken() && world_.store().memory_bytes() > kMemory / 2)
      RealRuntime().Yield();
  }
  EXPECT_TRUE(world_.broken());
  EXPECT_GE(world_.Counter("pages_swapped_out"), 1u);
  disk_.RemoveFault(damage_);
  Status taken;
  do {
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
    taken = world_.Checkpoint();
  } while (taken == ErrorCode::kUnavailable);
  EXPECT_TRUE(taken.ok()) << taken.ToString();
  ASSERT_TRUE(world_.TryRestart().ok());
  world_.ExpectRight();
}

TEST_F(DamagedPageTest, ATableThatIsDroppedHasNoDamage) {
  EXPECT_EQ(Read(kVictim), ErrorCode::kIoError);
  EXPECT_GE(world_.Counter("pages_damaged"), 1u);
  world_.Drop(kTable);
  world_.TryFlush();
  EXPECT_EQ(world_.Counter("pages_damaged"), 0u);
  EXPECT_FALSE(world_.broken());
}

}  // namespace
}  // namespace deut::dc
