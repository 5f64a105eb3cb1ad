// R1, R2, R4, R7, R9, S10: transactions that read and write one record.
//
// Each of TRANSACTIONS transactions, of timestamps 1..TRANSACTIONS, chooses freely: a read or none; then a write: none, blind, blind twice, or an
// insert (that reads: its intent version raises last_read; it is withdrawn if the key is there); then commit or abort. The word {last_read, head} is
// loaded in halves and changed by a compare-and-swap of the whole.
// Property: what a committed transaction has read is the last version of the latest committed earlier writer. Nobody loses to a transaction that has
// ended (R7).
// Bounds: TRANSACTIONS. INSERTS, TWICE: such writes are among the choices. AGAIN: who meets an undecided transaction may also look once more, from
// the head, any number of times (R9 does so after a wait for one that is committing).
#ifndef TRANSACTIONS
#define TRANSACTIONS 3
#endif
#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
#define TS(t) ((t) + 1)
#define HAS(set, x) (((set) >> (x)) & 1)
// The versions of a transaction: its first and its second.
#define FIRST(t) (2 * (t))
#define SECOND(t) (2 * (t) + 1)
#define OWNER(v) ((v) / 2)
#define VERSIONS (2 * TRANSACTIONS)
#define NOTHING 99

// The word. A chain is the set of the versions linked in it: the live ones stand in the order of their timestamps, dead ones only above them.
byte last_read, head;
byte last[TRANSACTIONS];                // version of a writer

byte status[TRANSACTIONS];
bit withdrawn[TRANSACTIONS];
bit wrote[TRANSACTIONS];
bit ended[TRANSACTIONS];
byte found[TRANSACTIONS] = NOTHING;     // by the read: a version + 1; 0: not there
byte expected[TRANSACTIONS] = NOTHING;  // by the insert
byte done;

#define LOSE_TO(t) assert(!ended[t]); goto lose
#if defined(OMIT_R4_withdrawn)
#define DEAD(v) (status[OWNER(v)] == ABORTED)
#else
#define DEAD(v) (status[OWNER(v)] == ABORTED || withdrawn[OWNER(v)])
#endif

// How a reader decides about a version: its transaction's status first, whether it is withdrawn second.
#if defined(OMIT_R4_status_first)
#define SEEN_STATUS(v) status[OWNER(v)]
#define SEEN_WITHDRAWN(v) was
#else
#define SEEN_STATUS(v) was
#if defined(OMIT_R4_withdrawn)
#define SEEN_WITHDRAWN(v) 0
#else
#define SEEN_WITHDRAWN(v) withdrawn[OWNER(v)]
#endif
#endif

inline load() {
#if defined(OMIT_R2_load_order)
  atomic { seen_head = head };  // code: tc/mvcc/head_word.h HeadWord::Load
  atomic { seen_read = last_read };  // code: tc/mvcc/head_word.h HeadWord::Load
#else
  atomic { seen_read = last_read };  // code: tc/mvcc/head_word.h HeadWord::Load
  atomic { seen_head = head };  // code: tc/mvcc/head_word.h HeadWord::Load
#endif
}

proctype Transaction(byte me) {
  byte seen_read, seen_head, v, was, live, mine;
  bit reads;
  byte writes;  // 1: blind, 2: insert, 3: blind twice
  atomic {  // model: what it is going to do
    if
    :: reads = 1
    :: skip
    fi;
    if
    :: writes = 0
    :: writes = 1
#if defined(INSERTS)
    :: writes = 2
#endif
#if defined(TWICE)
    :: writes = 3
#endif
    fi
  };
  if
  :: !reads -> goto write
  :: else
  fi;
read:
  load();
#if !defined(OMIT_R2_record_raise)
  do
  :: seen_read < TS(me) ->
     atomic {  // code: tc/mvcc/record_table.cc RecordTable::RaiseLastRead; tc/mvcc/head_word.h HeadWord::CompareExchange
       if
#if defined(OMIT_R5_one_word)
       :: seen_read == last_read -> last_read = TS(me); seen_read = TS(me)
#else
       :: seen_read == last_read && seen_head == head -> last_read = TS(me); seen_read = TS(me)
#endif
       :: else -> seen_read = last_read; seen_head = head
       fi
     }
  :: else -> break
  od;
#endif
  v = FIRST(me);
  do
  :: v > 0 && found[me] == NOTHING ->
#if defined(OMIT_R4_status_first)
     atomic { v--; was = withdrawn[OWNER(v)] };  // code: tc/mvcc/version_chain.cc FindVisible
#else
     atomic {  // code: tc/mvcc/version_chain.cc FindVisible
       v--; was = (HAS(seen_head, v) -> status[OWNER(v)] : ABORTED);
       assert(was != ACTIVE || !ended[OWNER(v)])
     };
#endif
     atomic {  // code: tc/mvcc/version_chain.cc FindVisible; tc/record_manager/read_path.cc ReadPath::Look
       if
       :: !HAS(seen_head, v)
#if !defined(OMIT_R4_withdrawn)
       :: HAS(seen_head, v) && SEEN_WITHDRAWN(v)
#endif
       :: HAS(seen_head, v) && !SEEN_WITHDRAWN(v) && SEEN_STATUS(v) == COMMITTED -> found[me] = v + 1
#if !defined(OMIT_R2_record_conflict)
       :: HAS(seen_head, v) && !SEEN_WITHDRAWN(v) && SEEN_STATUS(v) == ACTIVE -> was = 0; goto lose
#if defined(AGAIN)
       :: HAS(seen_head, v) && !SEEN_WITHDRAWN(v) && SEEN_STATUS(v) == ACTIVE -> was = 0; v = 0; goto read
#endif
#endif
       :: else
       fi;
       was = 0
     }
  :: else -> break
  od;
#if !defined(OMIT_R2_last_version)
  // Whose version it is may have committed since the head was loaded, and have replaced it before.
  if
  :: found[me] != NOTHING ->
     atomic {  // code: tc/record_manager/read_path.cc ReadPath::Look
       if
       :: head != seen_head -> found[me] = NOTHING; v = 0; goto read
       :: else
       fi
     }
  :: else
  fi;
#endif
  atomic {  // model: nothing in the chain: the DC has nothing either
    if
    :: found[me] == NOTHING -> found[me] = 0
    :: else
    fi;
    reads = 0; v = 0; seen_read = 0; seen_head = 0
  };

write:
  if
  :: writes == 0 -> goto commit
  :: else
  fi;
  mine = FIRST(me);
install:
  load();
  do
  :: atomic {  // code: tc/record_manager/write_path.cc WritePath::Install, WritePath::PublishKey; tc/mvcc/version_chain.cc LiveHead; tc/mvcc/record_version.h RecordVersion::dead
       v = VERSIONS; live = NOTHING;
       do
       :: v > 0 && live == NOTHING ->
          v--;
          if
          :: HAS(seen_head, v) && !DEAD(v) -> live = v
          :: else
          fi
       :: else -> break
       od;
       v = 0
     };
     atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead
       if
#if !defined(OMIT_R1_head_uncommitted)
       :: live != NOTHING && OWNER(live) != me && status[OWNER(live)] == ACTIVE -> LOSE_TO(OWNER(live))
#if defined(AGAIN)
       :: live != NOTHING && OWNER(live) != me && status[OWNER(live)] == ACTIVE -> live = 0; goto install
#endif
#endif
#if !defined(OMIT_R1_head_later)
       :: live != NOTHING && status[OWNER(live)] == COMMITTED && OWNER(live) > me -> goto lose
#endif
       :: else
       fi;
#if !defined(OMIT_R1_check_record)
       if
       :: seen_read > TS(me) && (live == NOTHING || OWNER(live) != me) -> goto lose
       :: else
       fi
#endif
     };
     if
#if !defined(OMIT_R4_live_again)
     // R4: withdrawn since the chain was looked at, before its owner ended: the next live one.
     :: atomic { live != NOTHING && OWNER(live) != me && DEAD(live) -> live = 0 }  // code: tc/record_manager/write_path.cc WritePath::ExamineHead
     :: else ->
#else
     :: true ->
#endif
     atomic {  // code: tc/mvcc/version_chain.cc InstallVersion; tc/mvcc/head_word.h HeadWord::CompareExchange; tc/record_manager/write_path.cc WritePath::Install, WritePath::SwapHead
       if
#if defined(OMIT_R5_one_word)
       :: seen_head == head ->
#elif defined(OMIT_R1_install_swap)
       :: true ->
#else
       :: seen_read == last_read && seen_head == head ->
#endif
          // What is dead above the live version is unlinked; what the others below it are stays.
          head = (live == NOTHING -> 0 : seen_head & ((1 << (live + 1)) - 1)) | (1 << mine);
          wrote[me] = 1; last[me] = mine;
#if !defined(OMIT_S10_insert_reads)
          last_read = (writes == 2 && last_read < TS(me) -> TS(me) : last_read);
#endif
          break
#if !defined(OMIT_R1_install_swap)
       :: else -> seen_read = last_read; seen_head = head; live = 0
#endif
       fi
     }
     fi
  od;
#if defined(INSERTS)
  if
  :: writes == 2 ->
     // Below it: a committed version, or what the DC has, which is nothing.
     atomic { expected[me] = (live == NOTHING -> 0 : live + 1) };  // code: tc/record_manager/write_path.cc WritePath::Write, WritePath::AskWhetherPresent, WritePath::CheckCondition
     if
     :: expected[me] != 0 -> atomic { withdrawn[me] = 1; wrote[me] = 0 }  // code: tc/record_manager/write_path.cc WritePath::Withdraw
     :: else
     fi
  :: else
  fi;
#endif
#if defined(TWICE)
  if
  :: writes == 3 && mine == FIRST(me) -> mine = SECOND(me); goto install
  :: else
  fi;
#endif
commit:
  if
  :: atomic { status[me] = COMMITTED }  // code: tc/txn/transaction_record.h TransactionRecord::TryStartCommit, TransactionRecord::FinishCommit
     goto finished
  :: goto lose
  fi;
lose:
  skip;
#if !defined(OMIT_R7_abort)
  atomic { status[me] = ABORTED };  // code: tc/record_manager/commit_path.cc CommitPath::Abort; tc/txn/transaction_record.h TransactionRecord::TryAbort
#endif
finished:
  atomic { ended[me] = 1; done++; seen_read = 0; seen_head = 0; v = 0; live = 0; mine = 0; reads = 0; writes = 0 }  // model: what is of no more use is forgotten
}

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
          :: status[w] == COMMITTED && wrote[w] -> newest = last[w] + 1
          :: else
          fi;
          w++
       :: else -> break
       od;
       assert(status[r] != COMMITTED || found[r] == NOTHING || found[r] == newest);
       assert(status[r] != COMMITTED || expected[r] == NOTHING || expected[r] == newest);
       // R4: who wrote and committed is still in the chain.
       assert(status[r] != COMMITTED || !wrote[r] || HAS(head, last[r]));
       r++
    :: else -> break
    od
  }
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < TRANSACTIONS -> run Transaction(p); p++
    :: else -> break
    od;
    run Check()
  }
}
