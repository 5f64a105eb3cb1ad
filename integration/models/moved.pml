// checkpoint.*, merge.parent_after_child: an update whose page is merged away around the pass of a checkpoint.
//
// Leaf R has an update that its image lacks, and is marked; its left neighbour L and their parent P are clean. A merge takes its steps inside one guard:
// R is removed, P loses its term, L absorbs R, P becomes dirty once more. R's image is freed when the guard has ended. A checkpoint takes the marks, waits
// for guards, visits R, L and P, each if it was taken; takes the marks again, and visits P; closes the gate, waits for guards, takes the marks
// once more, and visits P. P is written after L if L's bounds have changed. P is no root, which would be visited in any case.
// Left out: splits; merges that are undone; that other threads take the remaining steps of the merge.
// Bounds: CHECKPOINTS, FAILURES of the pass, FLUSHES of each leaf by the page evictor.
// Properties: a complete checkpoint has the update in the image of a page that P's image names; and P's image names R if, and only if, L's image ends
// where R begins.
#ifndef CHECKPOINTS
#define CHECKPOINTS 2
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifndef FLUSHES
#define FLUSHES 2
#endif
#define R 0
#define L 1
#define P 2

bit has[2], image_has[2];   // the leaf in memory, and its image, have the update
bit removed;                // R's head is a RemoveDelta
bit wide, image_wide;       // L in memory, and its image, have absorbed R
bit names, image_names;     // P in memory, and its image, name R
bit dirty;                  // P
byte changes;               // of P: its head is another one
bit claimed[2];
bit marked[3], taken[3];
bit merging, gate_closed;   // the merge's guard is held
byte finished;
#define DIRTY(leaf) (has[leaf] != image_has[leaf] || (leaf == L && wide != image_wide))

inline Mark(page) {
#if !defined(OMIT_checkpoint_mark_dirty)
  atomic { marked[page] = 1 }  // code: dc/bwtree/mapping_table.h MappingTable::MarkDirty; dc/bwtree/bwtree.h BwTree::Change
#else
  skip
#endif
}

proctype Merge() {
  atomic { merging = 1 };  // code: dc/bwtree/merge.cc BwTree::MergePages
#if !defined(OMIT_checkpoint_gate)
  if
  :: atomic { gate_closed -> goto out }  // code: dc/bwtree/merge.cc BwTree::Merge; dc/bwtree/smo_gate.h SmoGate::closed
  :: atomic { !gate_closed -> skip }  // code: dc/bwtree/merge.cc BwTree::Merge
  fi;
#endif
  atomic { !claimed[R] -> claimed[R] = 1 };  // code: dc/bwtree/merge.cc BwTree::Merge
  atomic { removed = 1 };  // code: dc/bwtree/merge.cc BwTree::Merge
  Mark(P);
  atomic { names = 0; dirty = 1; changes++ };  // code: dc/bwtree/merge.cc BwTree::Unlink
  Mark(L);
  atomic { has[L] = has[L] | has[R]; wide = 1 };  // code: dc/bwtree/merge.cc BwTree::Absorb
#if !defined(OMIT_merge_parent_after_child)
  Mark(P);
  atomic { dirty = 1; changes++ };  // code: dc/bwtree/merge.cc BwTree::MarkParentDirty
#endif
out:
  atomic { merging = 0 };  // code: dc/bwtree/merge.cc BwTree::MergePages
  if
  :: atomic { removed -> has[R] = 0; image_has[R] = 0 }  // code: dc/bwtree/merge.cc BwTree::Merge
  :: else
  fi
}

// The page evictor writes the leaves.
proctype Flusher(byte leaf) {
  bit below, bounds;
  byte left = FLUSHES;
  do
  :: atomic { left > 0 && !claimed[leaf] && DIRTY(leaf) -> claimed[leaf] = 1; left-- };  // code: dc/bwtree/page_flusher.cc PageFlusher::AddIfReady
     atomic { below = has[leaf]; bounds = wide };  // code: dc/bwtree/page_flusher.cc PageFlusher::PlaceMark
     atomic {  // code: dc/bwtree/page_flusher.cc PageFlusher::Register
       image_has[leaf] = below;
       if
       :: leaf == L -> image_wide = bounds
       :: else
       fi;
       claimed[leaf] = 0;
       below = 0;
       bounds = 0
     }
  :: finished == CHECKPOINTS -> break
  :: left == 0 -> break
  od
}

inline TakeMarks() {
  atomic {  // code: dc/checkpoint/checkpointer.cc Checkpointer::TakeMarks
    taken[R] = taken[R] | marked[R]; marked[R] = 0;
    taken[L] = taken[L] | marked[L]; marked[L] = 0;
    taken[P] = taken[P] | marked[P]; marked[P] = 0
  }
}

// The leaf was claimed in the step before.
inline WriteLeaf(leaf) {
  atomic { below = has[leaf]; bounds = wide };  // code: dc/bwtree/page_flusher.cc PageFlusher::PlaceMark
  atomic {  // code: dc/bwtree/page_flusher.cc PageFlusher::Register
    image_has[leaf] = below;
    if
    :: leaf == L -> image_wide = bounds
    :: else
    fi;
    claimed[leaf] = 0
  }
}

// A leaf that another thread has claimed is retried. One that is removed is not visited: a merge that was met is finished first.
inline VisitLeaf(leaf) {
  if
  :: atomic { taken[leaf] && (leaf == L || (names && !removed)) && DIRTY(leaf) && !claimed[leaf] -> claimed[leaf] = 1 };  // code: dc/bwtree/walk.cc BwTree::VisitPages; dc/bwtree/page_flusher.cc PageFlusher::AddIfReady
     WriteLeaf(leaf)
  :: atomic { !taken[leaf] || !DIRTY(leaf) || (leaf == R && (!names || (removed && has[L]))) -> skip }  // code: dc/bwtree/walk.cc BwTree::VisitPages
  fi
}

inline VisitParent() {
  do
  :: atomic { !taken[P] || !dirty -> break }  // code: dc/bwtree/walk.cc BwTree::VisitPages; dc/bwtree/page_flusher.cc PageFlusher::Add
  :: atomic { taken[P] && dirty && wide != image_wide && !claimed[L] -> claimed[L] = 1 };  // code: dc/bwtree/page_flusher.cc PageFlusher::CollectPrerequisites
     WriteLeaf(L)
  :: atomic { taken[P] && dirty && wide == image_wide -> below = names; seen = changes };  // code: dc/bwtree/page_flusher.cc PageFlusher::AddClaimed, PageFlusher::CollectPrerequisites
     atomic {  // code: dc/bwtree/page_flusher.cc PageFlusher::Register
       image_names = below;
       if
       :: seen == changes -> dirty = 0
       :: else
       fi
     }
  od
}

proctype Checkpointer() {
  bit below, bounds, failed;
  byte seen, failures = FAILURES;
  do
  :: finished < CHECKPOINTS ->
     TakeMarks();
     atomic { !merging -> skip };  // code: dc/checkpoint/checkpointer.cc Checkpointer::TakeDirtyPages, Checkpointer::WaitForGuards
     if
     :: VisitLeaf(R); VisitLeaf(L); VisitParent()  // code: dc/checkpoint/checkpointer.cc Checkpointer::WritePages
     :: atomic { failures > 0 -> failures--; failed = 1 }
     fi;
     atomic {  // code: dc/checkpoint/checkpointer.cc Checkpointer::WriteDirtyPages
       if
       :: !failed -> taken[R] = 0; taken[L] = 0; taken[P] = 0
       :: else
       fi
     };
     TakeMarks();
     if
     :: failed -> skip
     :: else ->
        VisitParent();  // code: dc/checkpoint/checkpointer.cc Checkpointer::WriteDirtyPages, Checkpointer::WriteStructure
        atomic { gate_closed = 1 };  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure
        atomic { !merging -> skip };  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure, Checkpointer::WaitForGuards
#if !defined(OMIT_checkpoint_take_structure)
        TakeMarks();
#endif
        VisitParent();  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure, Checkpointer::WriteStructure
        atomic {  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure
          assert(image_has[L] || (image_names && image_has[R]));
          assert(image_names == !image_wide)
        };
        atomic { gate_closed = 0 }  // code: dc/checkpoint/checkpointer.cc Checkpointer::CaptureStructure
     fi;
     atomic { failed = 0; below = 0; bounds = 0; seen = 0; finished++ }  // model: the next checkpoint
  :: else -> break
  od
}

init {
  atomic {  // model: the update has returned
    has[R] = 1;
    marked[R] = 1;
    names = 1;
    image_names = 1;
    run Merge();
    run Flusher(R);
    run Flusher(L);
    run Checkpointer()
  }
}
