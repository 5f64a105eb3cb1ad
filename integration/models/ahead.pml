// L2, ahead: a snapshot passes transactions that have only read, against their first writes, begins, ends and rounds.
//
// Each transaction publishes a lower bound, draws, stores its timestamp, may become a writer, and ends; one may be a writer from its begin on.
// A client's snapshot must contain the timestamp that its own commit has drawn: it chooses the timestamp above that, publishes it in `ahead`, looks at the slots, and takes its own. A
// thread runs rounds of low-water.
// Properties: no writer whose write was not refused is below an open snapshot; low-water never passes an open snapshot or transaction.
// Bounds: READERS transactions, one snapshot, one thread that runs ROUNDS rounds. How long somebody has been open is left out: any transaction that
// has stored its timestamp may be passed.
#ifndef READERS
#define READERS 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define SLOTS (READERS + 1)
#define SNAPSHOT READERS
#define THREADS (READERS + 2)
// Words of memory: the bounds of the slots, then
#define COUNTER SLOTS
#define PROPOSED (SLOTS + 1)
#define LOW_WATER (SLOTS + 2)
#define AHEAD (SLOTS + 3)
#define WORDS (SLOTS + 4)
#include "store_buffer.inc"
// In a bound.
#define CHOOSING 64
#define WRITER 32
#define OWN_SNAPSHOT 16
#define BOUND(word) ((word) & 15)

bit claimed[SLOTS];
bit round;
byte drawn[READERS];   // the timestamp of an open transaction, for the property; 0: none
bit writes[READERS];   // it may install versions
byte reads_below;      // of the open snapshot; 0: none
byte minimum;          // a timestamp that was drawn and has ended

inline check() {
  i = 0;
  do
  :: i < READERS ->
     assert(drawn[i] == 0 || drawn[i] >= mem[LOW_WATER]);
     assert(!writes[i] || reads_below == 0 || drawn[i] >= reads_below);
     i++
  :: else -> break
  od;
  assert(reads_below == 0 || reads_below >= mem[LOW_WATER]);
  i = 0
}

proctype Transaction(byte me) {
  byte bound, timestamp, role, i;
  if
  :: role = WRITER
  :: role = 0
  fi;
  atomic { claimed[me] = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::Claim
  atomic { bound = LOAD(me, COUNTER) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  atomic { STORE_SC(me, me, bound + CHOOSING + role) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  d_step { DRAINED(me) -> timestamp = mem[COUNTER]; mem[COUNTER] = timestamp + 1; drawn[me] = timestamp; check() };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  atomic { STORE_PLAIN(me, me, timestamp + role) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  if
  :: role == WRITER -> goto write
  :: skip
  :: goto finish
  fi;
#if defined(OMIT_L2_flag_first)
  atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::BecomeWriter
    if
    :: LOAD(me, AHEAD) > timestamp -> goto finish
    :: else
    fi
  };
  atomic { STORE_SC(me, me, timestamp + WRITER) };  // code: tc/txn/active_transactions.cc ActiveTransactions::BecomeWriter
#else
#if defined(OMIT_L2_flag_ordered)
  atomic { STORE_PLAIN(me, me, timestamp + WRITER) };  // code: tc/txn/active_transactions.cc ActiveTransactions::BecomeWriter
#else
  atomic { STORE_SC(me, me, timestamp + WRITER) };  // code: tc/txn/active_transactions.cc ActiveTransactions::BecomeWriter
#endif
  atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::BecomeWriter
    if
#if !defined(OMIT_L2_writer_looks)
    :: LOAD(me, AHEAD) > timestamp -> goto finish
#endif
    :: else
    fi
  };
#endif
write:
  skip;
  d_step { writes[me] = 1; check() };  // code: tc/record_manager/write_path.cc WritePath::Install, WritePath::SwapHead
finish:
  atomic { drawn[me] = 0; writes[me] = 0; timestamp = 0; bound = 0 };  // code: tc/record_manager/commit_path.cc CommitPath::Finish
  atomic { STORE_PLAIN(me, me, 0) };  // code: tc/txn/active_transactions.cc ActiveTransactions::End
  atomic { DRAINED(me) -> claimed[me] = 0 }  // code: tc/txn/active_transactions.cc ActiveTransactions::End, ActiveTransactions::ReleaseBit
}

// may = whether all who are below r may be passed, slot by slot.
inline may_pass() {
  s = 0; may = 1;
  do
  :: s < READERS ->
     atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::FirstInTheWay
       if
       :: claimed[s] -> look = 1
       :: else -> look = 0
       fi
     };
     atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::FirstInTheWay
       if
       :: look && LOAD(me, s) != 0 && BOUND(LOAD(me, s)) < r && (LOAD(me, s) & (CHOOSING + WRITER)) != 0 -> may = 0
       :: else
       fi;
       look = 0; s++
     }
  :: else -> s = 0; break
  od
}

proctype Client(byte me) {
  byte r, s, i;
  bit may, look, taken;
  // Its own commit, which the snapshot must contain, has drawn and ended.
  atomic { minimum = mem[COUNTER]; mem[COUNTER] = minimum + 1 };  // model: the transaction before
  atomic { taken = round; round = 1 };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot
  if
  :: taken -> goto given_up
  :: else
  fi;
  // What is proposed may contain the minimum already: then the snapshot begins as any (low_water.pml).
  atomic {  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot
    if
    :: LOAD(me, PROPOSED) > minimum -> goto leave_round
    :: else -> r = minimum + 1
    fi
  };
  may_pass();
  if
  :: !may -> goto leave_round
  :: else
  fi;
  atomic { claimed[SNAPSHOT] = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::Claim
#if defined(OMIT_L2_ahead_ordered)
  atomic { STORE_PLAIN(me, AHEAD, r) };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot
#elif !defined(OMIT_L2_publish_ahead)
  atomic { STORE_SC(me, AHEAD, r) };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot; common/sync/raise_to.h RaiseTo
#endif
#if !defined(OMIT_L2_look_after_ahead)
  may_pass();
#endif
  if
  :: !may -> goto leave_round
  :: else
  fi;
#if defined(OMIT_L2_slot_in_round)
  atomic { round = 0 };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot
#endif
  atomic { STORE_SC(me, SNAPSHOT, r + OWN_SNAPSHOT) };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot
  d_step { reads_below = r; check() };  // model: from here on it reads versions below r
#if !defined(OMIT_L2_slot_in_round)
  atomic { round = 0 };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot
#endif
  d_step { check(); reads_below = 0 };  // model: it has read all it wanted
  atomic { STORE_PLAIN(me, SNAPSHOT, 0) };  // code: tc/txn/active_transactions.cc ActiveTransactions::End
  goto given_up;
leave_round:
  atomic { round = 0 };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TryPassingSnapshot
given_up:
  atomic { DRAINED(me) -> claimed[SNAPSHOT] = 0; r = 0; may = 0; taken = 0 }  // code: tc/txn/active_transactions.cc ActiveTransactions::ReleaseBit
}

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
       :: look && LOAD(me, s) != 0 && BOUND(LOAD(me, s)) < low -> low = BOUND(LOAD(me, s))
       :: else
       fi;
       look = 0; s++
     }
  :: else -> s = 0; break
  od
}

proctype Counter(byte me) {
  byte low, proposal, s, times, i;
  bit look, taken;
  do
  :: times < ROUNDS ->
     atomic { times++; taken = round; round = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::AdvanceNow
     if
     :: taken -> goto next
     :: else
     fi;
     atomic { low = LOAD(me, COUNTER) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
     oldest_bound();
     proposal = low;
     atomic {  // code: common/sync/raise_to.h RaiseTo; tc/txn/active_transactions.cc ActiveTransactions::Round
       DRAINED(me) ->
       if
       :: mem[PROPOSED] < low -> mem[PROPOSED] = low
       :: else
       fi
     };
     oldest_bound();
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
       :: p < READERS -> run Transaction(p)
       :: p == READERS -> run Client(p)
       :: else -> run Counter(p)
       fi;
       p++
    :: else -> break
    od
  }
}
