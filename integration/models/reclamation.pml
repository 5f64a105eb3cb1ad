// The reclamation of memory (common/sync/reclamation.h) under readers: what every latch-free structure here rests on.
//
// READERS threads enter a guard, load the pointer to an object, use the object for a while and leave, REPEATS times. WRITERS threads under a
// guard of their own unlink the object (put a new one in its place), retire the old one, seal the batch, look at all slots and free what is
// older than the oldest. Stores wait in store buffers: a guard's second store and its leaving are plain.
// Property: no reader uses an object that has been freed.
// Bounds: READERS, WRITERS, REPEATS of each; every batch holds one object.
#ifndef READERS
#define READERS 2
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#define THREADS (READERS + WRITERS)
#define OBJECTS (WRITERS * REPEATS + 1)
// Words: the slots of the threads, then
#define EPOCH THREADS
#define POINTER (THREADS + 1)
#define WORDS (THREADS + 2)
#include "store_buffer.inc"

bit freed[OBJECTS];
byte made;  // objects

inline enter() {
  atomic { seen = LOAD(me, EPOCH) };  // code: common/sync/reclamation.cc ReclamationDomain::Enter
#if defined(OMIT_enter_ordered)
  atomic { STORE_PLAIN(me, me, seen) };  // code: common/sync/reclamation.cc ReclamationDomain::Enter
#else
  atomic { STORE_SC(me, me, seen) };  // code: common/sync/reclamation.cc ReclamationDomain::Enter
#endif
  // The second look is for the C++ memory model (by it the reader has seen the unlinking of what was sealed before); under this one nothing
  // shows when it is left out.
  atomic {  // code: common/sync/reclamation.cc ReclamationDomain::Enter
    if
    :: LOAD(me, EPOCH) != seen -> seen = LOAD(me, EPOCH); again = 1
    :: else
    fi
  };
  if
  :: again -> atomic { STORE_PLAIN(me, me, seen); again = 0 }  // code: common/sync/reclamation.cc ReclamationDomain::Enter
  :: else
  fi;
  seen = 0
}

inline leave() {
  atomic { STORE_PLAIN(me, me, 0) }  // code: common/sync/reclamation.cc ReclamationDomain::Leave
}

proctype Reader(byte me) {
  byte seen, object, times;
  bit again;
  do
  :: times < REPEATS ->
     enter();
     atomic { object = LOAD(me, POINTER) };  // model: it loads a pointer from a structure
     atomic { assert(!freed[object]) };  // model: and uses the object
#if defined(OMIT_leave_last)
     leave();
#endif
     atomic { assert(!freed[object]); object = 0 };  // model: for as long as it is in its guard
#if !defined(OMIT_leave_last)
     leave();
#endif
     times++
  :: else -> break
  od
}

proctype Writer(byte me) {
  byte seen, object, mine, epoch, oldest, s, times;
  bit again;
  do
  :: times < REPEATS ->
     enter();
#if defined(OMIT_unlink_first)
     atomic { object = mem[POINTER]; epoch = mem[EPOCH]; mem[EPOCH] = epoch + 1 };  // code: common/sync/reclamation.cc ReclamationDomain::Core::SealOpen
     atomic { made++; mem[POINTER] = made };  // model: unlinks the old object
#else
     // An exchange: each object is unlinked, hence retired, by one thread.
     atomic { DRAINED(me) -> made++; object = mem[POINTER]; mem[POINTER] = made };  // model: unlinks the old object
     atomic { DRAINED(me) -> epoch = mem[EPOCH]; mem[EPOCH] = epoch + 1 };  // code: common/sync/reclamation.cc ReclamationDomain::Core::SealOpen, ReclamationDomain::Retire
#endif
     leave();
     oldest = 255;
     do
     :: s < THREADS ->
        atomic {  // code: common/sync/reclamation.cc ReclamationDomain::Core::OldestOccupied
          if
          :: LOAD(me, s) != 0 && LOAD(me, s) < oldest -> oldest = LOAD(me, s)
          :: else
          fi;
          s++
        }
     :: else -> s = 0; break
     od;
     // What may not be freed yet stays for a later look, which is not modelled: it would find a later time.
     atomic {  // code: common/sync/reclamation.cc TakeBefore, ReclamationDomain::CollectOwn, ReclamationDomain::Sweep, ReclamationDomain::Core::Free
       if
#if defined(OMIT_epoch_before)
       :: epoch <= oldest -> freed[object] = 1
#else
       :: epoch < oldest -> freed[object] = 1
#endif
       :: else
       fi;
       object = 0; epoch = 0; oldest = 0
     };
     times++
  :: else -> break
  od
}

init {
  byte p;
  atomic {  // model: everybody begins
    mem[EPOCH] = 1;
    do
    :: p < THREADS ->
       run Memory(p);
       if
       :: p < READERS -> run Reader(p)
       :: else -> run Writer(p)
       fi;
       p++
    :: else -> break
    od
  }
}
