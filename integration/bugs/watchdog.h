// Watchdog: ends the process when nothing has moved for too long: a store that hangs has been found out. Moved(): a transaction that succeeded, a
// life that opened or ended, a history that was judged.
// Thread-safety: Moved and still from any thread.
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
  // `bark` is called once, on a thread of the watchdog's, and must not return.
  Watchdog(Duration limit, std::function<void()> bark);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void Moved() { moves_.fetch_add(1, std::memory_order_relaxed); }
  // Nothing has moved for half of the limit: time to say what there is to be seen.
  bool still() const { return still_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> moves_{0};
  std::atomic<bool> still_{false};
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_WATCHDOG_H_
