#include "protocol/rpc/health_watch.h"

#include <utility>

#include "common/observe/log.h"

namespace deut {

HealthWatch::HealthWatch(Runtime& runtime, std::string name, std::function<Status(Deadline)> ready,
                         std::function<void(bool)> report)
    : runtime_(runtime), name_(std::move(name)), ready_(std::move(ready)), report_(std::move(report)) {
  thread_ = runtime.StartThread("health", [this] { Run(); });
}

HealthWatch::~HealthWatch() {
  stop_.store(1, std::memory_order_seq_cst);
  runtime_.WakeAll(stop_);
  thread_.reset();
}

void HealthWatch::Run() {
  bool serving = false;
  while (stop_.load(std::memory_order_seq_cst) == 0) {
    const Deadline next = runtime_.Now() + kPeriod;
    const Status status = ready_(next);
    if (status.ok() != serving) {
      serving = status.ok();
      report_(serving);
      if (serving) {
        LogInfo(name_, " serves");
      } else {
        LogWarning(name_, " does not serve: ", status.ToString());
      }
    }
    runtime_.Wait(stop_, 0, next);
  }
}

}  // namespace deut
