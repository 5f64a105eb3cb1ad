// R11, with R8: a declared key is posted and published ahead, and its range is checked then, once: later scans lose to it.
//
// A writer declares a key (post, publish, check the range), asks the DC for something, then installs; it may be any of TRANSACTIONS transactions. The
// others scan: raise, look, and take the key's value from the chain.
// Properties: no scan misses an earlier committed writer; and a declaration that has passed is worth something: its transaction never loses to a scan
// afterwards.
// Bounds: TRANSACTIONS, WRITERS of which declare.
#ifndef TRANSACTIONS
#define TRANSACTIONS 4
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
#define TS(t) ((t) + 1)
#define HAS(set, x) (((set) >> (x)) & 1)
#define NOTHING 99

byte last_read, posted, published, chain;
byte status[TRANSACTIONS];
bit writer[TRANSACTIONS];
byte found[TRANSACTIONS] = NOTHING;
byte done;

proctype Writer(byte me) {
  bit declared;
  byte t;
#if !defined(OMIT_R11_declare)
  atomic { posted = posted | (1 << me) };  // code: tc/record_manager/write_path.cc WritePath::Declare, WritePath::PostIntent
  atomic { published = published | (1 << me) };  // code: tc/record_manager/write_path.cc WritePath::Declare; tc/txn/write_set.h WriteSet::Publish
#if !defined(OMIT_R11_check_at_declaration)
  atomic {  // code: tc/record_manager/write_path.cc WritePath::Declare
    if
    :: last_read > TS(me) -> goto lose
    :: else
    fi
  };
#endif
#endif
  declared = 1;
  // Much later: the write.
#if defined(OMIT_R11_declare)
  atomic { posted = posted | (1 << me); published = published | (1 << me) };  // code: tc/record_manager/write_path.cc WritePath::PostFirst, WritePath::PublishKey
#endif
  atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead
    t = TRANSACTIONS;
    do
    :: t > 0 ->
       t--;
       if
       :: HAS(chain, t) && (status[t] == ACTIVE || (status[t] == COMMITTED && t > me)) -> goto lose
       :: else
       fi
    :: else -> break
    od;
    chain = chain | (1 << me)
  };
#if defined(OMIT_R11_check_once) || defined(OMIT_R11_declare)
  atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads
    if
    :: last_read > TS(me) -> assert(!declared); goto lose
    :: else
    fi
  };
#endif
  if
  :: atomic { status[me] = COMMITTED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
     goto finished
  :: goto lose
  fi;
lose:
  atomic { status[me] = ABORTED };  // code: tc/txn/transaction_record.h TransactionRecord::TryAbort
finished:
  atomic { done++; t = 0; declared = 0 }  // model: what is of no more use is forgotten
}

proctype Scanner(byte me) {
  byte t, seen, committed;
look:
  atomic { last_read = (last_read < TS(me) -> TS(me) : last_read) };  // code: tc/mvcc/range_table.cc Range::RaiseLastRead; tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather
  atomic { seen = posted };  // code: tc/mvcc/range_table.h Range::ForEachPosting
  do
  :: t < me ->
     atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::GatherFrom, ScanGather::FindPending, ScanGather::EndBeforePending
       if
       :: HAS(seen, t) && status[t] == ACTIVE && HAS(published, t) -> goto lose
       // R8: it ends before the key, and looks again when it comes to it.
       :: HAS(seen, t) && status[t] == ACTIVE && HAS(published, t) -> t = 0; seen = 0; committed = 0; goto look
       // R8: by key, a writer that has posted and not published is passed.
       :: HAS(seen, t) && status[t] == ACTIVE && !HAS(published, t)
       :: HAS(seen, t) && status[t] == COMMITTED && HAS(published, t) -> committed = 1
       :: else
       fi;
       t++
     }
  :: else -> break
  od;
  if
  :: committed ->
     atomic { seen = chain };  // code: tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne
     t = me;
     do
     :: t > 0 && found[me] == NOTHING ->
        atomic {  // code: tc/mvcc/version_chain.cc FindVisible; tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne
          t--;
          if
          :: HAS(seen, t) && status[t] == COMMITTED -> found[me] = TS(t)
          :: else
          fi
        }
     :: else -> break
     od
  :: else
  fi;
  atomic {  // code: tc/record_manager/commit_path.cc CommitPath::CommitWrites, CommitPath::CommitNothing
    found[me] = (found[me] == NOTHING -> 0 : found[me]);
    status[me] = COMMITTED
  };
  goto finished;
lose:
  atomic { status[me] = ABORTED };  // code: tc/txn/transaction_record.h TransactionRecord::TryAbort
finished:
  atomic { done++; t = 0; seen = 0; committed = 0 }  // model: what is of no more use is forgotten
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
          :: writer[w] && status[w] == COMMITTED -> newest = TS(w)
          :: else
          fi;
          w++
       :: else -> break
       od;
       assert(writer[r] || status[r] != COMMITTED || found[r] == newest);
       r++
    :: else -> break
    od
  }
}

init {
  byte p, writers;
  atomic {  // model: everybody begins
    do
    :: p < TRANSACTIONS ->
       if
       :: writers < WRITERS -> writer[p] = 1; writers++; run Writer(p)
       :: writers + TRANSACTIONS - p > WRITERS -> run Scanner(p)
       fi;
       p++
    :: else -> break
    od;
    run Check()
  }
}
