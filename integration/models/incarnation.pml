// Lives of the DC: which of its answers and acknowledgements count, and when readers may turn to a new life (X3).
//
// A log of UPDATES durable positions is shipped, one a batch. The DC crashes up to CRASHES times, at any step, and comes back as a new life with
// any part of what it held (a checkpoint; none today). The connection breaks up to BREAKS times: a batch was handed over or not, the sender is told
// that it failed; or the stream alone ends, and reads go on. Acknowledgements are on the way for any time, also of dead lives; one that a later one of its life overtakes is not
// looked at. The collector drops from the TC what the gate says is applied; a reader gathers what the TC still has, then asks the DC, by a read
// (its answer names its life) or by batches of a scan (they name none: the stream is opened with one life).
// With COPIES, somebody copies the DC's folder and later puts the copy back: the DC that starts from it counts its starts as another one did.
// An incarnation is named by a number drawn at random at its start; messages carry that name.
// Left out: keys, idempotence (X1), the TC's restart (start.pml), who is fenced (fencing.pml), copies that another TC has gone on with (fork.pml). What the gate does under its mutex is one step:
// without it the collector looks at `applied` alone, readers at the pass alone. Memory is sequentially consistent.
// Properties: an answer that counts, together with what was gathered, lacks nothing; it comes from a life that holds all that was ever handed over
// to earlier ones; a sound DC is never taken for a corrupt one; every reader gets its answers.
// Either check of the life of a read, the DC's or the TC's, suffices without scans (NO_SCANS).
// Bounds: UPDATES, CRASHES, BREAKS, COPIES put back, PARTS answers for the reader.
#ifndef UPDATES
#define UPDATES 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef BREAKS
#define BREAKS 1
#endif
#ifndef PARTS
#define PARTS 1
#endif
#ifndef COPIES
#define COPIES 0
#endif
#define LIVES (CRASHES + COPIES + 1)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

// The DC, and the stream of batches to one of its lives: the batches in it end at in_stream.
byte life = 1;
byte named[LIVES + 1];  // what a life is called in messages
byte dc_applied;
#if COPIES > 0
byte number = 1;  // of starts, in its folder
byte copies, copy_number, copy_applied;  // number 0: no copy was taken
#endif
byte stream_of;
byte in_stream;
byte crashes, breaks;
byte in_air[LIVES + 1];  // the acknowledgement of a life that is on the way
// What was handed over to streams of this life and of earlier ones.
byte handed_over;
byte handed_over_before;

// The gate.
byte applied;
byte ever_sent;
byte required;
byte incarnation;
byte session;
bit live;
byte pass, pass_session;

byte collected;

#define OPENABLE (live && applied >= required)

// Publishes whether the gate is open, at the end of each critical section.
inline publish() {
  pass = (OPENABLE -> incarnation : 0);
  pass_session = session
}

inline lost(number) {
  atomic {  // code: tc/dc_link/dc_gate.cc DcGate::ReportIfLost, DcGate::Lost, DcGate::LostLocked, DcGate::PublishLocked
    if
    :: live && session == number -> live = 0; publish()
    :: else
    fi
  }
}

inline name_life() {
  // Drawn, so unlike all others; or the number of starts.
#if defined(OMIT_X3_draw_incarnation)
  named[life] = number
#else
  named[life] = life
#endif
}

active proctype Dc() {
  named[1] = 1;
end:
  do
  :: atomic {  // code: dc/server/apply_stream.cc ApplyStream::Apply
       in_stream > dc_applied && stream_of == life ->
       dc_applied++;
       in_air[life] = dc_applied
     }
  :: atomic {  // code: dc/server/data_component_server.cc DataComponentServer::Claim
       crashes < CRASHES ->
       crashes++;
       life++;
#if COPIES > 0
       number++;
#endif
       name_life();
       handed_over_before = MAX(handed_over_before, handed_over);
       handed_over = 0;
       in_stream = 0;
       do
       :: dc_applied > 0 -> dc_applied--
       :: break
       od
     }
#if COPIES > 0
  :: atomic { copy_number == 0 -> copy_number = number; copy_applied = dc_applied }  // model: somebody copies its folder
  :: atomic {  // model: the DC is killed, the copy put in place of its folder, and started
       copies < COPIES && copy_number != 0 ->
       copies++;
       life++;
       number = copy_number + 1;
       name_life();
       handed_over_before = MAX(handed_over_before, handed_over);
       handed_over = 0;
       in_stream = 0;
       dc_applied = copy_applied
     }
#endif
  od
}  // unreached: it serves for ever

// code: tc/dc_link/dc_gate.cc DcGate::OnAck, DcGate::PublishLocked, DcGate::OpenableLocked; tc/dc_link/read_target.cc ReadTarget::ReachedBy; tc/dc_link/acknowledged_positions.cc AcknowledgedPositions::Raise
#define ACKNOWLEDGE(l) atomic { in_air[l] -> \
    if \
    :: COUNTS(l) -> \
       assert(in_air[l] <= ever_sent); \
       applied = MAX(applied, in_air[l]); \
       publish() \
    :: else \
    fi; \
    in_air[l] = 0 }
#if defined(OMIT_X3_ack_of_current_life)
#define COUNTS(l) true
#else
#define COUNTS(l) (named[l] == incarnation)
#endif

active proctype Acknowledgements() {
end:
  do
  :: ACKNOWLEDGE(1)
#if LIVES > 1
  :: ACKNOWLEDGE(2)
#endif
#if LIVES > 2
  :: ACKNOWLEDGE(3)
#endif
#if LIVES > 3
  :: ACKNOWLEDGE(4)
#endif
  od
}  // unreached: as long as there is a DC

inline raise_ever_sent() {
  atomic { ever_sent = MAX(ever_sent, to) }  // code: tc/dc_link/dc_gate.cc DcGate::RaiseEverSent; tc/dc_link/read_target.cc ReadTarget::RaiseEverSent
}

#if COPIES > 0
#define COPIED (copies == COPIES)
#else
#define COPIED true
#endif

active proctype Link() {
  byte hello_life, hello_applied, to;
  bit broken, alone;
  do
  ::
     atomic {  // code: dc/server/data_component_server.cc DataComponentServer::Hello
       hello_life = named[life];
       hello_applied = dc_applied
     };
     // The answer is looked at, then it begins a session.
     atomic { assert(hello_applied <= ever_sent) };  // code: tc/dc_link/link_thread.cc LinkThread::SayHello; tc/dc_link/peer_check.cc CheckPeer
     atomic {  // code: tc/dc_link/dc_gate.cc DcGate::StartSession, DcGate::PublishLocked, DcGate::OpenableLocked; tc/dc_link/met_incarnations.cc MetIncarnations::Meet; tc/dc_link/read_target.cc ReadTarget::RequireAllSent, ReadTarget::ReachedBy; tc/dc_link/acknowledged_positions.cc AcknowledgedPositions::Replace, AcknowledgedPositions::Raise
       if
       :: hello_life != incarnation ->
#if defined(OMIT_X3_gate_on_sent)
          required = applied;
#else
          required = ever_sent;
#endif
#if defined(OMIT_ever_sent_of_all_lives)
          ever_sent = 0;
#endif
          incarnation = hello_life;
#if defined(OMIT_applied_of_new_life)
          applied = MAX(applied, hello_applied)
#else
          applied = hello_applied
#endif
       :: else -> applied = MAX(applied, hello_applied)
       fi;
       ever_sent = MAX(ever_sent, hello_applied);
       session++;
       live = 1;
       publish();
       to = hello_applied;
       hello_applied = 0
     };
     // A new stream: what was in the old one is not applied any more.
     atomic {  // code: dc/server/data_component_server.cc DataComponentServer::OpenApplyLog; tc/dc_link/link_thread.cc LinkThread::Session
       if
       :: named[life] == hello_life -> stream_of = life; in_stream = 0
       :: else -> broken = 1
       fi;
       hello_life = 0
     };
     do
     :: !broken && live && to < UPDATES ->
        to++;
#if !defined(OMIT_X3_raise_before_send)
        raise_ever_sent();  // as Shipper::Send does, before
#endif
        atomic {  // code: tc/dc_link/shipper.cc Shipper::Send
          // Into the stream; or it is known to have ended; or there is an error, and nobody knows.
          if
          :: life == stream_of -> in_stream = to; handed_over = MAX(handed_over, to)
          :: life != stream_of -> handed_over_before = MAX(handed_over_before, to)
          :: life != stream_of -> broken = 1
          :: breaks < BREAKS -> breaks++; broken = 1
          :: breaks < BREAKS && life == stream_of -> breaks++; in_stream = to; handed_over = MAX(handed_over, to); broken = 1
          fi
        };
        if
        :: !broken -> raise_ever_sent()
        :: else
        fi
     :: atomic { life != stream_of -> broken = 1 }  // model: the connection ends
     :: atomic { breaks < BREAKS && live && !broken -> breaks++; alone = 1 }; break  // the DC ends the stream, and says so
     :: broken || !live -> break
     :: to == UPDATES && dc_applied == UPDATES && live && !broken && life == stream_of && crashes == CRASHES && COPIED && !in_air[life] -> goto quiet
     od;
     if
     :: !alone -> lost(session)
     :: else  // code: tc/dc_link/dc_gate.cc DcGate::StreamEnded; tc/dc_link/link_thread.cc EndStream
     fi;
     atomic { broken = 0; alone = 0; to = 0 }  // model: and again
  od;
quiet:
  skip
}

active proctype Collector() {
  byte seen;
end:
  do
  :: atomic { collected < applied -> seen = applied };  // code: tc/mvcc/unlinker.cc Unlinker::Collect
     atomic { collected = seen; seen = 0 }  // code: tc/mvcc/unlinker.cc Unlinker::CollectItems
  od
}  // unreached: as long as there is a TC

inline check_answer() {
  assert(dc_applied >= gathered_from);
  assert(dc_applied >= handed_over_before)
}

inline gather() {
  // code: tc/record_manager/scan_gather.cc ScanGather::GatherFrom; tc/record_manager/read_path.cc ReadPath::Look
  atomic { gathered_from = collected }
}

inline wait_open() {
  atomic { pass != 0 -> asked = pass; asked_session = pass_session }  // code: tc/dc_link/dc_gate.cc DcGate::WaitOpen
}

// The life that takes a request meant for the life `asked`, or 0.
#if defined(OMIT_X3_check_incarnation)
#define TAKEN_BY (life)
#else
#define TAKEN_BY (named[life] == asked -> life : 0)
#endif

proctype Reader() {
  byte parts, gathered_from, asked, asked_session, answerer;
  do
  :: parts < PARTS ->
     gather();
     do
     ::
        wait_open();
        atomic {  // code: tc/dc_link/dc_link.cc DcLink::Impl::Submit, DcLink::Impl::Answered; dc/server/fencing.cc Fencing::Admission::Admission
          answerer = TAKEN_BY;
          if
#if defined(OMIT_X3_check_answer_incarnation)
          :: answerer != 0 -> check_answer(); break
#else
          :: answerer != 0 && named[answerer] == asked -> check_answer(); break
#endif
          :: else -> answerer = 0
          fi
        };
        lost(asked_session)
     od;
     atomic { gathered_from = 0; answerer = 0; asked = 0; asked_session = 0; parts++ }  // model: the next
  :: else -> break
  od
}

#if !defined(NO_SCANS)
proctype Scan() {
  byte parts, gathered_from, asked, asked_session, opened_at;
  do
  :: parts < PARTS ->
     gather();
     do
     ::
        if
        :: opened_at == 0 ->
           wait_open();
           atomic { opened_at = TAKEN_BY }  // code: tc/dc_link/bulk_scan.cc BulkScan::Open; dc/server/fencing.cc Fencing::Admission::Admission
        :: else
        fi;
        atomic {  // code: tc/dc_link/bulk_scan.cc BulkScan::Next; dc/server/bulk_scan.cc BulkScan::Next
          if
          :: opened_at == life -> check_answer(); break
          :: opened_at = 0  // the stream is cut off, alone or with its life
          fi
        };
        // Opened again first: it may have been cut off alone.
        if
        :: asked != named[life] -> lost(asked_session)
        :: atomic { skip }  // code: tc/dc_link/bulk_scan.cc BulkScan::Interrupted
        fi
     od;
     atomic { gathered_from = 0; parts++ }  // model: the next
  :: else -> break
  od
}
#endif

init {
  atomic {  // model: one of them
    if
    :: run Reader()
#if !defined(NO_SCANS)
    :: run Scan()
#endif
    fi
  }
}
