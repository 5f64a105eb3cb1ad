// ThreadIndex: a small number that belongs to one thread while that thread lives. If a counter is kept once per
// index, only one thread writes each copy, so it needs no read-modify-write.
//
// States of an index: free, taken (a bit of one word). Claim: the thread sets the bit by compare-and-swap (acquire)
//   the first time it asks; the loser tries the next free bit. Release: one read-modify-write (release) when the
//   thread ends. So the next owner of the index sees everything that was written under it.
// At most kMaxThreads threads have an index at a time. Later threads get none, nor does a thread whose thread-local
// objects are already being destroyed.
// Thread-safety: any thread.
#ifndef COMMON_SYNC_THREAD_INDEX_H_
#define COMMON_SYNC_THREAD_INDEX_H_

#include <cstdint>

namespace deut {

class ThreadIndex {
 public:
  static constexpr uint32_t kMaxThreads = 63;
  static constexpr uint32_t kNone = kMaxThreads;

  // Returns an index below kMaxThreads, or kNone. A thread that once got kNone never gets one.
  static uint32_t Get() { return index_ != kUnknown ? index_ : Claim(); }

 private:
  struct Keeper;
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static uint32_t Claim();

  static inline constinit thread_local uint32_t index_ = kUnknown;
};

}  // namespace deut

#endif  // COMMON_SYNC_THREAD_INDEX_H_
