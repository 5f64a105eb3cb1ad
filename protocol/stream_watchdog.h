// StreamWatchdog: cancels a server-side stream whose handler has been blocked on its peer for too long: a peer that neither reads its
// answers nor goes away would otherwise hold a thread, and what the stream holds, for ever.
// A handler says when it starts to wait for its peer and when the wait is over; both cost an atomic store. A thread looks
// every quarter of the limit, so a stream is cancelled after 1 to 1.25 times the limit.
// Thread-safety: all methods from any thread; a Watch is used by one thread at a time.
// Ownership: a Watch must not outlive the watchdog. Its cancel function is called on the watchdog's thread, only while the Watch exists, and must not
// block. It is called at most once, unless it returns false: then nothing was cancelled, because the handler had just gone on, and a later
// wait that is too long calls it again.
#ifndef PROTOCOL_STREAM_WATCHDOG_H_
#define PROTOCOL_STREAM_WATCHDOG_H_

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
    // `cancel` returns whether it has cancelled; one that returns nothing has.
    template <typename Cancel>
    Watch(StreamWatchdog& watchdog, Cancel cancel) : watchdog_(watchdog), cancel_(Telling(std::move(cancel))) {
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
    static std::function<bool()> Telling(Cancel cancel) {
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
    bool cancelled_ = false;  // the watchdog's thread only
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

#endif  // PROTOCOL_STREAM_WATCHDOG_H_
