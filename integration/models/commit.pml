// Commit and acknowledgement: readers of commits that are not durable yet (D1), timestamps that are reserved durably (D3), the order in which a
// commit's record is reserved, filled and seen (D4). The TC crashes between any two steps.
//
// Each of TRANSACTIONS reads the one record, or writes it, or both: begins (draws a timestamp, waits until it is durably reserved, or gives up),
// reads the newest committed version (an earlier one that is not committed is a conflict), installs its own, appends its commit record (reserves its
// place, fills it), is committed, leaves, and is acknowledged when durable. Rounds of low-water; a DC that applies what is durable and below low-
// water, whereupon the version is collected and readers are answered by the DC. A crash ends all that run and loses what is not durable; the
// transactions that have not begun run in the next life.
// Left out: R1 to R8 (a reader here keeps no later writer away), chunks, buffered commits, L1's and L2's steps, recovery itself (D2).
// Properties: at a crash all that was acknowledged is durable, and so is what it had read; what the DC has applied is durable; no timestamp is
// used twice, and none below a low-water that was once published.
// Bounds: TRANSACTIONS; CRASHES; timestamps are reserved in blocks of two.
#ifndef TRANSACTIONS
#define TRANSACTIONS 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define LOG (2 * TRANSACTIONS + 4)
#define BLOCK 2
#define NOTHING 0  // as a place in the log: places count from 1
#define MAX(a, b) ((a) > (b) -> (a) : (b))

// Steps of a transaction.
#define IDLE 0
#define PUBLISHED 1
#define DRAWN 2
#define BEGUN 3
#define LOOKED 4
#define RESERVED 5
#define FILLED 6
#define STORED 7
#define COMMITTED 8
#define WAITING 9
#define OVER 10

byte step[TRANSACTIONS];
bit reads[TRANSACTIONS], writes[TRANSACTIONS];
byte ts[TRANSACTIONS];
byte bound[TRANSACTIONS];
byte place[TRANSACTIONS];       // of the commit record
byte commit_lsn[TRANSACTIONS];  // as others see it
bit installed[TRANSACTIONS], committed[TRANSACTIONS];
bit collected[TRANSACTIONS];    // applied by the DC
byte depends_on[TRANSACTIONS];
byte saw[TRANSACTIONS];         // the transaction whose version it has read, plus one
bit acknowledged[TRANSACTIONS];
// The log. A place is filled, and holds a commit or a reservation (0: a commit).
bit filled[LOG];
byte reservation[LOG];
byte tail, durable;             // the last place that was reserved; that is durable
// Timestamps.
byte counter, reserved, requested, low_water;
bit used[2 * LOG];
byte crashes;


#if defined(OMIT_D4_filled)
bit whole[LOG];  // written with all its bytes
#define IS_DURABLE(t) (place[t] != NOTHING && place[t] <= durable && whole[place[t]])
#else
#define IS_DURABLE(t) (place[t] != NOTHING && place[t] <= durable)
#endif

proctype Transaction(byte me) {
  byte t, newest;
  bit conflict;
end:
  do
  // They begin in the order of their numbers.
  :: atomic { step[me] == IDLE && (me == 0 || step[me - 1] != IDLE) ->  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
       if
       :: reads[me] = 1
       :: writes[me] = 1
       :: reads[me] = 1; writes[me] = 1
       fi;
       bound[me] = counter;
       step[me] = PUBLISHED
     }
  :: atomic { step[me] == PUBLISHED ->  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
       ts[me] = counter;
       counter++;
       step[me] = DRAWN
     }
  // The next block, by the first transaction beyond the last one.
  :: atomic { step[me] == DRAWN && ts[me] >= reserved && ts[me] >= requested ->  // code: tc/redo_log/timestamp_reservation.cc TimestampReservation::Reserve
       requested = ts[me] + BLOCK;
       tail++;
       assert(tail < LOG);
       reservation[tail] = requested;
       filled[tail] = 1
     }
#if defined(OMIT_D3_reserve_first)
  :: atomic { step[me] == DRAWN ->  // code: tc/redo_log/timestamp_reservation.cc TimestampReservation::Reserve
#else
  :: atomic { step[me] == DRAWN && ts[me] < reserved ->  // code: tc/redo_log/timestamp_reservation.h TimestampReservation::Ensure
#endif
       assert(!used[ts[me]] && ts[me] >= low_water);
       used[ts[me]] = 1;
       step[me] = BEGUN
     }
  // The deadline passes: it is never used.
  :: atomic { step[me] == DRAWN && ts[me] >= reserved -> step[me] = OVER; bound[me] = 0 }  // code: tc/txn/active_transactions.cc ActiveTransactions::Begin
  :: atomic { step[me] == BEGUN && reads[me] ->  // code: tc/mvcc/version_chain.cc FindVisible; tc/record_manager/read_path.cc ReadPath::Look
       for (t : 0 .. TRANSACTIONS - 1) {
         if
         :: t != me && installed[t] && ts[t] < ts[me] ->
            if
            :: !committed[t] -> conflict = 1
            :: committed[t] && (newest == 0 || ts[t] > ts[newest - 1]) -> newest = t + 1
            :: else
            fi
         :: else
         fi
       }
       if
       :: conflict -> step[me] = OVER; bound[me] = 0
       :: else ->
          saw[me] = newest;
#if !defined(OMIT_D1_depends)
          if
          :: newest != 0 && !collected[newest - 1] -> depends_on[me] = commit_lsn[newest - 1]  // code: tc/record_manager/transaction.h Transaction::DependOn
          :: else
          fi;
#endif
          installed[me] = writes[me];
          step[me] = LOOKED
       fi;
       t = 0; newest = 0; conflict = 0
     }
  :: atomic { step[me] == BEGUN && !reads[me] -> installed[me] = 1; step[me] = LOOKED }  // code: tc/record_manager/write_path.cc WritePath::Install, WritePath::SwapHead
  // A commit that writes nothing.
  :: atomic { step[me] == LOOKED && !writes[me] -> bound[me] = 0; step[me] = WAITING }  // code: tc/record_manager/commit_path.cc CommitPath::CommitWrites, CommitPath::CommitNothing
#if defined(OMIT_D4_append_first)
  :: atomic { step[me] == LOOKED && writes[me] && !committed[me] -> committed[me] = 1 }  // code: tc/record_manager/commit_path.cc CommitPath::Append
  :: atomic { step[me] == LOOKED && committed[me] ->  // code: tc/redo_log/redo_log.cc RedoLog::AppendCommit
#else
  :: atomic { step[me] == LOOKED && writes[me] ->  // code: tc/redo_log/redo_log.cc RedoLog::AppendCommit; tc/redo_log/log_ring.h LogRing::Append
#endif
       tail++;
       assert(tail < LOG);
       place[me] = tail;
       step[me] = RESERVED
     }
  :: atomic { step[me] == RESERVED -> filled[place[me]] = 1; step[me] = FILLED }  // code: tc/redo_log/log_ring.h LogRing::Append
#if defined(OMIT_D4_lsn_first)
  :: atomic { step[me] == FILLED -> committed[me] = 1; step[me] = STORED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
  :: atomic { step[me] == STORED -> commit_lsn[me] = place[me]; step[me] = COMMITTED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
#else
  :: atomic { step[me] == FILLED -> commit_lsn[me] = place[me]; step[me] = STORED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
  :: atomic { step[me] == STORED -> committed[me] = 1; step[me] = COMMITTED }  // code: tc/txn/transaction_record.h TransactionRecord::FinishCommit
#endif
  :: atomic { step[me] == COMMITTED -> bound[me] = 0; step[me] = WAITING }  // code: tc/record_manager/commit_path.cc CommitPath::Finish
  // code: tc/record_manager/commit_path.cc CommitPath::WaitAcknowledged; tc/redo_log/blocking_durability_wait.h BlockingDurabilityWait::Wait; tc/server/one_shot_workers.cc OneShotWorkers::AcknowledgeLocked; protocol/transactions/withheld_answers.cc WithheldAnswers::Release
  :: atomic { step[me] == WAITING &&
#if !defined(OMIT_D1_wait_own)
              place[me] <= durable &&
#endif
#if defined(OMIT_D1_wait_dependencies)
              (!writes[me] || depends_on[me] <= durable) ->
#else
              depends_on[me] <= durable ->
#endif
       acknowledged[me] = 1;
       step[me] = OVER
     }
  :: step[me] == OVER -> break
  od
}

proctype Others() {
  byte t, low;
end:
  do
  // The log thread takes what is filled, in order.
#if defined(OMIT_D4_filled)
  :: atomic { durable < tail -> durable++; whole[durable] = filled[durable] }  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
#else
  :: atomic { durable < tail && filled[durable + 1] -> durable++ }  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
#endif
  :: atomic { requested > reserved ->  // code: tc/redo_log/timestamp_reservation.cc TimestampReservation::Reserve
       for (t : 1 .. LOG - 1) {
         if
         :: t <= durable && reservation[t] > reserved -> reserved = reservation[t]
         :: else
         fi
       }
       t = 0
     }
  :: atomic { low_water < counter ->  // code: tc/txn/active_transactions.cc ActiveTransactions::Round
       low = counter;
       for (t : 0 .. TRANSACTIONS - 1) {
         low = (bound[t] != 0 && bound[t] < low -> bound[t] : low)
       }
#if !defined(OMIT_D3_low_water)
       low = (reserved < low -> reserved : low);
#endif
       low_water = MAX(low, low_water);
       t = 0; low = 0
     }
  // Shipped, applied, collected.
  // code: tc/dc_link/commit_feed.cc CommitFeed::Fill, CommitFeed::ReadRecord; tc/mvcc/entry_remover.cc EntryRemover::Remove
  :: atomic {
       if
       :: committed[0] && !collected[0] -> t = 0
       :: committed[1] && !collected[1] -> t = 1
       :: committed[TRANSACTIONS - 1] && !collected[TRANSACTIONS - 1] -> t = TRANSACTIONS - 1
       fi;
       if
#if defined(OMIT_S1_durable)
       :: ts[t] < low_water -> collected[t] = 1
#else
       :: ts[t] < low_water && place[t] <= durable -> collected[t] = 1
#endif
       :: else
       fi;
       t = 0
     }
  :: atomic { crashes < CRASHES && step[0] != IDLE ->  // model: the crash
       crashes++;
       for (t : 0 .. TRANSACTIONS - 1) {
         if
         :: acknowledged[t] && writes[t] -> assert(IS_DURABLE(t))
         :: else
         fi;
         if
         :: acknowledged[t] && saw[t] != 0 -> assert(IS_DURABLE(saw[t] - 1))
         :: else
         fi;
         if
         :: collected[t] -> assert(IS_DURABLE(t))
         :: else
         fi
       }
       for (t : 0 .. TRANSACTIONS - 1) {
         if
         :: step[t] != IDLE ->
            step[t] = OVER;
            bound[t] = 0;
            // What is durable was committed, whether it had come to that or not.
            committed[t] = IS_DURABLE(t);
            installed[t] = committed[t];
            commit_lsn[t] = (committed[t] -> place[t] : 0);
            place[t] = commit_lsn[t]
         :: else
         fi
       }
       // The new life begins above the highest reservation.
       counter = 1;
       for (t : 1 .. LOG - 1) {
         if
#if defined(OMIT_D3_restart_above)
         :: t <= durable
#else
         :: t <= durable -> counter = MAX(reservation[t], counter)  // code: tc/redo_log/redo_log.cc RedoLog::Open, RedoLog::StartWriting
#endif
         :: t > durable -> reservation[t] = 0; filled[t] = 0
         fi
       }
#if defined(OMIT_D3_restart_above)
       // Above the commits that were found.
       for (t : 0 .. TRANSACTIONS - 1) {
         if
         :: committed[t] && ts[t] >= counter -> counter = ts[t] + 1
         :: else
         fi
       }
#endif
       tail = durable;
       reserved = counter;
       requested = counter;
       t = 0
     }
  od
}  // unreached: it never ends

init {
  byte t;
  atomic {  // model: everybody starts
    counter = 1;
    reserved = 1;
    requested = 1;
    for (t : 0 .. TRANSACTIONS - 1) {
      run Transaction(t)
    }
    run Others()
  }
}
