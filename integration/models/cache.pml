// S7: copies of what the DC has, in the chains and in the read cache's queue, under readers, scans, writers, and the collector.
//
// Each of TRANSACTIONS transactions, of timestamps 1..TRANSACTIONS, reads one key, or writes it, or scans its range. A read that finds nothing asks the DC
// and, before it ends, may keep the answer. The DC applies commits below low-water. The collector takes versions out that are applied, gives copies up, and
// removes entries. That last_read outlives entries is entry.pml's, the chain's walk record.pml's, the scan's gather merge.pml's.
// Properties: what a committed transaction found is the version of the latest committed earlier writer, wherever that is. A copy that is linked is what the
// DC has, or what it has applied of the key meanwhile is in the chain (which then has no copy). An entry in the queue is there.
// Bounds: TRANSACTIONS; ENTRIES made in all.
#ifndef TRANSACTIONS
#define TRANSACTIONS 3
#endif
#ifndef ENTRIES
#define ENTRIES 2
#endif
#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
#define TS(t) ((t) + 1)
#define HAS(set, x) (((set) >> (x)) & 1)
#define NOTHING 99
#define NONE 0  // no entry; entries are 1..ENTRIES

typedef Entry {
  byte versions;  // in its chain
  bit copy;       // the chain is one
  byte copied;    // of the copy: the timestamp of what it is a copy of; 0: of nothing
  bit queued;     // the flag in its word
  bit in_queue;   // or pushed
  bit dead
}
Entry entry[ENTRIES + 1];
byte made;
byte live;        // the entry that look-ups find
byte last_read;   // of the key, wherever that is kept
byte dc;          // the timestamp of what the DC has; 0: nothing
byte status[TRANSACTIONS];
bit ended[TRANSACTIONS];
bit wrote[TRANSACTIONS];
bit applied[TRANSACTIONS];
byte found[TRANSACTIONS] = NOTHING;
byte done;

// What a reader of timestamp TS(me) sees in the word it has loaded: a timestamp, NOTHING, or a conflict.
inline look(e) {
  atomic {  // code: tc/mvcc/version_chain.cc FindVisible; tc/record_manager/read_path.cc ReadPath::Look; tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne
    found[me] = NOTHING; newest = 0;
    t = (e == NONE -> 0 : me);
    do
    :: t > 0 && found[me] == NOTHING ->
       t--;
       if
       :: HAS(entry[e].versions, t) && status[t] == COMMITTED -> found[me] = TS(t)
       :: HAS(entry[e].versions, t) && status[t] == ACTIVE && !scans -> goto lose
       :: else
       fi
    :: else -> break
    od;
    if
    :: found[me] == NOTHING && e != NONE && entry[e].copy -> found[me] = entry[e].copied; newest = 1
    :: else
    fi;
    t = 0
  }
}

proctype Transaction(byte me) {
  byte e, t, answer, seen;
  bit scans, gathered, newest, seen_copy;
  if
  :: goto read
  :: goto write
  :: scans = 1; goto scan
  fi;

read:
#if defined(OMIT_S7_look_first)
  atomic { answer = dc };  // code: tc/record_manager/read_path.cc ReadPath::Get; tc/record_manager/read_ahead.cc ReadAhead::Start
#endif
  atomic { last_read = (last_read < TS(me) -> TS(me) : last_read) };  // code: tc/mvcc/record_table.cc RecordTable::RaiseLastRead, RecordTable::RaiseFloor; tc/record_manager/read_ahead.cc ReadAhead::RaiseAndCheckAbsent
  look(live);
  if
  :: found[me] != NOTHING -> goto commit
  :: else
  fi;
#if !defined(OMIT_S7_look_first)
  atomic { answer = dc };  // code: tc/record_manager/read_path.cc ReadPath::Get; tc/record_manager/read_ahead.cc ReadAhead::Start
#endif
  found[me] = answer;
#if defined(OMIT_S7_in_low_water)
  atomic { ended[me] = 1 };  // code: tc/record_manager/read_path.cc ReadPath::KeepAnswer; tc/record_manager/read_ahead.cc ReadAhead::Finish
#endif
  if
  :: goto commit  // there is no room
  :: skip
  fi;
  atomic {  // code: tc/mvcc/record_table.cc RecordTable::FindOrCreate; tc/mvcc/read_cache.cc ReadCache::Fill
    if
    :: live == NONE && made == ENTRIES -> goto commit
    :: live == NONE && made < ENTRIES -> made++; live = made
    :: else
    fi;
    e = live
  };
  do
  :: atomic { seen = entry[e].versions; seen_copy = entry[e].copy };  // code: tc/mvcc/version_chain.cc InstallCopy
     atomic {  // code: tc/mvcc/version_chain.cc InstallCopy, LiveHead
       t = 0;
       do
       :: t < TRANSACTIONS && (!HAS(seen, t) || status[t] == ABORTED) -> t++
       :: else -> break
       od;
       if
#if !defined(OMIT_S7_empty_chain)
       :: t < TRANSACTIONS || seen_copy -> t = 0; goto commit
#endif
       :: else -> t = 0
       fi
     };
     atomic {  // code: tc/mvcc/version_chain.cc InstallCopy; tc/mvcc/head_word.h HeadWord::CompareExchange
       if
#if !defined(OMIT_S7_unsealed)
       :: entry[e].dead -> goto commit
       :: !entry[e].dead && entry[e].versions == seen && entry[e].copy == seen_copy ->
#else
       :: entry[e].versions == seen && entry[e].copy == seen_copy ->
#endif
          entry[e].versions = 0; entry[e].copy = 1; entry[e].copied = answer;
          seen = entry[e].queued; entry[e].queued = 1;
          break
       :: else
       fi
     }
  od;
  if
  :: seen == 0 -> atomic { assert(e == live); entry[e].in_queue = 1 }  // code: tc/mvcc/read_cache.cc ReadCache::Push, ReadCache::Fill
  :: else
  fi;
  goto commit;

write:
  atomic {  // code: tc/mvcc/record_table.cc RecordTable::FindOrCreate; tc/record_manager/write_path.cc WritePath::Install
    if
    :: live == NONE && made == ENTRIES -> goto lose
    :: live == NONE && made < ENTRIES -> made++; live = made
    :: else
    fi;
    e = live
  };
  do
  :: atomic { seen = entry[e].versions; seen_copy = entry[e].copy };  // code: tc/record_manager/write_path.cc WritePath::Install
     atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead; tc/mvcc/version_chain.cc InstallVersion
       if
       :: entry[e].dead -> goto write
       :: !entry[e].dead && entry[e].versions == seen && entry[e].copy == seen_copy ->
          t = TRANSACTIONS;
          do
          :: t > 0 ->
             t--;
             if
             :: HAS(seen, t) && status[t] == ACTIVE -> goto lose
             :: HAS(seen, t) && status[t] == COMMITTED && t > me -> goto lose
             :: else
             fi
          :: else -> break
          od;
          entry[e].versions = seen | (1 << me);
#if !defined(OMIT_S7_replaced)
          entry[e].copy = 0;
#endif
          wrote[me] = 1;
          break
       :: else
       fi
     }
  od;
  atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads
    if
    :: last_read > TS(me) -> goto lose
    :: else
    fi
  };
  goto commit;

// One key is in its bounds. A writer that is open has posted, and is in the way.
scan:
  atomic { last_read = (last_read < TS(me) -> TS(me) : last_read) };  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather
  atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::GatherFrom
    t = me;
    do
    :: t > 0 ->
       t--;
       if
       :: wrote[t] && status[t] == ACTIVE -> goto lose
       :: wrote[t] && status[t] == COMMITTED && !applied[t] -> gathered = 1
       :: else
       fi
    :: else -> break
    od
  };
  atomic { answer = dc };  // code: tc/record_manager/scan_path.cc ScanPath::RunAsOneAnswer; tc/record_manager/scan_ask.cc ScanAsk::AskDc
  if
  :: !gathered -> found[me] = answer; goto commit
  :: else
  fi;
  look(live);
  if
  :: found[me] == NOTHING -> atomic { found[me] = dc }  // code: tc/record_manager/scan_resolve.cc ScanResolve::ReaskDc
#if defined(OMIT_S7_newest)
  :: found[me] != NOTHING && newest -> found[me] = answer  // code: tc/scan/scan_merge.cc ScanMerge::Run
#else
  :: found[me] != NOTHING && newest  // code: tc/scan/scan_merge.cc ScanMerge::Run
#endif
  :: found[me] != NOTHING && !newest -> found[me] = (found[me] > answer -> found[me] : answer)  // code: tc/scan/scan_merge.cc ScanMerge::Run
  fi;
  goto commit;

commit:
  if
  :: atomic { status[me] = COMMITTED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
     goto finished
  :: goto lose
  fi;
lose:
  atomic { status[me] = ABORTED };  // code: tc/txn/transaction_record.h TransactionRecord::TryAbort
finished:
  atomic {  // model: what is of no more use is forgotten
    ended[me] = 1; done++; e = 0; t = 0; answer = 0; seen = 0; scans = 0; gathered = 0; newest = 0; seen_copy = 0
  }
}

proctype Collector() {
  byte t, e, seen;
  bit seen_copy, pushes;
end:
  do
  // S1: the DC applies what is committed and below low-water; after what is older.
  :: atomic {  // model: the DC applies a commit
       t = 0;
       do
       :: t < TRANSACTIONS && ended[t] && (applied[t] || !wrote[t] || status[t] == ABORTED) -> t++
       :: else -> break
       od;
       if
       :: t < TRANSACTIONS && ended[t] ->
          applied[t] = 1; dc = TS(t);
          assert(live == NONE || !entry[live].copy)
       :: else
       fi;
       t = 0
     }
  // Versions that are applied or dead leave. An applied one may become a copy, if it is the newest live one; an entry that is not queued is, by that.
  :: atomic {  // code: tc/mvcc/unlinker.cc Unlinker::CollectItems, Unlinker::CollectOrRefresh; tc/mvcc/version_chain.cc CollectApplied, RemoveDeadAndApplied, InstallCopy; tc/mvcc/read_cache.cc ReadCache::Refresh
       select(t : 0 .. TRANSACTIONS - 1);
       e = t + 1;
       do
       :: e < TRANSACTIONS && (live == NONE || !HAS(entry[live].versions, e) || status[e] == ABORTED) -> e++
       :: else -> break
       od;
       if
#if defined(OMIT_S7_newest_live)
       :: live != NONE && HAS(entry[live].versions, t) && applied[t] ->
#else
       :: live != NONE && HAS(entry[live].versions, t) && applied[t] && e == TRANSACTIONS ->
#endif
          entry[live].versions = 0; entry[live].copy = 1; entry[live].copied = TS(t);
          pushes = !entry[live].queued; entry[live].queued = 1
       :: live != NONE && HAS(entry[live].versions, t) && applied[t] -> entry[live].versions = (entry[live].versions >> TS(t)) << TS(t)
       :: live != NONE && HAS(entry[live].versions, t) && status[t] == ABORTED -> entry[live].versions = entry[live].versions & ~(1 << t)
       :: else
       fi;
       t = 0; e = 0
     };
     if
     :: pushes -> atomic { assert(!entry[live].in_queue); entry[live].in_queue = 1; pushes = 0 }  // code: tc/mvcc/read_cache.cc ReadCache::Push, ReadCache::Refresh
     :: else
     fi
  // An entry leaves the queue, with its copy, if it has one.
  :: atomic {  // code: tc/mvcc/read_cache.cc ReadCache::DrainArrivals, ReadCache::Pop
       select(e : 1 .. ENTRIES);
       if
       :: !entry[e].in_queue -> goto next
       :: else
       fi;
       assert(e == live);
       entry[e].in_queue = 0
     };
     do
     :: atomic { seen = entry[e].versions; seen_copy = entry[e].copy };  // code: tc/mvcc/version_chain.cc RemoveCopy
        atomic {  // code: tc/mvcc/version_chain.cc RemoveCopy; tc/mvcc/head_word.h HeadWord::CompareExchange
          if
          :: entry[e].versions == seen && entry[e].copy == seen_copy -> entry[e].copy = 0; entry[e].queued = 0; break
          :: else
          fi
        }
     od;
next:
     atomic { e = 0; seen = 0; seen_copy = 0 }  // model: what is of no more use is forgotten
  // An entry without a version is sealed (one compare-and-swap of its word) and unlinked; last_read is not lost (R5, R6).
  :: atomic {  // code: tc/mvcc/entry_remover.cc EntryRemover::Remove; tc/mvcc/record_table.cc RecordTable::Remove, RecordTable::Unlink
       if
#if defined(OMIT_S7_queued_stays)
       :: live != NONE && entry[live].versions == 0 && !entry[live].copy -> entry[live].dead = 1; live = NONE
#else
       :: live != NONE && entry[live].versions == 0 && !entry[live].copy && !entry[live].queued -> entry[live].dead = 1; live = NONE
#endif
       :: else
       fi
     }
  od
}  // unreached: it never ends

proctype Check() {
  byte r, w, newest;
  d_step {  // model: the property
    done == TRANSACTIONS ->
    do
    :: r < TRANSACTIONS ->
       newest = 0; w = 0;
       do
       :: w < r ->
          if
          :: status[w] == COMMITTED && wrote[w] -> newest = TS(w)
          :: else
          fi;
          w++
       :: else -> break
       od;
       assert(status[r] != COMMITTED || found[r] == NOTHING || found[r] == newest);
       r++
    :: else -> break
    od;
    assert(live == NONE || !entry[live].copy || entry[live].copied == dc)
  }
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < TRANSACTIONS -> run Transaction(p); p++
    :: else -> break
    od;
    run Collector();
    run Check()
  }
}
