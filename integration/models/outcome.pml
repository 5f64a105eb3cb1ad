// What became of a named transaction: its commit against those who ask for it, entries that are put out, the log that is cut, and a second life.
//
// X is the transaction that is asked for. A committer publishes its commit entry, then looks for another commit of the id and for a fence; one in
// the second life tries the same name (a message that came late). OTHERS publish commits of other ids, which put out what is in the bucket, a ring of
// SLOTS. ASKERS look for a commit, publish a fence, look again, wait for who is committing, and answer: committed (when it is durable), not
// committed, or too old. A forgetter takes out what lies below its cut, logs the horizon, and cuts the log. A crash ends the first life at any
// step; the next one begins with what the log still has.
// Properties: who was told "not committed" is never contradicted by a commit, nor by another answer; who was told "committed" neither.
// Left out: references and reclamation (the model `reclamation`); an entry's address and its tag are one.
// Bounds: SLOTS, OTHERS, ASKERS, CUTS, CRASHES.
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef OTHERS
#define OTHERS 1
#endif
#ifndef ASKERS
#define ASKERS 1
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#define X_FIRST 1
#define X_SECOND 2
#define FIRST_OTHER 3
#define FIRST_FENCE (FIRST_OTHER + OTHERS)
#define ENTRIES (FIRST_FENCE + ASKERS)
#define COMMITTING 1
#define COMMITTED 2
#define DROPPED 3
#define FENCE 4
#define ANSWERED 5
#define VOID 6
// Timestamps. The second life begins at 5.
#define NOT_BEFORE 2
#define FIRST_OF_SECOND 5

byte slot[SLOTS];        // entries; 0: none
byte horizon, fence_horizon;
byte next;
byte state[ENTRIES];
byte timestamp[ENTRIES];
byte life = 1;
bit appended;            // X's commit record is in the log
bit durable;
bit forgotten;           // its record has been cut off
bit inactive;            // X has left the active ones: the log may be cut above its record
byte logged_horizon;
bit told_committed, told_not;

#define IS_COMMIT(e) (state[e] == COMMITTING || state[e] == COMMITTED)
#define IS_FENCE(e) (state[e] == FENCE || state[e] == ANSWERED)
#define IS_X(e) ((e) == X_FIRST || (e) == X_SECOND || (e) >= FIRST_FENCE)
#define GONE if :: life != mine -> goto dead :: else fi

inline put_out(at, replacement) {
#if !defined(OMIT_outcome_raise_horizon)
  atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::EvictSlot
    GONE;
    if
    :: seen != 0 && IS_COMMIT(seen) && horizon < timestamp[seen] + 1 -> horizon = timestamp[seen] + 1
    :: seen != 0 && IS_FENCE(seen) && fence_horizon < timestamp[seen] + 1 -> fence_horizon = timestamp[seen] + 1
    :: else
    fi
  };
#endif
  atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::EvictSlot
    GONE;
    if
    :: slot[at] == seen -> slot[at] = replacement; put = 1
    :: else
    fi;
    seen = 0
  }
}

inline publish(entry) {
  atomic { GONE; place = next; next = (next + 1) % SLOTS };  // code: tc/outcomes/outcome_table.cc OutcomeTable::Publish
  put = 0;
  do
  :: !put ->
     atomic { GONE; seen = slot[place] };  // code: tc/outcomes/outcome_table.cc OutcomeTable::Publish
     put_out(place, entry)
  :: else -> break
  od;
  atomic { put = 0; place = 0 }  // model: tidies up
}

// Slot by slot, as the code looks: `found` is an entry of X of this kind.
inline find_commit(except) {
  found = 0;
  place = 0;
  do
  :: place < SLOTS && found == 0 ->
     atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::Find
       GONE;
       seen = slot[place];
       if
       :: seen != 0 && seen != except && IS_X(seen) && IS_COMMIT(seen) -> found = seen
       :: else
       fi;
       seen = 0;
       place++
     }
  :: else -> break
  od;
  place = 0
}

inline find_fence() {
  found = 0;
  place = 0;
  do
  :: place < SLOTS && found == 0 ->
     atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::Find
       GONE;
       seen = slot[place];
       if
       :: seen != 0 && IS_X(seen) && IS_FENCE(seen) -> found = seen
       :: else
       fi;
       seen = 0;
       place++
     }
  :: else -> break
  od;
  place = 0
}

proctype Committer(byte me; byte mine) {
  byte seen, place, found;
  bit put, lost;
  atomic { GONE; state[me] = COMMITTING; timestamp[me] = (mine == 1 -> NOT_BEFORE : FIRST_OF_SECOND) };  // code: tc/outcomes/outcome_table.cc OutcomeTable::BeginCommit
#if !defined(OMIT_outcome_publish_first)
  publish(me);
#endif
  find_commit(me);
  lost = (found != 0);
  find_fence();
  atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::BeginCommit
    GONE;
#if !defined(OMIT_outcome_check_fence)
    if
    :: found != 0 || fence_horizon > NOT_BEFORE -> lost = 1
    :: else
    fi;
#endif
    found = 0
  };
#if defined(OMIT_outcome_publish_first)
  publish(me);
#endif
  if
  :: lost -> skip
  :: !lost ->
     if
     :: atomic { GONE; assert(!told_not && !appended); appended = 1 };  // code: tc/record_manager/commit_path.cc CommitPath::Commit
        atomic { GONE; state[me] = COMMITTED };  // code: tc/outcomes/outcome_table.cc OutcomeTable::Finish, OutcomeTable::SetFinal
        atomic { GONE; inactive = 1 };  // model: then its slot among the active ones is cleared (S2)
        atomic { GONE; durable = 1 };  // model: the log's write is through
        goto dead
     :: skip  // it fails, and is dropped
     fi
  fi;
  atomic { GONE; state[me] = DROPPED };  // code: tc/outcomes/outcome_table.cc OutcomeTable::Drop, OutcomeTable::SetFinal
dead:
  atomic { seen = 0; place = 0; found = 0; put = 0; lost = 0 }  // model: ends
}

#if OTHERS
proctype Other(byte me) {
  byte seen, place, mine;
  bit put;
  atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::BeginCommit, OutcomeTable::Finish
    mine = life;
    state[me] = COMMITTED;
    if
    :: timestamp[me] = 1
    :: timestamp[me] = (mine == 1 -> 3 : FIRST_OF_SECOND + 1)
    fi
  };
  publish(me);
dead:
  atomic { seen = 0; place = 0; put = 0; mine = 0 }  // model: ends
}
#endif

proctype Asker(byte me) {
  byte seen, place, found, fence, mine, known, state_seen;
  bit put, again, committed;
  mine = life;
  do
  :: find_commit(0);
     if
     :: found != 0 ->
        // Waits for who is committing.
        atomic { life != mine || state[found] != COMMITTING -> GONE; committed = (state[found] == COMMITTED); found = 0 };  // code: tc/outcomes/outcome_table.cc OutcomeTable::AwaitCommit
        if
        :: committed -> break
        :: else  // dropped: it is absent from now on
        fi
     :: found == 0 && again -> break
     :: found == 0 && !again ->
        find_fence();
        fence = found;
        if
        :: fence == 0 ->
           atomic { GONE; if :: horizon > NOT_BEFORE -> goto too_old :: else fi };  // code: tc/outcomes/outcome_table.cc OutcomeTable::Ask
           atomic { GONE; fence = me; state[me] = FENCE; timestamp[me] = (mine == 1 -> 4 : FIRST_OF_SECOND + 2) };  // code: tc/outcomes/outcome_table.cc OutcomeTable::Ask
           publish(me)
        :: else
        fi;
        found = 0;
        again = 1;
#if defined(OMIT_outcome_look_again)
        break
#endif
     fi
  od;
  if
  :: committed ->
     if
     :: fence != 0 -> atomic { GONE; state[fence] = VOID }  // code: tc/outcomes/outcome_table.cc OutcomeTable::Ask
     :: else
     fi;
     atomic { life != mine || durable -> GONE; assert(!told_not); told_committed = 1 }  // model: the answer waits until it is durable
  :: else ->
     atomic { GONE; state_seen = state[fence] };  // code: tc/outcomes/outcome_table.cc OutcomeTable::Ask
     atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::Ask
       GONE;
#if defined(OMIT_outcome_horizon_after)
       known = 1
#else
       known = (state_seen == ANSWERED || horizon <= NOT_BEFORE)
#endif
     };
     if
     :: known ->
        atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::Ask
          GONE;
          if
          :: state[fence] == state_seen -> state[fence] = ANSWERED
          :: else
          fi
        };
        atomic { GONE; assert(!told_committed && !appended); told_not = 1 }  // model: the answer
     :: else
     fi
  fi;
too_old:
dead:
  atomic { seen = 0; place = 0; found = 0; fence = 0; mine = 0; known = 0; state_seen = 0; put = 0; again = 0; committed = 0 }  // model: ends
}

#if CUTS
// Before the log is cut.
proctype Forgetter() {
  byte seen, place, mine;
  bit put, cut;
  atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::ForgetBelow
    mine = life;
    if
    :: inactive && durable -> cut = 1  // above X's record
    :: cut = 0
    fi
  };
  do
  :: place < SLOTS ->
     atomic { GONE; seen = slot[place] };  // code: tc/outcomes/outcome_table.cc OutcomeTable::ForgetBelow
     if
     :: seen != 0 && IS_X(seen) && !(IS_COMMIT(seen)) -> put_out(place, 0)  // its window is over
     :: seen != 0 && IS_X(seen) && state[seen] == COMMITTED && cut -> put_out(place, 0)
#if OTHERS
     :: seen != 0 && !IS_X(seen) -> put_out(place, 0)
#endif
     :: !(seen != 0 && IS_X(seen) && state[seen] == COMMITTED && cut) -> seen = 0
     fi;
     place++
  :: else -> break
  od;
  put = 0;
#if !defined(OMIT_outcome_log_horizon)
  atomic { GONE; logged_horizon = horizon };  // code: tc/outcomes/outcome_table.cc OutcomeTable::ForgetBelow
#endif
  if
  :: cut -> atomic { GONE; forgotten = 1 }  // model: the log is cut
  :: else
  fi;
dead:
  atomic { seen = 0; place = 0; mine = 0; put = 0; cut = 0 }  // model: ends
}
#endif

#if CRASHES
proctype Crash() {
  byte i;
  if
  :: atomic {  // code: tc/outcomes/outcome_table.cc OutcomeTable::Recover, OutcomeTable::OutcomeTable
       life = 2;
       do
       :: i < SLOTS -> slot[i] = 0; i++
       :: else -> i = 0; break
       od;
       next = 0;
       horizon = logged_horizon;
#if defined(OMIT_outcome_lives)
       fence_horizon = 0;
#else
       fence_horizon = FIRST_OF_SECOND;
#endif
       if
       :: appended && !durable -> appended = 0; inactive = 0  // it was not written, and nobody was told
       :: appended -> durable = 1; inactive = 1;
          if
          :: !forgotten -> state[X_FIRST] = COMMITTED; slot[0] = X_FIRST; next = 1
          :: else
          fi
       :: else
       fi
     };
     run Committer(X_SECOND, 2)
  :: skip  // it never does
  fi
}
#endif

init {
  byte i;
  atomic {  // model: everybody begins
    run Committer(X_FIRST, 1);
#if OTHERS
    do
    :: i < OTHERS -> run Other(FIRST_OTHER + i); i++
    :: else -> i = 0; break
    od;
#endif
    do
    :: i < ASKERS -> run Asker(FIRST_FENCE + i); i++
    :: else -> i = 0; break
    od;
#if CUTS
    run Forgetter();
#endif
#if CRASHES
    run Crash();
#endif
    i = 0
  }
}
