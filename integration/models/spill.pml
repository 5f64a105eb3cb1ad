// S9: committed versions of one record leave their chain for spilled runs, under writers, readers, a DC and a read cache.
//
// Transactions draw timestamps; writers install, commit or abort, and are handed over (finished) later; the DC applies what is below low-water. The
// collector's rounds: collect what was found applied in the round before; spill a prefix of what is finished; find what is applied; take runs off that
// are applied as a whole. Readers look at the chain, load the list of runs, ask the DC, keep its answer as a copy.
// A version is its timestamp; sets of versions are bit masks; commits are in the order of timestamps, as of one record they are.
// Properties: what a reader answers is the newest committed version below it; nobody installs below what is committed or was read later.
// Accesses are one after the other in one order (the code's are sequentially consistent). Bounds: WRITERS, READERS, ROUNDS, two runs.
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif
#define LAST (WRITERS + READERS)
#define BIT(v) (1 << (v))
#define UP_TO(v) ((1 << ((v) + 1)) - 1)

byte counter = 1;
byte counted;    // masks of timestamps: of who counts in the low-water,
byte open;       // has installed and is undecided,
byte committed;  // has committed,
byte finished;   // and has been handed over
byte chain;      // installed and not cut off; a copy of the DC's record is the whole chain
bit has_copy;
byte copy_of;
byte last_read;  // of the entry, or of its bucket's floor
byte word;       // changes of the head
byte in_run[2], run_end[2];  // versions, and the last commit: 0: it is not published
byte spills;
byte dc;         // what the DC has: 0: what was there before
byte latest_answered;
byte done;

// The latest in a set, or 0.
inline latest(set, v) {
  v = LAST;
  do
  :: v > 0 && !((set) & BIT(v)) -> v--
  :: else -> break
  od
}

inline answered(v) {
  latest(committed & UP_TO(t - 1), want);
  assert(v == want);
  if
  :: t > latest_answered -> latest_answered = t
  :: else
  fi;
  want = 0
}

proctype Writer() {
  byte t, v;
  atomic { t = counter; counter++; counted = counted | BIT(t) }  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead; tc/mvcc/version_chain.cc InstallVersion
    latest(chain, v);
    if
    :: v > t || last_read > t || (chain & open) -> v = 0; goto ended
    :: else
    fi;
    v = 0;
    assert(t > latest_answered && (committed >> t) == 0);
    chain = chain | BIT(t);
    open = open | BIT(t);
    has_copy = 0; copy_of = 0;
    word++
  }
  if
  :: atomic { open = open & ~BIT(t); committed = committed | BIT(t) }  // code: tc/record_manager/commit_path.cc CommitPath::FinishCommit
     atomic { finished = finished | BIT(t) }  // code: tc/mvcc/collector.cc Collector::Finish
  :: atomic { open = open & ~BIT(t); chain = chain & ~BIT(t); word++ }  // code: tc/record_manager/commit_path.cc CommitPath::Abort
  fi;
ended:
  atomic { counted = counted & ~BIT(t); t = 0; done++ }  // code: tc/record_manager/commit_path.cc CommitPath::Finish
}

// Loads the list, and looks there.
inline look_at_runs() {
  atomic {  // code: tc/record_manager/spilled_value.h LookAtSpilled
#if !defined(OMIT_S9_look_at_spilled)
    found_runs = (run_end[0] != 0 || run_end[1] != 0);
    latest((in_run[0] | in_run[1]) & UP_TO(t - 1), in_runs);
#else
    skip
#endif
  }
}

proctype Reader() {
  byte t, v, w, then, want, in_runs;
  bit found_runs;
  atomic { t = counter; counter++; counted = counted | BIT(t) }  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  atomic { then = spills }  // code: tc/record_manager/read_path.cc ReadPath::ReadPath
#if defined(OMIT_S9_chain_first)
  look_at_runs();
#endif
  atomic {  // code: tc/record_manager/read_path.cc ReadPath::Look; tc/mvcc/version_chain.cc FindVisible
    if
    :: t > last_read -> last_read = t
    :: else
    fi;
    if
    :: open & chain & UP_TO(t - 1) -> goto ended  // a conflict
    :: else
    fi;
    latest(chain & committed & UP_TO(t - 1), v);
    if
    :: v != 0 -> answered(v); goto ended
    :: v == 0 && has_copy -> answered(copy_of); goto ended
    :: else
    fi
  }
#if !defined(OMIT_S9_chain_first)
  look_at_runs();
#endif
  if
  :: atomic { in_runs != 0 -> answered(in_runs); goto ended }  // code: tc/record_manager/read_path.cc ReadPath::LookInSpilled
  :: else
  fi;
  atomic { v = dc; answered(v) }  // code: tc/record_manager/read_path.cc ReadPath::Get
#if !defined(OMIT_S7_not_over_spilled)
  if
  :: found_runs -> goto ended
  :: else
  fi;
#endif
  atomic { w = word; if :: chain != 0 || has_copy -> goto ended :: else fi }  // code: tc/mvcc/version_chain.cc InstallCopy
#if !defined(OMIT_S7_not_after_spill)
  atomic { if :: then != spills -> goto ended :: else fi }  // code: tc/mvcc/version_chain.cc InstallCopy
#endif
  atomic {  // code: tc/mvcc/version_chain.cc InstallCopy; tc/record_manager/read_path.cc ReadPath::KeepAnswer
    if
    :: w == word -> has_copy = 1; copy_of = v; word++
    :: else
    fi
  }
ended:
  atomic { counted = counted & ~BIT(t); t = 0; v = 0; w = 0; then = 0; in_runs = 0; found_runs = 0; done++ }  // code: tc/record_manager/commit_path.cc CommitPath::Finish
}

// Commits are applied in order, below low-water.
proctype Dc() {
  byte v;
  do
  :: atomic {  // model: the shipper and the DC, of which merge and flat are models
       v = dc + 1;
       do
       :: v <= LAST && !(committed & BIT(v)) -> v++
       :: else -> break
       od;
       if
       :: v <= LAST && v < counter && (counted & UP_TO(v)) == 0 -> dc = v
       :: else
       fi;
       v = 0
     }
  :: atomic { done == LAST -> break }  // model: the end
  od
}

inline collect() {
  atomic {  // code: tc/mvcc/unlinker.cc Unlinker::Collect, Unlinker::CollectFolded, Unlinker::CollectOrRefresh; tc/mvcc/version_chain.cc CollectApplied
    if
    :: chain & committed & UP_TO(pending) ->
       latest(chain & committed & UP_TO(pending), v);
       if
       :: chain == (chain & UP_TO(v)) && chain & BIT(v) -> has_copy = 1; copy_of = v  // code: tc/mvcc/read_cache.cc ReadCache::Refresh
       :: true
       fi;
       chain = chain & ~UP_TO(v);
       word++; v = 0
    :: else
    fi
  }
}

inline take_runs_off() {
  atomic {  // code: tc/spill/spilled_runs.cc SpilledRuns::DropAppliedAndMerge
    if
    :: run_end[0] != 0 && run_end[0] <= applied -> run_end[0] = 0; in_run[0] = 0
    :: else
    fi;
#if WRITERS > 1
    if
    :: run_end[1] != 0 && run_end[1] <= applied -> run_end[1] = 0; in_run[1] = 0
    :: else
    fi
#endif
  }
}

inline publish() {
  atomic {  // code: tc/spill/spilled_runs.cc SpilledRuns::Publish, SpilledRuns::Replace
    i = (run_end[0] == 0 -> 0 : 1);
    in_run[i] = set; run_end[i] = last; i = 0
  }
  atomic { spills++ }  // code: tc/spill/spilled_runs.cc SpilledRuns::Publish
}

inline cut() {
  atomic {  // code: tc/mvcc/spiller.cc Spiller::Unlink, Spiller::Cut
    latest(chain & committed & ~UP_TO(last), v);
    if
    // At the head, or below a committed version; else an open transaction stands above, and it stays.
    :: (chain & ~UP_TO(last)) == 0 ->
       chain = 0; word++;
#if !defined(OMIT_S9_cut_raises)
       latest(set, v);
       if
       :: v > last_read -> last_read = v
       :: else
       fi;
#endif
    :: (chain & ~UP_TO(last)) != 0 && v != 0 -> chain = chain & ~UP_TO(last)
    :: else
    fi;
    v = 0
  }
}

proctype Collector() {
  byte applied, pending, set, last, v, i, round;
  byte spilled;  // up to there it has been
  do
  :: round < ROUNDS ->
     collect();
#if defined(OMIT_S9_spilled_run_goes_first)
     take_runs_off();
#endif
     if
     :: atomic {  // code: tc/mvcc/spiller.cc Spiller::SpillEarliest, Spiller::TakePrefix, Spiller::AddSpillable
          // What is not finished may be anywhere behind the first such; a transaction without a place in the log yet comes behind all.
          last = 0; v = 1;
          do
          :: v <= LAST && (committed & BIT(v)) && !(finished & BIT(v)) ->
#if defined(OMIT_S9_spill_prefix)
             v++
#else
             break
#endif
          :: v <= LAST && (finished & BIT(v)) -> last = v; v++
          :: v <= LAST && !(committed & BIT(v)) -> v++
          :: else -> break
          od;
          v = 0;
          set = chain & finished & UP_TO(last) & ~UP_TO(spilled);
          if
          :: set != 0 && (run_end[0] == 0 || run_end[1] == 0) -> spilled = last
          :: else -> set = 0; last = 0
          fi
        }
        if
        :: set != 0 ->
#if defined(OMIT_S9_publish_before_cut)
           cut(); publish()
#else
           publish(); cut()
#endif
        :: else
        fi
     :: true
     fi;
     atomic { applied = dc }  // code: tc/mvcc/collector.cc Collector::Round
#if !defined(OMIT_S9_spilled_run_goes_first)
     take_runs_off();
#endif
     atomic { pending = applied; set = 0; last = 0; round++ }  // code: tc/mvcc/collector.cc Collector::Round
  :: atomic { round == ROUNDS -> break }  // model: the end
  od
}

init {
  byte n;
  atomic {  // model: the beginning
    do
    :: n < WRITERS -> run Writer(); n++
    :: else -> break
    od;
    n = 0;
    do
    :: n < READERS -> run Reader(); n++
    :: else -> break
    od;
    run Dc();
    run Collector()
  }
}
