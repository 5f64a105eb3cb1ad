// SessionPool: the idle sessions of one client, for reuse by its next transactions.
//
// Latch-free. The pool is a fixed row of slots, each an atomic pointer: null, or an idle session to which nothing
// else refers.
// - Take exchanges a non-null slot with null. The thread that gets the pointer owns the session. A thread that gets
//   null goes on to the next slot.
// - Return compare-and-swaps null -> session. A thread that loses (the slot was taken meanwhile) tries the next slot.
//   If no slot is free the session is closed.
// There is no ABA problem. A slot's value is compared only with null, and an exchange hands over exactly the pointer
// that was there. A thread starts at a slot of its own. So threads keep their sessions, with their memory, and do not
// meet.
// Thread-safety: all methods from any thread; the destructor after all others. Ownership: owns the sessions in the
// slots.
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

  // Returns null if no session is idle.
  std::unique_ptr<ClientSession> Take();
  // REQUIRES: the session is without an open transaction and has not failed.
  void Return(std::unique_ptr<ClientSession> session);

 private:
  // Each slot has a cache line of its own, so that threads at neighbouring slots do not disturb one another.
  struct alignas(64) Slot {
    std::atomic<ClientSession*> session{nullptr};
  };

  // The slot at which this thread begins.
  size_t FirstSlot() const;

  std::vector<Slot> slots_;
};

}  // namespace deut

#endif  // TC_CLIENT_SESSION_POOL_H_
