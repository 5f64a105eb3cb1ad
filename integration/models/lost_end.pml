// A redo log that has lost its end, or was put back from an older copy: whether a TC that starts on it again and again ever serves (X4).
//
// A life of the TC recovers the log, asks the DC without changing it, compares, begins its life in the log (one record), says Hello, which the DC
// makes durable, and serves: commits, and ships them in order. It dies at any step. Once, at a death, the log loses any number of records at its end;
// and once somebody appends to that log with another program, or another DC, so that it grows again. A record's value is the life that wrote it, and
// lives have numbers (epoch and nonce) that are never used twice; LSNs are the places of records.
// A DC of this log has applied no more than the last commit in it: what starts that serve nobody have appended behind that counts for nothing.
// Copies that go on beside the original, and what comes between inquiry and Hello: fork.pml.
// Left out: trimming (the check of lives whose records are gone), the DC's death (what is stable does not go; start.pml), fences (fencing.pml).
// Properties: a TC that serves has all that the DC has applied, and the same; a log that has not lost anything is not refused.
// Bounds: RECORDS, LIVES.
#ifndef RECORDS
#define RECORDS 5
#endif
#ifndef LIVES
#define LIVES 4
#endif

byte log[RECORDS];    // by place: the life that wrote it
bit shipped[RECORDS];  // it is a commit, which is sent to the DC; else the beginning of a life
byte end;
byte data[RECORDS];  // the DC's, as applied
byte applied;
byte obeyed;  // the life that said Hello last; 0: none
byte life;
bit lost, grown;

// Whether the log has the life that the DC obeyed, and has gone on in it beyond what the DC has applied.
inline compare_lives(found, i) {
  // code: tc/dc_link/peer_check.cc CheckHistory
  found = (obeyed == 0);
  i = 0;
  do
  :: i < end && log[i] == obeyed -> found = 1; last = i + 1; i++
  :: i < end && log[i] != obeyed -> i++
  :: else -> break
  od;
  i = 0;
  if
  :: found && obeyed != 0 && applied > last -> found = 0
  :: else
  fi;
  last = 0
}

inline begin_life() {
  // code: tc/redo_log/redo_log.cc RedoLog::Begin
  log[end] = life;
  shipped[end] = 0;
  end++
}

active proctype Tc() {
  byte recovered, last_shipped, last, i;
  bit right;
  do
  :: life < LIVES ->
     atomic {  // code: tc/redo_log/redo_log.cc RedoLog::Recover
       life++;
       recovered = end;
       last_shipped = 0;
       do
       :: i < end -> last_shipped = (shipped[i] -> i + 1 : last_shipped); i++
       :: else -> break
       od;
       i = 0
     };
#if defined(OMIT_X4_look_first)
     if
     :: end < RECORDS -> begin_life()
     :: else -> break
     fi;
#endif
     atomic {  // code: tc/dc_link/link_thread.cc LinkThread::InquireAndBeginLog, LinkThread::Compare, LastPossible; tc/dc_link/peer_check.cc CheckPeer
#if defined(OMIT_X4_look_first)
       right = (applied <= recovered);
#else
       right = (applied <= last_shipped);
#endif
#if !defined(OMIT_X4_compare_lives) && !defined(OMIT_X4_look_first)
       if
       :: right -> compare_lives(right, i)
       :: else
       fi;
#endif
     };
     assert(right || lost);
     if
     :: right && end < RECORDS ->
#if !defined(OMIT_X4_look_first)
        begin_life();
#endif
        atomic { obeyed = life };  // code: tc/dc_link/link_thread.cc LinkThread::SayHello
        do
        :: applied < end ->
           atomic {  // code: tc/dc_link/shipper.cc Shipper::Send
             i = applied;
             do
             :: i < end && !shipped[i] -> i++
             :: else -> break
             od;
             if
             :: i < end ->
                last = i + 1;
                i = applied;
                do
                :: i < last -> data[i] = log[i]; i++
                :: else -> break
                od;
                applied = last;
                last = 0
             :: else
             fi;
             i = 0
           }
        :: applied >= last_shipped && end < RECORDS ->
           atomic {  // model: it serves, and commits
             do
             :: i < applied -> assert(data[i] == log[i]); i++
             :: else -> break
             od;
             i = 0;
             log[end] = life;
             shipped[end] = 1;
             end++
           }
        :: break
        od
     :: else
     fi;
     atomic {  // model: it dies, and the log's disk, or somebody with a copy, takes its end away
       recovered = 0;
       right = 0;
       if
       :: !lost && end > 0 ->
          lost = 1;
          do
          :: end > 0 -> end--; log[end] = 0; shipped[end] = 0
          :: break
          od
       :: skip
       fi;
       if
       :: lost && !grown && end < RECORDS && life < LIVES ->
          grown = 1;
          life++;
          do
          :: end < RECORDS -> log[end] = life; shipped[end] = (end % 2); end++
          :: break
          od
       :: skip
       fi
     }
  :: else -> break
  od
}
