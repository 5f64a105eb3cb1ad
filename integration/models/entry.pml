// R5, R6: entries of the record table come and go under readers and writers of their key.
//
// Each of TRANSACTIONS transactions, of timestamps 1..TRANSACTIONS, reads or writes one key (BOTH: or reads it and then writes it). A read of a key without
// entry raises the bucket's floor, looks again, and asks the DC. The collector takes versions out that the DC has applied, and removes
// entries without a version: when nobody needs their last_read, or, over its budget, after it has raised the floor. Low-water is the lowest
// timestamp that has not ended, at the latest (L1: low_water.pml).
// Property: a committed read is the version of the latest committed earlier writer, wherever that is.
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
#define THREADS TRANSACTIONS
#define FLOOR 0
#define WORDS 1
#include "store_buffer.inc"

typedef Entry {
  byte last_read;
  byte versions;  // linked in its chain
  bit dead;
  byte next       // in the bucket
}
Entry entry[ENTRIES + 1];
byte made;
byte bucket;                          // its newest entry
byte dc;                              // the timestamp of what the DC has; 0: nothing
byte status[TRANSACTIONS];
bit ended[TRANSACTIONS];
bit wrote[TRANSACTIONS];
bit applied[TRANSACTIONS];
byte found[TRANSACTIONS] = NOTHING;
byte done;

// The live entry on the list that begins at `first`. (At most one: FindOrCreate.)
inline find_in(first, result) {
  result = first;
  do
  :: result != NONE && entry[result].dead -> result = entry[result].next
  :: else -> break
  od
}

inline find() {
  atomic { e = bucket };  // code: tc/mvcc/record_table.cc RecordTable::Find
  atomic { find_in(e, e) }  // code: tc/mvcc/record_table.cc RecordTable::FindIn
}

proctype Transaction(byte me) {
  byte e, first, seen_read, seen_head, t;
  bit reads, writes;
  atomic {  // model: what it is going to do
    if
    :: reads = 1
    :: writes = 1
#if defined(BOTH)
    :: reads = 1; writes = 1
#endif
    fi
  };
  if
  :: !reads -> goto write
  :: else
  fi;

look_up:
  find();
  if
  :: e == NONE ->
#if defined(OMIT_R6_raise_ordered)
     atomic { STORE_PLAIN(me, FLOOR, (LOAD(me, FLOOR) < TS(me) -> TS(me) : LOAD(me, FLOOR))) };  // code: tc/mvcc/record_table.cc RecordTable::RaiseFloor
#elif !defined(OMIT_R6_raise_floor) && !defined(OMIT_R6_raise_first)
     atomic { DRAINED(me) -> mem[FLOOR] = (mem[FLOOR] < TS(me) -> TS(me) : mem[FLOOR]) };  // code: tc/mvcc/record_table.cc RecordTable::RaiseFloor; tc/record_manager/read_path.cc ReadPath::Look
#endif
#if !defined(OMIT_R6_look_again)
     find();  // model: the code walks only if the bucket's head is another, as the same one leads to the same entries (grow.pml)
#endif
#if defined(OMIT_R6_raise_first)
     atomic { DRAINED(me) -> mem[FLOOR] = (mem[FLOOR] < TS(me) -> TS(me) : mem[FLOOR]) };  // code: tc/mvcc/record_table.cc RecordTable::RaiseFloor
#endif
     if
     :: e == NONE -> goto ask
     :: else
     fi
  :: else
  fi;
  // The raise of last_read, by compare-and-swaps of the word (record.pml).
  atomic {  // code: tc/mvcc/record_table.cc RecordTable::RaiseLastRead; tc/record_manager/read_path.cc ReadPath::Look
    if
    :: entry[e].dead -> e = NONE; goto look_up
    :: else -> entry[e].last_read = (entry[e].last_read < TS(me) -> TS(me) : entry[e].last_read); seen_head = entry[e].versions
    fi
  };
  t = me;
  do
  :: t > 0 && found[me] == NOTHING ->
     atomic {  // code: tc/mvcc/version_chain.cc FindVisible
       t--;
       if
       :: HAS(seen_head, t) && status[t] == COMMITTED -> found[me] = TS(t)
       :: HAS(seen_head, t) && status[t] == ACTIVE -> goto lose
       :: else
       fi
     }
  :: else -> break
  od;
ask:
  atomic {  // code: tc/record_manager/read_path.cc ReadPath::Get
    if
    :: found[me] == NOTHING -> found[me] = dc
    :: else
    fi;
    e = NONE; t = 0; seen_head = 0
  };

write:
  if
  :: !writes -> goto commit
  :: else
  fi;
find_or_create:
  atomic { first = bucket };  // code: tc/mvcc/record_table.cc RecordTable::FindOrCreate
  atomic { find_in(first, e) };  // code: tc/mvcc/record_table.cc RecordTable::FindIn, RecordTable::FindOrCreate
  if
  :: e == NONE ->
     atomic {  // code: tc/mvcc/record_table.cc RecordTable::FindOrCreate
       if
#if defined(OMIT_R5_insert_swap)
       :: true ->
#else
       :: bucket == first ->
#endif
          made++; e = made; entry[e].next = bucket; bucket = e
#if !defined(OMIT_R5_insert_swap)
       :: else -> goto find_or_create
#endif
       fi
     }
  :: else
  fi;
  first = NONE;
  atomic { seen_read = entry[e].last_read; seen_head = entry[e].versions };  // code: tc/record_manager/write_path.cc WritePath::Install
  do
  :: atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead; tc/mvcc/version_chain.cc InstallVersion
       if
#if !defined(OMIT_R5_seal)
       :: entry[e].dead -> e = NONE; goto find_or_create
#endif
       :: !entry[e].dead && (entry[e].last_read != seen_read || entry[e].versions != seen_head) ->
          seen_read = entry[e].last_read; seen_head = entry[e].versions
       :: !entry[e].dead && entry[e].last_read == seen_read && entry[e].versions == seen_head ->
          t = TRANSACTIONS;
          do
          :: t > 0 ->
             t--;
             if
             :: HAS(seen_head, t) && status[t] == ACTIVE -> goto lose
             :: HAS(seen_head, t) && status[t] == COMMITTED && t > me -> goto lose
             :: else
             fi
          :: else -> break
          od;
          if
          :: seen_read > TS(me) -> goto lose
          :: else
          fi;
          entry[e].versions = seen_head | (1 << me);
          wrote[me] = 1;
          break
       fi
     }
  od;
#if !defined(OMIT_R6_check_floor)
  atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads; tc/mvcc/record_table.cc RecordTable::Floor
    if
    :: LOAD(me, FLOOR) > TS(me) -> goto lose
    :: else
    fi
  };
#endif
commit:
  if
  :: atomic { DRAINED(me) -> status[me] = COMMITTED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
     goto finished
  :: goto lose
  fi;
lose:
  atomic { DRAINED(me) -> status[me] = ABORTED };  // code: tc/txn/transaction_record.h TransactionRecord::TryAbort
finished:
  atomic { ended[me] = 1; done++; e = 0; first = 0; seen_read = 0; seen_head = 0; t = 0; reads = 0; writes = 0 }  // model: what is of no more use is forgotten
}

inline compute_low_water() {
  t = 0;
  do
  :: t < TRANSACTIONS && ended[t] -> t++
  :: else -> break
  od;
  low_water = TS(t);
  t = 0
}

proctype Collector() {
  byte t, e, low_water, seen_read;
  bit over_budget;
end:
  do
  // S1: the DC applies what is committed and below low-water; after what is older.
  :: atomic {  // model: the DC applies a commit
       t = 0;
       compute_low_water();
       do
       :: t < TRANSACTIONS && (ended[t] && TS(t) < low_water && (applied[t] || !wrote[t] || status[t] == ABORTED)) -> t++
       :: else -> break
       od;
       if
       :: t < TRANSACTIONS && TS(t) < low_water && ended[t] && status[t] == COMMITTED -> applied[t] = 1; dc = TS(t)
       :: else
       fi;
       t = 0; low_water = 0
     }
  // Versions that are applied or dead leave.
  :: atomic {  // code: tc/mvcc/unlinker.cc Unlinker::CollectItems; tc/mvcc/version_chain.cc CollectApplied, RemoveDeadAndApplied
       select(t : 0 .. TRANSACTIONS - 1);
       find_in(bucket, e);
       if
       // S6 (collect.pml): what is older goes with it.
       :: e != NONE && HAS(entry[e].versions, t) && applied[t] -> entry[e].versions = (entry[e].versions >> TS(t)) << TS(t)
       :: e != NONE && HAS(entry[e].versions, t) && status[t] == ABORTED -> entry[e].versions = entry[e].versions & ~(1 << t)
       :: else
       fi;
       t = 0; e = 0
     }
  :: atomic {  // code: tc/mvcc/entry_remover.cc EntryRemover::Remove, EntryRemover::RetryOldest
       find_in(bucket, e);
       if
       :: made == ENTRIES || e == NONE -> goto kept
       :: else
       fi;
       compute_low_water();
       if
       :: over_budget = 1
       :: over_budget = 0
       fi;
       seen_read = entry[e].last_read
     };
#if !defined(OMIT_R6_floor_before_seal) && !defined(OMIT_R6_floor_first)
     if
     :: over_budget -> atomic { mem[FLOOR] = (mem[FLOOR] < seen_read -> seen_read : mem[FLOOR]) }  // code: tc/mvcc/record_table.cc RecordTable::RaiseFloor; tc/mvcc/entry_remover.cc EntryRemover::RetryOldest
     :: else
     fi;
#endif
     do
     :: atomic {  // code: tc/mvcc/record_table.cc RecordTable::Remove
          if
          :: entry[e].versions != 0 -> goto kept
          :: else
          fi;
          seen_read = entry[e].last_read;
#if !defined(OMIT_R5_check_last_read)
          if
#if defined(OMIT_R6_floor_before_seal) || defined(OMIT_R6_floor_first)
          :: !over_budget && seen_read > low_water && seen_read > mem[FLOOR] -> goto kept
#else
          :: seen_read > low_water && seen_read > mem[FLOOR] -> goto kept
#endif
          :: else
          fi
#endif
        };
#if defined(OMIT_R5_seal)
        break
#else
        atomic {  // code: tc/mvcc/record_table.cc RecordTable::Remove
          if
          :: entry[e].versions == 0 && entry[e].last_read == seen_read -> entry[e].dead = 1; break
          :: else
          fi
        }
#endif
     od;
#if defined(OMIT_R6_floor_first)
     atomic { mem[FLOOR] = (mem[FLOOR] < seen_read -> seen_read : mem[FLOOR]) };  // code: tc/mvcc/record_table.cc RecordTable::RaiseFloor
#endif
     atomic {  // code: tc/mvcc/record_table.cc RecordTable::Unlink
       if
       :: bucket == e -> bucket = entry[e].next
       :: else ->  // something was inserted before it
          t = bucket;
          do
          :: entry[t].next != e -> t = entry[t].next
          :: else -> break
          od;
          entry[t].next = entry[e].next
       fi
     };
kept:
     atomic { t = 0; e = 0; low_water = 0; seen_read = 0; over_budget = 0 }  // model: what is of no more use is forgotten
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
    od
  }
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < TRANSACTIONS -> run Memory(p); run Transaction(p); p++
    :: else -> break
    od;
    run Collector();
    run Check()
  }
}
