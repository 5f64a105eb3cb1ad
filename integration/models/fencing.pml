// Two TCs at one DC: from the newer one's Hello on the older one is not heard (X5).
//
// TCs of epochs 1 and 2 say Hello to a DC, open their log stream, send batches and read, at any time; with NONCES there is another one of epoch 2.
// The DC takes each call through the fence (whose current TC it is, then the gate of that fence) and each batch through the gate of its stream
// first. It crashes up to CRASHES times at any step and comes back with the fence that is on disk and any part of what it had applied. A
// connection is to one life; a stream may be opened with the life that has answered Hello, on a connection to a later one.
// Left out: keys, the TC's side (a TC that is fenced stops; that it also stops to serve is not looked at), sleeping at gates, saves that fail.
// Memory is sequentially consistent, as the code asks (call_drain.h).
// Properties: once Hello of a newer TC is answered nothing of an older one is applied or read, in no life of the DC; of one epoch only the first is
// answered; one batch at a time; what is applied has no gap; nobody waits for ever.
// A batch of the older TC is kept out twice, by its stream's end and by the fence. Between lives a gap is kept out twice, too, by the life that a
// request names and by the batch's beginning.
// Bounds: the third thread is a second stream of the older TC, with READER a reader of it, with NONCES a TC of epoch 2 and another nonce; with ALL
// the first two of these. UPDATES, CRASHES.
#ifndef UPDATES
#define UPDATES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define NOBODY 3
#define NO_STREAM 3
// TCs 1 and 2 have the same epoch.
#define LOWER(t, than) (t == 0 && than != 0)
#define EQUAL(t, with) (t + with == 3 && t != 0 && with != 0)

// The DC.
byte life = 1;
byte crashes;
byte disk_fence = NOBODY;
byte fence = NOBODY;    // as DataComponentServer has it
byte current = NOBODY;  // as Fencing has it
bit mutex;
bit gate_closed[3];
byte inside[3];
byte log_stream = NO_STREAM;
bit stream_closed[3];
bit stream_inside[3];
byte applied;
byte holds;  // a bit for each update
bit applying;

byte newest = NOBODY;  // whose Hello was answered last
byte known_life[3];

// X4: what was compared does not move any more.
inline pause_log_stream() {
  if
  :: log_stream != NO_STREAM ->
     // code: dc/server/data_component_server.cc DataComponentServer::AcceptTc; dc/server/apply_stream.cc ApplyStream::Send; common/sync/call_drain.h CallDrain::Close
     atomic { stream_closed[log_stream] = 1 };
     atomic { !stream_inside[log_stream] }  // code: common/sync/call_drain.h CallDrain::Close
  :: else
  fi
}

inline close_log_stream() {
  if
  :: log_stream != NO_STREAM ->
#if !defined(OMIT_X5_close_old_stream)
     // code: dc/server/data_component_server.cc DataComponentServer::CloseLogStream; dc/server/apply_stream.cc ApplyStream::Close
     atomic { stream_closed[log_stream] = 1 };  // unreached: at the opening of a stream, if the older TC has one only
     // code: dc/server/apply_stream.cc ApplyStream::Close; common/sync/call_drain.h CallDrain::Close
     atomic { !stream_inside[log_stream] };  // unreached: as above
#endif
     atomic { log_stream = NO_STREAM }  // code: dc/server/data_component_server.cc DataComponentServer::CloseLogStream
  :: else
  fi
}

// admitted: 1, 0, or 2: fenced.
inline admission(incarnation) {
  // code: dc/server/fencing.cc Fencing::Admission::Admission
  atomic {
    admitted = 1;
    gate = current;
#if !defined(OMIT_X5_check_every_request)
    if
    :: gate != me -> admitted = (gate == NOBODY || LOWER(gate, me) -> 0 : 2)  // unreached: in a stream, which is stopped before the fence moves
    :: else
    fi;
#endif
#if !defined(OMIT_X3_check_incarnation)
    if
    :: admitted == 1 && incarnation != life -> admitted = 0  // unreached: in a stream, which has its life's connection
    :: else
    fi
#endif
  };
  if
  :: admitted == 1 && gate != NOBODY ->
#if defined(OMIT_count_first)
     atomic { admitted = (gate_closed[gate] -> 2 : 1) };  // code: common/sync/call_drain.h CallDrain::Enter
     atomic { inside[gate]++ };  // code: common/sync/call_drain.h CallDrain::Enter
#else
     atomic { inside[gate]++ };  // code: common/sync/call_drain.h CallDrain::Enter
     atomic { admitted = (gate_closed[gate] -> 2 : 1) };  // code: common/sync/call_drain.h CallDrain::Enter
#endif
     if
     :: admitted == 2 -> leave()
     :: else
     fi
  :: else
  fi
}

inline leave() {
  atomic {  // code: common/sync/call_drain.h CallDrain::Leave
    if
    :: gate != NOBODY -> inside[gate]--  // unreached: after a refusal under the mutex; after a gap
    :: else
    fi
  }
}

proctype Sender(byte me; byte stream) {
  byte mine, gate, admitted, at, incarnation;
again:
  atomic { mine = life };  // model: a connection
  {
    // code: dc/server/data_component_server.cc DataComponentServer::Hello
    atomic { !mutex -> mutex = 1 };
    if
#if !defined(OMIT_X5_refuse_lower_epoch)
    :: atomic { fence != NOBODY && LOWER(me, fence) -> mutex = 0; goto fenced }  // code: dc/server/fencing.cc Fencing::CheckHello
#endif
#if defined(NONCES) && !defined(OMIT_X5_refuse_other_nonce)
    :: atomic { fence != NOBODY && EQUAL(me, fence) -> mutex = 0; goto fenced }  // code: dc/server/fencing.cc Fencing::CheckHello
#endif
    :: else ->
       if
       :: fence != me ->
          pause_log_stream();
#if !defined(OMIT_X5_durable_before_answer)
          atomic { disk_fence = me };  // code: dc/server/state_file.cc StateFile::Save; dc/server/state_keeper.cc StateKeeper::SetFence
#endif
          atomic { fence = me };  // code: dc/server/state_keeper.cc StateKeeper::SetFence
          if
          :: current != NOBODY ->
#if !defined(OMIT_X5_drain)
             atomic { gate_closed[current] = 1 };  // code: dc/server/fencing.cc Fencing::Replace; common/sync/call_drain.h CallDrain::Close
             atomic { inside[current] == 0 }  // code: common/sync/call_drain.h CallDrain::Close
#endif
          :: else
          fi;
          atomic { gate_closed[me] = 0; current = me };  // code: dc/server/fencing.cc Fencing::Replace
          close_log_stream()
       :: else
       fi
    fi;
    atomic {  // code: dc/server/data_component_server.cc DataComponentServer::Hello
      at = applied;
      assert(newest == NOBODY || newest == me || !(LOWER(me, newest) || EQUAL(me, newest)));
      newest = me;
      incarnation = life;
      known_life[me] = life;
      mutex = 0
    }
  } unless { atomic { life != mine -> goto again } };  // model: the connection ends

  atomic { mine = life };  // model: a connection
  {
    // code: dc/server/data_component_server.cc DataComponentServer::OpenApplyLog
    atomic { !mutex -> mutex = 1 };
    admission(incarnation);
    if
    :: admitted != 1 -> atomic { mutex = 0; goto refused }  // code: dc/server/data_component_server.cc DataComponentServer::OpenApplyLog
    :: else
    fi;
    close_log_stream();
    atomic { log_stream = stream; stream_closed[stream] = 0 };  // code: dc/server/data_component_server.cc DataComponentServer::OpenApplyLog
    leave();
    atomic { mutex = 0 };  // code: dc/server/data_component_server.cc DataComponentServer::OpenApplyLog

    do
    :: at < UPDATES ->
       atomic { stream_inside[stream] = 1 };  // code: dc/server/apply_stream.cc ApplyStream::Send; common/sync/call_drain.h CallDrain::Enter
       if
       :: stream_closed[stream] -> atomic { stream_inside[stream] = 0; goto done }  // code: dc/server/apply_stream.cc ApplyStream::Send
       :: else
       fi;
       admission(incarnation);
       if
       :: admitted != 1 ->
          // code: dc/server/apply_stream.cc ApplyStream::Send
          atomic { stream_inside[stream] = 0; stream_closed[stream] = 1; goto refused }  // unreached: as its life and its fence are looked at, and end with the stream
       :: else
       fi;
       if
#if !defined(OMIT_X5_no_gap)
       :: at > applied ->
          leave();  // a gap
          // code: dc/server/apply_stream.cc ApplyStream::Send
          atomic { stream_inside[stream] = 0; stream_closed[stream] = 1; goto again }  // unreached: if the life of a request is looked at
       :: else ->
#else
       :: true ->
#endif
          atomic { assert(!applying); applying = 1; assert(newest == me) };  // code: dc/server/apply_stream.cc ApplyStream::Apply
          atomic {  // code: dc/server/apply_stream.cc ApplyStream::Apply; dc/server/applied_position.h AppliedPosition::Advance
            assert(newest == me);
            applying = 0;
            holds = holds | (1 << at);
            at++;
            applied = (at > applied -> at : applied);
            assert(holds == (1 << applied) - 1)
          }
       fi;
       leave();
       atomic { stream_inside[stream] = 0 }  // code: dc/server/apply_stream.cc ApplyStream::Send
    :: else -> break
    od;
    goto done
  } unless { atomic { life != mine -> goto again } };  // model: the connection ends
refused:
  if
  :: admitted != 2 -> goto again
  :: else
  fi;
fenced:
done:
  skip
}

#if defined(READER) || defined(ALL)
proctype Reader(byte me) {
  byte mine, gate, admitted;
end_before:
  atomic { known_life[me] != 0 -> mine = life };  // model: a connection
  {
    admission(known_life[me]);
    if
    :: admitted == 1 ->
       atomic { assert(newest == me) };  // code: dc/server/data_component_server.cc DataComponentServer::Submit, DataComponentServer::ContinueMissed
       leave()
    :: else
    fi;
    goto done
  } unless { atomic { life != mine -> goto end_before } };  // model: the connection ends
done:
  skip
}
#endif

proctype Crash() {
end:
  do
  :: atomic {  // code: dc/server/data_component_server.cc DataComponentServer::Claim; dc/server/fencing.cc Fencing::Fencing
       crashes < CRASHES ->
       crashes++;
       life++;
       fence = disk_fence;
       current = disk_fence;
       mutex = 0;
       gate_closed[0] = 0;
       gate_closed[1] = 0;
       gate_closed[2] = 0;
       inside[0] = 0;
       inside[1] = 0;
       inside[2] = 0;
       log_stream = NO_STREAM;
       stream_inside[0] = 0;
       stream_inside[1] = 0;
       stream_inside[2] = 0;
       applying = 0;
       do
       :: applied > 0 -> applied--; holds = holds & ((1 << applied) - 1)
       :: break
       od
     }
  od
}  // unreached: it may crash at any time

init {
  atomic {  // model: everybody begins
    run Sender(0, 0);
    run Sender(1, 1);
#if defined(NONCES)
    run Sender(2, 2);
#elif !defined(READER)
    run Sender(0, 2);
#endif
#if defined(READER) || defined(ALL)
    run Reader(0);
#endif
    run Crash()
  }
}
