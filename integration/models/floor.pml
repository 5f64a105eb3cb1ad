// R6: the floor of a bucket remembers the reads of one key; a reader of another key takes it over, makes an entry, or makes it one of all keys.
//
// Each of TRANSACTIONS transactions, of timestamps 1..TRANSACTIONS, reads or writes one of two keys of a bucket. A reader that finds no entry
// remembers its read, looks again, and asks the DC. A writer makes an entry, installs, and looks at the floor. The collector removes entries
// without a version when low-water has passed their last_read. What becomes of an entry that is sealed is in entry.pml: here a removal is one step.
// A floor of one key has only the low bits of its timestamp, here three: its distance is seen right below 4. With OLD the bucket begins with a floor of
// very long ago, whose low bits these are, and an origin that is as old; then no transaction is in the span until the sweep has been there.
// Property: a committed read is the version of the latest committed earlier writer of its key.
// Bounds: TRANSACTIONS; KEYS is 2; OLD; with ONE_KEY all want the same key, and no reader makes an entry.
#ifndef TRANSACTIONS
#define TRANSACTIONS 3
#endif
#define KEYS 2
#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
#define TS(t) ((t) + 1)
#define HAS(set, x) (((set) >> (x)) & 1)
#define NOTHING 99
#define OF_NOBODY 0
#define OF_KEY(k) ((k) + 1)
#define OF_ANY 3
#define ABOVE(at, ts) ((((at) - (ts) + 12) & 7) - 4)

// The word: whose reads, and the latest of them.
byte floor_of;
byte floor_at;
#if defined(OLD)
bit very_old = 1;          // it is of very long ago: this is not in the word
bit in_span;               // the origin is near enough for all transactions
byte guards;               // bit t: transaction t is between its look and its second one
byte seen_sweep;           // of these, who was there when the sweep ended
#define ENTER guards = guards | (1 << me)
#define LEAVE guards = guards & ~(1 << me); seen_sweep = seen_sweep & ~(1 << me)
#else
bit very_old;
#define in_span 1
#define ENTER skip
#define LEAVE skip
#endif
byte low_water = 1;        // as last published; at or below what is open
bit there[KEYS];           // the key has an entry
byte last_read[KEYS];      // of the entry
byte versions[KEYS];       // of the entry: bit t is set by transaction t
byte dc[KEYS];             // what is no longer in an entry: the latest timestamp; 0: nothing
byte status[TRANSACTIONS];
bit ended[TRANSACTIONS];
bit wrote[TRANSACTIONS];
byte key_of[TRANSACTIONS];
byte found[TRANSACTIONS] = NOTHING;
byte done;

// The newest version that the reader may see; it loses to an earlier uncommitted one.
inline look_in_chain() {
  t = me;
  do
  :: t > 0 && found[me] == NOTHING ->
     t--;
     if
     :: HAS(versions[k], t) && status[t] == COMMITTED -> found[me] = TS(t)
     :: HAS(versions[k], t) && status[t] == ACTIVE -> t = 0; goto lose
     :: else
     fi
  :: else -> break
  od;
  t = 0
}

proctype Transaction(byte me) {
  byte k, t, seen_of, seen_at;
  bit writes, may_defer, near;
  atomic {  // model: what it is going to do
    if
    :: k = 0
#if !defined(ONE_KEY)
    :: k = 1
#endif
    fi;
    if
    :: writes = 1
    :: writes = 0
    fi;
    if
#if !defined(ONE_KEY)
    :: may_defer = 1
#endif
    :: may_defer = 0
    fi;
    key_of[me] = k
  };
  if
  :: writes -> goto write
  :: else
  fi;
look_up:
  atomic {  // code: common/sync/reclamation.h ReclamationDomain::Guard
    ENTER
  };
  atomic {  // code: tc/record_manager/read_path.cc ReadPath::Look; tc/mvcc/record_table.cc RecordTable::RaiseLastRead
    if
    :: there[k] -> LEAVE; goto in_entry
    :: else
    fi
  };
#if defined(OMIT_R6_span)
  near = 1;  // model: the step that is left out
#else
  near = in_span;  // code: tc/mvcc/record_table.h RecordTable::InSpan
#endif
  atomic { seen_of = floor_of; seen_at = floor_at };  // code: tc/mvcc/record_table.h RecordTable::TryRaise
remember:
  if
  :: !near -> goto raise
  :: near && seen_of == OF_KEY(k) && ABOVE(seen_at, TS(me)) >= 0 -> goto look_again
  :: near && seen_of == OF_ANY && seen_at >= TS(me) -> goto look_again
  :: else
  fi;
  if
  // A word of the same key, or of nobody, or of reads that stop nobody any more.
#if defined(OMIT_R6_free_below)
  :: true ->
#else
  :: seen_of == OF_NOBODY || seen_of == OF_KEY(k) || (seen_of == OF_ANY && seen_at < low_water) ||
     (seen_of != OF_ANY && TS(me) + ABOVE(seen_at, TS(me)) < low_water) ->
#endif
     atomic {  // code: tc/mvcc/record_table.h RecordTable::MayReplace, RecordTable::Replace
       if
       :: floor_of == seen_of && floor_at == seen_at -> floor_of = OF_KEY(k); floor_at = TS(me); very_old = 0
       :: else -> seen_of = floor_of; seen_at = floor_at; goto remember
       fi
     };
     goto look_again
  :: else
  fi;
raise:
  if
  :: may_defer ->
     atomic {  // code: tc/record_manager/remember_read.cc RememberInSharedBucket; tc/mvcc/record_table.cc RecordTable::FindOrCreate
       there[k] = 1
     };
     goto look_up
  :: else ->
     near = in_span;  // code: tc/mvcc/record_table.h RecordTable::InSpan
     atomic { seen_of = floor_of; seen_at = floor_at };  // code: tc/mvcc/record_table.cc RecordTable::Raise
#if defined(OLD) && !defined(OMIT_R6_span_again)
     if
     :: !near && in_span -> goto raise  // code: tc/mvcc/record_table.h RecordTable::InSpan
     :: else
     fi;
#endif
     if
     :: near && seen_of == OF_KEY(k) && ABOVE(seen_at, TS(me)) >= 0 -> goto look_again
     :: seen_of == OF_ANY && seen_at >= TS(me) -> goto look_again
     :: else
     fi;
     atomic {  // code: tc/mvcc/record_table.cc RecordTable::Raise
       if
       :: floor_of == seen_of && floor_at == seen_at ->
#if defined(OMIT_R6_later_of_both)
          floor_at = TS(me);
#else
          if
          :: seen_of == OF_ANY -> floor_at = (seen_at < TS(me) -> TS(me) : seen_at)
          :: seen_of != OF_ANY && seen_of != OF_NOBODY && near && ABOVE(seen_at, TS(me)) > 0 ->
             floor_at = TS(me) + ABOVE(seen_at, TS(me))
          :: else -> floor_at = TS(me)
          fi;
#endif
          floor_of = OF_ANY; very_old = 0
       :: else -> goto raise
       fi
     }
  fi;
look_again:
#if !defined(OMIT_R6_look_again)
  atomic {  // code: tc/mvcc/record_table.h RecordTable::FindAgain
    if
    :: there[k] -> LEAVE; goto in_entry
    :: else
    fi
  };
#endif
  atomic { found[me] = dc[k]; LEAVE; goto commit };  // code: tc/record_manager/read_path.cc ReadPath::Get
in_entry:
  atomic {  // code: tc/mvcc/record_table.cc RecordTable::RaiseLastRead
    if
    :: !there[k] -> goto look_up
    :: else -> last_read[k] = (last_read[k] < TS(me) -> TS(me) : last_read[k])
    fi;
    look_in_chain();
    if
    :: found[me] == NOTHING -> found[me] = dc[k]
    :: else
    fi
  };
  goto commit;

write:
  atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead; tc/mvcc/version_chain.cc InstallVersion
    there[k] = 1;
    if
    :: last_read[k] > TS(me) -> goto lose
    :: else
    fi;
    t = TRANSACTIONS;
    do
    :: t > 0 ->
       t--;
       if
       :: HAS(versions[k], t) && (status[t] == ACTIVE || (status[t] == COMMITTED && t > me)) -> t = 0; goto lose
       :: else
       fi
    :: else -> break
    od;
    if
    :: dc[k] > TS(me) -> goto lose  // unreached: S1, the DC has nothing that is later than somebody who is open
    :: else
    fi;
    versions[k] = versions[k] | (1 << me);
    wrote[me] = 1
  };
  atomic { seen_of = floor_of; seen_at = floor_at };  // code: tc/record_manager/write_path.cc WritePath::CheckReads; tc/mvcc/record_table.cc RecordTable::Floor
  if
  :: seen_of == OF_KEY(k) && ABOVE(seen_at, TS(me)) > 0 ->
     if
#if !defined(OMIT_R6_span)
     :: !in_span -> goto commit  // code: tc/mvcc/record_table.h RecordTable::InSpan
     :: in_span -> goto lose  // code: tc/mvcc/record_table.h RecordTable::InSpan
#else
     :: goto lose  // model: the step that is left out
#endif
     fi
#if !defined(OMIT_R6_any_concerns_all)
  :: seen_of == OF_ANY && seen_at > TS(me) -> goto lose
#endif
  :: else
  fi;
commit:
  if
  :: atomic { status[me] = COMMITTED; goto finished }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
  :: skip
  fi;
lose:
  atomic { status[me] = ABORTED };  // code: tc/txn/transaction_record.h TransactionRecord::TryAbort
finished:
  atomic { ended[me] = 1; done++; k = 0; t = 0; seen_of = 0; seen_at = 0; writes = 0; may_defer = 0; near = 0 }  // model: what is of no more use is forgotten
}

proctype Collector() {
  byte t, k;
#if defined(OLD)
  bit swept;
#endif
end:
  do
  // L1, L2 (low_water.pml).
  :: atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::RefreshedLowWater; tc/mvcc/record_table.cc RecordTable::FreeFloorsBelow
       do
       :: t < TRANSACTIONS && ended[t] -> t++
       :: else -> break
       od;
       low_water = (low_water < TS(t) -> TS(t) : low_water);
       t = 0
     }
  // S1: the DC has what is committed and below low-water, in order; then it leaves the chain. So do aborted versions.
  :: atomic {  // code: tc/mvcc/unlinker.cc Unlinker::CollectItems
       k = 0;
       do
       :: k < KEYS ->
          t = 0;
          do
          :: t < TRANSACTIONS && TS(t) < low_water ->
             if
             :: HAS(versions[k], t) && status[t] == COMMITTED -> dc[k] = TS(t)
             :: else
             fi;
             versions[k] = versions[k] & ~(1 << t);
             t++
          :: else -> break
          od;
          k++
       :: else -> break
       od;
       k = 0; t = 0
     }
  :: atomic {  // code: tc/mvcc/record_table.cc RecordTable::Remove, RecordTable::FloorCovers; tc/mvcc/entry_remover.cc EntryRemover::RetryOldest
       select(k : 0 .. KEYS - 1);
       if
#if defined(OMIT_R5_check_last_read)
       :: there[k] && versions[k] == 0 -> there[k] = 0; last_read[k] = 0
#else
       :: there[k] && versions[k] == 0 && last_read[k] <= low_water -> there[k] = 0; last_read[k] = 0
       :: there[k] && versions[k] == 0 && floor_of == OF_ANY && floor_at >= last_read[k] -> there[k] = 0; last_read[k] = 0
       :: there[k] && versions[k] == 0 && in_span && floor_of == OF_KEY(k) && ABOVE(floor_at, last_read[k]) >= 0 ->
          there[k] = 0; last_read[k] = 0
#endif
       :: else
       fi;
       k = 0
     }
  // What the word of very long ago is replaced by comes from somebody who is open, so the sweep has only this one to take out.
#if defined(OLD)
  :: !in_span && !swept ->
     atomic {  // code: tc/mvcc/record_table.cc RecordTable::SweepFloors
       swept = 1; seen_sweep = guards;
#if !defined(OMIT_R6_sweep)
       if
       :: very_old -> floor_of = OF_NOBODY; floor_at = 0; very_old = 0
       :: else
       fi
#endif
     }
#if defined(OMIT_R6_sweep_unseen)
  :: swept -> atomic { in_span = 1; swept = 0 }  // model: without the wait for guards
#else
  :: swept && seen_sweep == 0 -> atomic { in_span = 1; swept = 0 }  // code: tc/mvcc/record_table.cc RecordTable::SweepFloors
#endif
#endif
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
          :: status[w] == COMMITTED && wrote[w] && key_of[w] == key_of[r] -> newest = TS(w)
          :: else
          fi;
          w++
       :: else -> break
       od;
       assert(status[r] != COMMITTED || found[r] == NOTHING || found[r] == newest);
       r++
    :: else -> break
    od
  }
}

init {
  byte p;
  atomic {  // model: all of them run
#if defined(OLD)
    floor_of = OF_KEY(0);
    floor_at = OLD;
#endif
    do
    :: p < TRANSACTIONS -> run Transaction(p); p++
    :: else -> break
    od;
    run Collector();
    run Check()
  }
}
