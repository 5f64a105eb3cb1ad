#include "common/runtime/coarse_time.h"

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(CoarseTime, NeverGoesBackAndRunsAlongWithTheOther) {
  Runtime& runtime = RealRuntime();
  const MonotonicTime start = runtime.Now();
  MonotonicTime last = CoarseNow(runtime);
  while (last < start + 5 * kCoarseStep) {
    const MonotonicTime coarse = CoarseNow(runtime);
    ASSERT_GE(coarse, last);
    last = coarse;
    ASSERT_LE(coarse, runtime.Now() + kCoarseStep);
  }
}

// A runtime with its own time.
TEST(CoarseTime, IsTheTimeOfAnyOtherRuntime) {
  class Standing final : public Runtime {
   public:
    MonotonicTime Now() override { return MonotonicTime(seconds(7)); }
    int64_t WallMicros() override { return 0; }
    uint64_t RandomSeed() override { return 0; }
    std::unique_ptr<Thread> StartThread(std::string /*name*/, std::function<void()> /*body*/) override {
      return nullptr;
    }
    bool Wait(const std::atomic<uint32_t>& /*word*/, uint32_t /*expected*/, Deadline /*deadline*/) override {
      return true;
    }
    void Wake(const std::atomic<uint32_t>& /*word*/, int /*waiters*/) override {}
    void Yield() override {}
  };
  Standing standing;
  EXPECT_EQ(CoarseNow(standing), MonotonicTime(seconds(7)));
}

}  // namespace
}  // namespace deut
