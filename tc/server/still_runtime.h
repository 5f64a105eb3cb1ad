// StillRuntime: a runtime for tests whose clock stands still, except that a wait until some time moves it to that
// time. The rest is real.
// Thread-safety: any thread.
#ifndef TC_SERVER_STILL_RUNTIME_H_
#define TC_SERVER_STILL_RUNTIME_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/runtime.h"

namespace deut::tc {

class StillRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return MonotonicTime(Duration(now_.load())); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (deadline == kNoDeadline) return RealRuntime().Wait(word, expected, deadline);
    now_.store(deadline.time_since_epoch().count());
    return false;
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }

 private:
  std::atomic<int64_t> now_{RealRuntime().Now().time_since_epoch().count()};
};

}  // namespace deut::tc

#endif  // TC_SERVER_STILL_RUNTIME_H_
