// StreamWatchdog: cancels a server-side stream whose handler has waited for its peer for too long. A peer that neither
// reads its answers nor goes away would otherwise hold a thread, and the stream's memory, for ever.
// A handler reports when it starts to wait for its peer and when the wait is over. Both cost one atomic store. A thread
// looks every quarter of the limit, so a stream is cancelled after 1 to 1.25 times the limit.
// Thread-safety: any thread may call any method; only one thread at a time uses a Watch.
// Ownership: a Watch must not outlive the watchdog. The watchdog's thread calls its cancel function, only while the
// Watch exists, and the function must not block. It is called at most once, unless it returns false. That means that it
// cancelled nothing, because the handler had just gone on. A later wait that is too long then calls it again.
#ifndef PROTOCOL_RPC_STREAM_WATCHDOG_H_
#define PROTOCOL_RPC_STREAM_WATCHDOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

class StreamWatchdog {
 public:
  StreamWatchdog(Runtime& runtime, Duration limit);
  ~StreamWatchdog();
  StreamWatchdog(const StreamWatchdog&) = delete;
  StreamWatchdog& operator=(const StreamWatchdog&) = delete;

  // For waits that have a deadline of their own.
  Duration limit() const { return limit_; }

  class Watch {
   public:
    // `cancel` returns whether it has cancelled. A `cancel` that returns void always has.
    template <typename Cancel>
    Watch(StreamWatchdog& watchdog, Cancel cancel) : watchdog_(watchdog), cancel_(ReturningBool(std::move(cancel))) {
      Enter();
    }
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // From now on the handler waits for its peer.
    void Start() { since_.store(watchdog_.runtime_.Now().time_since_epoch().count(), std::memory_order_relaxed); }
    void Stop() { since_.store(kIdle, std::memory_order_relaxed); }

   private:
    friend class StreamWatchdog;
    template <typename Cancel>
    static std::function<bool()> ReturningBool(Cancel cancel) {
      if constexpr (std::is_void_v<std::invoke_result_t<Cancel&>>) {
        return [cancel = std::move(cancel)]() mutable {
          cancel();
          return true;
        };
      } else {
        return cancel;
      }
    }
    void Enter();

    static constexpr int64_t kIdle = INT64_MAX;

    StreamWatchdog& watchdog_;
    const std::function<bool()> cancel_;
    std::atomic<int64_t> since_{kIdle};
    bool cancelled_ = false;  // used only by the watchdog's thread
  };

 private:
  void Run();

  Runtime& runtime_;
  const Duration limit_;
  Mutex mutex_;
  std::set<Watch*> watches_ DEUT_GUARDED_BY(mutex_);
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_STREAM_WATCHDOG_H_
