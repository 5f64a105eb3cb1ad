// P with R1-R3: ranges that are replaced while transactions write, scan and scan for update, and the collector unlinks postings.
//
// Two keys; range 0 holds both, 1 and 2 one each, 3 both again, 4 and 5 one each. Change 1 splits 0 into 1 and 2, change 2 merges these into 3,
// change 3 splits that; FIRST and LAST say which of them happen. Who begins a change may stop for good at any step (unless COLLECTED): whoever meets a seal finishes it.
// Each of TRANSACTIONS transactions, of timestamps 1..TRANSACTIONS, chooses: a scan (none, plain, or SIX) over any keys, range by range, each
// looked up in the map of then; then writes a key, or none; then commits. It may stay open for as long as the changes take.
// MORE: all of that by each of them; else the first writes, perhaps after a SIX, and the later ones scan.
// PRECISE: a scan loses to a key that an earlier undecided writer has published (R8), else to every such writer of the range.
// COLLECTED: what has ended is applied and collected in order, its postings unlinked by the collector's book of ranges.
// All shared words are changed and loaded sequentially consistently: each step acts on memory at once. That old ranges stay while anybody looks
// at them is the reclamation domain's (model `reclamation`).
// Properties: a committed scan has seen, of each key in its bounds, the version of the latest committed earlier writer; a SIX that was granted
// excludes later readers until it ends; nobody waits for who has stopped; no posting of a collected transaction is left in the end.
#ifndef TRANSACTIONS
#define TRANSACTIONS 2
#endif
#ifndef FIRST
#define FIRST 1
#endif
#ifndef LAST
#define LAST 2
#endif
#define KEYS 2
#define ALL_KEYS 3
#define RANGES 6
#define OF(m, k) ((m) == 0 -> 0 : ((m) == 1 -> 1 + (k) : ((m) == 2 -> 3 : 4 + (k))))
#define KEYS_IN(r) ((r) == 1 || (r) == 4 -> 1 : ((r) == 2 || (r) == 5 -> 2 : ALL_KEYS))
#define IN_MAP(r) ((r) == 0 && map == 0 || ((r) == 1 || (r) == 2) && map == 1 || (r) == 3 && map == 2 || (r) > 3 && map == 3)
#define FIRST_OLD(c) ((c) == 1 -> 0 : ((c) == 2 -> 1 : 3))
#define LAST_OLD(c) ((c) == 1 -> 0 : ((c) == 2 -> 2 : 3))
#define FIRST_MADE(c) ((c) == 1 -> 1 : ((c) == 2 -> 3 : 4))
#define LAST_MADE(c) ((c) == 1 -> 2 : ((c) == 2 -> 3 : 5))
// In a list of postings: a bit for each transaction and each range in which it posted (its origin).
#define POSTING(t, o) (1 << ((t) * RANGES + (o)))
#define ALL_OF(t) (((1 << RANGES) - 1) << ((t) * RANGES))
#define HAS_POSTING(list, t) (((list) & ALL_OF(t)) != 0)

byte map = FIRST - 1;
byte change;  // that is under way; 0: none
byte last_read[RANGES];
bit sealed[RANGES];
bit marked[RANGES];
bit filled[RANGES];
short postings[RANGES];

#define ACTIVE 0
#define COMMITTED 1
#define ABORTED 2
byte status[TRANSACTIONS];
bit ended[TRANSACTIONS];
bit collected[TRANSACTIONS];
byte keys_of[TRANSACTIONS];   // published
byte posted[TRANSACTIONS];    // ranges
byte installed[KEYS];         // transactions that have a version in the chain
byte dc[KEYS];                // timestamp of the version applied
byte bounds[TRANSACTIONS];    // of what was scanned
byte found[TRANSACTIONS * KEYS];
byte granted[TRANSACTIONS];   // keys, of a SIX; until its transaction ends
byte done;
bit changed;                  // all changes are over

#define TS(t) ((t) + 1)
#define HAS(set, x) (((set) >> (x)) & 1)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

// Whoever comes here finishes change c. `stops`: it may stop at any step.
#define MAY_STOP if :: atomic { stops -> goto stopped } :: atomic { true } fi
inline finish(c) {
  if
  :: atomic { c != 0 && map == c - 1 }  // code: tc/mvcc/range_partition.cc RangePartition::Finish
     r = FIRST_OLD(c);
     do
     :: atomic {  // code: tc/mvcc/range_table.cc Range::Seal; tc/mvcc/range_partition.cc RangePartition::Finish
          r <= LAST_OLD(c);
#if !defined(OMIT_P_seal)
          sealed[r] = 1
#endif
        };
        atomic {  // code: tc/mvcc/range_table.cc Range::CloseToPosts; tc/mvcc/range_partition.cc RangePartition::Finish
#if !defined(OMIT_P_mark)
          marked[r] = 1;
#endif
          r++
        };
        MAY_STOP
     :: atomic { r > LAST_OLD(c) -> r = FIRST_MADE(c); break }  // model: all old ones are sealed
     od;
     do
     :: atomic { r <= LAST_MADE(c) };  // model: for each new one
        if
        :: atomic { !filled[r] }  // code: tc/mvcc/range_table.h Range::unfilled; tc/mvcc/range_partition.cc RangePartition::Finish
           // The sealed values and the old lists are final, and nobody looks at the new range yet: it does not matter when each is looked at.
           atomic {  // code: tc/mvcc/range_partition.cc RangePartition::Change::Fill, RangePartition::Change::Copied, RangePartition::Finish; tc/mvcc/range_table.cc Range::RaiseLastRead; tc/txn/transaction_record.h TransactionRecord::TryAddReference
#if !defined(OMIT_P_last_read)
             last_read[r] = MAX(last_read[r], MAX(last_read[FIRST_OLD(c)], last_read[LAST_OLD(c)]));
#endif
#if defined(OMIT_P_all_overlapped)
             copies = postings[FIRST_OLD(c)];
#elif !defined(OMIT_P_postings)
             copies = postings[FIRST_OLD(c)] | postings[LAST_OLD(c)];
#endif
             t = 0; o = 0;
             do
             :: t < TRANSACTIONS ->
                if
                :: collected[t] || status[t] == ABORTED -> copies = copies & ~ALL_OF(t)
#if defined(OMIT_P_copy_undecided)
                :: status[t] == ACTIVE -> copies = copies & ~ALL_OF(t)
#endif
                :: status[t] == COMMITTED && !(keys_of[t] & KEYS_IN(r)) -> copies = copies & ~ALL_OF(t)
                :: else
                fi;
#if !defined(OMIT_P_origin)
                do
                :: o < RANGES ->
                   copies = (KEYS_IN(o) & KEYS_IN(r) -> copies : copies & ~POSTING(t, o));
                   o++
                :: else -> o = 0; break
                od;
#endif
                t++
             :: else -> t = 0; break
             od
           };
           atomic {  // code: tc/mvcc/range_table.cc Range::TryFill
             if
             :: !filled[r] -> filled[r] = 1; postings[r] = copies
             :: else
             fi;
             copies = 0; r++
           }
        :: atomic { filled[r] -> r++ }  // code: tc/mvcc/range_table.h Range::unfilled
        fi
     :: atomic { r > LAST_MADE(c) -> break }  // model: all new ones are filled
     od;
     atomic {  // code: tc/mvcc/range_partition.cc RangePartition::Finish
       if
       :: map == c - 1 -> map = c
       :: else
       fi;
       r = 0
     }
  :: atomic { c == 0 || map != c - 1 }  // code: tc/mvcc/range_partition.cc RangePartition::Finish
  fi
}

// Who has met a sealed range.
#if defined(OMIT_P_help)
#define HELP atomic { map != m }
#else
#define HELP atomic { c = change }; finish(c); c = 0  // code: tc/mvcc/range_partition.cc RangePartition::FinishChange
#endif

proctype Transaction(byte me) {
  byte scan, keys, writes, k, m, on, t, o, r, c, seen, newest;
  short list, copies;
  bit stops;
  atomic {  // model: what it is going to do
#if defined(MORE)
    select(scan : 0 .. 2);
    select(writes : 0 .. 2);
#else
    if
    :: me == 0 ->
       if
       :: scan = 0
       :: scan = 2
       fi;
       select(writes : 1 .. 2)
    :: me > 0 -> scan = 1
    fi;
#endif
    if
    :: scan > 0 -> select(keys : 1 .. ALL_KEYS)
    :: else
    fi;
    k = 0
  };
stretch:
  if
  :: scan == 0 || keys == 0 -> scan = 0; k = 0; goto write
  :: else -> k = (keys & 1 -> 0 : 1)
  fi;
look:
  atomic { m = map; on = OF(m, k) };  // code: tc/record_manager/scan_gather.cc ScanGather::Look
  if
  :: scan == 2 && !HAS(posted[me], on) ->
     if
     :: atomic { !marked[on] -> postings[on] = postings[on] | POSTING(me, on); posted[me] = posted[me] | (1 << on) }  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather; tc/mvcc/range_table.cc Range::Post; tc/record_manager/transaction.h Transaction::Post
     :: atomic { marked[on] }  // code: tc/mvcc/range_table.cc Range::Post; tc/record_manager/scan_gather.cc ScanGather::Look
        HELP;
        goto look
     fi
  :: else
  fi;
  if
  :: atomic { !sealed[on] -> last_read[on] = MAX(last_read[on], TS(me)) }  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather; tc/mvcc/range_table.cc Range::RaiseLastRead
  :: atomic { sealed[on] }  // code: tc/mvcc/range_table.cc Range::RaiseLastRead; tc/record_manager/scan_gather.cc ScanGather::Look
     HELP;
     goto look
  fi;
  atomic { list = postings[on]; t = 0 };  // code: tc/mvcc/range_table.h Range::ForEachPosting
#if TRANSACTIONS > 1
  do
  :: t < me ->
     atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::GatherFrom, ScanGather::GatherKeys, ScanGather::FindPending
       if
       :: HAS_POSTING(list, t) && !collected[t] && status[t] == COMMITTED -> newest = newest | keys_of[t]
#if defined(PRECISE)
       :: HAS_POSTING(list, t) && status[t] == ACTIVE && (keys_of[t] & keys & KEYS_IN(on)) -> goto lose
#else
       :: HAS_POSTING(list, t) && status[t] == ACTIVE -> goto lose
#endif
       :: else
       fi;
       t++
     }
  :: else -> list = 0; t = 0; break
  od;
#endif
  atomic {  // code: tc/record_manager/scan_gather.cc ScanGather::RaiseAndGather; tc/mvcc/range_table.h Range::last_read
#if !defined(OMIT_R3_check_last)
    if
    :: scan == 2 && last_read[on] > TS(me) -> goto lose
    :: else
    fi;
#endif
    seen = keys & KEYS_IN(on);
    if
    :: scan == 2 -> granted[me] = granted[me] | seen
    :: else
    fi;
#if !defined(PRECISE)
    do
    :: t < TRANSACTIONS ->
       assert(!(t < me && (granted[t] & seen) && status[t] == ACTIVE));
       assert(!(t > me && (granted[me] & bounds[t])));
       t++
    :: else -> t = 0; break
    od;
#endif
    bounds[me] = bounds[me] | seen
  };
  // The DC, then the chains of the keys gathered; what they no longer show is asked of the DC again.
  do
  :: k < KEYS ->
     if
     :: HAS(seen, k) ->
        atomic { found[me * KEYS + k] = dc[k] };  // code: tc/record_manager/scan_path.cc ScanPath::RunAsOneAnswer; tc/record_manager/scan_ask.cc ScanAsk::AskDc
#if TRANSACTIONS > 1
        if
        :: HAS(newest, k) ->
           atomic {  // code: tc/record_manager/scan_resolve.cc ScanResolve::ResolveOne; tc/scan/scan_merge.cc ScanMerge::Run
             t = me;
             do
             :: t > 0 ->
                t--;
                if
                :: HAS(installed[k], t) && status[t] == COMMITTED -> found[me * KEYS + k] = MAX(found[me * KEYS + k], TS(t)); break
                :: else
                fi
#if defined(COLLECTED)
             :: else -> found[me * KEYS + k] = dc[k]; break
#endif
             od;
             t = 0
           }
        :: else
        fi
#endif
     :: else
     fi;
     k++
  :: else -> break
  od;
  atomic { keys = keys & (ALL_KEYS - seen); seen = 0; newest = 0; k = 0 };  // model: delivered; the scan goes on behind it
  goto stretch;

write:
  do
  :: k < KEYS && HAS(writes, k) ->
post:
     atomic { m = map; on = OF(m, k) };  // code: tc/record_manager/write_path.cc WritePath::PostIntent
     if
     :: atomic { HAS(posted[me], on) }  // code: tc/record_manager/transaction.h Transaction::Post
     :: atomic { !HAS(posted[me], on) && !marked[on] -> postings[on] = postings[on] | POSTING(me, on); posted[me] = posted[me] | (1 << on) }  // code: tc/record_manager/write_path.cc WritePath::PostIntent; tc/mvcc/range_table.cc Range::Post
     :: atomic { !HAS(posted[me], on) && marked[on] }  // code: tc/mvcc/range_table.cc Range::Post; tc/record_manager/write_path.cc WritePath::PostIntent
        HELP;
        goto post
     fi;
     atomic { keys_of[me] = keys_of[me] | (1 << k) };  // code: tc/txn/write_set.h WriteSet::Publish
     atomic {  // code: tc/record_manager/write_path.cc WritePath::ExamineHead, WritePath::SwapHead; tc/mvcc/version_chain.cc InstallVersion, LiveHead
       t = TRANSACTIONS;
       do
       :: t > 0 ->
          t--;
          if
          :: t != me && HAS(installed[k], t) && status[t] == ACTIVE -> goto lose
          :: t > me && HAS(installed[k], t) && status[t] == COMMITTED -> goto lose
          :: else
          fi
       :: else -> break
       od;
       installed[k] = installed[k] | (1 << me)
     };
#if !defined(OMIT_P_reload_map)
     if
     :: atomic { !sealed[on] ->  // code: tc/record_manager/write_path.cc WritePath::RangeRead; tc/mvcc/range_table.h Range::last_read_unless_sealed
          if
          :: last_read[on] > TS(me) -> goto lose
          :: else -> goto checked
          fi
        }
     :: atomic { sealed[on] }  // code: tc/mvcc/range_table.h Range::last_read_unless_sealed
     fi;
     atomic { on = OF(map, k) };  // code: tc/record_manager/write_path.cc WritePath::RangeRead
#endif
     atomic {  // code: tc/record_manager/write_path.cc WritePath::CheckReads, WritePath::RangeRead; tc/mvcc/range_table.h Range::last_read
       if
       :: last_read[on] > TS(me) -> goto lose
       :: else
       fi
     };
checked:
     k++
  :: k < KEYS && !HAS(writes, k) -> k++
  :: else -> break
  od;
  atomic { status[me] = COMMITTED };  // code: tc/record_manager/commit_path.cc CommitPath::Append, CommitPath::CommitWrites, CommitPath::CommitNothing; tc/txn/transaction_record.h TransactionRecord::TryStartCommit, TransactionRecord::FinishCommit
  goto finished;
lose:
  atomic { status[me] = ABORTED };  // code: tc/record_manager/commit_path.cc CommitPath::Abort; tc/txn/transaction_record.h TransactionRecord::TryAbort
finished:
  atomic {  // model: what is of no more use is forgotten
    ended[me] = 1; granted[me] = 0; done++;
    scan = 0; keys = 0; writes = 0; k = 0; m = 0; on = 0; t = 0; seen = 0; list = 0; newest = 0
  };
  goto over;
stopped:
  assert(0);  // unreached: only who begins a change stops
over:
  skip
}

proctype Changer() {
  byte now, r, t, o;
  short copies;
  bit stops;
#if !defined(COLLECTED)
  stops = 1;
#endif
  now = FIRST;
  do
  :: now <= LAST ->
     atomic { change = now };  // code: tc/mvcc/range_partition.cc RangePartition::Replace
     MAY_STOP;
     finish(now);
     atomic { change = 0 };  // code: tc/mvcc/range_partition.cc RangePartition::Replace
     now++
  :: else -> break
  od;
stopped:
  changed = 1
}

#if defined(COLLECTED)
// One after the other, as low-water lets it: whoever is earlier has ended.
proctype Collector() {
  byte t, r, n, book, k;
  do
  :: t < TRANSACTIONS ->
     atomic { ended[t] };  // model: finished
     k = 0;
     do
     :: k < KEYS ->
        if
        :: status[t] == COMMITTED && HAS(keys_of[t], k) && HAS(installed[k], t) -> atomic { dc[k] = TS(t) }  // model: the DC applies it
        :: else
        fi;
        k++
     :: else -> k = 0; break
     od;
     do
     :: k < KEYS -> atomic { installed[k] = installed[k] & (255 - (1 << t)) }; k++  // code: tc/mvcc/unlinker.cc Unlinker::CollectItems
     :: else -> k = 0; break
     od;
     atomic { collected[t] = 1; book = book | posted[t] };  // code: tc/mvcc/unlinker.cc Unlinker::ReleaseRecord
     t++
  :: atomic { book != 0 -> r = 0 }  // code: tc/mvcc/posting_book.cc PostingBook::Sweep, PostingBook::CheckNextRanges
     do
     :: r < RANGES && HAS(book, r) ->
        if
        :: atomic { sealed[r] && !IN_MAP(r) }  // code: tc/mvcc/posting_book.cc PostingBook::UnlinkOrHandOn; tc/mvcc/range_partition.cc RangePartition::Holds
#if !defined(OMIT_P_count_copies)
           atomic {  // code: tc/mvcc/posting_book.cc PostingBook::CountInSuccessors
             k = 0;
             do
             :: k < KEYS ->
                if
                :: HAS(KEYS_IN(r), k) -> n = n | (1 << OF(map, k))
                :: else
                fi;
                k++
             :: else -> k = 0; break
             od;
             book = book | n; n = 0
           };
#endif
           book = book & (255 - (1 << r))
        :: atomic { !(sealed[r] && !IN_MAP(r)) }  // code: tc/mvcc/posting_book.cc PostingBook::UnlinkOrHandOn
           n = 0;
           do
           :: n < t -> atomic { postings[r] = postings[r] & ~ALL_OF(n) }; n++  // code: tc/mvcc/range_table.h Range::RemovePostings
           :: else -> n = 0; break
           od;
           if
#if !defined(OMIT_P_sealed_after)
           :: atomic { sealed[r] }  // code: tc/mvcc/posting_book.cc PostingBook::UnlinkOrHandOn
#endif
#if defined(OMIT_P_sealed_after)
           :: book = book & (255 - (1 << r))
#else
           :: atomic { !sealed[r] }  // code: tc/mvcc/posting_book.cc PostingBook::UnlinkOrHandOn
              book = book & (255 - (1 << r))
#endif
           fi
        fi;
        r++
     :: r < RANGES && !HAS(book, r) -> r++
     :: else -> r = 0; break
     od
  :: t == TRANSACTIONS && book == 0 && changed -> break
  od;
  atomic {  // model: the property
    r = 0;
    do
    :: r < RANGES -> assert(!IN_MAP(r) || postings[r] == 0); r++
    :: else -> break
    od
  }
}
#endif

proctype Check() {
  byte r, w, k, newest;
  bit wrote;
  d_step {  // model: the property
    done == TRANSACTIONS ->
    do
    :: r < TRANSACTIONS ->
       k = 0;
       do
       :: k < KEYS ->
          newest = 0; w = 0;
          do
          :: w < r ->
             wrote = HAS(keys_of[w], k);
             if
             :: status[w] == COMMITTED && wrote -> newest = TS(w)
             :: else
             fi;
             w++
          :: else -> break
          od;
          assert(status[r] != COMMITTED || !HAS(bounds[r], k) || found[r * KEYS + k] == newest);
          k++
       :: else -> break
       od;
       r++
    :: else -> break
    od
  }
}

init {
  byte p;
  atomic {  // model: everybody begins
    filled[0] = 1; filled[1] = (FIRST == 2); filled[2] = (FIRST == 2);
    run Changer();
    do
    :: p < TRANSACTIONS -> run Transaction(p); p++
    :: else -> break
    od;
#if defined(COLLECTED)
    run Collector();
#endif
    run Check()
  }
}
