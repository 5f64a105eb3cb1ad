// S1, S4, S5, S6, S8: a scan merges the TC and the DC, while commits are applied there and folded into runs and collected here.
//
// One reader (a serializable scan, or a snapshot) of all keys, at any of the timestamps 1..TRANSACTIONS; the others write or delete any of them.
// The DC applies commits in the order of the log, while they are below low-water, key by key. The collector takes what is applied out of the chains.
// It also folds: it publishes what is committed in a run, then marks each transaction. Runs go when they are applied.
// The reader raises, gathers keys from the postings that are not marked and then from the runs, asks the DC for batches that cover a key or more, resolves from the chains, asks again, merges.
// The writers' steps against the reader's raise and look are coarser here than in range.pml, which is about them.
// Property: what was delivered is, for each key and once, the version of the latest committed earlier writer, or nothing if that is a tombstone.
// The DC never answers with what the reader must not see (S1). Commits are collected in the order of the log.
// Bounds: TRANSACTIONS, KEYS.
#ifndef TRANSACTIONS
#define TRANSACTIONS 3
#endif
#ifndef KEYS
#define KEYS 1
#endif
#define ALL_KEYS ((1 << KEYS) - 1)
#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
#define TS(t) ((t) + 1)
#define HAS(set, x) (((set) >> (x)) & 1)
#define ASK 99

byte reader;                   // whose timestamp is the reader's
byte last_read;                // of the range
byte status[TRANSACTIONS];
byte keys_of[TRANSACTIONS];    // written, of which
byte deletes[TRANSACTIONS];    // with tombstones
bit posted[TRANSACTIONS];      // on the range
bit handed[TRANSACTIONS];      // to the collector
bit ended[TRANSACTIONS];       // its slot is cleared
bit collected[TRANSACTIONS];
bit in_run[TRANSACTIONS];      // the keys are in a run
bit folded[TRANSACTIONS];      // marked: nobody looks at the posting any more
byte chain[KEYS];              // versions linked, live ones by timestamp
byte cut[KEYS];                // up to here, exclusive, chains were cut; the version there stays while it is below another
byte log[TRANSACTIONS];        // commits in the order of their records
byte logged, applied;          // positions in it
byte dc[KEYS];                 // timestamps; 0: nothing
bit emitted[KEYS];
byte result[KEYS];
byte done;

proctype Writer(byte me) {
  byte k, t;
  atomic {  // model: what it is going to write
    select(t : 1 .. ALL_KEYS);
    keys_of[me] = t;
    select(k : 0 .. ALL_KEYS);
    deletes[me] = t & k;
    k = 0; t = 0
  };
  atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead
    do
    :: k < KEYS ->
       t = TRANSACTIONS;
       do
       :: t > 0 ->
          t--;
          if
          :: HAS(keys_of[me], k) && HAS(chain[k], t) && status[t] == ACTIVE -> goto lose
          :: HAS(keys_of[me], k) && HAS(chain[k], t) && status[t] == COMMITTED && t > me -> goto lose
          :: else
          fi
       :: else -> break
       od;
       k++
    :: else -> k = 0; break
    od;
    do
    :: k < KEYS -> chain[k] = chain[k] | (HAS(keys_of[me], k) << me); k++
    :: else -> k = 0; break
    od;
    posted[me] = 1
  };
  atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads
    if
    :: last_read > TS(me) -> goto lose
    :: else
    fi
  };
  if
  :: atomic { log[logged] = me; logged++ }  // code: tc/record_manager/commit_path.cc CommitPath::Append; tc/redo_log/redo_log.cc RedoLog::AppendCommit
     atomic { status[me] = COMMITTED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
     goto finished
  :: goto lose
  fi;
lose:
  atomic { status[me] = ABORTED };  // code: tc/txn/transaction_record.h TransactionRecord::TryAbort
finished:
  k = 0; t = 0;
#if defined(OMIT_S6_hand_over_first)
  atomic { ended[me] = 1 };  // code: tc/record_manager/commit_path.cc CommitPath::Finish
  atomic { handed[me] = 1; done++ }  // code: tc/record_manager/commit_path.cc CommitPath::Finish; tc/mvcc/collector.cc Collector::Finish
#else
  atomic { handed[me] = 1 };  // code: tc/record_manager/commit_path.cc CommitPath::Finish; tc/mvcc/collector.cc Collector::Finish
  atomic { ended[me] = 1; done++ }  // code: tc/record_manager/commit_path.cc CommitPath::Finish; tc/txn/active_transactions.cc ActiveTransactions::End
#endif
}

// S1: in the order of the log, below low-water, a commit at a time, its keys one after the other.
proctype Dc() {
  byte t, k;
end:
  do
  :: atomic {  // code: tc/dc_link/commit_feed.cc CommitFeed::Fill, CommitFeed::AppendCommit
       applied < logged ->
#if !defined(OMIT_S1_below_low_water)
       t = 0;
       do
       :: t < TRANSACTIONS && ended[t] -> t++
       :: else -> break
       od;
       if
       :: log[applied] >= t -> t = 0; goto next
       :: else
       fi;
#endif
       t = log[applied]
     };
     do
     :: k < KEYS ->
        atomic {  // model: the DC applies an update
          if
          :: HAS(keys_of[t], k) -> dc[k] = (HAS(deletes[t], k) -> 0 : TS(t))
          :: else
          fi;
          k++
        }
     :: else -> break
     od;
     atomic { applied++; t = 0; k = 0 };  // model: acknowledges it
next:
     skip
  od
}  // unreached: it never ends

inline publish_run() {
  atomic {  // code: tc/mvcc/commit_folder.cc CommitFolder::Fold; tc/mvcc/committed_runs.cc CommittedRuns::Add, CommittedRuns::Publish
    do
    :: i < TRANSACTIONS ->
       in_run[i] = in_run[i] || (handed[i] && status[i] == COMMITTED && !collected[i] && (keys_of[i] != 0));
       i++
    :: else -> i = 0; break
    od
  }
}

proctype Collector() {
  byte position, taken, next, i, t, k, last;
end:
  do
  ::
#if defined(OMIT_S6_applied_first)
     atomic { i = 0; do :: i < TRANSACTIONS -> taken = taken | (handed[i] << i); i++ :: else -> i = 0; break od };  // code: tc/mvcc/collector.cc Collector::Round, Collector::DrainFinished
     atomic { position = applied };  // code: tc/mvcc/collector.cc Collector::Round
#else
     atomic { position = applied };  // code: tc/mvcc/collector.cc Collector::Round
     atomic { i = 0; do :: i < TRANSACTIONS -> taken = taken | (handed[i] << i); i++ :: else -> i = 0; break od };  // code: tc/mvcc/collector.cc Collector::Round, Collector::DrainFinished
#endif
#if defined(OMIT_S6_applied)
     position = TRANSACTIONS;
#endif
     do
     :: next < position && next < logged ->
        atomic {  // code: tc/mvcc/unlinker.cc Unlinker::Collect, Unlinker::CollectItems
          t = log[next];
          next++;
          if
          :: HAS(taken, t) && !collected[t] ->
             assert(next > last);
             last = next;
          :: else -> goto skipped
          fi
        };
        do
        :: k < KEYS ->
           atomic {  // code: tc/mvcc/version_chain.cc CollectApplied, RemoveDeadAndApplied; tc/mvcc/unlinker.cc Unlinker::CollectItems
             if
             :: HAS(keys_of[t], k) ->
                cut[k] = t;
                chain[k] = (chain[k] >> t) << t;
                // It goes itself when only dead ones are above it.
                i = t + 1;
                do
                :: i < TRANSACTIONS && (!HAS(chain[k], i) || status[i] == ABORTED) -> i++
                :: else -> break
                od;
                if
                :: i == TRANSACTIONS -> chain[k] = 0
                :: else
                fi;
                i = 0
             :: else
             fi;
             k++
           }
        :: else -> k = 0; break
        od;
        atomic { collected[t] = 1; taken = taken & ~(1 << t) };  // code: tc/mvcc/unlinker.cc Unlinker::Collect; tc/txn/transaction_record.h TransactionRecord::set_collected
skipped:
        t = 0
     :: else -> break
     od;
     // What was passed over because it had not been handed over is met in a later round: it must not be before what was collected.
     atomic { next = 0; taken = 0 };  // model: the next round
#if defined(OMIT_S8_run_applied)
     position = logged;
#endif
     atomic {  // code: tc/mvcc/commit_folder.cc CommitFolder::DropAppliedAndMergeRuns; tc/mvcc/committed_runs.cc CommittedRuns::DropAppliedAndMerge
       do
       :: i < position && i < logged -> in_run[log[i]] = 0; i++
       :: else -> i = 0; position = 0; break
       od
     }
  ::
#if !defined(OMIT_S8_publish_first)
     publish_run();
#endif
     do
     :: t < TRANSACTIONS ->
        atomic {  // code: tc/mvcc/commit_folder.cc CommitFolder::Fold; tc/txn/transaction_record.h TransactionRecord::set_collected
#if defined(OMIT_S8_publish_first)
          folded[t] = folded[t] || (handed[t] && status[t] == COMMITTED && !collected[t]);
#else
          folded[t] = folded[t] || in_run[t];
#endif
          t++
        }
     :: else -> t = 0; break
     od
#if defined(OMIT_S8_publish_first)
     ;
     publish_run()
#endif
  od
}  // unreached: it never ends

// The newest version visible in the chain that was loaded as `seen`, walked down step by step. Tombstones count as found.
inline find_visible(k) {
  t = me; value = ASK;
  do
  :: t > 0 && value == ASK ->
     atomic {  // code: tc/mvcc/version_chain.cc FindVisible; tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne
       t--;
       if
       :: HAS(seen, t) && status[t] == COMMITTED && t >= cut[k] -> value = t
       :: else
       fi
     }
  :: else -> t = 0; break
  od
}

// A list of runs is loaded as a whole.
inline gather_runs() {
  atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::GatherRuns; tc/mvcc/committed_runs.h CommittedRuns::Gather
    do
    :: t < me -> gathered = (in_run[t] -> gathered | keys_of[t] : gathered); t++
    :: else -> t = 0; break
    od
  }
}

proctype Reader(byte me) {
  byte gathered, seen, t, k, value, covered, answer[KEYS];
#if defined(OMIT_S5_keys)
  byte early[KEYS];
#endif
  bit snapshot;
  byte low;
  if
  :: snapshot = 1;
     // L2: a snapshot reads below every writer that is open.
     atomic {  // code: tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot
       t = 0;
       do
       :: t < me -> (ended[t]); t++
       :: else -> t = 0; break
       od
     }
  :: skip
  fi;
#if defined(OMIT_S4_tc_first)
  do
  :: k < KEYS -> atomic { answer[k] = dc[k]; k++ }  // code: tc/record_manager/scan_path.cc ScanPath::RunAsOneAnswer; tc/record_manager/scan_ask.cc ScanAsk::AskDc; tc/record_manager/prefetched_scan.cc ScanPath::BeginForPrefetch; tc/record_manager/read_ahead.cc ReadAhead::Start; tc/record_manager/scan_ahead.cc ScanAhead::AskStream, ScanAhead::GatherAndGrant
  :: else -> k = 0; break
  od;
#endif
  if
  :: !snapshot -> atomic { last_read = (last_read < TS(me) -> TS(me) : last_read) }  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather
  :: else
  fi;
#if defined(OMIT_S8_postings_first)
  gather_runs();
#endif
  do
  :: t < me ->
     atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::GatherFrom, ScanGather::GatherKeys
       if
       :: !collected[t] && !folded[t] && status[t] == ACTIVE && posted[t] -> goto lost
       :: !collected[t] && !folded[t] && status[t] == COMMITTED ->
          gathered = gathered | keys_of[t];
#if defined(OMIT_S5_keys)
          k = 0;
          do
          :: k < KEYS -> early[k] = (HAS(keys_of[t], k) -> (HAS(deletes[t], k) -> 0 : TS(t)) : early[k]); k++
          :: else -> k = 0; break
          od;
#endif
       :: else
       fi;
       t++
     }
  :: else -> t = 0; break
  od;
#if !defined(OMIT_S8_postings_first)
  gather_runs();
#endif
  // Batches: [low, covered). A batch that the DC has read ahead, before an earlier one was merged, is here a part of a larger batch.
  do
  :: low < KEYS ->
#if !defined(OMIT_S4_tc_first)
     select(covered : low + 1 .. KEYS);
     k = low;
     do
     :: k < covered -> atomic { answer[k] = dc[k]; k++ }  // code: tc/record_manager/scan_path.cc ScanPath::RunAsOneAnswer; tc/record_manager/scan_ask.cc ScanAsk::AskDc; tc/record_manager/prefetched_scan.cc ScanPath::BeginForPrefetch; tc/record_manager/read_ahead.cc ReadAhead::Start; tc/record_manager/scan_ahead.cc ScanAhead::AskStream, ScanAhead::GatherAndGrant; dc/record_ops/record_operations.cc RecordOperations::Scan, RecordOperations::ContinueScan
     :: else -> break
     od;
#else
     covered = KEYS;
#endif
     k = low;
     do
#if defined(OMIT_S4_covered_bound)
     :: k < KEYS && (k < covered || HAS(gathered, k)) ->
#else
     :: k < covered ->
#endif
        assert(answer[k] < TS(me));
        value = ASK;
#if defined(OMIT_S5_keys)
        if
        :: HAS(gathered, k) -> value = (early[k] > answer[k] -> early[k] : answer[k])
        :: else -> value = answer[k]
        fi;
#else
        if
        :: HAS(gathered, k) ->
           atomic { seen = chain[k] };  // code: tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne; tc/mvcc/head_word.h HeadWord::Load
           find_visible(k);
           if
           :: value == ASK ->
#if defined(OMIT_S5_ask_again)
              value = answer[k]
#else
              atomic { value = dc[k] }  // code: tc/record_manager/scan_resolve.cc ScanResolve::ReaskDc
#endif
           :: else ->
              // The larger wins; the DC on ties.
              atomic {  // code: tc/scan/scan_merge.cc ScanMerge::Run
                if
#if defined(OMIT_S5_larger_wins)
                :: answer[k] != 0 -> value = answer[k]
#else
                :: answer[k] > TS(value) -> value = answer[k]
#endif
                :: else -> value = (HAS(deletes[value], k) -> 0 : TS(value))
                fi
              }
           fi
        :: else -> value = answer[k]
        fi;
#endif
        atomic {  // code: tc/scan/scan_merge.cc ScanMerge::Run, ScanMerge::Emit
          assert(value < TS(me));
          assert(!emitted[k] || value == 0);
          if
          :: !emitted[k] -> result[k] = value
          :: else
          fi;
          emitted[k] = (value != 0 || k < covered);
          value = 0; seen = 0; k++
        }
     :: else -> break
     od;
     low = covered; covered = 0; k = 0
  :: else -> break
  od;
  atomic { status[me] = COMMITTED };  // code: tc/record_manager/commit_path.cc CommitPath::CommitWrites, CommitPath::CommitNothing
  goto finished;
lost:
  atomic { status[me] = ABORTED };  // code: tc/record_manager/commit_path.cc CommitPath::Abort
finished:
  atomic { ended[me] = 1; done++; gathered = 0; t = 0; low = 0 }  // code: tc/txn/active_transactions.cc ActiveTransactions::End
}

proctype Check() {
  byte k, w, newest;
  d_step {  // model: the property
    done == TRANSACTIONS ->
    do
    :: k < KEYS ->
       newest = 0; w = 0;
       do
       :: w < reader ->
          if
          :: status[w] == COMMITTED && HAS(keys_of[w], k) -> newest = (HAS(deletes[w], k) -> 0 : TS(w))
          :: else
          fi;
          w++
       :: else -> break
       od;
       assert(status[reader] != COMMITTED || result[k] == newest);
       k++
    :: else -> break
    od
  }
}

init {
  byte p;
  atomic {  // model: everybody begins
    select(p : 0 .. TRANSACTIONS - 1);
    reader = p;
    run Dc();
    run Collector();
    p = 0;
    do
    :: p < TRANSACTIONS ->
       if
       :: p == reader -> run Reader(p)
       :: else -> run Writer(p)
       fi;
       p++
    :: else -> break
    od;
    run Check()
  }
}
