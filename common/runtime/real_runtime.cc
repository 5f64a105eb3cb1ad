#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "common/runtime/runtime.h"

namespace deut {
namespace {

class RealThread final : public Thread {
 public:
  RealThread(const std::string& name, std::function<void()> body) : thread_(std::move(body)) {
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }
  ~RealThread() override { RealThread::Join(); }
  void Join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

class RealRuntimeImpl final : public Runtime {
 public:
  MonotonicTime Now() override {
    return MonotonicTime(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
  }
  int64_t WallMicros() override {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  uint64_t RandomSeed() override {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return std::make_unique<RealThread>(name, std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    timespec limit{};
    timespec* timeout = nullptr;
    if (deadline != kNoDeadline) {
      // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, which is the clock of Now().
      const int64_t nanos = std::max<int64_t>(deadline.time_since_epoch().count(), 0);
      limit.tv_sec = nanos / 1'000'000'000;
      limit.tv_nsec = nanos % 1'000'000'000;
      timeout = &limit;
    }
    const long result = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, timeout, nullptr,
                                FUTEX_BITSET_MATCH_ANY);
    return result == 0 || errno != ETIMEDOUT;
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override {
    syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, waiters, nullptr, nullptr, 0);
  }
  void Yield() override { sched_yield(); }
};

}  // namespace

void Runtime::SleepUntil(MonotonicTime time) {
  const std::atomic<uint32_t> nobody_wakes{0};
  while (Now() < time) Wait(nobody_wakes, 0, time);
}

Runtime& RealRuntime() {
  // Never destroyed, because static objects may use it while they are destroyed.
  static RealRuntimeImpl& runtime = *new RealRuntimeImpl;
  return runtime;
}

}  // namespace deut
