// L1, L2: the timestamp counter, the slots of open transactions and snapshots, low-water.
//
// Transactions begin (claim a slot, publish a lower bound, draw, store the timestamp), live for a while and end; snapshots begin below
// `proposed`; whoever wants it runs a round. Slots are used again.
// Properties: low-water never passes the timestamp of an open transaction or snapshot (S1: so what the DC holds is visible to all of them);
// a snapshot reads below every writer that is open or has yet to draw; proposed and low-water never go back.
// Bounds: WRITERS transactions at a time, each REPEATS times; SNAPSHOTS snapshots; COUNTERS threads that run rounds, ROUNDS each.
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef SNAPSHOTS
#define SNAPSHOTS 1
#endif
#ifndef COUNTERS
#define COUNTERS 1
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define SLOTS (WRITERS + SNAPSHOTS)
#define THREADS (SLOTS + COUNTERS)
// Words of memory: the bounds of the slots, then
#define COUNTER SLOTS
#define PROPOSED (SLOTS + 1)
#define LOW_WATER (SLOTS + 2)
#define WORDS (SLOTS + 3)
#include "store_buffer.inc"

bit claimed[SLOTS];
bit round;            // the try-flag
byte drawn[WRITERS];  // the timestamp of an open transaction, for the property; 0: none
byte reads_below[SNAPSHOTS];

inline check() {
  i = 0;
  do
  :: i < WRITERS ->
     assert(drawn[i] == 0 || drawn[i] >= mem[LOW_WATER]);
     j = 0;
     do
     :: j < SNAPSHOTS -> assert(drawn[i] == 0 || reads_below[j] == 0 || drawn[i] >= reads_below[j]); j++
     :: else -> break
     od;
     i++
  :: else -> break
  od;
  i = 0;
  do
  :: i < SNAPSHOTS -> assert(reads_below[i] == 0 || reads_below[i] >= mem[LOW_WATER]); i++
  :: else -> break
  od;
  i = 0; j = 0
}

proctype Writer(byte me) {
  byte bound, timestamp, times, i, j;
  do
  :: times < REPEATS ->
     atomic { claimed[me] = 1 }  // code: tc/txn/active_transactions.cc ActiveTransactions::Claim
#if defined(OMIT_L1_publish_first)
     d_step { timestamp = mem[COUNTER]; mem[COUNTER] = timestamp + 1; drawn[me] = timestamp; check() };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
     atomic { STORE_SC(me, me, timestamp) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
#else
     atomic { bound = LOAD(me, COUNTER) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
#if defined(OMIT_L1_publish_ordered)
     // Neither the store nor the draw is sequentially consistent (x86 has no such read-modify-write; other processors do).
     atomic { STORE_PLAIN(me, me, bound) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
     d_step { timestamp = mem[COUNTER]; mem[COUNTER] = timestamp + 1; drawn[me] = timestamp; check() };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
#else
     atomic { STORE_SC(me, me, bound) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
     // The draw: a read-modify-write.
     d_step { DRAINED(me) -> timestamp = mem[COUNTER]; mem[COUNTER] = timestamp + 1; drawn[me] = timestamp; check() };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
#endif
     atomic { STORE_PLAIN(me, me, timestamp) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
#endif
     // Final: nobody can see it as open any more.
     atomic { drawn[me] = 0; timestamp = 0; bound = 0 };  // code: tc/record_manager/commit_path.cc CommitPath::Finish
     atomic { STORE_PLAIN(me, me, 0) };  // code: tc/txn/active_transactions.cc ActiveTransactions::End
     // A read-modify-write.
     atomic { DRAINED(me) -> claimed[me] = 0; times++ }  // code: tc/txn/active_transactions.cc ActiveTransactions::End, ActiveTransactions::ReleaseBit
  :: else -> break
  od
}

proctype Snapshot(byte me) {
  byte x, again, i, j;
  atomic { claimed[me] = 1 }  // code: tc/txn/active_transactions.cc ActiveTransactions::Claim
  atomic { x = LOAD(me, PROPOSED) };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
  do
  ::
#if defined(OMIT_L2_publish_ordered)
     atomic { STORE_PLAIN(me, me, x) };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
#else
     atomic { STORE_SC(me, me, x) };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
#endif
#if defined(OMIT_L2_look_again)
     break
#else
     atomic {  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
       again = LOAD(me, PROPOSED);
       if
       :: again == x -> again = 0; break
       :: else -> x = again; again = 0
       fi
     }
#endif
  od;
  skip;
  d_step { reads_below[me - WRITERS] = x; check() };  // model: from here on it reads versions below x
  atomic { reads_below[me - WRITERS] = 0 };  // model: it has read all it wanted
  atomic { STORE_PLAIN(me, me, 0) };  // code: tc/txn/active_transactions.cc ActiveTransactions::End
  atomic { DRAINED(me) -> claimed[me] = 0 }  // code: tc/txn/active_transactions.cc ActiveTransactions::End, ActiveTransactions::ReleaseBit
}

// low = min(low, bounds of the claimed slots), slot by slot.
inline oldest_bound() {
  s = 0;
  do
  :: s < SLOTS ->
     atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::OldestBound
       if
       :: claimed[s] -> look = 1
       :: else -> look = 0
       fi
     };
     atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::OldestBound
       if
       :: look && LOAD(me, s) != 0 && LOAD(me, s) < low -> low = LOAD(me, s)
       :: else
       fi;
       look = 0;
       s++
     }
  :: else -> s = 0; break
  od
}

proctype Counter(byte me) {
  byte low, proposal, s, times, i, j;
  bit look, taken;
  do
  :: times < ROUNDS ->
     atomic { times++; taken = round; round = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::AdvanceNow
     if
     :: taken -> goto next  // unreached: with one thread nobody else runs a round
     :: else
     fi;
#if defined(OMIT_L1_counter_first)
     low = 255;
     oldest_bound();
     atomic { low = (LOAD(me, COUNTER) < low -> LOAD(me, COUNTER) : low) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
#else
     atomic { low = LOAD(me, COUNTER) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
     oldest_bound();
#endif
     proposal = low;
#if defined(OMIT_L2_propose_ordered)
     atomic { STORE_PLAIN(me, PROPOSED, (LOAD(me, PROPOSED) < low -> low : LOAD(me, PROPOSED))) };  // code: common/sync/raise_to.h RaiseTo
#elif defined(OMIT_L2_propose_by_max)
     atomic { STORE_SC(me, PROPOSED, low) };  // code: common/sync/raise_to.h RaiseTo
#else
     // A compare-and-swap; one thread at a time runs a round, so it never fails.
     atomic {  // code: common/sync/raise_to.h RaiseTo; tc/txn/active_transactions.cc ActiveTransactions::Round
       DRAINED(me) ->
       if
       :: mem[PROPOSED] < low -> mem[PROPOSED] = low
       :: else
       fi
     };
#endif
#if !defined(OMIT_L2_two_steps)
     oldest_bound();
#endif
     if
     :: low >= proposal ->
        d_step {  // code: common/sync/raise_to.h RaiseTo; tc/txn/active_transactions.cc ActiveTransactions::Round
          DRAINED(me) ->
          if
          :: mem[LOW_WATER] < proposal -> mem[LOW_WATER] = proposal
          :: else
          fi;
          check()
        }
     :: else
     fi;
     atomic { round = 0; low = 0; proposal = 0 };  // code: tc/txn/active_transactions.cc ActiveTransactions::AdvanceNow
next:
     taken = 0
  :: else -> break
  od
}

init {
  byte p;
  atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::ActiveTransactions
    mem[COUNTER] = 1;
    mem[PROPOSED] = 1;
    mem[LOW_WATER] = 1;
    p = 0;
    do
    :: p < THREADS ->
       run Memory(p);
       if
       :: p < WRITERS -> run Writer(p)
       :: p >= WRITERS && p < SLOTS -> run Snapshot(p)
       :: else -> run Counter(p)
       fi;
       p++
    :: else -> break
    od
  }
}
