// The segments' helper against its stop: the stop comes while the helper is about to sleep, and must not be lost.
//
// The helper reads its wake word, then the stop flag, does what work there is, and sleeps if the word is still what it has read (a futex). CALLERS
// bring a piece of work each and notify; a stopper sets the flag, notifies and joins, at any time.
// Left out: the pause of a full disk (a sleep with a time limit hides a lost wake-up) and failures of the work (they end the helper).
// Properties: the stopper never waits for ever; without a stop all work is done.
// Bounds: CALLERS. Memory is sequentially consistent: each access of the two words is.
#ifndef CALLERS
#define CALLERS 2
#endif

byte word;  // work_word_, changed by read-modify-writes
byte work;
bit stopping, sleeps, ended;

inline notify() {
  atomic { word++ };  // code: tc/redo_log/segment_set.cc SegmentSet::Notify
  atomic { sleeps = 0 }  // code: tc/redo_log/segment_set.cc SegmentSet::Notify
}

proctype Caller() {
  atomic { work++ };  // code: tc/redo_log/segment_set.cc SegmentSet::TrimTo
  notify();
  atomic { work == 0 || stopping }  // model: sooner or later it is done, or the log stops
}

proctype Stopper() {
  bit patient;
  if
  :: patient = 0
  :: patient = 1  // after all work, so that it wakes nobody who was forgotten
  fi;
  atomic { !patient || (work == 0 && word == CALLERS) -> patient = 0 };  // model: when it begins
  atomic { stopping = 1 };  // code: tc/redo_log/segment_set.cc SegmentSet::Stop
#if !defined(OMIT_notify)
  notify();
#endif
  atomic { ended }  // code: tc/redo_log/segment_set.cc SegmentSet::Stop
}

proctype Helper() {
  byte seen;
  bit stop, worked;
  do
  ::
#if defined(OMIT_word_first)
     atomic { stop = stopping };  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
     atomic { seen = word };  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
#else
     atomic { seen = word };  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
     atomic { stop = stopping };  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
#endif
     if
     :: stop -> break
     :: else
     fi;
     atomic { worked = work > 0; work = (work > 0 -> work - 1 : 0) };  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
     if
     :: worked
     :: else ->
#if defined(OMIT_compare)
        atomic { sleeps = 1 };  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
#else
        atomic { sleeps = (word == seen) };  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
#endif
        atomic { !sleeps }  // model: asleep
     fi
  od;
  atomic { ended = 1 }  // code: tc/redo_log/segment_set.cc SegmentSet::HelperLoop
}

init {
  byte i;
  atomic {  // model: everybody starts
    run Helper();
    run Stopper();
    for (i : 1 .. CALLERS) {
      run Caller()
    }
  }
}
