// R9: later transactions wait for an earlier one that is committing.
//
// Transactions of timestamps 1..TRANSACTIONS, each on a thread of its own. Each may meet any other, which is active, committing or decided: it waits or loses
// as the code decides, any number of times (MEETINGS); then it commits. A wait here has no time limit, so that whatever only the limit would end is an
// invalid end state: a lost wake, or a cycle of waits. Store buffers, as the waiter marks and then looks, and the committer stores and then looks.
// Properties: every wait ends; nobody waits for who is active (its client may never come back: modelled as a transaction that stays active for ever);
// no record is freed while somebody refers to it.
// Bounds: TRANSACTIONS, MEETINGS. One word is one futex: going to sleep compares and sleeps in one step, as the kernel does.
#ifndef TRANSACTIONS
#define TRANSACTIONS 3
#endif
#ifndef MEETINGS
#define MEETINGS 1
#endif
#define THREADS TRANSACTIONS
// Words: STATUS + t, AWAITED + t.
#define STATUS 0
#define AWAITED TRANSACTIONS
#define WORDS (2 * TRANSACTIONS)
#include "store_buffer.inc"

#define ACTIVE 0
#define COMMITTING 1
#define COMMITTED 2
byte references[TRANSACTIONS] = 1;   // the owner's, then the collector's
bit freed[TRANSACTIONS];
bit asleep[TRANSACTIONS * TRANSACTIONS];  // waiter * TRANSACTIONS + for whom
bit stays[TRANSACTIONS];             // active for ever
byte done;

proctype Transaction(byte me) {
  byte meetings = MEETINGS, other, status, t;
  if
  :: stays[me] -> goto finished
  :: else
  fi;
  do
  :: meetings > 0 ->
     atomic { meetings--; select(other : 0 .. TRANSACTIONS - 1) };  // model: whom it meets, under a guard
     if
     :: other == me || freed[other] -> goto met
     :: else
     fi;
     atomic { status = LOAD(me, STATUS + other) };  // code: tc/record_manager/bounded_wait.cc BoundedWait::MayWaitFor
     if
     :: other > me -> goto met
#if !defined(OMIT_R9_committing_only)
     :: status == ACTIVE -> goto met
#endif
     :: status == COMMITTED -> goto met
     :: else
     fi;
     atomic {  // code: tc/txn/transaction_record.h TransactionRecord::TryAddReference
       if
#if !defined(OMIT_R9_try_reference)
       :: references[other] == 0 -> goto met
#endif
       :: else -> DRAINED(me) -> references[other]++
       fi
     };
#if defined(OMIT_R9_mark_first)
     atomic { status = LOAD(me, STATUS + other) };  // model: looked at before it is marked
     if
     :: status == COMMITTED -> goto ended
     :: else
     fi;
#endif
#if defined(OMIT_R9_mark_ordered)
     atomic { STORE_PLAIN(me, AWAITED + other, 1) };  // code: tc/txn/transaction_record.h TransactionRecord::MarkAwaited
#else
     atomic { STORE_SC(me, AWAITED + other, 1) };  // code: tc/txn/transaction_record.h TransactionRecord::MarkAwaited
#endif
     atomic {  // code: tc/record_manager/bounded_wait.cc BoundedWait::Wait
       assert(!freed[other]);
#if defined(OMIT_R9_mark_first)
       asleep[me * TRANSACTIONS + other] = 1
#elif defined(OMIT_R9_committing_only)
       asleep[me * TRANSACTIONS + other] = (LOAD(me, STATUS + other) != COMMITTED)
#else
       asleep[me * TRANSACTIONS + other] = (LOAD(me, STATUS + other) == COMMITTING)
#endif
     };
     atomic { !asleep[me * TRANSACTIONS + other] };  // model: the futex
ended:
     atomic {  // code: tc/record_manager/bounded_wait.cc BoundedWait::Wait; tc/txn/transaction_record.h TransactionRecord::DropReference
       assert(!freed[other]);
       references[other]--;
       freed[other] = (references[other] == 0)
     };
met:
     status = 0; other = 0
  :: else -> break
  od;
  atomic { STORE_SC(me, STATUS + me, COMMITTING) };  // code: tc/txn/transaction_record.h TransactionRecord::TryStartCommit
#if defined(OMIT_R9_finish_ordered)
  atomic { STORE_PLAIN(me, STATUS + me, COMMITTED) };  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
#else
  atomic { STORE_SC(me, STATUS + me, COMMITTED) };  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
#endif
#if !defined(OMIT_R9_wake)
  atomic {  // code: tc/record_manager/commit_path.cc CommitPath::FinishCommit; tc/txn/transaction_record.h TransactionRecord::awaited
    if
    :: LOAD(me, AWAITED + me) ->
       t = 0;
       do
       :: t < TRANSACTIONS -> asleep[t * TRANSACTIONS + me] = 0; t++
       :: else -> t = 0; break
       od
    :: else
    fi
  };
#endif
  atomic {  // code: tc/record_manager/commit_path.cc CommitPath::Finish; tc/txn/transaction_record.h TransactionRecord::DropReference
    DRAINED(me) -> references[me]--;
    freed[me] = (references[me] == 0)
  };
finished:
  atomic { done++ }  // model: it has ended
}

init {
  byte p;
  atomic {  // model: everybody begins; one may have a client that never comes back
    if
    :: stays[0] = 1
    :: skip
    fi;
    do
    :: p < TRANSACTIONS -> run Memory(p); run Transaction(p); p++
    :: else -> break
    od
  };
  atomic { done == TRANSACTIONS }  // model: everybody ends
}
