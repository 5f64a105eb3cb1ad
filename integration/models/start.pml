// The start of a TC, and of a DC under it: when the gate opens for the first time, and which DCs are refused (X4).
//
// A TC recovers its log, says Hello, looks at who answers, takes him down in the log, and ships what he has not applied; commits join the log once
// the gate has been open. Both daemons crash at any step: the TC loses all but its log, the DC comes back with what is stable and any part of
// the rest. The DC may checkpoint, after which the log is trimmed. With SWAPS another DC stands there, empty or with data of another log; with LOSES
// the TC's crash takes a durable record away (a log restored from a copy). The connection breaks, up to BREAKS times.
// Left out: the inquiry before each Hello (lost_end.pml, fork.pml), what is held back by low-water, timestamps, how the redo start is found (redo_start.pml), late acknowledgements (incarnation.pml),
// fences but for the drain (fencing.pml), a DC's own refusal of another TC. Gate and memory as in incarnation.pml; the TC has dropped from its
// memory what it was ever told is applied. A position is one update; its value is the life of the TC that wrote it.
// Properties: an answer that counts has everything that the TC does not have, and nothing that its log did not say; a DC that is neither another
// one nor ahead of a log that has lost its end is not refused; every reader gets its answer if none is refused.
// Bounds: UPDATES, TC_CRASHES, DC_CRASHES, BREAKS, SWAPS, LOSES.
#ifndef UPDATES
#define UPDATES 2
#endif
#ifndef TC_CRASHES
#define TC_CRASHES 1
#endif
#ifndef DC_CRASHES
#define DC_CRASHES 1
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef SWAPS
#define SWAPS 0
#endif
#ifndef LOSES
#define LOSES 0
#endif
#define FOREIGN 9
#define MAX(a, b) ((a) > (b) -> (a) : (b))

// The log on disk: records first to end.
byte log[UPDATES];
byte first;
byte end_of_log;
byte known_dc;

// The TC's life and its gate.
byte tc_life = 1;
bit refused;
byte recovered;
byte applied;
byte told;  // the highest that `applied` ever was in this life
byte ever_sent;
byte required;
byte incarnation;
bit live;
bit target_known;
bit caught_up;
byte pass;
byte in_air;  // an acknowledgement

// The DC: data[i] is what it holds of position i.
byte dc = 1;
byte dc_life = 1;
byte dc_applied;
byte dc_stable;
byte data[UPDATES];
byte stream_of;  // the TC's life
byte in_stream;  // where the batches in it end
byte from_log;   // where its first one begins to have records

byte tc_crashes, dc_crashes, breaks, swaps, loses;

#if defined(OMIT_X4_wait_applied)
#define TARGET_KNOWN true
#else
#define TARGET_KNOWN target_known
#endif

// At the end of each critical section of the gate.
inline publish() {
  told = MAX(told, applied);
  pass = (live && TARGET_KNOWN && applied >= required -> incarnation : 0);
  caught_up = (pass -> 1 : caught_up)
}

inline lost(number) {
  atomic {  // code: tc/dc_link/dc_gate.cc DcGate::ReportIfLost, DcGate::Lost, DcGate::LostLocked, DcGate::PublishLocked
    if
    :: incarnation == number -> live = 0; publish()
    :: else
    fi
  }
}

inline lose_down_to(position) {
  do
  :: dc_applied > position -> dc_applied--; data[dc_applied] = 0
  :: break
  od
}

active proctype Dc() {
end:
  do
  :: atomic {  // code: dc/server/apply_stream.cc ApplyStream::Apply
       in_stream > dc_applied ->
       data[dc_applied] = (dc_applied >= from_log -> log[dc_applied] : 0);
       dc_applied++;
       in_air = (stream_of == tc_life -> dc_applied : in_air)
     }
  :: atomic { dc_stable < dc_applied && dc == 1 -> dc_stable = dc_applied }  // model: a checkpoint, none today
#if DC_CRASHES > 0
  :: atomic {  // code: dc/server/data_component_server.cc DataComponentServer::Claim
       dc_crashes < DC_CRASHES ->
       dc_crashes++;
       dc_life++;
       in_stream = 0;
       in_air = 0;
       lose_down_to(dc_stable)
     }
#endif
#if SWAPS > 0
  :: atomic {  // model: somebody starts another DC
       swaps < SWAPS ->
       swaps++;
       dc = 2;
       dc_life++;
       in_stream = 0;
       in_air = 0;
       dc_stable = 0;
       do
       :: dc_applied > 0 -> dc_applied--; data[dc_applied] = 0
       :: else -> break
       od;
       if
       :: data[0] = FOREIGN; dc_applied = 1
       :: skip
       fi
     }
#endif
  od
}  // unreached: it serves for ever

active proctype Acknowledgements() {
end:
  do
  :: atomic {  // code: tc/dc_link/dc_gate.cc DcGate::OnAck, DcGate::PublishLocked, DcGate::OpenableLocked; tc/dc_link/read_target.cc ReadTarget::ReachedBy; tc/dc_link/acknowledged_positions.cc AcknowledgedPositions::Raise
       in_air && incarnation == dc_life && !refused ->
       assert(in_air <= ever_sent);
       applied = MAX(applied, in_air);
       in_air = 0;
       publish()
     }
  :: atomic {  // code: tc/dc_link/shipper.cc Shipper::MoveRedoStart; tc/dc_link/redo_start_mover.cc RedoStartMover::Finish
       first < dc_stable && dc_stable <= applied && incarnation == dc_life && live -> first = dc_stable
     }
  od
}  // unreached: it hears for ever

// The TC dies; the processes of its life notice. What it has sent is still on the way.
active proctype TcCrash() {
  do
  :: atomic {  // model: it dies
       tc_crashes < TC_CRASHES && !refused ->
       tc_crashes++;
       tc_life++;
       incarnation = 0;
       live = 0;
       pass = 0;
       caught_up = 0;
       target_known = 0;
       applied = 0;
       told = 0;
       ever_sent = 0;
       required = 0;
       in_air = 0;
       do
#if LOSES > 0
       :: loses < LOSES && end_of_log > first -> loses++; end_of_log--
#endif
       :: break
       od;
       recovered = end_of_log
     }
  :: break
  od
}

active proctype Commits() {
end:
  do
  :: atomic {  // code: tc/dc_link/dc_gate.cc DcGate::WaitCaughtUp; tc/record_manager/commit_path.cc CommitPath::Append
       caught_up && end_of_log < UPDATES && !refused ->
       log[end_of_log] = tc_life;
       end_of_log++
     }
  od
}  // unreached: clients go on

#define SOUND (swaps == 0 && loses == 0)
#if defined(OMIT_limit_moves)
#define LIMIT (recovered)
#else
#define LIMIT (met -> ever_sent : recovered)
#endif

inline refuse() {
  assert(!SOUND); refused = 1; live = 0; pass = 0; goto done  // unreached: without another DC or a log that lost its end
}

active proctype Link() {
  byte mine, who, hello_life, hello_applied, fed, sent;
  bit met, target_set;
start:
  // code: tc/redo_log/redo_log.cc RedoLog::Open
  atomic { mine = tc_life; met = 0; target_set = 0 };
  {
    do
    ::
       // The fence drains what an earlier life of the TC has sent.
       atomic {  // code: dc/server/data_component_server.cc DataComponentServer::Hello, DataComponentServer::AcceptTc
         in_stream = (stream_of == mine -> in_stream : 0);
         who = dc;
         hello_life = dc_life;
         hello_applied = dc_applied
       };
       atomic {  // code: tc/dc_link/peer_check.cc CheckPeer; tc/dc_link/link_thread.cc LinkThread::SayHello
         if
#if !defined(OMIT_X4_refuse_unknown)
         :: who != known_dc && (known_dc != 0 || hello_applied != 0) ->
            refuse()
#endif
#if !defined(OMIT_X4_refuse_ahead)
         :: hello_applied > LIMIT ->
            refuse()
#endif
         :: else
         fi
       };
#if !defined(OMIT_known_first)
       atomic { known_dc = who; met = 1 };  // code: tc/dc_link/link_thread.cc LinkThread::RecordKnown, LinkThread::Session
#endif
       atomic {  // code: tc/dc_link/dc_gate.cc DcGate::StartSession, DcGate::PublishLocked, DcGate::OpenableLocked; tc/dc_link/met_incarnations.cc MetIncarnations::Meet; tc/dc_link/read_target.cc ReadTarget::RequireAllSent, ReadTarget::ReachedBy; tc/dc_link/acknowledged_positions.cc AcknowledgedPositions::Replace, AcknowledgedPositions::Raise
         if
         :: hello_life != incarnation -> required = ever_sent; incarnation = hello_life; applied = hello_applied
         :: else -> applied = MAX(applied, hello_applied)  // unreached: without breaks
         fi;
         ever_sent = MAX(ever_sent, hello_applied);
         live = 1;
         publish()
       };
       // The batches say that they begin at what is applied; there are records from the log's first one on.
       // code: dc/server/data_component_server.cc DataComponentServer::OpenApplyLog; tc/dc_link/shipper.cc Shipper::Begin; tc/dc_link/commit_feed.cc CommitFeed::Restart; tc/dc_link/outgoing_batch.cc OutgoingBatch::Restart
       atomic {
         if
         :: dc_life == hello_life -> stream_of = mine; in_stream = 0; from_log = first
         :: else -> live = 0
         fi;
         sent = hello_applied;
         fed = MAX(hello_applied, first);
         hello_applied = 0;
         who = 0
       };
end_idle:
       do
       :: live && fed < end_of_log -> atomic { fed++ }  // code: tc/dc_link/commit_feed.cc CommitFeed::Fill
#if defined(OMIT_target_when_passed)
       :: live && !target_set ->
#else
       :: live && !target_set && fed >= recovered ->
#endif
          // code: tc/dc_link/shipper.cc Shipper::Round; tc/dc_link/commit_feed.cc CommitFeed::Passed; tc/dc_link/dc_gate.cc DcGate::SetStartTarget; tc/dc_link/read_target.cc ReadTarget::SetStartTarget
          atomic {
            target_set = 1;
            target_known = 1;
#if !defined(OMIT_X4_wait_applied)
            required = MAX(required, fed);
#endif
#if !defined(OMIT_target_counts_as_sent)
            ever_sent = MAX(ever_sent, fed);
#endif
            publish()
          }
       :: live && sent < fed ->
          atomic { ever_sent = MAX(ever_sent, fed) };  // code: tc/dc_link/shipper.cc Shipper::Send; tc/dc_link/dc_gate.cc DcGate::RaiseEverSent; tc/dc_link/read_target.cc ReadTarget::RaiseEverSent
          atomic {  // code: tc/dc_link/shipper.cc Shipper::Send; tc/dc_link/outgoing_batch.cc OutgoingBatch::Sent
            in_stream = (dc_life == hello_life -> fed : in_stream);
            sent = fed
          };
#if defined(OMIT_known_first)
          atomic { known_dc = dc; met = 1 }  // code: tc/dc_link/link_thread.cc LinkThread::RecordKnown
#endif
#if BREAKS > 0
       :: atomic { breaks < BREAKS && live -> breaks++; live = 0 }  // model: the connection
#endif
       :: dc_life != hello_life || !live -> break
       od;
       lost(hello_life);
       atomic { fed = 0; sent = 0 }  // model: and again
    od
  } unless { atomic { tc_life != mine -> goto start } };  // model: it died
done:
  skip
}  // unreached: as above

active proctype Reader() {
  byte mine, need, asked, i;
start:
  atomic { mine = tc_life };  // model: a client
  {
    // What the TC has in memory comes from this life, and is not yet dropped.
    // code: tc/record_manager/read_path.cc ReadPath::Look; tc/record_manager/scan_gather.cc ScanGather::GatherFrom
    atomic { need = MAX(recovered, told) };
    do
    ::
       if
       :: atomic { pass != 0 -> asked = pass }  // code: tc/dc_link/dc_gate.cc DcGate::WaitOpen
       :: refused -> goto done
       fi;
       atomic {  // code: dc/server/fencing.cc Fencing::Admission::Admission; dc/server/data_component_server.cc DataComponentServer::Submit
         if
         :: asked == dc_life ->
            assert(dc_applied >= need);
            do
            :: i < dc_applied -> assert(data[i] == log[i]); i++
            :: else -> break
            od;
            goto done
         :: else
         fi
       };
       lost(asked)
    od
  } unless { atomic { tc_life != mine -> goto start } };  // model: it died
done:
  skip
}
