// Recovery of the redo log (D2): the cut, what is made durable again, the scan past the break, over lives that end at any step.
//
// A life walks the chain, scans past its break, writes again what nothing proves to be durable, removes the files behind the chain, opens a segment
// of its own (a header, then the end-of-epoch record, then blocks of commits), and serves once the record is durable. Its writes are in flight
// together and complete in any order. A crash of the process leaves what is in flight to arrive whenever it likes, or never; a loss of power
// drops it, and of what could be read but was not durable yet each block stays or goes. With ROT (and power lost at each crash), one durable block
// that a later one proves to have been durable becomes unreadable; recovery is then to refuse.
// Left out: several segments of one life, trimming, recycled files, the bytes: a block is readable or not, a checksum is its writer and place. The
// walk and the scan are one step (what arrives between them changes nothing: it proves no more than what was there). Rot of the cut and a late write
// together can deceive recovery, if the lengths agree. Clients' bytes that are shaped like blocks are no blocks here: they bear no seal. Predecessors' checksums can be left out without a counter-example: bytes are not modelled.
// Properties: a chain holds all that anybody was told of (an acknowledged block; the whole chain of a life that has served), and nothing that such a
// life had left out; a log that is not damaged is not refused, a damaged one is.
// Bounds: LIVES, each of a header, a record and DATA blocks.
#ifndef LIVES
#define LIVES 3
#endif
#ifndef DATA
#define DATA 1
#endif
#ifndef ROT
#define ROT 0
#endif
#define SLOTS (2 + DATA)
#define BLOCKS (LIVES * SLOTS)
#define NOTHING 0
#define READABLE 1  // and not durable
#define DURABLE 2
#define AT(s, i) ((s) * SLOTS + (i))
#define CHECKSUM(s, i) (writer[s] * SLOTS + (i) + 1)
#define NO_LIMIT 255

// Files, by number: who wrote one (life plus one; 0: there is none), its header; its blocks.
byte writer[LIVES];
byte epoch[LIVES];
byte first_lsn[LIVES];
byte predecessor[LIVES];
byte block[BLOCKS];
bit in_flight[BLOCKS];
byte said_durable[BLOCKS];  // the durable LSN in the block's header
// What was told of a block: it stays, or it is gone. By life and slot.
bit told[BLOCKS], gone[BLOCKS];
// The life that runs. 0 walks, 1 writes again, 2 removes, 3 opens, 4 appends.
byte life, phase;
byte files;                 // of the chain, then its own number
byte end_lsn, last, top_epoch;
bit unproven[BLOCKS];
bit in_chain[BLOCKS];       // by life and slot
byte submitted, front;      // slots of its segment
byte durable;
bit rotten, refused;

inline note_unproven(b, what) {
  // code: tc/redo_log/recovery.cc Recovery::NoteUnproven
  proof[b] = what;
  unproven[b] = 1;
  for (j : 0 .. BLOCKS - 1) {
    unproven[j] = (unproven[j] && !(j != b && proof[j] <= said_durable[b]))
  }
  j = 0
}

inline walk() {
  // code: tc/redo_log/recovery.cc Recovery::WalkChain, Recovery::Continues
  do
  :: files < LIVES && writer[files] != 0 && block[AT(files, 0)] != NOTHING && first_lsn[files] == end_lsn &&
#if !defined(OMIT_log_predecessor)
     predecessor[files] == last &&
#endif
#if !defined(OMIT_D2_life_begins_with_cut)
     (files == 0 || epoch[files] == chain_epoch || block[AT(files, 1)] != NOTHING) &&
#endif
     epoch[files] >= chain_epoch ->
     // code: tc/redo_log/recovery.cc Recovery::WalkSegment
     s = files;
     note_unproven(AT(s, 0), end_lsn + 1);
     last = CHECKSUM(s, 0);
     chain_epoch = epoch[s];
     limit = NO_LIMIT;
#if !defined(OMIT_D2_log_cut)
     if
     :: s + 1 < LIVES && writer[s + 1] != 0 && block[AT(s + 1, 0)] != NOTHING && block[AT(s + 1, 1)] != NOTHING && epoch[s + 1] > chain_epoch ->
        limit = first_lsn[s + 1]
     :: else
     fi;
#endif
     i = 1;
     do
     :: end_lsn != limit && i < SLOTS && block[AT(s, i)] != NOTHING ->
        end_lsn++;  // code: tc/redo_log/recovery.cc Recovery::TakeBlock
        last = CHECKSUM(s, i);
        in_chain[AT(writer[s] - 1, i)] = 1;
        note_unproven(AT(s, i), end_lsn);
        i++
     :: else -> break
     od;
     refused = refused || (limit != NO_LIMIT && (end_lsn > limit || (end_lsn == limit && predecessor[s + 1] != last)));
     broken = i;
     files++
  :: else -> break
  od;
  // code: tc/redo_log/recovery.cc Recovery::ScanPastBreak
  for (s : 0 .. LIVES - 1) {
    for (i : 0 .. SLOTS - 1) {
      if
      :: writer[s] != 0 && block[AT(s, i)] != NOTHING && (s >= files || (s + 1 == files && i >= broken)) && epoch[s] >= chain_epoch ->
#if !defined(OMIT_D2_scan_past_break)
         refused = refused || said_durable[AT(s, i)] > end_lsn;
#endif
         top_epoch = (epoch[s] > top_epoch -> epoch[s] : top_epoch)
      :: else
      fi
    }
  }
  top_epoch = (chain_epoch > top_epoch -> chain_epoch : top_epoch)
}

inline forget() {
  for (i : 0 .. BLOCKS - 1) {
    unproven[i] = 0;
    in_chain[i] = 0
  }
  i = 0;
  phase = 0; files = 0; end_lsn = 0; last = 0; top_epoch = 0; submitted = 0; front = 0; durable = 0
}

active proctype Tc() {
  byte s, i, j, limit, chain_epoch, broken;
  byte proof[BLOCKS];
  bit power;
end:
  do
  :: atomic { !refused && phase == 0 ->  // code: tc/redo_log/recovery.cc RecoverChain
       walk();
       assert(!refused || rotten);
       if
       :: !refused ->
          for (i : 0 .. BLOCKS - 1) {
            assert(!told[i] || in_chain[i]);
            assert(!gone[i] || !in_chain[i])
          }
       :: else
       fi;
       s = 0; i = 0; limit = 0; chain_epoch = 0; broken = 0;
       for (i : 0 .. BLOCKS - 1) {
         proof[i] = 0
       }
       i = 0;
       phase = 1
     }
  // In the chain's order.
  :: atomic { !refused && phase == 1 ->  // code: tc/redo_log/recovery.cc RewriteUnprovenBlocks; tc/redo_log/redo_log.cc RedoLog::Open
       do
       :: i < BLOCKS && !unproven[i] -> i++
       :: else -> break
       od;
       if
       :: i < BLOCKS ->
          unproven[i] = 0;
#if !defined(OMIT_D2_write_again)
          block[i] = DURABLE
#endif
       :: else -> phase = 2
       fi;
       i = 0
     }
  // Newest first.
  :: atomic { !refused && phase == 2 ->  // code: tc/redo_log/log_folder.cc RemoveStale
       s = LIVES;
       do
       :: s > files && writer[s - 1] == 0 -> s--
       :: else -> break
       od;
       if
       :: s > files ->
          s--;
          writer[s] = 0; epoch[s] = 0; first_lsn[s] = 0; predecessor[s] = 0;
          for (i : 0 .. SLOTS - 1) {
            block[AT(s, i)] = NOTHING; in_flight[AT(s, i)] = 0; said_durable[AT(s, i)] = 0
          }
          i = 0
       :: else -> phase = 3
       fi;
       s = 0
     }
  :: atomic { !refused && phase == 3 ->  // code: tc/redo_log/redo_log.cc NextEpochState, RedoLog::StartWriting; tc/redo_log/log_writer.cc LogWriter::OpenNextSegment
       writer[files] = life + 1;
#if defined(OMIT_D2_higher_epoch)
       epoch[files] = top_epoch;
#else
       epoch[files] = top_epoch + 1;
#endif
       first_lsn[files] = end_lsn;
       predecessor[files] = last;
       durable = end_lsn;
       said_durable[AT(files, 0)] = durable;
       in_flight[AT(files, 0)] = 1;
       submitted = 1;
       phase = 4
     }
  // The end of the epoch before, and commits once it serves.
  :: atomic { phase == 4 && submitted < SLOTS && (submitted == 1 || front >= 2) ->  // code: tc/redo_log/log_writer.cc LogWriter::FormRecords
       said_durable[AT(files, submitted)] = durable;
       in_flight[AT(files, submitted)] = 1;
       submitted++
     }
  // Completed blocks at the front are durable. The first record: from here on it serves.
  // code: tc/redo_log/log_writer.cc LogWriter::HandleCompletions; tc/redo_log/redo_log.cc RedoLog::StartWriting
  :: atomic { phase == 4 && front < submitted && !in_flight[AT(files, front)] ->
       if
       :: front >= 1 ->
          durable++;
          told[AT(life, front)] = 1
       :: else
       fi;
       if
       :: front == 1 ->
          for (i : 0 .. BLOCKS - 1) {
            if
            :: i < AT(life, 0) && in_chain[i] -> told[i] = 1
            :: i < AT(life, 0) && !in_chain[i] -> gone[i] = 1
            :: else
            fi
          }
          i = 0
       :: else
       fi;
       front++
     }
  // The end of the life.
  :: atomic { !refused && life + 1 < LIVES ->  // model: a crash
       life++;
#if ROT
       power = 1;
#else
       if
       :: power = 0
       :: power = 1
       fi;
#endif
       for (i : 0 .. BLOCKS - 1) {
         if
         :: power ->
            in_flight[i] = 0;
            if
            :: block[i] == READABLE -> block[i] = NOTHING
            :: block[i] == READABLE -> block[i] = DURABLE
            :: else
            fi
         :: else
         fi
       }
       power = 0;
       forget()
     }
  od
}  // unreached: it never ends

active proctype Device() {
  byte b;
end:
  do
  :: atomic {  // model: a write can be read, and is durable, in two steps or in one
       select(b : 0 .. BLOCKS - 1);
       if
       :: in_flight[b] && block[b] == NOTHING -> block[b] = READABLE
       :: in_flight[b] -> block[b] = DURABLE; in_flight[b] = 0
       :: else
       fi;
       b = 0
     }
#if ROT
  // Not in the short while in which recovery replaces what proves it by what it writes itself.
  :: atomic { !rotten && (phase == 0 || phase == 4) ->  // model: rot
       select(b : 0 .. BLOCKS - 2);
       if
       :: block[b] == DURABLE && !in_flight[b] && block[b + 1] == DURABLE &&
          said_durable[b + 1] >= first_lsn[b / SLOTS] + (b % SLOTS == 0 -> 1 : b % SLOTS) ->
          block[b] = NOTHING;
          rotten = 1
       :: else
       fi;
       b = 0
     }
#endif
  od
}  // unreached: it never ends
