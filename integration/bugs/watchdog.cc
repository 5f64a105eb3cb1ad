#include "integration/bugs/watchdog.h"

#include <algorithm>
#include <utility>

namespace deut::bugs {

Watchdog::Watchdog(Duration limit, std::function<void()> bark) {
  thread_ = RealRuntime().StartThread("watchdog", [this, limit, bark = std::move(bark)] {
    Runtime& runtime = RealRuntime();
    uint64_t seen = moves_.load();
    MonotonicTime since = runtime.Now();
    while (stop_.load() == 0) {
      runtime.Wait(stop_, 0, runtime.Now() + std::min<Duration>(limit, milliseconds(200)));
      const uint64_t moves = moves_.load();
      if (moves != seen) {
        seen = moves;
        since = runtime.Now();
      }
      const Duration silence = runtime.Now() - since;
      still_.store(silence > limit / 2, std::memory_order_relaxed);
      if (silence > limit && stop_.load() == 0) bark();
    }
  });
}

Watchdog::~Watchdog() {
  stop_.store(1);
  RealRuntime().WakeAll(stop_);
}

}  // namespace deut::bugs
