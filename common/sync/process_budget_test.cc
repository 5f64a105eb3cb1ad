#include "common/sync/process_budget.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/testing/leaping_runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBudget = 1024 * kMiB;
using Registration = ProcessBudget::Registration;

// A process whose memory the test sets.
class ProcessBudgetTest : public ::testing::Test {
 protected:
  // Measures and returns the limit of a part, in MiB.
  uint64_t Limit(MemoryPart part) {
    budget_.Measure();
    return budget_.limit(part) / kMiB;
  }
  uint64_t Resident() const { return tells_ ? (fixed_ + pages_ + versions_ + cached_) * kMiB : 0; }

  testing::LeapingRuntime runtime_;
  uint64_t fixed_ = 100, pages_ = 0, versions_ = 0, cached_ = 0;  // in MiB
  uint64_t kept_free_ = 0;                                        // of the fixed bytes: the allocator can return them
  bool tells_ = true;                                             // whether the system tells resident memory
  int returned_ = 0;
  int returned_old_ = 0;
  uint64_t heap_room_ = 0;  // of the fixed bytes, in MiB
  ProcessBudget budget_{runtime_,
                        kBudget,
                        {.resident_bytes = [this] { return Resident(); },
                         .return_freed =
                             [this] {
                               ++returned_;
                               fixed_ -= kept_free_;
                               kept_free_ = 0;
                             },
                         .return_freed_long_ago = [this] { ++returned_old_; },
                         .heap_room = [this] { return heap_room_ * kMiB; }}};
};

class PagesAndVersionsTest : public ProcessBudgetTest {
 protected:
  Registration of_pages_{budget_, MemoryPart::kPages, {.bytes = [this] { return pages_ * kMiB; }}};
  Registration of_versions_{budget_, MemoryPart::kVersions, {.bytes = [this] { return versions_ * kMiB; }}};
  Registration of_cache_{budget_, MemoryPart::kCachedRecords, {.bytes = [this] { return cached_ * kMiB; }}};
};

// 16 MiB are kept free for versions.
TEST_F(PagesAndVersionsTest, PagesHaveWhatTheFixedPartsLeave) {
  EXPECT_EQ(Limit(MemoryPart::kPages), 908u);
  pages_ = 300;
  EXPECT_EQ(Limit(MemoryPart::kPages), 908u);
  fixed_ = 400;
  EXPECT_EQ(Limit(MemoryPart::kPages), 608u);
}

TEST_F(PagesAndVersionsTest, PagesHaveWhatVersionsDoNotUseBeyondWhatIsKeptFree) {
  pages_ = 300;
  versions_ = 200;
  EXPECT_EQ(Limit(MemoryPart::kPages), 724u);
  versions_ = 24;
  EXPECT_EQ(Limit(MemoryPart::kPages), 900u);
  versions_ = 8;
  EXPECT_EQ(Limit(MemoryPart::kPages), 908u);
  versions_ = 0;
  EXPECT_EQ(Limit(MemoryPart::kPages), 908u);
}

// Pages of a budget of 256 MiB or less have what the whole least of the versions leaves.
TEST(SplitMemoryTest, KeepsASmallPartOfALargeBudgetFreeForVersions) {
  MemoryUse use;
  use.has_pages = use.has_versions = true;
  for (const uint64_t mib : {64, 256, 1024, 1 << 20}) {
    const uint64_t kept_free = mib * kMiB - SplitMemory(mib * kMiB, use, /*pages_fit=*/true).pages;
    EXPECT_EQ(kept_free, std::min(mib * kMiB / 16, 16 * kMiB)) << mib;
  }
}

// Both parts follow their limits at once, as far as they can. Versions that grow by the bytes kept free for them fit
// into the budget; those that grow to their limit take a part of the twentieth.
TEST_F(PagesAndVersionsTest, PagesAndTheLeastOfVersionsFitIntoTheBudgetTogether) {
  for (versions_ = 0; versions_ < 256; versions_ += 8) {
    pages_ = 0;
    pages_ = Limit(MemoryPart::kPages);
    const uint64_t versions = std::max(Limit(MemoryPart::kVersions), versions_);
    EXPECT_LE(fixed_ + pages_ + std::max<uint64_t>(versions_, 16), kBudget / kMiB) << versions_;
    EXPECT_LE(fixed_ + pages_ + versions, (kBudget + kBudget / 20) / kMiB) << versions_;
  }
}

TEST_F(PagesAndVersionsTest, VersionsGrowIntoFreeMemoryUpToTheirCap) {
  EXPECT_EQ(Limit(MemoryPart::kVersions), 256u);
  pages_ = 700;
  versions_ = 24;
  EXPECT_EQ(Limit(MemoryPart::kVersions), 124u) << "half of the free 200";
  pages_ = 1000;
  versions_ = 0;
  EXPECT_EQ(Limit(MemoryPart::kVersions), 64u) << "a sixteenth of the budget in any case";
}

TEST_F(PagesAndVersionsTest, RecordsAreCachedOnlyWhenPagesDoNotFit) {
  pages_ = 640;
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 0u);
  EXPECT_EQ(Limit(MemoryPart::kPages), 908u);
  pages_ = 649;  // three quarters of 908, without 32 of room
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 28u);
  pages_ = 500;
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 28u) << "between the marks the decision stands";
  pages_ = 421;
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 0u);
}

TEST_F(PagesAndVersionsTest, PagesYieldToCachedRecordsStepByStep) {
  pages_ = 700;
  EXPECT_EQ(Limit(MemoryPart::kPages), 879u);
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 28u) << "908 together";
  cached_ = 100;
  EXPECT_EQ(Limit(MemoryPart::kPages), 779u);
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 128u);
  cached_ = 227;
  EXPECT_EQ(Limit(MemoryPart::kPages), 681u);
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 227u) << "a quarter";
}

// Records that fill the room do not raise the resident bytes, so pages lose nothing to them.
TEST_F(PagesAndVersionsTest, RecordsMayBeCachedInHalfOfTheRoomOfTheHeap) {
  fixed_ = 300;
  pages_ = 600;
  cached_ = 177;
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 177u) << "a quarter of 708";
  const uint64_t pages = Limit(MemoryPart::kPages);
  heap_room_ = 160;
  runtime_.Pass(ProcessBudget::kDecayInterval);
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 199u) << "a step of 708/32";
  for (int step = 0; step < 20; ++step) {
    const uint64_t limit = Limit(MemoryPart::kCachedRecords);
    const uint64_t more = std::min(limit - std::min(limit, cached_), heap_room_);
    cached_ += more;
    heap_room_ -= more;
    fixed_ -= more;
    runtime_.Pass(ProcessBudget::kDecayInterval);
  }
  EXPECT_NEAR(static_cast<double>(cached_), 177 + 0.4 * 160, 3);
  EXPECT_NEAR(static_cast<double>(Limit(MemoryPart::kPages)), static_cast<double>(pages), 3);
  heap_room_ = 2000;
  runtime_.Pass(ProcessBudget::kDecayInterval);
  const uint64_t half = (1024 - fixed_ - 16) / 2;
  cached_ = half - 5;
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), half);
}

TEST_F(PagesAndVersionsTest, FixedPartsBeyondTheBudgetLeaveTheFloors) {
  fixed_ = 2000;
  EXPECT_EQ(Limit(MemoryPart::kPages), 64u);
  EXPECT_EQ(Limit(MemoryPart::kVersions), 64u);
}

// The pages follow their limit as an evictor does; then nothing exceeds the budget, whatever the other parts do.
TEST_F(PagesAndVersionsTest, PartsTogetherStayWithinTheBudget) {
  const auto follow = [this] {
    pages_ = std::min(pages_ + 200, Limit(MemoryPart::kPages));
    cached_ = std::min(cached_ + 10, budget_.limit(MemoryPart::kCachedRecords) / kMiB);
    versions_ = std::min(versions_, budget_.limit(MemoryPart::kVersions) / kMiB);
  };
  for (int step = 0; step < 100; ++step) {
    fixed_ = 100 + static_cast<uint64_t>(step) * 3;
    versions_ += step % 7 == 0 ? 20 : 0;
    follow();
    follow();
    EXPECT_LE(Resident(), kBudget + kBudget / 20) << step;
  }
  EXPECT_GT(cached_, 0u);
  EXPECT_GT(versions_, 64u);
}

TEST_F(ProcessBudgetTest, WithoutPagesCachedRecordsHaveTheRest) {
  uint64_t told = 0;
  const Registration cache(
      budget_, MemoryPart::kCachedRecords,
      {.bytes = [this] { return cached_ * kMiB; }, .on_limit = [&told](uint64_t limit) { told = limit / kMiB; }});
  EXPECT_EQ(told, 862u) << "14/15 of 924";
  fixed_ = 500;
  cached_ = 300;
  EXPECT_EQ(Limit(MemoryPart::kCachedRecords), 489u);
  EXPECT_EQ(told, 489u);
}

TEST_F(ProcessBudgetTest, EndedReporterIsNotAsked) {
  int asked = 0;
  {
    const Registration pages(budget_, MemoryPart::kPages, {.bytes = [&asked] { return ++asked * kMiB; }});
    budget_.Measure();
  }
  const int before = asked;
  EXPECT_GE(before, 2);
  budget_.Measure();
  EXPECT_EQ(asked, before);
}

TEST_F(ProcessBudgetTest, FreedMemoryIsReturnedWhenTheBudgetIsExceeded) {
  fixed_ = 1000;
  kept_free_ = 500;
  runtime_.Pass(ProcessBudget::kReturnInterval);
  budget_.Measure();
  EXPECT_EQ(returned_, 0) << "it is within the budget";
  fixed_ = 1100;
  budget_.Measure();
  EXPECT_EQ(returned_, 1);
  EXPECT_EQ(fixed_, 600u);
  fixed_ = 1100;
  budget_.Measure();
  EXPECT_EQ(returned_, 1) << "not again so soon";
  runtime_.Pass(ProcessBudget::kReturnInterval);
  budget_.Measure();
  EXPECT_EQ(returned_, 2);
}

TEST_F(ProcessBudgetTest, AReturnThatGainsMuchIsRepeatedAtTheNextMeasurement) {
  fixed_ = 1500;
  kept_free_ = 16;  // a sixty-fourth of the budget
  runtime_.Pass(ProcessBudget::kReturnInterval);
  budget_.Measure();
  EXPECT_EQ(returned_, 1);
  kept_free_ = 15;
  runtime_.Pass(ProcessBudget::kInterval);
  budget_.Measure();
  EXPECT_EQ(returned_, 2);
  runtime_.Pass(ProcessBudget::kInterval);
  budget_.Measure();
  EXPECT_EQ(returned_, 2) << "the last one was worth little";
  runtime_.Pass(ProcessBudget::kReturnInterval);
  budget_.Measure();
  EXPECT_EQ(returned_, 3);
}

TEST_F(ProcessBudgetTest, MemoryFreedLongAgoIsReturnedNowAndThenInAnyCase) {
  runtime_.Pass(ProcessBudget::kDecayInterval);
  budget_.Measure();
  const int before = returned_old_;
  EXPECT_GE(before, 1);
  budget_.Measure();
  EXPECT_EQ(returned_old_, before) << "not again so soon";
  runtime_.Pass(ProcessBudget::kDecayInterval);
  budget_.Measure();
  EXPECT_EQ(returned_old_, before + 1);
  EXPECT_EQ(returned_, 0) << "the budget is not exceeded";
}

// The system does not tell when no descriptor is free.
TEST_F(PagesAndVersionsTest, FixedPartsCountAsBeforeWhileTheSystemDoesNotTellResidentMemory) {
  fixed_ = 600;
  pages_ = 150;
  versions_ = 100;
  EXPECT_EQ(Limit(MemoryPart::kPages), 324u);
  tells_ = false;
  EXPECT_EQ(Limit(MemoryPart::kPages), 324u);
  EXPECT_EQ(Limit(MemoryPart::kVersions), 187u) << "half of the free 174";
  pages_ = 100;
  EXPECT_EQ(Limit(MemoryPart::kVersions), 212u) << "what parts report still counts";
  tells_ = true;
  fixed_ = 500;
  EXPECT_EQ(Limit(MemoryPart::kPages), 424u);
}

TEST_F(ProcessBudgetTest, ConstantLimitsFollowTheBudget) {
  EXPECT_EQ(budget_.version_cap(), 256 * kMiB);
  EXPECT_EQ(budget_.transaction_bytes(), 256 * kMiB);
  EXPECT_EQ(budget_.log_buffer_bytes(), 16 * kMiB);
  EXPECT_EQ(budget_.scan_ahead_bytes(), 64 * kMiB);
  const ProcessBudget large(runtime_, 64 * kBudget, {.resident_bytes = [] { return 0; }});
  EXPECT_EQ(large.transaction_bytes(), 2 * kBudget);
  EXPECT_EQ(large.log_buffer_bytes(), 64 * kMiB);
  EXPECT_EQ(large.scan_ahead_bytes(), 256 * kMiB);
}

TEST(ProcessBudgetOpenTest, AnAmountThatCannotBeMeantIsRefused) {
  EXPECT_TRUE(ProcessBudget::Check(std::nullopt).ok());
  EXPECT_TRUE(ProcessBudget::Check(0).ok());
  EXPECT_TRUE(ProcessBudget::Check(ProcessBudget::kMinBytes).ok());
  EXPECT_TRUE(ProcessBudget::Check(UINT64_MAX).ok());
  const Status slip = ProcessBudget::Check(8);
  EXPECT_EQ(slip, ErrorCode::kInvalidArgument);
  EXPECT_EQ(slip.message(),
            "a memory budget (--memory) of 8 bytes is too small: it is at least 32 MiB; 0 is no budget");
  EXPECT_FALSE(ProcessBudget::Check(ProcessBudget::kMinBytes - 1).ok());
}

TEST(SplitMemoryTest, NoLimitWrapsAtTheExtremes) {
  MemoryUse use;
  use.has_pages = use.has_versions = true;
  for (const uint64_t budget : {uint64_t{0}, uint64_t{1}, UINT64_MAX - 1, UINT64_MAX}) {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, UINT64_MAX / 4}) {
      use.parts = {bytes, bytes, bytes};
      use.resident = 3 * bytes;
      for (const bool fit : {false, true}) {
        const MemorySplit split = SplitMemory(budget, use, fit);
        EXPECT_LE(split.pages, budget);
        EXPECT_LE(split.versions, budget / 4);
        EXPECT_LE(split.cached_records, budget / 4);
      }
    }
  }
}

TEST(ProcessBudgetOpenTest, ZeroIsNoBudgetAndTheDefaultIsPartOfTheMachine) {
  EXPECT_EQ(ProcessBudget::Open(RealRuntime(), 0), nullptr);
  const auto given = ProcessBudget::Open(RealRuntime(), kBudget);
  ASSERT_NE(given, nullptr);
  EXPECT_EQ(given->bytes(), kBudget);
  EXPECT_EQ(given->Describe(), "memory budget 1024 MiB (--memory)");
  const auto usual = ProcessBudget::Open(RealRuntime(), std::nullopt);
  if (usual != nullptr) EXPECT_GT(usual->bytes(), kMiB);
}

}  // namespace
}  // namespace deut
