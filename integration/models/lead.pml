// Who writes the log: the log thread, or a committer that leads while it sleeps; and how each waiter comes to be told (D2).
//
// COMMITTERS append a record each, try to write it themselves, and otherwise register and wait. LAZY others append, register in no hurry, and wait.
// The log thread takes what is complete when somebody is in a hurry for it or its time is up, has it under way, makes it durable, answers,
// and sleeps: until any append (idle), until it is asked or its time is up (lingering; then a committer may lead), or with a write under way (in reap).
// With LAZY = 0 its time is never up, so nobody in a hurry is saved by it.
// Left out: order and incomplete records (a block takes all that is there), segments, the ring, failures. A record is a bit; memory is
// sequentially consistent, as the code's is.
// Properties: one thread at a time forms blocks; nobody waits for ever; nobody is told of what is not durable.
// Bounds: COMMITTERS, LAZY.
#ifndef COMMITTERS
#define COMMITTERS 2
#endif
#ifndef LAZY
#define LAZY 0
#endif
#define AWAKE 0
#define IDLE 1
#define LINGERING 2
#define IN_REAP 3
#define LED 4
#define WANTED 5

byte state;
byte published, hurried, consumed, flying, durable, stack, told;
byte inside, ended;

#define HURRIED (hurried & ~consumed)
#define MINE (1 << me)

inline enter() { atomic { inside++; assert(inside == 1) } }  // model: begins to work on what is the role's
inline leave() { atomic { inside-- } }  // model: ends that

inline wake_up() {
  do
  :: atomic { state == AWAKE || state == WANTED -> break }  // code: tc/redo_log/writer_role.h WriterRole::WakeUp
  :: atomic { state == LED -> state = WANTED; break }  // code: tc/redo_log/writer_role.h WriterRole::WakeUp
  :: atomic { state == IDLE || state == LINGERING || state == IN_REAP -> state = AWAKE; break }  // code: tc/redo_log/writer_role.h WriterRole::WakeUp
  od
}

inline answer() {
  atomic { taken = stack; stack = 0 };  // code: tc/redo_log/durability_queue.cc DurabilityQueue::CollectAndAnswer
  // The heap goes with the role.
  atomic { heap = heap | taken; told = told | (heap & durable); heap = heap & ~durable; taken = 0 }  // code: tc/redo_log/durability_queue.cc DurabilityQueue::CollectAndAnswer
}
byte heap;

inline append() {
  atomic { published = published | MINE };  // code: tc/redo_log/log_ring.h LogRing::Append
  atomic { seen = state };  // code: tc/redo_log/writer_role.h WriterRole::NotifyAppended
  if
  :: seen == IDLE -> wake_up()
  :: else
  fi;
  seen = 0
}

inline lead() {
  enter();
  atomic { mine = published & ~consumed; consumed = consumed | mine };  // code: tc/redo_log/log_writer.cc LogWriter::LeadOneBlock
  atomic { durable = durable | mine; mine = 0 };  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
#if !defined(OMIT_leader_answers)
  answer();
#endif
  leave();
  if
  :: atomic { state == LED -> state = LINGERING }  // code: tc/redo_log/writer_role.h WriterRole::EndLead
#if defined(OMIT_hand_over)
  :: atomic { state == WANTED -> state = LINGERING }  // code: tc/redo_log/writer_role.h WriterRole::EndLead
#else
  :: atomic { state == WANTED -> state = AWAKE }  // code: tc/redo_log/writer_role.h WriterRole::EndLead
#endif
  fi
}

inline await() {
  atomic { told & MINE };  // code: tc/redo_log/blocking_durability_wait.h BlockingDurabilityWait::Wait
  assert(durable & MINE)
}

proctype Committer(byte me) {
  byte seen, mine, taken;
  append();
  if
  :: atomic { state == LINGERING -> state = LED };  // code: tc/redo_log/writer_role.h WriterRole::TryLead
     lead()
  :: atomic { state != LINGERING }  // code: tc/redo_log/writer_role.h WriterRole::TryLead
  fi;
  if
  :: atomic { durable & MINE }  // code: tc/redo_log/log_writer.cc LogWriter::Lead
  :: atomic { !(durable & MINE) };  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
     atomic { stack = stack | MINE };  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
     if
     :: atomic { !(consumed & MINE) };  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
#if !defined(OMIT_hurry)
        atomic { hurried = hurried | MINE };  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
#endif
        wake_up()
     :: atomic { consumed & MINE };  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
#if !defined(OMIT_look_after_register)
        if
        :: atomic { durable & MINE }; wake_up()  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
        :: atomic { !(durable & MINE) }  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
        fi
#endif
     fi;
     await()
  fi;
  atomic { ended++ }  // model: done
}

#if LAZY > 0
proctype Lazy(byte me) {
  byte seen;
  append();
  if
  :: atomic { durable & MINE }  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
  :: atomic { !(durable & MINE) };  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
     atomic { stack = stack | MINE };  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
     if
     :: atomic { durable & MINE }; wake_up()  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
     :: atomic { !(durable & MINE) }  // code: tc/redo_log/log_writer.cc LogWriter::NotifyWhenDurable
     fi;
     await()
  fi;
  atomic { ended++ }  // model: done
}

#endif

// Comes back with the role.
inline return_awake() {
  do
  :: atomic { state == AWAKE -> break }  // code: tc/redo_log/writer_role.h WriterRole::Return
  :: atomic { found && (state == IDLE || state == LINGERING) -> state = AWAKE; break }  // code: tc/redo_log/writer_role.h WriterRole::Return
#if LAZY > 0
  :: atomic { state == LINGERING -> state = AWAKE; time_up = 1; break }  // code: tc/redo_log/writer_role.h WriterRole::Return
#endif
#if defined(OMIT_D2_one_writer)
  :: atomic { state == WANTED -> break }  // code: tc/redo_log/writer_role.h WriterRole::Return
#endif
  od;
  found = 0
}

active proctype LogThread() {
  byte taken, mine;
  bit found, time_up, asked;
end:
  do
  :: atomic { ended == COMMITTERS + LAZY -> break }  // model: enough
  :: enter();
     // A write that is under way may have ended.
     if
     :: atomic { flying != 0 -> durable = durable | flying; flying = 0 }  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
     :: skip
     fi;
     answer();
     atomic { mine = published & ~consumed };  // code: tc/redo_log/log_writer.cc LogWriter::SubmitBlocks
     if
     :: atomic { mine != 0 && flying == 0 && (HURRIED || time_up) -> consumed = consumed | mine; flying = mine }  // code: tc/redo_log/log_writer.cc LogWriter::Due, LogWriter::FormRecords
     :: else ->
        if
        :: flying != 0 ->
           atomic { state = IN_REAP };  // code: tc/redo_log/writer_role.h WriterRole::SleepInReap
           atomic { flying != 0 -> durable = durable | flying; flying = 0 };  // model: a write ends, at the latest now
           atomic { state = AWAKE };  // code: tc/redo_log/writer_role.h WriterRole::SleepInReap
           leave()
        :: flying == 0 ->
           // `mine` is what was scanned: what the look before an idle sleep finds lies behind it.
           leave();
           atomic { asked = (HURRIED != 0) };  // code: tc/redo_log/log_writer.cc LogWriter::SleepWithNothingInFlight
           if
           :: mine != 0 && asked -> goto again
           :: else
           fi;
#if defined(OMIT_look_once)
           atomic { asked = asked || (HURRIED != 0) };  // code: tc/redo_log/log_writer.cc LogWriter::SleepWithNothingInFlight
#endif
           if
           :: asked || mine == 0 ->
              atomic { state = IDLE };  // code: tc/redo_log/log_writer.cc LogWriter::SleepWithNothingInFlight
#if !defined(OMIT_look_before_sleep)
              atomic { found = (stack != 0 || (published & ~consumed & ~mine) != 0) };  // code: tc/redo_log/log_writer.cc LogWriter::SleepWithNothingInFlight
#endif
              mine = 0;
endidle:
              return_awake()
           :: !asked ->
              atomic { state = LINGERING };  // code: tc/redo_log/log_writer.cc LogWriter::SleepWithNothingInFlight
              mine = 0;
#if !defined(OMIT_look_before_linger)
              atomic { found = (stack != 0 || HURRIED != 0) };  // code: tc/redo_log/log_writer.cc LogWriter::SleepWithNothingInFlight
#endif
endlinger:
              return_awake()
           fi
        fi;
        goto again
     fi;
     leave();
again:
     atomic {  // model: its time begins anew
       mine = 0; asked = 0;
       if
       :: (published & ~consumed) == 0 -> time_up = 0
       :: else
       fi
     }
  od
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < COMMITTERS -> run Committer(p); p++
#if LAZY > 0
    :: p >= COMMITTERS && p < COMMITTERS + LAZY -> run Lazy(p); p++
#endif
    :: p == COMMITTERS + LAZY -> break
    od
  }
}
