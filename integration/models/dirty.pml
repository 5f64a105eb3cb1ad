// checkpoint.*: the mark of a dirty page, under updates of the page, its consolidation, the page evictor's flush, and checkpoints of which some find
// no room on the disk.
//
// One leaf with an image. An update reads the page's head inside its guard, marks the page unless the head tells that it is marked, and puts its delta
// on the head by compare-and-swap; the loser starts over with the new head. A checkpoint reads its position (the updates that have returned), takes
// the mark, waits for the guards held then, and writes the page if it is taken and dirty. Then it takes the mark twice more (for inner pages) and is
// complete. The image has everything below the mark of its flush.
// A flush puts its mark on the head, or takes the mark of a flush that was given up, if that is the head: then the head stays, and an update that has
// read it before goes on top.
// Left out: inner pages, splits and merges (`moved`); that other updates go to other pages of the same word; evicted pages, which are clean; the mark
// that a consolidation sets, without which all is as well.
// Bounds: UPDATES, CHECKPOINTS, FAILURES of their writes, FLUSHES of the page evictor, CONSOLIDATIONS, of which each may be the load of a stub instead.
// Properties: a complete checkpoint has each update that had returned when it read its position. At the end, the page is clean or marked.
#ifndef UPDATES
#define UPDATES 2
#endif
#ifndef CHECKPOINTS
#define CHECKPOINTS 3
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifndef FLUSHES
#define FLUSHES 1
#endif
#ifndef CONSOLIDATIONS
#define CONSOLIDATIONS 1
#endif
#define BIT(n) (1 << (n))
#define DIRTY (content != image)

#define BASE 0
#define RECORD 1
#define FLUSH_MARK 2

// The page: the updates in its chain and in its image, as bits. `heads` numbers its heads; `kind` is that of the newest.
byte content, image, heads, kind;
bit claimed;          // of the image: one flush at a time
bit marked, taken;    // the mark; a checkpoint has taken it, and no pass was complete since
byte returned;        // updates that have returned
byte guards, before;  // guards held; those held when the checkpoint began to wait, and still held
byte updated, finished;

// The mark of a flush that was given up is used again.
inline PlaceMark(below) {
  atomic {  // code: dc/bwtree/page_flusher.cc PageFlusher::PlaceMark
    below = content;
    if
    :: kind == FLUSH_MARK -> skip
    :: else -> kind = FLUSH_MARK; heads++
    fi
  }
}

proctype Update(byte me) {
  byte head;
  bit tells;
  atomic { guards = guards | BIT(me) };  // code: dc/bwtree/update.cc BwTree::Update
again:
  atomic { head = heads; tells = (kind == RECORD) };  // code: dc/bwtree/update.cc BwTree::Update
#if !defined(OMIT_checkpoint_mark_dirty)
  if
  :: tells -> skip
  :: else -> atomic { marked = 1 }  // code: dc/bwtree/mapping_table.h MappingTable::MarkDirty; dc/bwtree/bwtree.h BwTree::Change
  fi;
#endif
  atomic {  // code: dc/bwtree/bwtree.h BwTree::Change
    if
    :: head == heads -> content = content | BIT(me); kind = RECORD; heads++; head = 0
    :: else -> goto again
    fi
  };
  atomic { guards = guards & ~BIT(me); before = before & ~BIT(me); returned = returned | BIT(me); updated++ }  // code: dc/bwtree/update.cc BwTree::Update
}

// The chain becomes a base page with the same state, or the same chain on the page that was loaded.
proctype Consolidation() {
  byte head, left = CONSOLIDATIONS;
  do
  :: left > 0 ->
     atomic { head = heads; left-- };  // code: dc/bwtree/consolidate.cc BwTree::Consolidate
     atomic {  // code: dc/bwtree/consolidate.cc BwTree::ReplaceByBase
       if
       :: head == heads -> kind = BASE; heads++
       :: head == heads -> heads++  // a load: copies of the stub's deltas and marks; dc/bwtree/page_load.cc BwTree::FinishLoad
       :: else
       fi;
       head = 0
     }
  :: else -> break
  od
}

// The page evictor writes the page. It may find no room.
proctype Flusher() {
  byte below, left = FLUSHES;
  do
  :: atomic { left > 0 && !claimed && DIRTY -> claimed = 1; left-- };  // code: dc/bwtree/page_flusher.cc PageFlusher::AddIfReady
     PlaceMark(below);
     atomic {  // code: dc/bwtree/page_flusher.cc PageFlusher::Register, PageFlusher::GiveUp
       if
       :: image = below
       :: skip
       fi;
       claimed = 0;
       below = 0
     }
  :: finished == CHECKPOINTS -> break
  :: left == 0 -> break
  od
}

proctype Checkpointer() {
  byte position, below, number, failures = FAILURES;
  bit failed;
  do
  :: number < CHECKPOINTS ->
     atomic { position = returned };  // code: dc/checkpoint/checkpointer.cc Checkpointer::Take
     atomic { taken = taken | marked; marked = 0; before = guards };  // code: dc/checkpoint/checkpointer.cc Checkpointer::TakeMarks
#if !defined(OMIT_checkpoint_wait_for_marks)
     atomic { before == 0 };  // code: dc/checkpoint/checkpointer.cc Checkpointer::TakeDirtyPages, Checkpointer::WaitForGuards
#endif
     // The visit.
     if
     :: atomic { taken && DIRTY && !claimed -> claimed = 1 };  // code: dc/bwtree/page_flusher.cc PageFlusher::AddIfReady
        PlaceMark(below);
        atomic {  // code: dc/bwtree/page_flusher.cc PageFlusher::Register, PageFlusher::GiveUp
          if
          :: image = below
          :: failures > 0 -> failures--; failed = 1
          fi;
          claimed = 0;
          below = 0
        }
     :: atomic { !taken || !DIRTY -> skip }  // code: dc/bwtree/walk.cc BwTree::VisitPages; dc/bwtree/page_flusher.cc PageFlusher::Add
     fi;
     atomic {  // code: dc/checkpoint/checkpointer.cc Checkpointer::WriteDirtyPages
       if
#if defined(OMIT_checkpoint_keep_marks)
       :: taken = 0
#else
       :: !failed -> taken = 0
       :: failed -> skip
#endif
       fi
     };
     atomic { taken = taken | marked; marked = 0 };  // code: dc/checkpoint/checkpointer.cc Checkpointer::WriteDirtyPages, Checkpointer::TakeMarks
     if
     :: failed -> skip
     :: else ->
        atomic { taken = taken | marked; marked = 0 };  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure, Checkpointer::TakeMarks
        atomic { assert((image & position) == position) }  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure
#if defined(OMIT_checkpoint_keep_marks)
        atomic { taken = 0 }  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure
#endif
     fi;
     atomic { failed = 0; position = 0; number++; finished++ }  // model: the next checkpoint
  :: else -> break
  od;
  atomic { updated == UPDATES && !claimed -> assert(!DIRTY || marked || taken) }  // model: the end
}

init {
  byte i;
  atomic {  // model: the page is clean
    do
    :: i < UPDATES -> run Update(i); i++
    :: else -> break
    od;
    run Consolidation();
    run Flusher();
    run Checkpointer()
  }
}
