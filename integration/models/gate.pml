// The gate in front of transactions (rules P: while ranges are exchanged nothing is open), and who waits at it.
//
// TRANSACTIONS threads claim a slot, look at the gate, and give the slot back and wait if it is closed. One thread closes the gate, waits until
// no slot is claimed, exchanges, opens it, TIMES times. A wait is a futex: it sleeps if the word is still what the caller has seen.
// Properties: during the exchange no transaction is open; nobody sleeps for ever.
// Bounds: TRANSACTIONS, each REPEATS times; TIMES.
#ifndef TRANSACTIONS
#define TRANSACTIONS 2
#endif
#ifndef REPEATS
#define REPEATS 2
#endif
#ifndef TIMES
#define TIMES 2
#endif
#define THREADS (TRANSACTIONS + 1)
#define CLOSER TRANSACTIONS
// Words: the claims of the slots (one word in the code, which only read-modify-writes change), then
#define CLOSED TRANSACTIONS
#define ENDED (TRANSACTIONS + 1)
#define WORDS (TRANSACTIONS + 2)
#include "store_buffer.inc"

bit sleeps[THREADS];
bit in_transaction[TRANSACTIONS];
bit exchanging;

#define NO_CLAIM (mem[0] == 0 && mem[TRANSACTIONS - 1] == 0 && mem[TRANSACTIONS / 2] == 0)

inline release_bit() {
  atomic { DRAINED(me) -> mem[me] = 0 };  // code: tc/txn/active_transactions.cc ActiveTransactions::ReleaseBit
#if !defined(OMIT_P_wake_closer)
  atomic { closed = LOAD(me, CLOSED) };  // code: tc/txn/active_transactions.cc ActiveTransactions::ReleaseBit
  if
  :: closed ->
     atomic { DRAINED(me) -> mem[ENDED] = mem[ENDED] + 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::ReleaseBit
     atomic { sleeps[CLOSER] = 0 }  // model: WakeAll(ended_)
  :: else
  fi;
#endif
  closed = 0
}

proctype Transaction(byte me) {
  byte times;
  bit closed;
  do
  :: times < REPEATS ->
claim:
#if defined(OMIT_P_claim_ordered)
     // The claim is not sequentially consistent.
     atomic { STORE_PLAIN(me, me, 1) };  // code: tc/txn/active_transactions.cc ActiveTransactions::ClaimBit
#elif !defined(OMIT_P_claim_first)
     atomic { DRAINED(me) -> mem[me] = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::ClaimBit, ActiveTransactions::Claim
#endif
     atomic { closed = LOAD(me, CLOSED) };  // code: tc/txn/active_transactions.cc ActiveTransactions::Claim
     if
     :: closed ->
#if !defined(OMIT_P_claim_first)
        release_bit();
#endif
        // Wait(gate_closed_, 1).
        atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::Claim
          if
          :: mem[CLOSED] == 1 -> sleeps[me] = 1
          :: else
          fi
        };
        atomic { !sleeps[me] };  // model: asleep
        goto claim
     :: else
     fi;
#if defined(OMIT_P_claim_first)
     atomic { DRAINED(me) -> mem[me] = 1 };  // code: tc/txn/active_transactions.cc ActiveTransactions::ClaimBit
#endif
     atomic { in_transaction[me] = 1; assert(!exchanging) };  // model: it is open
     atomic { in_transaction[me] = 0 };  // model: and has ended
     release_bit();
     times++
  :: else -> break
  od
}

proctype Closer(byte me) {
  byte times, ended, t;
  do
  :: times < TIMES ->
#if defined(OMIT_P_close_ordered)
     atomic { STORE_PLAIN(me, CLOSED, 1) };  // code: tc/txn/active_transactions.cc ActiveTransactions::CloseGate
#else
     atomic { STORE_SC(me, CLOSED, 1) };  // code: tc/txn/active_transactions.cc ActiveTransactions::CloseGate
#endif
     do
     ::
#if !defined(OMIT_P_ended_first)
        atomic { ended = LOAD(me, ENDED) };  // code: tc/txn/active_transactions.cc ActiveTransactions::CloseGate
#endif
        if
        :: atomic { NO_CLAIM -> break }  // code: tc/txn/active_transactions.cc ActiveTransactions::CloseGate, ActiveTransactions::open_transactions
        :: atomic { !NO_CLAIM }  // code: tc/txn/active_transactions.cc ActiveTransactions::open_transactions
        fi;
#if defined(OMIT_P_ended_first)
        atomic { ended = LOAD(me, ENDED) };  // code: tc/txn/active_transactions.cc ActiveTransactions::CloseGate
#endif
        // Wait(ended_, ended).
        atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::CloseGate
          if
          :: mem[ENDED] == ended -> sleeps[me] = 1
          :: else
          fi
        };
        atomic { !sleeps[me] }  // model: asleep
     od;
     atomic {  // model: the exchange
       exchanging = 1;
       t = 0;
       do
       :: t < TRANSACTIONS -> assert(!in_transaction[t]); t++
       :: else -> t = 0; break
       od
     };
     atomic { exchanging = 0; ended = 0 };  // code: tc/catalogue/range_exchange.cc RangeExchange::RunOnCollector, RangeExchange::CloseGate
     atomic { STORE_SC(me, CLOSED, 0) };  // code: tc/txn/active_transactions.cc ActiveTransactions::OpenGate
#if !defined(OMIT_P_wake_beginners)
     atomic {  // code: tc/txn/active_transactions.cc ActiveTransactions::OpenGate
       do
       :: t < TRANSACTIONS -> sleeps[t] = 0; t++
       :: else -> t = 0; break
       od
     };
#endif
     times++
  :: else -> break
  od
}

init {
  byte p;
  atomic {  // model: everybody begins
    do
    :: p < THREADS ->
       run Memory(p);
       if
       :: p < TRANSACTIONS -> run Transaction(p)
       :: else -> run Closer(p)
       fi;
       p++
    :: else -> break
    od
  }
}
