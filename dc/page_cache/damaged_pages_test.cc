#include "dc/page_cache/damaged_pages.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr PageId kPage{17};
constexpr TableId kTable{3};
constexpr TableId kOther{4};

// The machine's runtime, with a clock that a test sets.
class SetClock final : public Runtime {
 public:
  MonotonicTime Now() override { return MonotonicTime(Duration(now.load())); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    return RealRuntime().Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }

  void Pass(Duration time) { now.fetch_add(time.count()); }

  std::atomic<int64_t> now{Duration(std::chrono::hours(1)).count()};
};

Status Damage() { return Status(ErrorCode::kCorruption, "page 17 in segment 5 at 4096: the checksum is wrong"); }

class DamagedPagesTest : public ::testing::Test {
 protected:
  SetClock runtime_;
  ::deut::testing::RecordedLog log_;
  DamagedPages damaged_{runtime_};
};

TEST_F(DamagedPagesTest, ReadablePagesHaveNoRecentFailure) {
  EXPECT_TRUE(damaged_.RecentFailure(kPage, kTable).ok());
  EXPECT_TRUE(damaged_.RecordRead(kPage, kTable, Status::Ok()).ok());
  EXPECT_TRUE(damaged_.RecentFailure(kPage, kTable).ok());
  EXPECT_EQ(damaged_.count(), 0u);
  EXPECT_EQ(log_.text(), "");
}

TEST_F(DamagedPagesTest, AnUnreadablePageIsLoggedOnceWithTheRemedy) {
  const Status told = damaged_.RecordRead(kPage, kTable, Damage());
  EXPECT_EQ(told, ErrorCode::kCorruption);
  EXPECT_THAT(std::string(told.message()),
              AllOf(HasSubstr("table 3"), HasSubstr(std::string(Damage().message())), HasSubstr("deut dc verify")));
  EXPECT_EQ(damaged_.count(), 1u);
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(HasSubstr(std::string(told.message()))));
  EXPECT_EQ(damaged_.RecordRead(kPage, kTable, Status(ErrorCode::kIoError, "the device is gone")), ErrorCode::kIoError);
  EXPECT_EQ(damaged_.RecentFailure(kPage, kTable), ErrorCode::kIoError) << "the last failure";
  EXPECT_EQ(damaged_.count(), 1u);
  EXPECT_THAT(log_.TakeErrors(), IsEmpty());
}

TEST_F(DamagedPagesTest, OtherErrorsAreNoDamage) {
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kResourceExhausted, ErrorCode::kCancelled}) {
    const Status read(code, "no damage");
    const Status answer = damaged_.RecordRead(kPage, kTable, read);
    EXPECT_EQ(answer, code);
    EXPECT_EQ(answer.message(), read.message());
  }
  EXPECT_EQ(damaged_.count(), 0u);
  EXPECT_TRUE(damaged_.RecentFailure(kPage, kTable).ok());
  EXPECT_EQ(log_.text(), "");
}

TEST_F(DamagedPagesTest, ForAMomentTheDiskIsNotAskedAgain) {
  const Status told = damaged_.RecordRead(kPage, kTable, Damage());
  EXPECT_TRUE(damaged_.RecentFailure(PageId(18), kTable).ok());
  runtime_.Pass(DamagedPages::kRetryAfter - Duration(1));
  EXPECT_EQ(damaged_.RecentFailure(kPage, kTable).message(), told.message());
  runtime_.Pass(Duration(1));
  EXPECT_TRUE(damaged_.RecentFailure(kPage, kTable).ok());
  EXPECT_EQ(damaged_.count(), 1u) << "it is not known to be whole";
  // The page was read again and failed; kRetryAfter begins anew.
  (void)damaged_.RecordRead(kPage, kTable, Damage());
  runtime_.Pass(DamagedPages::kRetryAfter - Duration(1));
  EXPECT_FALSE(damaged_.RecentFailure(kPage, kTable).ok());
}

TEST_F(DamagedPagesTest, APageThatCanBeReadAgainIsForgotten) {
  (void)damaged_.RecordRead(kPage, kTable, Damage());
  (void)damaged_.RecordRead(PageId(18), kTable, Damage());
  EXPECT_TRUE(damaged_.RecordRead(kPage, kTable, Status::Ok()).ok());
  EXPECT_EQ(damaged_.count(), 1u);
  EXPECT_TRUE(damaged_.RecentFailure(kPage, kTable).ok());
  EXPECT_FALSE(damaged_.RecentFailure(PageId(18), kTable).ok());
  EXPECT_EQ(log_.Count("page 17, which could not be read, can be read again"), 1u);
  // A page that is damaged a second time is logged a second time.
  EXPECT_THAT(log_.TakeErrors(), ::testing::SizeIs(2));
  (void)damaged_.RecordRead(kPage, kTable, Damage());
  EXPECT_THAT(log_.TakeErrors(), ::testing::SizeIs(1));
}

TEST_F(DamagedPagesTest, ATableThatIsDroppedHasNone) {
  (void)damaged_.RecordRead(kPage, kTable, Damage());
  (void)damaged_.RecordRead(PageId(18), kOther, Damage());
  damaged_.ForgetTables([](TableId table) { return table == kTable; });
  EXPECT_EQ(damaged_.count(), 1u);
  EXPECT_TRUE(damaged_.RecentFailure(kPage, kTable).ok());
  EXPECT_FALSE(damaged_.RecentFailure(PageId(18), kOther).ok());
}

// No thread has asked for the count since the drop.
TEST_F(DamagedPagesTest, AnIdThatIsAnotherTablesPageNowIsAnotherPage) {
  (void)damaged_.RecordRead(kPage, kTable, Damage());
  EXPECT_TRUE(damaged_.RecentFailure(kPage, kOther).ok());
  (void)log_.TakeErrors();
  (void)damaged_.RecordRead(kPage, kOther, Damage());
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(HasSubstr("table 4"))) << "it is told, too";
  EXPECT_FALSE(damaged_.RecentFailure(kPage, kOther).ok());
  EXPECT_EQ(damaged_.count(), 1u);
  EXPECT_TRUE(damaged_.RecordRead(kPage, kOther, Status::Ok()).ok());
  EXPECT_EQ(damaged_.count(), 0u);
}

TEST_F(DamagedPagesTest, OfTooManyItIsSaidThatThereAreMore) {
  const auto page = [](size_t i) { return PageId(static_cast<uint32_t>(100 + i)); };
  for (size_t i = 0; i < DamagedPages::kLimit; ++i) {
    EXPECT_EQ(log_.Count("further ones are not logged"), 0u);
    log_.TakeErrors();
    (void)damaged_.RecordRead(page(i), kTable, Damage());
    if (HasFailure()) return;
  }
  EXPECT_THAT(log_.TakeErrors(), ElementsAre(HasSubstr("cannot be read"), HasSubstr("further ones are not logged")));
  const Status told = damaged_.RecordRead(page(DamagedPages::kLimit), kTable, Damage());
  EXPECT_THAT(std::string(told.message()), HasSubstr("deut dc verify"));
  EXPECT_EQ(damaged_.count(), DamagedPages::kLimit);
  EXPECT_TRUE(damaged_.RecentFailure(page(DamagedPages::kLimit), kTable).ok());
  // The remembered pages stay remembered.
  (void)damaged_.RecordRead(page(0), kTable, Damage());
  EXPECT_FALSE(damaged_.RecentFailure(page(0), kTable).ok());
  EXPECT_THAT(log_.TakeErrors(), IsEmpty());
}

TEST_F(DamagedPagesTest, SeveralThreadsAtOnce) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.push_back(RealRuntime().StartThread("reader", [&, t] {
      for (uint32_t i = 0; i < 2000; ++i) {
        const PageId page(i % 7);
        (void)damaged_.RecentFailure(page, kTable);
        (void)damaged_.RecordRead(page, kTable, (i + t) % 3 == 0 ? Status::Ok() : Damage());
        damaged_.ForgetTables([&](TableId) { return i % 5 == 0; });
      }
    }));
  }
  threads.clear();
  for (uint32_t i = 0; i < 7; ++i) (void)damaged_.RecordRead(PageId(i), kTable, i < 3 ? Damage() : Status::Ok());
  EXPECT_EQ(damaged_.count(), 3u);
}

}  // namespace
}  // namespace deut::dc
