// Backoff: how a thread passes the time in a bounded spin: after a lost compare-and-swap, or before a word that
// another thread is about to change. It executes pause instructions first, twice as many each time, and then yields
// to other threads.
// Backoff is not for waits of unknown length: use Event.
// Thread-safety: none; one object per spin, on the stack.
#ifndef COMMON_SYNC_BACKOFF_H_
#define COMMON_SYNC_BACKOFF_H_

#include <immintrin.h>

#include <cstdint>

#include "common/runtime/runtime.h"

namespace deut {

class Backoff {
 public:
  explicit Backoff(Runtime& runtime) : runtime_(runtime) {}

  void Pause() {
    if (pauses_ > kMaxPauses) {
      runtime_.Yield();
      return;
    }
    for (uint32_t i = 0; i < pauses_; ++i) _mm_pause();
    pauses_ *= 2;
  }

  // True once Pause yields: a caller with something better to do may do it now.
  bool yields() const { return pauses_ > kMaxPauses; }

 private:
  static constexpr uint32_t kMaxPauses = 64;  // a few microseconds in all
  Runtime& runtime_;
  uint32_t pauses_ = 1;
};

}  // namespace deut

#endif  // COMMON_SYNC_BACKOFF_H_
