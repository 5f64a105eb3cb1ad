// Copies of a TC's log and of its DC's folder that go on beside the originals, and TCs that are led from the one DC to the other: whether a TC ever
// serves from a DC that holds what its own log does not say, or though its log lacks what the DC knows to have been durable (X4).
//
// A life of a TC recovers its log, asks the DC, compares, begins its life in the log, says Hello, ships in order, tells how far its log is durable,
// serves and commits; it dies at any step, and the next life begins. Once, at any step, somebody copies log and folder as they are, and the copies are
// started, too; up to SWAPS times, at any step, a TC is led to the other DC. A record's value is the life that wrote it; lives (epoch and nonce) are
// never used twice; the epoch is counted in each log for itself, so that two lives of different logs may have the same. LSNs are the places of records.
// The comparison at Hello is a step before the one from which the DC obeys: what is shipped in between is kept out by freezing the stream.
// Left out: trimming, the DC's death (start.pml, incarnation.pml), redo start, what is durable at the DC; that commits are not durable at once.
// Properties: a TC that serves finds at its DC nothing but records of its own log, and its log has all that its DC was ever told to be durable; a TC
// whose log and DC nobody has touched is not refused. As TCs start again and again, so a refusal is one for ever.
// Bounds: RECORDS, LIVES of both TCs together, SWAPS; with COPY_TOO the copy is led elsewhere, too, else the original alone. The original's epoch
// rises by ORIGINAL_STARTS at each start: lives between that have done nothing are not counted.
#ifndef RECORDS
#define RECORDS 4
#endif
#ifndef LIVES
#define LIVES 3
#endif
#ifndef ORIGINAL_STARTS
#define ORIGINAL_STARTS 2
#endif
#ifndef SWAPS
#define SWAPS 1
#endif
#define AT(t, i) ((t) * RECORDS + (i))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

// The logs: of the original 0, and of the copy 1.
byte log[2 * RECORDS];     // by place: the life that wrote it
bit commit[2 * RECORDS];   // it is a commit, which is sent to the DC; else the beginning of a life
byte end[2];
byte log_epoch[2];
bit copied;
byte lives, swaps;

// The DCs, and to which of them each TC is led.
byte led_to[2];
byte data[2 * RECORDS];
byte applied[2];
byte obeyed[2];        // a life; 0: none
byte obeyed_epoch[2];
byte log_durable[2];   // as the obeyed one has told
bit hello[2];         // a Hello is under way: it has the mutex
bit frozen[2];        // nothing is applied meanwhile
byte told[2 * RECORDS];  // what was durable, as far as the DC was ever told, for the property
byte told_end[2];

// The TC t tells its DC how far its log is durable: all of it.
inline tell_durable(t, d) {
  log_durable[d] = MAX(log_durable[d], end[t]);
  i = 0;
  do
  :: i < end[t] -> told[AT(d, i)] = log[AT(t, i)]; i++
  :: else -> break
  od;
  told_end[d] = MAX(told_end[d], end[t]);
  i = 0
}

// right = whether a DC that obeys who_obeyed, with these positions, may be the recovered log's.
inline compare_lives(t) {
  i = 0; last = 0;
  do
  :: i < recovered -> last = (log[AT(t, i)] == who_obeyed -> i + 1 : last); i++
  :: else -> break
  od;
  i = 0;
#if !defined(OMIT_X4_compare_lives)
  right = right && last != 0 && has_applied <= last;
#endif
#if !defined(OMIT_X4_compare_durable)
  right = right && has_durable <= last;
#endif
  last = 0
}

#define LIMIT (met -> ever_sent : last_shipped)
#if defined(OMIT_X4_look_always)
#define LOOKS (!met)
#else
#define LOOKS true
#endif
#if defined(OMIT_X4_decided_on)
#define SAME_BASIS true
#else
#define SAME_BASIS (!LOOKS || (d == asked && obeyed[d] == who_obeyed && \
    (who_obeyed == mine || (applied[d] == has_applied && log_durable[d] == has_durable))))
#endif
#if defined(OMIT_X4_freeze_first)
#define FREEZES false
#else
#define FREEZES true
#endif

proctype Tc(byte t) {
  byte mine, epoch, recovered, last_shipped, ever_sent, d, asked, who_obeyed, who_epoch, has_applied, has_durable, i, last;
  bit met, begun, served, right;
end_before:
  (t == 0 || copied);
life:
  atomic {  // code: tc/redo_log/redo_log.cc RedoLog::Recover
    if
    :: lives >= LIVES -> goto done
    :: else
    fi;
    lives++;
    mine = lives;
    epoch = log_epoch[t] + (t == 0 -> ORIGINAL_STARTS : 1);
    recovered = end[t];
    last_shipped = 0; i = 0;
    do
    :: i < recovered -> last_shipped = (commit[AT(t, i)] -> i + 1 : last_shipped); i++
    :: else -> break
    od;
    i = 0
  };
session:
  if
  :: LOOKS ->
     atomic {  // code: dc/server/data_component_server.cc DataComponentServer::Hello
       asked = led_to[t];
       who_obeyed = obeyed[asked];
       who_epoch = obeyed_epoch[asked];
       has_applied = applied[asked];
       has_durable = log_durable[asked]
     };
     // code: tc/dc_link/link_thread.cc LinkThread::Compare, LinkThread::InquireAndBeginLog; tc/redo_log/redo_log.cc RedoLog::Begin
     atomic {  // code: tc/dc_link/peer_check.cc CheckPeer, CheckHistory, DurableBeyond
       right = (has_applied <= LIMIT);
       if
       :: met && who_epoch > epoch -> goto dead  // it has been replaced
       :: right && who_obeyed != 0 && who_obeyed != mine -> compare_lives(t)
       :: else
       fi;
       assert(right || copied);
       if
       :: !right -> goto dead
       :: right && !begun && end[t] >= RECORDS -> goto dead
       :: right && !begun && end[t] < RECORDS -> begun = 1; log_epoch[t] = epoch; log[AT(t, end[t])] = mine; commit[AT(t, end[t])] = 0; end[t]++
       :: else
       fi
     }
  :: else
  fi;
  atomic {  // code: dc/server/fencing.cc Fencing::CheckHello, Fencing::CheckBasis; dc/server/data_component_server.cc DataComponentServer::AcceptTc
    !hello[led_to[t]] ->
    d = led_to[t];
    if
    :: epoch < obeyed_epoch[d] || (epoch == obeyed_epoch[d] && obeyed[d] != mine) -> goto dead
    :: else
    fi;
    if
    :: !SAME_BASIS -> goto again
    :: else -> hello[d] = 1; frozen[d] = (obeyed[d] != mine && FREEZES)
    fi
  };
  // code: tc/dc_link/link_thread.cc LinkThread::SayHello; tc/dc_link/peer_check.cc CheckPeer; tc/dc_link/dc_gate.cc DcGate::StartSession; tc/dc_link/met_incarnations.cc MetIncarnations::Meet
  atomic {  // code: dc/server/state_keeper.cc StateKeeper::SetFence; dc/server/data_component_server.cc DataComponentServer::AcceptTc
    hello[d] = 0;
    frozen[d] = 0;
    log_durable[d] = (obeyed[d] == mine -> log_durable[d] : 0);
    obeyed[d] = mine;
    obeyed_epoch[d] = epoch;
    tell_durable(t, d);
    asked = 0; who_obeyed = 0; who_epoch = 0; has_applied = 0; has_durable = 0; right = 0;
    // The TC looks at the answer.
    if
    :: applied[d] > LIMIT -> goto dead
    :: else -> met = 1; ever_sent = MAX(ever_sent, applied[d])
    fi
  };
  do
  :: atomic {  // code: tc/dc_link/shipper.cc Shipper::Send; dc/server/apply_stream.cc ApplyStream::Apply; tc/dc_link/outgoing_batch.cc OutgoingBatch::Sent
       led_to[t] == d && obeyed[d] == mine && !frozen[d] && applied[d] < end[t] ->
       // Up to the next commit, if there is one: the beginnings of lives are not sent, and no position is theirs.
       i = applied[d];
       do
       :: i < end[t] && !commit[AT(t, i)] -> i++
       :: else -> break
       od;
       if
       :: i < end[t] ->
          last = i + 1;
          i = applied[d];
          do
          :: i < last -> data[AT(d, i)] = log[AT(t, i)]; i++
          :: else -> break
          od;
          applied[d] = last;
          last = 0;
          ever_sent = MAX(ever_sent, applied[d])
       :: else
       fi;
       i = 0;
       tell_durable(t, d)
     }
  :: atomic {  // code: tc/dc_link/shipper.cc Shipper::SendDurableLsn; dc/server/apply_stream.cc ApplyStream::Apply; dc/server/state_keeper.cc StateKeeper::NoteLogDurable; tc/dc_link/durable_report.h DurableReport::Due
       led_to[t] == d && obeyed[d] == mine && !frozen[d] && log_durable[d] < end[t] -> tell_durable(t, d)
     }
  :: atomic {  // code: tc/dc_link/dc_gate.cc DcGate::OpenableLocked; tc/dc_link/read_target.cc ReadTarget::ReachedBy
       led_to[t] == d && obeyed[d] == mine && applied[d] >= MAX(last_shipped, ever_sent) ->
       served = 1;
       do
       :: i < applied[d] -> assert(data[AT(d, i)] == log[AT(t, i)]); i++
       :: else -> break
       od;
       i = 0;
       assert(told_end[d] <= end[t]);
       do
       :: i < told_end[d] -> assert(told[AT(d, i)] == log[AT(t, i)]); i++
       :: else -> break
       od;
       i = 0
     }
  :: atomic {  // model: it has served, so it commits
       served && end[t] < RECORDS -> log[AT(t, end[t])] = mine; commit[AT(t, end[t])] = 1; end[t]++
     }
  :: break
  od;
again:
  if
  :: atomic { asked = 0; who_obeyed = 0; who_epoch = 0; has_applied = 0; has_durable = 0; right = 0; d = 0; goto session }  // model: the connection ends
  :: skip
  fi;
dead:
  atomic {  // model: it dies
    asked = 0; who_obeyed = 0; who_epoch = 0; has_applied = 0; has_durable = 0; right = 0; d = 0; i = 0;
    mine = 0; epoch = 0; recovered = 0; last_shipped = 0; ever_sent = 0; met = 0; begun = 0; served = 0;
    goto life
  };
done:
  skip
}

active proctype Somebody() {
  byte i;
  do
  :: atomic {  // model: somebody copies log and folder
       !copied && end[0] > 0 && !hello[0] ->
       copied = 1;
       do
       :: i < end[0] -> log[AT(1, i)] = log[i]; commit[AT(1, i)] = commit[i]; i++
       :: else -> break
       od;
       i = 0;
       do
       :: i < applied[0] -> data[AT(1, i)] = data[i]; i++
       :: else -> break
       od;
       i = 0;
       do
       :: i < told_end[0] -> told[AT(1, i)] = told[i]; i++
       :: else -> break
       od;
       i = 0;
       told_end[1] = told_end[0];
       end[1] = end[0];
       log_epoch[1] = log_epoch[0];
       applied[1] = applied[0];
       obeyed[1] = obeyed[0];
       obeyed_epoch[1] = obeyed_epoch[0];
       log_durable[1] = log_durable[0];
       led_to[1] = 1
     }
  :: atomic { copied && swaps < SWAPS -> swaps++; led_to[0] = 1 - led_to[0] }  // model: the original is led to the other DC
#if defined(COPY_TOO)
  :: atomic { copied && swaps < SWAPS -> swaps++; led_to[1] = 1 - led_to[1] }  // model: so is the copy
#endif
  :: break
  od
}

init {
  atomic {  // model: the original first
    run Tc(0);
    run Tc(1)
  }
}
