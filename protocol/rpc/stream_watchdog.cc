#include "protocol/rpc/stream_watchdog.h"

namespace deut {

StreamWatchdog::StreamWatchdog(Runtime& runtime, Duration limit) : runtime_(runtime), limit_(limit), mutex_(runtime) {
  thread_ = runtime.StartThread("rpc-watchdog", [this] { Run(); });
}

StreamWatchdog::~StreamWatchdog() {
  stop_.store(1, std::memory_order_seq_cst);
  runtime_.WakeAll(stop_);
  thread_->Join();
}

void StreamWatchdog::Run() {
  while (stop_.load(std::memory_order_seq_cst) == 0) {
    runtime_.Wait(stop_, 0, runtime_.Now() + limit_ / 4);
    const int64_t too_early = (runtime_.Now() - limit_).time_since_epoch().count();
    MutexLock lock(mutex_);
    for (Watch* watch : watches_) {
      if (watch->cancelled_ || watch->since_.load(std::memory_order_relaxed) > too_early) continue;
      watch->cancelled_ = watch->cancel_();
    }
  }
}

void StreamWatchdog::Watch::Enter() {
  MutexLock lock(watchdog_.mutex_);
  watchdog_.watches_.insert(this);
}

StreamWatchdog::Watch::~Watch() {
  MutexLock lock(watchdog_.mutex_);
  watchdog_.watches_.erase(this);
}

}  // namespace deut
