// HealthWatch: asks a daemon again and again whether it serves, and tells its health when that changes.
//
// States: not serving (at the start) <-> serving. Every change is told, and logged with its reason. That it does not serve yet is none: a process
// that has yet to begin says so otherwise.
// `ready` is asked with a deadline; it may wait for the answer to become OK, or answer at once. Between two questions there is a pause.
// Thread-safety: `ready` and `tell` are called on a thread of its own, until the destructor has returned.
#ifndef PROTOCOL_HEALTH_WATCH_H_
#define PROTOCOL_HEALTH_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/runtime/runtime.h"

namespace deut {

class HealthWatch {
 public:
  // Of a question, and between two.
  static constexpr Duration kPeriod = milliseconds(200);

  HealthWatch(Runtime& runtime, std::string name, std::function<Status(Deadline)> ready,
              std::function<void(bool)> tell);
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

 private:
  void Run();

  Runtime& runtime_;
  const std::string name_;
  const std::function<Status(Deadline)> ready_;
  const std::function<void(bool)> tell_;
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut

#endif  // PROTOCOL_HEALTH_WATCH_H_
