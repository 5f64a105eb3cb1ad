// T1: a table is dropped under transactions that use it.
//
// TRANSACTIONS transactions draw a timestamp (a snapshot takes one below all that are open), look for the table, then write to it or read it.
// DROPPERS drop it: close, draw, raise the table's last_read, look at the postings, commit; or fail, and open it again.
// Properties: a drop is a transaction like any other: who is told that the table is there is not later than a committed drop, and who is told that
// there is none is; behind a drop no write to its table commits; once a drop is committed nobody is sent away as if it were undecided.
// Bounds: TRANSACTIONS, DROPPERS.
#ifndef TRANSACTIONS
#define TRANSACTIONS 2
#endif
#ifndef DROPPERS
#define DROPPERS 2
#endif
#define ALL (TRANSACTIONS + DROPPERS)
#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
#define NONE 99
#define HAS(set, x) (((set) >> (x)) & 1)

byte counter = 1;
byte timestamp[ALL];     // 0: not drawn
byte status[ALL];
bit open = 1;
byte dropper = NONE;
byte table_read;         // the table's last_read
byte range_read;         // its range's
byte posted;             // on its range
bit wrote[ALL], told_there[ALL], told_none[ALL];
bit dropped;             // a drop has committed
byte done;

#define DRAW(me) timestamp[me] = counter; counter++

proctype Transaction(byte me) {
  byte t, seen, seen_dropper, seen_status;
  bit writes, snapshot;
  atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin; tc/txn/snapshot_begin.cc ActiveTransactions::TrySnapshot; tc/record_manager/commit_path.cc CommitPath::Begin
    if
    :: writes = 1; DRAW(me)
    :: DRAW(me)
    :: snapshot = 1;
       seen = counter;
       do
       :: t < ALL ->
          if
          :: timestamp[t] != 0 && status[t] == ACTIVE && timestamp[t] < seen -> seen = timestamp[t]
          :: else
          fi;
          t++
       :: else -> t = 0; break
       od;
       timestamp[me] = seen; seen = 0
    fi
  };
  // FindTable.
  atomic {  // code: tc/record_manager/table_path.cc FindTable; tc/catalogue/table_state.h TableState::open
    if
    :: open -> goto found
    :: else
    fi
  };
#if defined(OMIT_T1_drop_decides)
  told_none[me] = 1;
  goto commit;
#endif
  atomic { seen_dropper = dropper; assert(!(dropped && seen_dropper == NONE)) };  // code: tc/record_manager/table_path.cc FindTable; tc/catalogue/table_state.h TableState::dropper
  atomic {  // code: tc/record_manager/table_path.cc FindTable
    if
    :: seen_dropper == NONE ->
       if
       :: snapshot -> goto found
       :: else -> goto lose
       fi
    :: else ->
       if
       :: status[seen_dropper] == COMMITTED && timestamp[seen_dropper] < timestamp[me] -> told_none[me] = 1; goto commit
       :: else
       fi;
       if
       :: snapshot -> goto found
       :: !snapshot && timestamp[me] < timestamp[seen_dropper] && !writes -> goto found
       :: else -> goto lose
       fi
    fi
  };
found:
  told_there[me] = 1;
  if
  :: writes ->
     atomic { posted = posted | (1 << me) };  // code: tc/record_manager/write_path.cc WritePath::PostIntent, WritePath::PostFirst
#if !defined(OMIT_T1_check_table)
     atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads
       if
       :: range_read > timestamp[me] -> goto lose
       :: else
       fi
     };
     atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads; tc/catalogue/table_state.h TableState::last_read
       if
       :: table_read > timestamp[me] -> goto lose
       :: else
       fi
     };
     atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads; tc/catalogue/table_state.h TableState::open
       if
       :: !open -> goto lose
       :: else
       fi
     };
#endif
     wrote[me] = 1
  :: !writes && !snapshot ->
     atomic { range_read = (range_read < timestamp[me] -> timestamp[me] : range_read) };  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather
     atomic { seen = posted };  // code: tc/mvcc/range_table.h Range::ForEachPosting
     do
     :: t < ALL ->
        atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::GatherFrom
          if
          :: HAS(seen, t) && status[t] == ACTIVE && timestamp[t] < timestamp[me] -> goto lose
          :: else
          fi;
          t++
        }
     :: else -> break
     od
  :: snapshot
  fi;
commit:
  atomic {  // code: tc/record_manager/commit_path.cc CommitPath::CommitWrites, CommitPath::CommitNothing, CommitPath::Append
    if
    :: status[me] = COMMITTED; assert(!(wrote[me] && dropped)); goto finished
    :: !snapshot -> goto lose
    fi
  };
lose:
  atomic { status[me] = ABORTED };  // code: tc/record_manager/commit_path.cc CommitPath::Abort
finished:
  atomic { done++; t = 0; seen = 0; seen_dropper = 0; writes = 0; snapshot = 0 }  // model: what is of no more use is forgotten
}

proctype Dropper(byte me) {
  byte t;
  bit was_open;
#if defined(OMIT_T1_close_first)
  atomic { DRAW(me) };  // code: tc/record_manager/table_path.cc RecordManager::DropTable
#endif
#if !defined(OMIT_T1_close)
  atomic { was_open = open; open = 0 };  // code: tc/record_manager/table_path.cc RecordManager::DropTable; tc/catalogue/table_state.h TableState::TryClose
  if
  :: !was_open -> status[me] = ABORTED; goto finished  // unreached: with one dropper nobody else has closed it
  :: else
  fi;
#endif
#if !defined(OMIT_T1_close_first)
  atomic { DRAW(me) };  // code: tc/record_manager/table_path.cc RecordManager::DropTable; tc/txn/active_transactions.cc ActiveTransactions::Begin
#endif
  atomic { dropper = me };  // code: tc/record_manager/table_path.cc RecordManager::DropTable; tc/catalogue/table_state.h TableState::SetDropper
  // The raise and the closed table tell a writer the same; either would do.
  atomic { table_read = (table_read < timestamp[me] -> timestamp[me] : table_read) };  // code: tc/record_manager/table_path.cc ExcludeWriters; tc/catalogue/table_state.h TableState::RaiseLastRead
  atomic {  // code: tc/record_manager/table_path.cc ExcludeWriters
    if
    :: range_read > timestamp[me] -> goto lose
    :: else
    fi
  };
#if !defined(OMIT_T1_look)
  do
  :: t < TRANSACTIONS ->
     atomic {  // code: tc/record_manager/table_path.cc ExcludeWriters
       if
       :: HAS(posted, t) && (status[t] == ACTIVE || (status[t] == COMMITTED && timestamp[t] > timestamp[me])) -> goto lose
       :: else
       fi;
       t++
     }
  :: else -> t = 0; break
  od;
#endif
  if
  :: atomic { status[me] = COMMITTED; dropped = 1 }  // code: tc/record_manager/table_path.cc RecordManager::DropTable; tc/record_manager/commit_path.cc CommitPath::CommitWrites, CommitPath::CommitNothing
     goto finished
  :: goto lose
  fi;
lose:
  atomic { status[me] = ABORTED };  // code: tc/record_manager/commit_path.cc CommitPath::Abort
#if defined(OMIT_T1_reopen_last)
  atomic { open = 1 };  // code: tc/catalogue/table_state.h TableState::Reopen
  atomic { dropper = NONE };  // code: tc/catalogue/table_state.h TableState::Reopen, TableState::ForgetDropper
#else
  atomic { dropper = NONE };  // code: tc/catalogue/table_state.h TableState::Reopen, TableState::ForgetDropper
  atomic { open = 1 };  // code: tc/catalogue/table_state.h TableState::Reopen; tc/record_manager/table_path.cc Reopen
#endif
finished:
  atomic { done++; t = 0; was_open = 0 }  // model: what is of no more use is forgotten
}

proctype Check() {
  byte t, d;
  d_step {  // model: the property
    done == ALL ->
    do
    :: t < TRANSACTIONS ->
       d = TRANSACTIONS;
       do
       :: d < ALL ->
          assert(!(status[t] == COMMITTED && told_there[t] && status[d] == COMMITTED && timestamp[d] < timestamp[t]));
          d++
       :: else -> break
       od;
       d = TRANSACTIONS;
       do
       :: d < ALL && !(status[d] == COMMITTED && timestamp[d] < timestamp[t]) -> d++
       :: else -> break
       od;
       assert(!(status[t] == COMMITTED && told_none[t] && d == ALL));
       t++
    :: else -> break
    od
  }
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < ALL ->
       if
       :: p < TRANSACTIONS -> run Transaction(p)
       :: else -> run Dropper(p)
       fi;
       p++
    :: else -> break
    od;
    run Check()
  }
}
