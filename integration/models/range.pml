// R1, R2, R3, R7: writers against readers of a logical range.
//
// Each of TRANSACTIONS transactions, of timestamps 1..TRANSACTIONS, chooses freely: a scan (none, plain, or SIX: for update) over any keys, then
// writes of any keys, then commit or abort. All begin at any time. So two readers of which one fails, a reader who comes second to a later one, and
// SIX against SIX are among what is explored.
// PRECISE: R8 and R9. A scan goes stretch by stretch: each is looked at anew and ends before the nearest key that an earlier undecided writer has
// published; where it stands at such a key it loses, or waits if the writer is committing, and looks again; it may stop between two stretches.
// Property: a committed scan has seen, of each key in its bounds, the version of the latest committed earlier writer (no phantom, no stale
// value): serializability by timestamp. A SIX that was granted excludes later readers until its transaction ends (R3). Nobody loses to a transaction
// that has ended (R7).
// Bounds: TRANSACTIONS, KEYS in the one range.
#ifndef TRANSACTIONS
#define TRANSACTIONS 3
#endif
#ifndef KEYS
#define KEYS 1
#endif
#define ALL_KEYS ((1 << KEYS) - 1)
#define THREADS TRANSACTIONS
// Words of memory: POSTED + t: t has a posting on the range; KEYS_OF + t: the keys that t has published in its write set.
#define LAST_READ 0
#define POSTED 1
#define KEYS_OF (1 + TRANSACTIONS)
#define WORDS (1 + 2 * TRANSACTIONS)
#include "store_buffer.inc"

#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
#define COMMITTING 3
#define UNDECIDED(t) (status[t] == ACTIVE || status[t] == COMMITTING)
byte status[TRANSACTIONS];
bit ended[TRANSACTIONS];
byte installed[KEYS];               // a bit for each transaction that has a version in the chain, live ones in the order of their timestamps
byte bounds[TRANSACTIONS];          // of a scan that was delivered
byte found[TRANSACTIONS * KEYS];    // by it: timestamp of each key's version; 0: what was there before
bit granted[TRANSACTIONS];          // a SIX that has passed; until its transaction ends
bit looked[TRANSACTIONS];           // a scan that has passed
byte done;

#define TS(t) ((t) + 1)
#define HAS(set, x) (((set) >> (x)) & 1)

// An uncommitted transaction is met: nobody may be in the way who has ended.
#define LOSE_TO(t) assert(!ended[t]); goto lose

proctype Transaction(byte me) {
  byte scan, keys, writes, seen, k, t, newest;
  bit posted, later;
#if defined(PRECISE)
  byte nearest = KEYS, who, below;  // the nearest pending key, its writer; the keys before it
#endif
  atomic {  // model: what it is going to do
    select(scan : 0 .. 2);
    if
    :: scan > 0 -> select(keys : 1 .. ALL_KEYS)
    :: else
    fi;
    select(writes : 0 .. ALL_KEYS);
    k = 0
  };
  if
  :: scan == 0 -> goto write
  :: else
  fi;
stretch:
#if defined(OMIT_R3_check_first)
  if
  :: scan == 2 ->
     atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather
       if
       :: LOAD(me, LAST_READ) > TS(me) -> goto lose
       :: else
       fi
     }
  :: else
  fi;
#endif
  if
  :: scan == 2 && !posted ->
     posted = 1;
#if !defined(OMIT_R3_post_first) && !defined(OMIT_R3_check_first)
     atomic { STORE_SC(me, POSTED + me, 1) }  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather; tc/mvcc/range_table.cc Range::Post
#endif
  :: else
  fi;
#if defined(OMIT_R2_raise_ordered)
  atomic { STORE_PLAIN(me, LAST_READ, (LOAD(me, LAST_READ) < TS(me) -> TS(me) : LOAD(me, LAST_READ))) };  // code: tc/mvcc/range_table.cc Range::RaiseLastRead
#elif !defined(OMIT_R2_raise) && !defined(OMIT_R2_raise_first)
  atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather; tc/mvcc/range_table.cc Range::RaiseLastRead
    if
    :: LOAD(me, LAST_READ) >= TS(me) -> later = (LOAD(me, LAST_READ) > TS(me))
    :: LOAD(me, LAST_READ) < TS(me) && DRAINED(me) -> mem[LAST_READ] = TS(me)
    fi
  };
#endif
  atomic {  // code: tc/mvcc/range_table.h Range::ForEachPosting
    t = 0;
    do
    :: t < TRANSACTIONS -> seen = seen | (LOAD(me, POSTED + t) << t); t++
    :: else -> break
    od;
    t = 0
  };
  do
  :: t < me ->
     atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::GatherFrom, ScanGather::GatherKeys, ScanGather::FindPending; tc/mvcc/range_table.h Range::ForEachPosting
       if
#if defined(OMIT_R2_look)
       :: 0 -> skip
#elif defined(OMIT_R2_look_always)
       :: HAS(seen, t) && status[t] == ACTIVE && !later -> LOSE_TO(t)
#elif defined(PRECISE)
       :: HAS(seen, t) && UNDECIDED(t) ->
          assert(!ended[t]);
          do
          :: k < nearest && HAS(LOAD(me, KEYS_OF + t) & keys, k) -> nearest = k; who = t
          :: k < nearest && !HAS(LOAD(me, KEYS_OF + t) & keys, k) -> k++
          :: else -> k = 0; break
          od
#else
       :: HAS(seen, t) && status[t] == ACTIVE -> LOSE_TO(t)
#endif
       // Committed: its keys are gathered; what the others have is not looked for.
       :: HAS(seen, t) && status[t] == COMMITTED -> newest = newest | LOAD(me, KEYS_OF + t)
       :: else
       fi;
       t++
     }
  :: else -> seen = 0; later = 0; t = 0; break
  od;
#if defined(OMIT_R2_raise_first)
  atomic { DRAINED(me) -> mem[LAST_READ] = (mem[LAST_READ] < TS(me) -> TS(me) : mem[LAST_READ]) };  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather
#endif
#if defined(OMIT_R3_check_first)
  if
  :: scan == 2 -> atomic { STORE_SC(me, POSTED + me, 1) }  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather
  :: else
  fi;
#endif
  atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather; tc/mvcc/range_table.h Range::last_read
#if !defined(OMIT_R3_check_first) && !defined(OMIT_R3_check_last)
    if
    :: scan == 2 && LOAD(me, LAST_READ) > TS(me) -> goto lose
    :: else
    fi;
#endif
    looked[me] = 1;
    granted[me] = (scan == 2);
    do
    :: t < TRANSACTIONS ->
#if !defined(PRECISE)  // by key a SIX counts with what it has written: what it has only read is in no later reader's way
       assert(!(t < me && granted[t] && status[t] == ACTIVE) && !(t > me && granted[me] && looked[t]));
#endif
       t++
    :: else -> t = 0; break
    od
  };

#if defined(PRECISE)
  below = keys;
  if
  :: nearest < KEYS && (keys & ((1 << nearest) - 1)) == 0 ->
     if
     :: atomic { status[who] != ACTIVE }  // code: tc/record_manager/bounded_wait.cc BoundedWait::MayWaitFor; tc/record_manager/scan_gather.cc ScanGather::Look
        atomic { status[who] != COMMITTING -> nearest = KEYS; who = 0 };  // code: tc/record_manager/bounded_wait.cc BoundedWait::Wait
#if !defined(OMIT_R9_look_again)
        atomic { newest = 0; below = 0 };  // code: tc/record_manager/scan_gather.cc ScanGather::Next
        goto stretch
#endif
     :: goto lose  // or the time is up
     fi
  :: nearest < KEYS && (keys & ((1 << nearest) - 1)) != 0 ->
     atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::EndBeforePending, ScanGather::Look
#if !defined(OMIT_R8_end_before)
       below = keys & ((1 << nearest) - 1);
#endif
       nearest = KEYS; who = 0
     }
  :: else
  fi;
#else
#define below keys
#endif

  // The values, from the chains of the keys gathered: below what is uncommitted now, which published after the look and will lose.
  atomic { seen = newest & below; newest = 0; k = 0 };  // model: the keys gathered that lie within the stretch
  do
  :: k < KEYS ->
     if
     :: HAS(seen, k) ->
        atomic { newest = installed[k]; t = me };  // code: tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne
        do
        :: t > 0 && found[me * KEYS + k] == 0 ->
           atomic {  // code: tc/mvcc/version_chain.cc FindVisible; tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne
             t--;
             if
             :: HAS(newest, t) && status[t] == COMMITTED -> found[me * KEYS + k] = TS(t)
             :: else
             fi
           }
        :: else -> newest = 0; t = 0; break
        od
     :: else
     fi;
     k++
  :: else -> break
  od;
  atomic { bounds[me] = bounds[me] | below; seen = 0; k = 0 };  // model: delivered; it counts if the transaction commits
#if defined(PRECISE)
  atomic { keys = keys & (ALL_KEYS - below); below = 0 };  // model: what is left
  if
  :: keys != 0 -> goto stretch
  :: true  // nothing is left, or the batch is full and the client wants no more
  fi;
#endif
  atomic { keys = 0; scan = 0 };  // model: the scan has ended

write:
  do
  :: k < KEYS && HAS(writes, k) ->
#if !defined(OMIT_R1_post) && !defined(OMIT_R1_post_first)
     if
     :: !posted ->
#if defined(OMIT_R1_post_ordered)
        atomic { STORE_PLAIN(me, POSTED + me, 1) }  // code: tc/mvcc/range_table.cc Range::Post
#else
        atomic { STORE_SC(me, POSTED + me, 1) }  // code: tc/record_manager/write_path.cc WritePath::PostIntent; tc/mvcc/range_table.cc Range::Post
#endif
#if defined(OMIT_R1_check_each)
        later = 1
#endif
     :: else
     fi;
     posted = 1;
#endif
#if defined(OMIT_R1_publish_order)
     atomic { STORE_PLAIN(me, KEYS_OF + me, LOAD(me, KEYS_OF + me) | (1 << k)) };  // code: tc/txn/write_set.h WriteSet::Publish
#elif defined(OMIT_R1_post_ordered)
     atomic { mem[KEYS_OF + me] = mem[KEYS_OF + me] | (1 << k) };  // code: tc/txn/write_set.h WriteSet::Publish
#else
     atomic { STORE_SC(me, KEYS_OF + me, LOAD(me, KEYS_OF + me) | (1 << k)) };  // code: tc/txn/write_set.h WriteSet::Publish; tc/record_manager/write_path.cc WritePath::PublishKey
#endif
#if defined(OMIT_R1_publish_order) || defined(OMIT_R1_post_ordered)
     // Neither is sequentially consistent: the compare-and-swap does not drain the buffer (on x86 it would; elsewhere not).
     atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead
#else
     // One compare-and-swap of the word that was examined; the statuses seen are final, or it loses.
     atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead; tc/mvcc/version_chain.cc InstallVersion, LiveHead
       DRAINED(me);
#endif
       t = TRANSACTIONS;
       do
       :: t > 0 ->
          t--;
          if
          :: t != me && HAS(installed[k], t) && UNDECIDED(t) -> LOSE_TO(t)
          :: t > me && HAS(installed[k], t) && status[t] == COMMITTED -> goto lose
          :: else
          fi
       :: else -> break
       od;
       installed[k] = installed[k] | (1 << me)
     };
#if !defined(OMIT_R1_check_range)
     atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads, WritePath::Install; tc/mvcc/range_table.h Range::last_read
       if
#if defined(OMIT_R1_check_each)
       :: LOAD(me, LAST_READ) > TS(me) && later -> goto lose
#else
       :: LOAD(me, LAST_READ) > TS(me) -> goto lose
#endif
       :: else -> later = 0
       fi
     };
#endif
#if defined(OMIT_R1_post_first)
     atomic { STORE_SC(me, POSTED + me, 1) };  // code: tc/record_manager/write_path.cc WritePath::Install
#endif
     k++
  :: k < KEYS && !HAS(writes, k) -> k++
  :: else -> break
  od;
  if
#if defined(PRECISE)
  :: atomic { DRAINED(me) -> status[me] = COMMITTING }  // code: tc/record_manager/commit_path.cc CommitPath::Append, CommitPath::CommitWrites, CommitPath::CommitNothing; tc/txn/transaction_record.h TransactionRecord::TryStartCommit
     atomic { status[me] = COMMITTED };  // code: tc/record_manager/commit_path.cc CommitPath::FinishCommit; tc/txn/transaction_record.h TransactionRecord::FinishCommit
#else
  :: atomic { DRAINED(me) -> status[me] = COMMITTED }  // code: tc/record_manager/commit_path.cc CommitPath::Append, CommitPath::CommitWrites, CommitPath::CommitNothing; tc/txn/transaction_record.h TransactionRecord::TryStartCommit, TransactionRecord::FinishCommit
#endif
     goto finished
  :: goto lose  // it may also be told to abort
  fi;
lose:
  skip;
#if !defined(OMIT_R7_abort)
  atomic { DRAINED(me) -> status[me] = ABORTED };  // code: tc/record_manager/commit_path.cc CommitPath::Abort; tc/txn/transaction_record.h TransactionRecord::TryAbort
#endif
finished:
  atomic {  // model: what is of no more use is forgotten
    ended[me] = 1; granted[me] = 0; done++;
#if defined(PRECISE)
    nearest = KEYS; who = 0; below = 0;
#endif
    scan = 0; keys = 0; writes = 0; seen = 0; k = 0; t = 0; newest = 0; posted = 0; later = 0
  }
}

proctype Check() {
  byte r, w, k, newest;
  d_step {  // model: the property
    done == TRANSACTIONS ->
    do
    :: r < TRANSACTIONS ->
       k = 0;
       do
       :: k < KEYS ->
          newest = 0; w = 0;
          do
          :: w < r ->
             if
             :: status[w] == COMMITTED && HAS(installed[k], w) -> newest = TS(w)
             :: else
             fi;
             w++
          :: else -> break
          od;
          assert(status[r] != COMMITTED || !HAS(bounds[r], k) || found[r * KEYS + k] == newest);
          k++
       :: else -> break
       od;
       r++
    :: else -> break
    od
  }
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < THREADS -> run Memory(p); run Transaction(p); p++
    :: else -> break
    od;
    run Check()
  }
}
