// SessionPool: idle sessions of one client, to be used again by the next transaction.
//
// Latch-free. The pool is a fixed row of slots, each an atomic pointer: null, or an idle session that nobody else refers to.
//   Take    exchanges a non-null slot with null; whoever gets the pointer owns the session (the loser got null and looks on).
//   Return  compare-and-swaps null -> session; the loser (slot taken meanwhile) tries the next slot; no free slot: the session is closed.
// There is no ABA: a slot's value is never compared with anything but null, and an exchange hands over exactly what was there.
// A thread starts at a slot of its own, so that threads keep their session (and its memory) and do not meet.
// Thread-safety: all methods from any thread; the destructor after all others. Ownership: owns what lies in the slots.
#ifndef TC_CLIENT_SESSION_POOL_H_
#define TC_CLIENT_SESSION_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tc/client/client_session.h"

namespace deut {

class SessionPool {
 public:
  explicit SessionPool(uint32_t capacity);
  ~SessionPool();
  SessionPool(const SessionPool&) = delete;
  SessionPool& operator=(const SessionPool&) = delete;

  // Null if none is idle.
  std::unique_ptr<ClientSession> Take();
  // REQUIRES: the session is without an open transaction and has not failed.
  void Return(std::unique_ptr<ClientSession> session);

 private:
  // A cache line each: threads that use neighbouring slots do not disturb one another.
  struct alignas(64) Slot {
    std::atomic<ClientSession*> session{nullptr};
  };

  // Where this thread begins to look.
  size_t FirstSlot() const;

  std::vector<Slot> slots_;
};

}  // namespace deut

#endif  // TC_CLIENT_SESSION_POOL_H_
