// The durable LSN over several blocks in flight, while the log's first failure is reported by two threads at once (D2; fail-stop).
//
// The device completes BLOCKS writes in any order, each written or not, and the log thread takes any number of completions at a time. A write that
// failed is reported; the durable LSN then moves over the completed blocks at the front, if nothing has failed. The segments' helper may report a
// failure of its own at any step. The report is one compare-and-swap, after which failed() is true to its loser, too.
// Left out: what lies in the blocks, recovery, the ring, the device's time limit. A block is its number; memory is sequentially consistent.
// Properties: all below the durable LSN is written (so nothing at or after a failed write becomes durable); one failure is reported.
// Bounds: three blocks.
#define BLOCKS 3
#define IN_FLIGHT 0
#define WRITTEN 1
#define BROKEN 2
#define NONE 0
#define REPORTING 1
#define REPORTED 2

byte device[BLOCKS];  // what became of the write
bit completed[BLOCKS];  // the log thread knows of it
byte durable;
byte failure;
byte callbacks;

#define FAILED (failure == REPORTED)

inline report() {
#if defined(OMIT_one_step)
  atomic { won = (failure == NONE); failure = (won -> REPORTING : failure) };  // code: tc/redo_log/log_failure.h LogFailure::Report
  if
  :: won ->
     atomic { failure = REPORTED };  // code: tc/redo_log/log_failure.h LogFailure::Report
#else
  atomic { won = (failure == NONE); failure = (won -> REPORTED : failure) };  // code: tc/redo_log/log_failure.h LogFailure::Report
  if
  :: won ->
#endif
     atomic { callbacks++; assert(callbacks == 1) };  // code: tc/redo_log/log_failure.h LogFailure::Report
     won = 0
  :: else
  fi
}

inline move_durable(to) {
  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
  atomic {
    durable = (to > durable -> to : durable);
    for (k : 0 .. durable - 1) {
      assert(device[k] == WRITTEN)
    }
    k = 0
  }
}

proctype Write(byte b) {
  if
  :: atomic { device[b] = WRITTEN }  // model: the device
  :: atomic { device[b] = BROKEN }  // model: the device
  fi
}

// code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions
#define TAKE(n) atomic { device[n] != IN_FLIGHT && !completed[n] -> completed[n] = 1; b = n; good = (device[n] == WRITTEN) }

proctype Helper() {
  bit won;
  if
  :: report()
  :: skip
  fi
}

proctype LogThread() {
  byte b, k, front;
  bit won, good;
  do
  :: front < BLOCKS ->
     // One completion, if there is one, or the blocks at the front.
     if
     :: (device[0] != IN_FLIGHT && !completed[0]) || (device[1] != IN_FLIGHT && !completed[1]) || (device[2] != IN_FLIGHT && !completed[2]) ->
        if
        :: TAKE(0)
        :: TAKE(1)
        :: TAKE(2)
        fi;
#if defined(OMIT_D2_in_order)
        move_durable(b + 1);
#endif
#if !defined(OMIT_log_failed_write)
        if
        :: !good -> report()
        :: else
        fi
#endif
     :: completed[front] ->
        atomic { good = !FAILED };  // code: tc/redo_log/log_failure.h LogFailure::failed
        if
        :: good -> move_durable(front + 1)
        :: else
        fi;
        front++
     fi;
     b = 0;
     good = 0
  :: front == BLOCKS -> break
  od
}

init {
  atomic {  // model: everybody starts
    run Write(0);
    run Write(1);
    run Write(2);
    run Helper();
    run LogThread()
  }
}
