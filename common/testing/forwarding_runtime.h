// ForwardingRuntime: forwards to the machine's runtime, for tests that replace one or two of its methods.
// Thread-safety: as Runtime.
#ifndef COMMON_TESTING_FORWARDING_RUNTIME_H_
#define COMMON_TESTING_FORWARDING_RUNTIME_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/runtime.h"

namespace deut::testing {

class ForwardingRuntime : public Runtime {
 public:
  MonotonicTime Now() override { return RealRuntime().Now(); }
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
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_FORWARDING_RUNTIME_H_
