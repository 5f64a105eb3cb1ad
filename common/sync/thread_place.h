// ThreadPlace: a small number that a thread has for itself while it lives: what is kept once for each number is then written by one thread, without
// a read-modify-write.
//
// States of a number: free, taken (a bit of one word). Claim: compare-and-swap, acquire, by the thread that is to have it, the first time that
//   it asks; the loser tries the next free bit. Release: one read-modify-write, when the thread ends; so who has the number next sees what was
//   written under it.
// Of more than kPlaces threads the later ones have none, nor has a thread whose own objects are being destroyed.
// Thread-safety: any thread.
#ifndef COMMON_SYNC_THREAD_PLACE_H_
#define COMMON_SYNC_THREAD_PLACE_H_

#include <cstdint>

namespace deut {

class ThreadPlace {
 public:
  static constexpr uint32_t kPlaces = 63;
  static constexpr uint32_t kNone = kPlaces;

  // Below kPlaces, or kNone. A thread that has had none never gets one.
  static uint32_t Get() { return place_ != kUnknown ? place_ : Claim(); }

 private:
  struct Keeper;
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static uint32_t Claim();

  static inline constinit thread_local uint32_t place_ = kUnknown;
};

}  // namespace deut

#endif  // COMMON_SYNC_THREAD_PLACE_H_
