// Idempotent apply over consolidation (X1, X2): the flat timestamp of a page, the consolidation timestamp C, entries that come again.
//
// A log of UPDATES puts and deletes of two keys in any order of timestamps that a log may have (per key ascending, X2), after each a low-water
// record as high as it may be: all commits below it precede it. The stream applies it in order; with EARLY some low-water records are left out of
// the log, and updates that stand between two of those that are there may come before their turn, so many of them (helpers apply a run together), and what the next one supersedes may be left out (S3). At any time: an update comes again, straight to the
// tree; a reader consolidates (loads head, then C, builds, swaps); the page splits, and becomes one again; a page is written to disk, a checkpoint is taken; the stream
// begins anew from any place at or below what is applied; the DC crashes, comes back with the pages that it has written (none, if it never wrote
// one), and is sent all from the checkpoint's position.
// Left out: values and sequences, several records of one transaction, inner pages. A chain is its winner for each key; an insertion into it is
// what makes a compare-and-swap fail. A crash of the TC is a stream that begins anew: what was shipped is durable. The disk is a model of X6.
// Properties: whenever all that was ever sent is applied, the tree holds what the log up to there says, for both keys.
// That C goes back to 0 with a new stream in the same life of a DC can be left out without a counter-example: what is applied stays so.
// Bounds: UPDATES, AGAIN duplicates, STREAMS more streams, CRASHES, MERGES of the two pages; one consolidation at a time.
#ifndef UPDATES
#define UPDATES 3
#endif
#ifndef AGAIN
#define AGAIN 1
#endif
#ifndef STREAMS
#define STREAMS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef MERGES
#define MERGES 0
#endif
#ifndef EARLY
#define EARLY 0
#endif
#define END (2 * UPDATES)
#define INFINITE (UPDATES + 1)

// The log: entry 2i is update i, entry 2i + 1 the low-water record behind it. Timestamps are 1 to UPDATES.
byte ts_of[UPDATES];
bit key_of[UPDATES];
bit is_put[UPDATES + 1];  // by timestamp
byte low_water[UPDATES];

// The tree: page 0 has both keys, or key 0 once it was split. A record is its timestamp; 0: neither record nor tombstone.
byte record[2];
byte flat[2];
bit was_split;
byte consolidation;  // C
// The disk.
byte disk_record[2];
byte disk_flat;
bit disk_split;
byte right_record;  // the right half, which nobody finds before disk_split
byte right_flat;
bit right_is_there;
bit checkpointing;
bit in_checkpoint[2];
byte checkpoint_of;
byte stable;
// The stream.
byte applied;
byte next;  // the entry that is sent next
byte ever_sent;
byte again, streams, crashes;
#if EARLY
byte early;
#endif
#if MERGES
byte merges;
#endif
// The consolidation: 0 none, 1 has the head, 2 has C.
byte consolidating;
bit page;
bit head_changed;
byte seen_c;
byte seen_record[2];
byte seen_flat;

#define PAGE_OF(key) (was_split && key)
#define HAS(p, key) (!was_split || (p) == (key))

inline look() {
  if
  :: applied >= ever_sent ->
     for (k : 0 .. 1) {
       want = 0;
       for (i : 0 .. UPDATES - 1) {
         if
         :: 2 * i < applied && key_of[i] == k -> want = ts_of[i]
         :: else
         fi
       }
       want = (is_put[want] -> want : 0);
       have = (is_put[record[k]] -> record[k] : 0);
       assert(have == want)
     }
  :: else
  fi;
  k = 0; i = 0; want = 0; have = 0
}

inline apply(u) {
  key = key_of[u];
  t = ts_of[u];
#if defined(OMIT_X1_flat_hides)
  duplicate = 0;
#else
  duplicate = (t <= flat[PAGE_OF(key)]);
#endif
  if
  :: duplicate && t < consolidation  // it does not even get into the chain
  :: else ->
     if
     :: page == PAGE_OF(key) -> head_changed = 1
     :: else
     fi;
     if
     :: duplicate
#if defined(OMIT_X2_largest_wins)
     :: !duplicate -> record[key] = t
#else
     :: !duplicate && t > record[key] -> record[key] = t
     :: !duplicate && t <= record[key]
#endif
     fi
  fi;
  key = 0; t = 0; duplicate = 0
}

inline set_c(low) {
  if
  :: low > consolidation -> consolidation = low
  :: else
  fi
}

inline forget_checkpoint() {
  checkpointing = 0; checkpoint_of = 0; in_checkpoint[0] = 0; in_checkpoint[1] = 0
}

active proctype Stream() {
  byte u, t, k, i, want, have;
  bit key, duplicate;

  // Any log.
  atomic {  // model: the transactions; that low-water records stand where they may is L1, L2 and low_water's matter
    u = 0;
    do
    :: u < UPDATES ->
       select(t : 1 .. UPDATES);
       for (i : 0 .. UPDATES - 1) {
         if
         :: i < u && ts_of[i] == t -> i = 0; t = 0; break
         :: else
         fi
       }
       if
       :: t == 0 -> goto no_log
       :: else
       fi;
       ts_of[u] = t;
       if
       :: u != 0 -> key_of[u] = 1
       :: skip
       fi;
       for (i : 0 .. UPDATES - 1) {
         if
         :: i < u && key_of[i] == key_of[u] && ts_of[i] > t -> goto no_log
         :: else
         fi
       }
       if
       :: is_put[t] = 1
       :: skip
       fi;
       u++
    :: else -> break
    od;
    u = 0;
    do
    :: u < UPDATES ->
       // Everything below it precedes it.
       // code: tc/dc_link/shipper.cc Shipper::AppendLowWater
       low_water[u] = INFINITE;
#if defined(OMIT_X1_read_before_append)
       // The value is of a later time than the place.
       i = u + 2;
#else
       i = u + 1;
#endif
       do
       :: i < UPDATES ->
          low_water[u] = (ts_of[i] < low_water[u] -> ts_of[i] : low_water[u]);
          i++
       :: else -> break
       od;
#if EARLY
       if
       :: skip
       :: u + 1 < UPDATES -> low_water[u] = 0  // none there
       fi;
#endif
       u++
    :: else -> break
    od;
    u = 0; t = 0; i = 0; consolidating = 0; next = 0
  };
  do
  // The next entry.
  // code: dc/server/apply_stream.cc ApplyStream::Apply; dc/record_ops/record_apply.cc RecordOperations::ApplyBatch, RecordOperations::ApplyEntry
  :: atomic { next < END ->
       ever_sent = (next >= ever_sent -> next + 1 : ever_sent);
       if
       :: next < applied  // applied before: skipped
       :: next >= applied && next % 2 == 0 ->
          apply(next / 2);  // code: dc/bwtree/update.cc BwTree::Update; dc/bwtree/leaf_view.h IsDuplicate, Supersedes
          applied = next + 1
       :: next >= applied && next % 2 == 1 ->
          set_c(low_water[next / 2]);  // code: dc/record_ops/record_apply.cc RecordOperations::ApplyLowWater
          applied = next + 1
       fi;
       next++;
       look()
     }
#if defined(OMIT_X1_wait_for_stream)
  // The bound as soon as it is heard of.
  :: atomic { next < END ->  // code: dc/record_ops/record_apply.cc RecordOperations::ApplyLowWater
       select(u : 0 .. UPDATES - 1);
       if
       :: 2 * u + 1 > next -> set_c(low_water[u])
       :: else
       fi;
       u = 0
     }
#endif
  // An update comes again, in any order, past the stream's own look.
  :: atomic { again < AGAIN && ever_sent != 0 ->  // code: dc/bwtree/update.cc BwTree::Update
       again++;
       select(u : 0 .. UPDATES - 1);
       if
       :: 2 * u < ever_sent -> apply(u); look()
       :: else
       fi;
       u = 0
     }
#if EARLY
  // The next update of the run, before this one. It comes again when it is its turn, as any may. A low-water that does not wait for the whole
  // run is X1_wait_for_stream's counter-example.
  // code: dc/record_ops/record_apply.cc RecordOperations::ApplyRun; dc/record_ops/apply_team.cc ApplyTeam::TryRun
  :: atomic { early < EARLY && next >= applied && next % 2 == 0 && next + 2 < END && low_water[next / 2] == 0 ->
       early++;
       ever_sent = (next + 2 >= ever_sent -> next + 3 : ever_sent);
       apply(next / 2 + 1)
     }
  // The next update of the run has the same key: that one alone is applied (S3).
  // code: dc/record_ops/superseded_updates.cc SupersededUpdates::MoveNeededToFront
  :: atomic { next >= applied && next % 2 == 0 && next + 2 < END && low_water[next / 2] == 0 &&
              key_of[next / 2] == key_of[next / 2 + 1] ->
       ever_sent = (next + 2 >= ever_sent -> next + 3 : ever_sent);
#if defined(OMIT_S3_later_one_stays)
       apply(next / 2);
#else
       apply(next / 2 + 1);
#endif
       next = next + 3;
       applied = next;
       look()
     }
#endif
#if STREAMS
  // A new stream, of the same TC or of one that has started again.
  // code: dc/record_ops/record_apply.cc RecordOperations::BeginStream; dc/server/data_component_server.cc DataComponentServer::OpenApplyLog
  :: atomic { streams < STREAMS && applied != 0 ->
       streams++;
       consolidation = 0;
       select(next : 0 .. END - 1);
       next = (next > applied -> applied : next)
     }
#endif
#if CRASHES
  // The DC crashes; redo from the checkpoint.
  :: atomic { crashes < CRASHES && applied != 0 ->  // model: the crash
       crashes++;
       applied = stable;
       next = stable;
       record[0] = disk_record[0];
       record[1] = (disk_split -> right_record : disk_record[1]);
       flat[0] = disk_flat;
       flat[1] = (disk_split -> right_flat : 0);
       was_split = disk_split;
#if !defined(OMIT_X1_new_incarnation)
       consolidation = 0;
#endif
       consolidating = 0; page = 0; head_changed = 0; seen_c = 0;
       seen_record[0] = 0; seen_record[1] = 0; seen_flat = 0;
       forget_checkpoint();
       right_is_there = disk_split;
       if
       :: crashes == CRASHES ->  // nobody will look at the disk again
          stable = 0; disk_split = 0; right_is_there = 0;
          disk_record[0] = 0; disk_record[1] = 0; disk_flat = 0; right_record = 0; right_flat = 0
       :: else
       fi;
       look()
     }
#endif
  :: next == END -> break
  od;
no_log:
  skip
}

active proctype Reader() {
  byte k, i, want, have, dropped;
end:
  do
  :: atomic { consolidating == 0 && next != 0 ->  // code: dc/bwtree/consolidate.cc BwTree::Consolidate, BwTree::ConsolidateForReaders, BwTree::Move
       consolidating = 1;
       if
       :: page = 0
       :: was_split -> page = 1
       fi;
       head_changed = 0;
#if defined(OMIT_X1_same_head)
       seen_record[0] = record[0];
       seen_record[1] = record[1];
       seen_flat = flat[page]
#endif
     }
  :: atomic { consolidating == 1 ->  // code: dc/bwtree/consolidate.cc BwTree::BuildConsolidated
       consolidating = 2;
       seen_c = consolidation
     }
  :: atomic { consolidating == 2 ->  // code: dc/bwtree/consolidate.cc BwTree::ReplaceByBase, RaisedFlat
#if defined(OMIT_X1_same_head)
       for (k : 0 .. 1) {
         if
         :: HAS(page, k) -> record[k] = seen_record[k]
         :: else
         fi
       }
       flat[page] = seen_flat;
#else
       if
       :: head_changed -> goto lost
       :: else
       fi;
#endif
       for (k : 0 .. 1) {
         if
         :: HAS(page, k) && record[k] != 0 && !is_put[record[k]] && record[k] < seen_c ->
            dropped = (record[k] > dropped -> record[k] : dropped);
            record[k] = 0
         :: else
         fi
       }
#if defined(OMIT_X1_raise_flat)
       skip;
#elif defined(OMIT_X1_flat_is_max_dropped)
       flat[page] = (dropped != 0 && seen_c > flat[page] -> seen_c : flat[page]);
#else
       flat[page] = (dropped > flat[page] -> dropped : flat[page]);
#endif
lost:
       consolidating = 0; page = 0; head_changed = 0; seen_c = 0; k = 0; dropped = 0;
       seen_record[0] = 0; seen_record[1] = 0; seen_flat = 0;
       look()
     }
#if MERGES
#define MAY_SPLIT (!was_split && merges == 0)  // once: a second right half would be another page
#else
#define MAY_SPLIT !was_split
#endif
  :: atomic { MAY_SPLIT ->  // code: dc/bwtree/split.cc BwTree::SplitIfLarge, BwTree::ReplaceAndSplitIfLarge, BwTree::SplitRoot, BuildHalf
       was_split = 1;
       head_changed = 1;
#if defined(OMIT_X1_split_copies_flat)
       flat[1] = 0
#else
       flat[1] = flat[0]
#endif
     }
#if MERGES
#if defined(OMIT_X1_merge_below_bound)
#define MAY_MERGE was_split
#else
#define MAY_MERGE (was_split && (flat[0] == flat[1] || (flat[0] < consolidation && flat[1] < consolidation)))
#endif
  // The right page goes into the left one. A checkpoint then needs the left one anew.
  :: atomic { merges < MERGES && MAY_MERGE ->  // code: dc/bwtree/merge.cc BwTree::Merge, BwTree::Absorb; dc/bwtree/consolidate.cc BuildMerged
       merges++;
       was_split = 0;
       head_changed = 1;
#if !defined(OMIT_X1_merge_takes_larger_flat)
       flat[0] = (flat[1] > flat[0] -> flat[1] : flat[0]);
#endif
       flat[1] = 0;
       right_is_there = 0;
       in_checkpoint[0] = 0
     }
#endif
  od
}  // unreached: it never ends

#if CRASHES
active proctype Disk() {
end:
  do
  // A right half is on disk before the page that names it.
  :: atomic { crashes < CRASHES && was_split ->  // model: X6
       right_record = record[1];
       right_flat = flat[1];
       right_is_there = 1;
       in_checkpoint[1] = checkpointing
     }
  :: atomic { crashes < CRASHES && (!was_split || right_is_there) ->  // model: X6
       disk_record[0] = record[0];
       disk_flat = flat[0];
       disk_split = was_split;
       disk_record[1] = (was_split -> 0 : record[1]);
       in_checkpoint[0] = checkpointing;
       in_checkpoint[1] = (was_split -> in_checkpoint[1] : checkpointing)
     }
  :: atomic { crashes < CRASHES && !checkpointing && stable != applied ->  // model: X6, a checkpoint begins
       checkpoint_of = applied;
       checkpointing = 1
     }
  :: atomic { in_checkpoint[0] && in_checkpoint[1] ->  // model: X6, and is complete
#if defined(OMIT_X6_read_first)
       stable = applied;
#else
       stable = checkpoint_of;
#endif
       forget_checkpoint()
     }
  od
}  // unreached: it never ends
#endif
