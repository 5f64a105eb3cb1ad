// HealthWatch: asks a daemon periodically whether it serves, and reports its health whenever that changes.
//
// States: not serving (at the start) <-> serving. Each change is reported with `report`, and logged with its reason. A
// daemon that does not serve yet is no change: it logs by itself that it is starting.
// `ready` gets a deadline. It may wait until it can answer OK, or answer at once. One question begins every kPeriod.
// Thread-safety: `ready` and `report` run on the object's own thread, until the destructor has returned.
#ifndef PROTOCOL_RPC_HEALTH_WATCH_H_
#define PROTOCOL_RPC_HEALTH_WATCH_H_

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
  // The longest duration of a question, and the time from one question to the next.
  static constexpr Duration kPeriod = milliseconds(200);

  HealthWatch(Runtime& runtime, std::string name, std::function<Status(Deadline)> ready,
              std::function<void(bool)> report);
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

 private:
  void Run();

  Runtime& runtime_;
  const std::string name_;
  const std::function<Status(Deadline)> ready_;
  const std::function<void(bool)> report_;
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;  // the last member, because it uses the others
};

}  // namespace deut

#endif  // PROTOCOL_RPC_HEALTH_WATCH_H_
