#include "protocol/rpc/health_watch.h"

#include <atomic>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HealthWatchTest : public ::testing::Test {
 protected:
  Status Ready() {
    asked_.fetch_add(1);
    return ready_.load() ? Status::Ok() : DEUT_ERROR(kUnavailable, "the disk hangs");
  }
  void Tell(bool serving) {
    const MutexLock lock(mutex_);
    told_.push_back(serving);
  }
  std::vector<bool> told() {
    const MutexLock lock(mutex_);
    return told_;
  }
  // Waits until the watch has finished the present question, and has reported its result.
  void Settle() {
    const uint64_t asked = asked_.load();
    while (asked_.load() < asked + 2) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
  }

  std::atomic<bool> ready_{false};
  std::atomic<uint64_t> asked_{0};
  Mutex mutex_{RealRuntime()};
  std::vector<bool> told_ DEUT_GUARDED_BY(mutex_);
};

TEST_F(HealthWatchTest, FollowsTheAnswerBothWays) {
  HealthWatch watch(
      RealRuntime(), "daemon", [this](Deadline) { return Ready(); }, [this](bool serving) { Tell(serving); });
  Settle();
  EXPECT_THAT(told(), IsEmpty()) << "not serving is how it begins";
  ready_.store(true);
  Settle();
  EXPECT_THAT(told(), ElementsAre(true));
  Settle();
  EXPECT_THAT(told(), ElementsAre(true)) << "told once";
  ready_.store(false);
  Settle();
  EXPECT_THAT(told(), ElementsAre(true, false));
  ready_.store(true);
  Settle();
  EXPECT_THAT(told(), ElementsAre(true, false, true));
}

TEST_F(HealthWatchTest, ReportsNothingAfterItsEnd) {
  {
    HealthWatch watch(
        RealRuntime(), "daemon", [this](Deadline) { return Ready(); }, [this](bool serving) { Tell(serving); });
    Settle();
  }
  ready_.store(true);
  EXPECT_THAT(told(), IsEmpty());
}

}  // namespace
}  // namespace deut
