// BoundedWait: the one case in which a transaction may wait for another (R9): the other is earlier and already
// committing. All that is left to it is to copy its commit record, and only the end of the process can keep it from
// being committed. The alternative is to abort for a conflict that is over in microseconds.
//
// Rules:
// - A transaction waits only for one that is `committing`, never for an active one.
// - Only a later timestamp waits for an earlier one, so waits form no cycle.
// - All waits of an operation together are limited in time (ConflictOptions::wait).
// - A waiting thread holds no guard of the reclamation domain, because that would hold back reclamation.
// - Only a thread of a session or of an embedding program waits, never one that serves RPC events. (Sessions have
//   threads of their own.)
// - After a wait the operation looks again from the head. It uses nothing that it found before.
// The wait: after a short spin the waiter sets `awaited` in the transaction's record and waits on its status word.
//   The committer stores the status, then reads `awaited`. Both sides are sequentially consistent, so one of the two
//   sees the other, and no wait outlasts its reason.
// Use: under a guard `if (wait.MayWaitFor(other))`, leave the guard, `wait.Wait()`, enter a guard, look again.
// Thread-safety: one object per operation, on its thread. Ownership: holds a reference to the record that it waits
//   for.
#ifndef TC_RECORD_MANAGER_BOUNDED_WAIT_H_
#define TC_RECORD_MANAGER_BOUNDED_WAIT_H_

#include "common/base/ids.h"
#include "common/runtime/time.h"
#include "tc/record_manager/engine.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class BoundedWait {
 public:
  BoundedWait(Engine& engine, Timestamp self) : engine_(engine), self_(self) {}
  BoundedWait(const BoundedWait&) = delete;
  BoundedWait& operator=(const BoundedWait&) = delete;

  // Returns true if the caller must leave its guard and call Wait, and false if the operation loses to `other`.
  // REQUIRES: a guard, under which `other` was found.
  bool MayWaitFor(TransactionRecord& other);
  // Returns when the transaction is decided or the time is up. REQUIRES: MayWaitFor has returned true; no guard.
  void Wait();

 private:
  Engine& engine_;
  const Timestamp self_;
  MonotonicTime end_{};  // end of all waits of this operation; set by the first
  TransactionRecord* awaited_ = nullptr;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_BOUNDED_WAIT_H_
