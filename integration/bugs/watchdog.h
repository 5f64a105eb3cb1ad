// Watchdog ends the process when nothing has moved for too long, which shows that the store hangs. Moved() is called
// for a transaction that succeeded, a life that opened or ended, and a history that was judged.
// Thread-safety: any thread may call Moved and still.
#ifndef INTEGRATION_BUGS_WATCHDOG_H_
#define INTEGRATION_BUGS_WATCHDOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/runtime/runtime.h"

namespace deut::bugs {

class Watchdog {
 public:
  // Calls `bark` once, on the watchdog's thread; it must not return.
  Watchdog(Duration limit, std::function<void()> bark);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void Moved() { moves_.fetch_add(1, std::memory_order_relaxed); }
  // True if nothing has moved for half of the limit: the time to print the state.
  bool still() const { return still_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> moves_{0};
  std::atomic<bool> still_{false};
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_WATCHDOG_H_
