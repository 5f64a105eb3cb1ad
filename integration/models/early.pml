// S6, early: the collector takes out versions that nobody reads, while transactions and snapshots begin.
//
// Transactions begin (load the counter, publish it as a lower bound, draw, store the timestamp) and end; snapshots begin at `proposed`; one thread runs
// rounds of low-water, each with or without an answer who reads. After an answer everything that only others could read is taken out.
// A reader at t needs what is between the timestamps; `dead[t]` says that something was taken out which a reader at t would have needed.
// Properties: no open transaction or snapshot reads at a dead timestamp, nor would a snapshot that began now; low-water and proposed stay at or below open transactions (L1, L2).
// Accesses are one after the other in one order (the code's are sequentially consistent; low_water.pml is about that).
// A lower bound that was loaded before an answer and published after it lies below where that answer keeps all, its timestamp does not: it must not
// make a later answer count more as kept. It takes four transactions and three rounds to see that: two such bounds, and one that is open.
// Bounds: WRITERS transactions, of which with OLD the first is open from the beginning, SNAPSHOTS snapshots, ROUNDS rounds.
#ifndef WRITERS
#define WRITERS 3
#endif
#ifndef SNAPSHOTS
#define SNAPSHOTS 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define SLOTS (WRITERS + SNAPSHOTS)
#define TIMES (WRITERS + 2)

byte counter = 1;
byte proposed = 1, low_water = 1;
byte bound[SLOTS];      // 0: free
bit choosing[SLOTS];    // in the same word as the bound
byte drawn[WRITERS];    // the timestamp of an open transaction, for the properties
#if SNAPSHOTS > 0
byte reads_at[SNAPSHOTS];
#endif
bit member[TIMES];      // who reads, as last answered,
byte from = 0;          // and everybody from here on
bit dead[TIMES];

inline check() {
  i = 0;
  do
  :: i < WRITERS ->
     assert(drawn[i] == 0 || !dead[drawn[i]]);
     assert(drawn[i] == 0 || (low_water <= drawn[i] && proposed <= drawn[i]));
     i++
  :: else -> i = 0; break
  od;
  assert(!dead[proposed]);
#if SNAPSHOTS > 0
  do
  :: i < SNAPSHOTS -> assert(reads_at[i] == 0 || !dead[reads_at[i]]); i++
  :: else -> i = 0; break
  od
#endif
}

proctype Writer(byte me) {
  byte b, i;
#if defined(OLD)
  if
  :: me == 0 -> goto open
  :: else
  fi;
#endif
  atomic { b = counter };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  atomic { bound[me] = b; choosing[me] = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  atomic { drawn[me] = counter; counter++; b = 0; check() };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  atomic { bound[me] = drawn[me]; choosing[me] = 0 };  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
open:
  atomic { drawn[me] = 0; bound[me] = 0 }  // code: tc/txn/active_transactions.cc ActiveTransactions::End
}

#if SNAPSHOTS > 0
proctype Snapshot(byte me) {
  byte x, i;
  atomic { x = proposed };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
  do
  :: atomic { bound[WRITERS + me] = x };  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
     atomic {  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
       if
       :: x == proposed -> reads_at[me] = x; check(); break
       :: else -> x = proposed
       fi
     }
  od;
  atomic { reads_at[me] = 0; bound[WRITERS + me] = 0; x = 0 }  // code: tc/txn/active_transactions.cc ActiveTransactions::End
}
#endif

inline scan(low) {
  i = 0;
  do
  :: i < SLOTS -> atomic { low = (bound[i] != 0 && bound[i] < low -> bound[i] : low); i++ }  // code: tc/txn/active_transactions.cc ActiveTransactions::OldestBound
  :: else -> i = 0; break
  od
}

// Into `next`, and the bound into `c`.
inline look_who_reads() {
  i = 0;
  do
  :: i < SLOTS ->
     atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::RoundForReaders, ActiveTransactions::ForEachBound
       if
#if !defined(OMIT_S6_choosing)
       :: bound[i] != 0 && choosing[i] -> c = (bound[i] < c -> bound[i] : c)
       :: bound[i] != 0 && !choosing[i] ->
#else
       :: bound[i] != 0 ->
#endif
#if !defined(OMIT_S6_registered)
          next[bound[i]] = 1
#else
          skip
#endif
       :: else
       fi;
       i++
     }
  :: else -> i = 0; break
  od
}

proctype Rounds() {
  byte c, low, second, times, i;
  bit next[TIMES];
  bit for_readers;
  do
  :: times < ROUNDS ->
     times++;
     if
     :: for_readers = 1
     :: for_readers = 0
     fi;
#if !defined(OMIT_S6_counter_first)
     atomic { c = counter; low = c };  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
     scan(low);
#else
     low = TIMES;
     scan(low);
#if defined(OMIT_S6_look_after_proposing)
     look_who_reads();
#endif
     atomic { c = counter; low = (c < low -> c : low) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
#endif
#if defined(OMIT_S6_look_after_proposing)
     if
     :: for_readers -> look_who_reads()
     :: else
     fi;
#endif
#if !defined(OMIT_S6_round_up)
     atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::Round; tc/txn/readers.h Readers::RoundUp
       do
       :: low < from && !member[low] -> low++
       :: else -> break
       od
     };
#endif
     atomic { proposed = (low > proposed -> low : proposed); check() };  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
     second = low;
     scan(second);
     atomic { low_water = (second >= low && low > low_water -> low : low_water); check(); second = 0 };  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
     if
     :: for_readers ->
        atomic { next[proposed] = 1; next[low_water] = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::RoundForReaders
#if !defined(OMIT_S6_look_after_proposing)
        look_who_reads();
#endif
        atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::RoundForReaders
#if defined(OMIT_S6_from_rises)
          from = c;
#else
          from = (c > from -> c : from);
#endif
          do
          :: i < TIMES -> member[i] = next[i]; next[i] = 0; i++
          :: else -> i = 0; break
          od
        };
        atomic {  // code: tc/mvcc/commit_folder.cc CommitFolder::CollectEarly; tc/mvcc/version_chain.cc CollectUnread
          do
          :: i < TIMES -> dead[i] = dead[i] || (i < from && !member[i]); i++
          :: else -> i = 0; break
          od;
          check()
        }
     :: else
     fi;
     atomic { c = 0; low = 0; for_readers = 0 }  // model: the next round
  :: else -> break
  od
}

init {
  byte p;
  atomic {  // model: everybody begins
#if defined(OLD)
    drawn[0] = counter; bound[0] = counter; counter++;
#endif
    run Rounds();
    do
    :: p < WRITERS -> run Writer(p); p++
    :: else -> p = 0; break
    od;
#if SNAPSHOTS > 0
    do
    :: p < SNAPSHOTS -> run Snapshot(p); p++
    :: else -> break
    od
#endif
  }
}
