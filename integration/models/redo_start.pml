// The redo start (S2): what the TC lets go of its log, against transactions that commit meanwhile and what a DC still holds after a crash.
//
// TRANSACTIONS publish a bound, append a chunk and a commit record (or never commit), and leave. The log thread makes the log durable. The
// shipper reads it, notes each commit's first record, sends it on, and computes, logs and trims. The DC takes checkpoints of what it has applied,
// keeps two generations, and reports the older one's position as stable. The DC crashes and comes back with either generation, or LOST times with
// an empty disk: it is to be refused once the log relies on what it had. The TC crashes and loses what was not durable.
// Left out: low-water (S1), stretches of commits, what lies in records other than their places, the gate (X3). A redo start that is logged takes
// no place of its own; it is durable when what precedes it is. A segment is one record; a trim takes effect at once.
// The DC's steps are a model of X6.
// Properties: no record of a durable commit beyond what a DC has applied was let go when the DC is to be sent it: at each start of a stream and
// when the commit is read; a redo start recovered from the log was not let go itself; only a DC that has lost its disk is refused.
// Bounds: TRANSACTIONS; DC_CRASHES, TC_CRASHES, LOST.
#ifndef TRANSACTIONS
#define TRANSACTIONS 2
#endif
#ifndef DC_CRASHES
#define DC_CRASHES 1
#endif
#ifndef TC_CRASHES
#define TC_CRASHES 1
#endif
#ifndef LOST
#define LOST 1
#endif
#define NEVER 15
#if defined(OMIT_S2_older_generation)
#define STABLE newer
#else
#define STABLE older  // what the DC reports
#endif

// The log. A position (applied, stable) is the place behind a commit record.
byte tail, durable;
byte trimmed;          // everything below was let go
byte logged;           // the redo start that recovery finds
byte logged_stable;
byte appended, appended_stable, appended_at;
bit appending;         // a redo start was appended but is not durable
// The transactions: 0 not begun, 1 has loaded the tail, 2 published, 3 has its first record, 4 its commit record, 5 over.
byte step[TRANSACTIONS];
byte bound[TRANSACTIONS];
byte first[TRANSACTIONS];
byte commit[TRANSACTIONS];
// The DC.
byte applied, older, newer, candidate;
bit checkpointing;
// The TC's memory: feed, tracker, log's redo start.
byte read_to;          // the feed's place
byte reports_from;
bit noted[TRANSACTIONS];
byte computing;        // 0 not, 1 begins, 2 floor of the tail, 3 and of the transactions, 4 begun, 5 logging
byte floor, tail_afterwards;
byte redo_start, redo_start_stable;
byte dc_crashes, tc_crashes, lost;
bit restarted;         // the DC, and nobody has said Hello
bit refused;

inline note(a) {
#if defined(OMIT_S2_first_record)
  noted_first = commit[a]
#else
  noted_first = first[a]
#endif
}

// A stream starts: everything that the DC lacks is there.
inline start_stream() {
  for (i : 0 .. TRANSACTIONS - 1) {
    assert(commit[i] >= durable || commit[i] < applied || first[i] >= trimmed)
  }
  i = 0;
  restarted = 0;
  read_to = applied
}

inline check_peer() {
  // code: tc/dc_link/peer_check.cc CheckPeer
#if !defined(OMIT_S2_refuse_lost_stable)
  if
  :: STABLE < redo_start_stable -> refused = 1; assert(lost)
  :: else
  fi
#else
  skip
#endif
}

// They begin in the order of their numbers: they are alike.
proctype Transaction(byte me) {
end:
  do
#if defined(OMIT_S2_publish_first_record)
  :: atomic { !refused && step[me] == 0 && (me == 0 || step[me - 1] != 0) -> step[me] = 2 }  // model: nothing is published
#else
  // code: tc/txn/active_transactions.cc ActiveTransactions::PublishFirstRecord
  :: atomic { !refused && step[me] == 0 && (me == 0 || step[me - 1] != 0) -> bound[me] = tail; step[me] = 1 }
  :: atomic { !refused && step[me] == 1 -> step[me] = 2 }  // code: tc/txn/active_transactions.cc ActiveTransactions::PublishFirstRecord
#endif
  :: atomic { !refused && step[me] == 2 -> first[me] = tail; tail++; step[me] = 3 }  // code: tc/redo_log/redo_log.cc RedoLog::AppendChunk
#if defined(OMIT_S2_leave_last)
  :: atomic { !refused && step[me] == 3 -> bound[me] = NEVER; step[me] = 6 }  // code: tc/record_manager/commit_path.cc CommitPath::Finish
  :: atomic { !refused && step[me] == 6 -> commit[me] = tail; tail++; step[me] = 5 }  // code: tc/redo_log/redo_log.cc RedoLog::AppendCommit
#else
  // code: tc/redo_log/redo_log.cc RedoLog::AppendCommit; tc/record_manager/commit_path.cc CommitPath::Append
  :: atomic { !refused && step[me] == 3 -> commit[me] = tail; tail++; step[me] = 4 }
  :: atomic { !refused && step[me] == 4 -> bound[me] = NEVER; step[me] = 5 }  // code: tc/txn/active_transactions.cc ActiveTransactions::End
#endif
  :: step[me] == 5 -> break
  od
}

proctype LogThread() {
end:
  do
  :: atomic { !refused && durable < tail -> durable++ }  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
  :: atomic { !refused && appending && durable >= appended_at ->  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
       logged = appended;
       logged_stable = appended_stable;
       appending = 0; appended = 0; appended_stable = 0; appended_at = 0
     }
  od
}  // unreached: it never ends

proctype Shipper() {
  byte i, noted_first;
end:
  do
  // A record is read; a commit's first record is noted. Sending it on and its being applied are one step.
  // code: tc/dc_link/commit_feed.cc CommitFeed::ReadRecord; tc/dc_link/redo_start_tracker.cc RedoStartTracker::OnCommitRead
  :: atomic { !refused && computing != 5 && read_to < durable ->
       for (i : 0 .. TRANSACTIONS - 1) {
         if
         :: commit[i] == read_to ->
            assert(commit[i] < applied || restarted || first[i] >= trimmed);
            noted[i] = 1;
            if
            :: !restarted && applied < read_to + 1 -> applied = read_to + 1  // code: tc/dc_link/commit_feed.cc CommitFeed::AppendCommit
            :: else
            fi
         :: else
         fi
       }
       i = 0;
       read_to++
     }
  // Begins to compute.
#if defined(OMIT_S2_tail_afterwards)
  :: atomic { !refused && computing == 0 -> computing = 1; tail_afterwards = tail }  // code: tc/dc_link/shipper.cc Shipper::MoveRedoStart; tc/dc_link/redo_start_mover.cc RedoStartMover::Begin
#else
  :: atomic { !refused && computing == 0 -> computing = 1 }  // code: tc/dc_link/shipper.cc Shipper::MoveRedoStart; tc/dc_link/redo_start_mover.cc RedoStartMover::Begin
#endif
#if defined(OMIT_S2_tail_first)
  :: atomic { !refused && computing == 1 -> computing = 2; floor = NEVER }  // code: tc/txn/active_transactions.cc ActiveTransactions::OldestFirstRecord
#else
  :: atomic { !refused && computing == 1 -> computing = 2; floor = tail }  // code: tc/txn/active_transactions.cc ActiveTransactions::OldestFirstRecord
#endif
  :: atomic { !refused && computing == 2 ->  // code: tc/txn/active_transactions.cc ActiveTransactions::OldestFirstRecord
       computing = 3;
       for (i : 0 .. TRANSACTIONS - 1) {
         // A bound that was only loaded is not published yet.
         if
         :: step[i] >= 2 && bound[i] < floor -> floor = bound[i]
         :: else
         fi
       }
       i = 0
     }
  // code: tc/dc_link/shipper.cc Shipper::MoveRedoStart; tc/dc_link/redo_start_tracker.cc RedoStartTracker::Begin; tc/dc_link/redo_start_mover.cc RedoStartMover::Begin
  :: atomic { !refused && computing == 3 ->
       computing = 4;
#if defined(OMIT_S2_tail_first)
       floor = (tail < floor -> tail : floor);
#endif
#if !defined(OMIT_S2_tail_afterwards)
       tail_afterwards = tail;
#endif
#if defined(OMIT_S2_active_floor)
       floor = tail_afterwards
#endif
     }
  // Finishes and logs.
#if defined(OMIT_S2_read_to_tail)
  :: atomic { !refused && computing == 4 ->  // code: tc/dc_link/redo_start_tracker.cc RedoStartTracker::Finish; tc/dc_link/redo_start_mover.cc RedoStartMover::Finish
#else
  :: atomic { !refused && computing == 4 && read_to >= tail_afterwards ->  // code: tc/dc_link/redo_start_tracker.cc RedoStartTracker::Finish; tc/dc_link/redo_start_mover.cc RedoStartMover::Finish
#endif
       for (i : 0 .. TRANSACTIONS - 1) {
         if
         :: noted[i] && commit[i] >= STABLE ->
            note(i);
            floor = (noted_first < floor -> noted_first : floor)
         :: else
         fi
       }
       i = 0; noted_first = 0;
#if !defined(OMIT_S2_reports_from)
       if
       :: STABLE < reports_from -> floor = 0
       :: else
       fi;
#endif
       if
       :: floor > redo_start && floor <= durable ->  // code: tc/redo_log/log_retention.cc LogRetention::AppendRedoStart
          appended = floor;
          appended_stable = STABLE;
          appended_at = tail;
          appending = 1;
          computing = 5
       :: else -> computing = 0
       fi;
       floor = 0; tail_afterwards = 0
     }
  // It is durable: only then is anything let go.
#if defined(OMIT_S2_log_before_trim)
  :: atomic { !refused && computing == 5 && redo_start < appended ->  // code: tc/redo_log/redo_log.cc RedoLog::AdvanceRedoStart
       redo_start = appended;
       redo_start_stable = appended_stable;
#else
  // code: tc/redo_log/redo_log.cc RedoLog::AdvanceRedoStart; tc/redo_log/log_retention.cc LogRetention::NoteDurable; tc/redo_log/segment_set.cc SegmentSet::TrimTo, SegmentSet::TrimOne
  :: atomic { !refused && computing == 5 && !appending ->
       redo_start = logged;
       redo_start_stable = logged_stable;
#endif
       trimmed = redo_start;
       computing = 0
     }
  // The new life of a DC says Hello to the thread that waits for a redo start, too: afterwards.
#if DC_CRASHES
  :: atomic { !refused && computing != 5 && restarted ->  // code: tc/dc_link/link_thread.cc LinkThread::SayHello
       check_peer();
       if
       :: !refused -> start_stream()  // code: tc/dc_link/commit_feed.cc CommitFeed::Restart; tc/dc_link/shipper.cc Shipper::Begin; tc/dc_link/outgoing_batch.cc OutgoingBatch::Restart
       :: else
       fi
     }
#endif
  // The TC crashes: what was not durable is gone, and so are its transactions. A record that waits to become durable was, or was not.
#if TC_CRASHES
  :: atomic { !refused && tc_crashes < TC_CRASHES && tail != 0 ->  // model: the crash
       tc_crashes++;
       for (i : 0 .. TRANSACTIONS - 1) {
         if
         :: commit[i] >= durable && step[i] != 0 ->
            step[i] = 5; commit[i] = NEVER; first[i] = NEVER
         :: else -> step[i] = (step[i] == 0 -> 0 : 5)
         fi;
         bound[i] = NEVER;
         noted[i] = 0
       }
       tail = durable;
       appending = 0; appended = 0; appended_stable = 0; appended_at = 0;
       computing = 0; floor = 0; tail_afterwards = 0;
       redo_start = logged;
       redo_start_stable = logged_stable;
       assert(redo_start >= trimmed);
       check_peer();
       reports_from = applied;
       if
       :: !refused -> start_stream()  // code: tc/dc_link/redo_start_tracker.cc RedoStartTracker::ReportsFrom
       :: else
       fi
     }
#endif
  od
}  // unreached: it never ends

proctype Dc() {
end:
  do
#if DC_CRASHES
  // Crashes, and comes back with the older generation if the newer one does not verify.
  :: atomic { !refused && dc_crashes < DC_CRASHES && applied != 0 ->  // model: the crash; X6
       dc_crashes++;
       restarted = 1;
       if
       :: applied = newer
       :: applied = older; newer = older
#if LOST
       :: lost < LOST -> lost++; applied = 0; newer = 0; older = 0
#endif
       fi;
       checkpointing = 0; candidate = 0
     }
#endif
  :: atomic { !refused && !checkpointing && applied > newer -> checkpointing = 1; candidate = applied }  // model: X6
  :: atomic { !refused && checkpointing ->  // model: X6; the older generation goes when the newer one was verified
       older = newer;
       newer = candidate;
       checkpointing = 0;
       candidate = 0
     }
  od
}  // unreached: it never ends

init {
  byte p;
  atomic {  // model: everybody starts
    for (p : 0 .. TRANSACTIONS - 1) {
      bound[p] = NEVER;
      first[p] = NEVER;
      commit[p] = NEVER;
      run Transaction(p)
    }
    run LogThread();
    run Shipper();
    run Dc()
  }
}
