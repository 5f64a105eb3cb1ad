// The collector's sleep: finished transactions and tasks arrive while it falls asleep, and at its end.
//
// FINISHERS hand over a transaction each and look whether the collector sleeps deeply; ASKERS bring a task each, wake it, and wait until the task has
// been run (after the end they run it themselves). The collector takes what is there, may have more to look at soon (then it sleeps lightly, with a
// time limit) or not (then deeply). A stopper ends it once all transactions have been handed over. A wait is a futex: it sleeps if the word is
// still what the caller has seen.
// Properties: nobody waits for ever, everything is taken over, no two threads work on what is the collector's own.
// Bounds: FINISHERS, ASKERS.
#ifndef FINISHERS
#define FINISHERS 1
#endif
#ifndef ASKERS
#define ASKERS 2
#endif
#define THREADS (FINISHERS + ASKERS + 2)
#define STOPPER (THREADS - 2)
#define COLLECTOR (THREADS - 1)
// Words: sets of what has arrived (changed by read-modify-writes), then the collector's words.
#define FINISHED 0
#define TASKS 1
#define WORK 2
#define SLEEPING 3
#define STOP 4
#define STOPPED 5
#define WORDS 6
#include "store_buffer.inc"

bit sleeps;
byte taken, served, handed;
byte inside;  // threads that work on what is the collector's own
bit ended;

inline wake_up() {
  atomic { DRAINED(me) -> mem[WORK] = mem[WORK] + 1 };  // code: tc/mvcc/collector.cc Collector::WakeUp
  atomic { woken = LOAD(me, SLEEPING) };  // code: tc/mvcc/collector.cc Collector::WakeUp
  if
  :: woken != 0 -> atomic { sleeps = 0 }  // model: WakeAll(work_)
  :: else
  fi;
  woken = 0
}

inline take_finished() {
  atomic { DRAINED(me) -> taken = taken | mem[FINISHED]; mem[FINISHED] = 0 }  // code: tc/mvcc/collector.cc Collector::DrainFinished
}

inline work_alone() {
  atomic { inside++; assert(inside == 1) };  // code: tc/mvcc/collector_tasks.cc Collector::RunTasks; tc/mvcc/unlinker.cc Unlinker::CollectAborted
  take_finished();
  atomic { inside-- }  // code: tc/mvcc/collector_tasks.cc Collector::RunTasks
}

inline run_tasks() {
  atomic { DRAINED(me) -> mine = mem[TASKS]; mem[TASKS] = 0 };  // code: tc/mvcc/collector_tasks.cc Collector::RunTasks
  if
  :: mine != 0 ->
     work_alone();
     atomic { served = served | mine; mine = 0 }  // code: tc/mvcc/collector_tasks.cc Collector::RunTasks
  :: else
  fi
}

// Nothing is left that would have to be taken over, and others may be here as well.
inline run_tasks_at_the_end() {
#if defined(OMIT_alone)
  run_tasks()
#else
  atomic { DRAINED(me) -> mine = mem[TASKS]; mem[TASKS] = 0 };  // code: tc/mvcc/collector_tasks.cc Collector::RunTasks
  atomic { served = served | mine; mine = 0 }  // code: tc/mvcc/collector_tasks.cc Collector::RunTasks
#endif
}

proctype Finisher(byte me) {
  byte woken;
  atomic { DRAINED(me) -> mem[FINISHED] = mem[FINISHED] | (1 << me) };  // code: tc/mvcc/collector.cc Collector::Finish
  atomic { handed++ };  // model: then its slot is cleared
#if !defined(OMIT_wake_from_deep_sleep)
  atomic { woken = LOAD(me, SLEEPING) };  // code: tc/mvcc/collector.cc Collector::Finish
  if
  :: woken == 2 -> wake_up()
  :: else
  fi;
#endif
  atomic { (taken >> me) & 1 };  // model: sooner or later it is taken over
}

proctype Asker(byte me) {
  byte woken, mine;
  atomic { DRAINED(me) -> mem[TASKS] = mem[TASKS] | (1 << me) };  // code: tc/mvcc/collector_tasks.cc Collector::RunBetweenRounds
  wake_up();
#if !defined(OMIT_look_at_the_end)
  atomic { woken = LOAD(me, STOPPED) };  // code: tc/mvcc/collector_tasks.cc Collector::RunBetweenRounds
  if
  :: woken != 0 -> run_tasks_at_the_end()
  :: else
  fi;
#endif
  atomic { (served >> me) & 1 };  // code: tc/mvcc/collector_tasks.cc Collector::RunBetweenRounds
}

proctype Stopper(byte me) {
  byte woken, mine;
  bit patient;
  atomic { handed == FINISHERS };  // model: no transaction is open
  if
  :: patient = 0
  :: patient = 1  // after all is done, so that it wakes nobody who was forgotten
  fi;
  atomic { !patient || (taken == (1 << FINISHERS) - 1 && served == ((1 << ASKERS) - 1) << FINISHERS) -> patient = 0 };  // model: when it begins
  atomic { STORE_SC(me, STOP, 1) };  // code: tc/mvcc/collector.cc Collector::Stop
  wake_up();
  atomic { ended };  // code: tc/mvcc/collector.cc Collector::Stop
  run_tasks();
  atomic { inside++; assert(inside == 1) };  // code: tc/mvcc/collector.cc Collector::Stop; tc/mvcc/unlinker.cc Unlinker::Collect
  take_finished();
  atomic { inside-- };  // code: tc/mvcc/collector.cc Collector::Stop
  atomic { STORE_SC(me, STOPPED, 1) };  // code: tc/mvcc/collector.cc Collector::Stop
#if !defined(OMIT_last_look)
  run_tasks_at_the_end()
#endif
}

proctype Collector(byte me) {
  byte seen, mine;
  bit waiting, arrived, stop;
  do
  ::
#if !defined(OMIT_work_first)
     atomic { seen = LOAD(me, WORK) };  // code: tc/mvcc/collector.cc Collector::Run
#endif
     atomic { inside++; assert(inside == 1) };  // code: tc/mvcc/collector.cc Collector::Round
     take_finished();
     atomic { inside-- };  // code: tc/mvcc/collector.cc Collector::Round
     run_tasks();
     atomic { stop = LOAD(me, STOP) };  // code: tc/mvcc/collector.cc Collector::Run
     if
     :: stop -> break
     :: else
     fi;
     if
     :: waiting = (taken != 0)
     :: waiting = 0
     fi;
#if defined(OMIT_work_first)
     atomic { seen = LOAD(me, WORK) };  // code: tc/mvcc/collector.cc Collector::Run
#endif
#if defined(OMIT_sleeping_ordered)
     atomic { STORE_PLAIN(me, SLEEPING, (waiting -> 1 : 2)) };  // code: tc/mvcc/collector.cc Collector::Run
#else
     atomic { STORE_SC(me, SLEEPING, (waiting -> 1 : 2)) };  // code: tc/mvcc/collector.cc Collector::Run
#endif
#if !defined(OMIT_look_before_sleep)
     atomic { arrived = (LOAD(me, FINISHED) != 0 && !waiting) };  // code: tc/mvcc/collector.cc Collector::Run
#endif
     atomic { stop = LOAD(me, STOP) };  // code: tc/mvcc/collector.cc Collector::Run
     if
     :: !arrived && !stop ->
        atomic {  // code: tc/mvcc/collector.cc Collector::Run
          if
          :: mem[WORK] == seen -> sleeps = 1
          :: else
          fi
        };
        if
        :: !sleeps
        :: waiting -> sleeps = 0  // the time is over
        fi
     :: else
     fi;
     atomic { STORE_SC(me, SLEEPING, 0); arrived = 0; waiting = 0; seen = 0; stop = 0 }  // code: tc/mvcc/collector.cc Collector::Run
  od;
  atomic { ended = 1; seen = 0; stop = 0 }  // code: tc/mvcc/collector.cc Collector::Run
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < THREADS ->
       run Memory(p);
       if
       :: p < FINISHERS -> run Finisher(p)
       :: p >= FINISHERS && p < STOPPER -> run Asker(p)
       :: p == STOPPER -> run Stopper(p)
       :: p == COLLECTOR -> run Collector(p)
       fi;
       p++
    :: else -> break
    od
  }
}
