// BoundedWait: the one case in which a transaction may wait for another (R9): the other is earlier and committing already, so all that is left to it
// is to copy its commit record; nothing but the end of the process can keep it from being committed. The alternative is to abort for a conflict
// that is over in microseconds.
//
// Rules. Only for who is `committing`, never for who is active; only by a later timestamp for an earlier one, so waits form no cycle; for a
//   limited time, all waits of an operation together; without a guard of the reclamation domain, which would hold back reclamation; on the thread
//   of a session or of an embedding program, never on one that serves RPC events (sessions have threads of their own). Afterwards the operation
//   looks again from the head: nothing that was found before may be used.
// The wait. A short spin, then the waiter sets `awaited` in the transaction's record and waits on its status word; the committer stores the status,
//   then looks at `awaited` (both sides sequentially consistent): one of the two sees the other, so no wait outlasts its reason.
// Use: under a guard `if (wait.MayWaitFor(other))`, leave the guard, `wait.Wait()`, enter a guard, look again.
// Thread-safety: one object per operation, on its thread. Holds a reference to the record it waits for.
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

  // False: the operation loses to `other`. True: the caller must leave its guard and call Wait. REQUIRES: a guard, under which `other` was found.
  bool MayWaitFor(TransactionRecord& other);
  // Returns when the transaction is decided or the time is up. REQUIRES: MayWaitFor has answered true; no guard.
  void Wait();

 private:
  Engine& engine_;
  const Timestamp self_;
  MonotonicTime end_{};  // of all waits of this operation; the first sets it
  TransactionRecord* awaited_ = nullptr;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_BOUNDED_WAIT_H_
