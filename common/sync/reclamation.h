// ReclamationDomain: epoch-based reclamation of memory. An object unlinked from a latch-free structure is retired here and
// freed when every thread that might still hold a pointer to it has left its guard.
//
// States. A global epoch number E (from 1). Each registered thread owns a slot: 0 = outside, else the epoch it entered in.
// Steps. Enter: slot = E (sequentially consistent store), then look at E again; repeat until unchanged. Leave: slot = 0
//   (release). Retire(p): append (p, E) to the thread's own list; the pointer must be unreachable for threads that enter later.
//   Advance (by any thread, every so many retirements): E += 1. Free: an object retired in epoch e is freed once every
//   occupied slot is > e.
// Guards nest (only the outermost enters). A guard is held over a few memory accesses, never across a wait, a message or a batch.
// Thread-safety: all methods from any thread; a thread is registered at its first guard and unregistered when it ends.
// Ownership: the domain owns retired objects; its destructor frees all that are left and requires that no guard is held.
// Limits: `pending_bytes` is what waits to be freed; a thread that stays inside a guard makes it grow (and blocks nobody).
#ifndef COMMON_SYNC_RECLAMATION_H_
#define COMMON_SYNC_RECLAMATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace deut {

class ReclamationDomain {
 public:
  ReclamationDomain();
  ~ReclamationDomain();
  ReclamationDomain(const ReclamationDomain&) = delete;
  ReclamationDomain& operator=(const ReclamationDomain&) = delete;

  class Guard {
   public:
    explicit Guard(ReclamationDomain& domain) : domain_(domain) { domain_.Enter(); }
    ~Guard() { domain_.Leave(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    ReclamationDomain& domain_;
  };

  // Frees `object` by `deleter(object)` once no guard can see it. `bytes` is what it counts for in pending_bytes.
  // REQUIRES: a guard is held; `object` is unlinked and this thread is the one that unlinked it.
  void Retire(void* object, void (*deleter)(void*), size_t bytes);

  template <typename T>
  void RetireObject(T* object, size_t bytes = sizeof(T)) {
    Retire(object, [](void* p) { delete static_cast<T*>(p); }, bytes);
  }

  // Frees what can be freed now, of all threads' lists that can be had without waiting. For idle moments and tests.
  void Collect();

  size_t pending_bytes() const;
  // True if the calling thread holds a guard (checked by code that requires or forbids one).
  bool held() const;

 private:
  void Enter();
  void Leave();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deut

#endif  // COMMON_SYNC_RECLAMATION_H_
