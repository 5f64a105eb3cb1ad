// checkpoint.*: the two lineages of a DC's checkpoints, under a writer that exchanges images, crashes, a damaged file, and a folder that cannot be
// synced.
//
// The files 1 and 2 are complete and begin the lineages; they are there when all begins. A file has some pages' images, and a range: all pages, or
// one. A writer exchanges images of any page, with a mark before and after. A checkpoint takes the marks, captures, waits for the writer's guard,
// takes the marks again; its file is there in one step (X6, S2 are about that). The DC crashes between any two steps. At a crash any file may be
// damaged; a start passes over what it cannot read, and the scrubber may look. After a start that has passed over a file, the removal of its name
// may fail once.
// Left out: ids that are new, freed or reused; segments (a part is there while a kept checkpoint names it: S2); files of another try.
// Bounds: FILES, CHANGES of images, CRASHES, DAMAGES.
// Properties: a checkpoint has, with its ancestors, each image that was current when its second capture began, or a later one, and none of another
// history; each of them can be opened, unless it was damaged and nobody has found that yet; a start finds one that can be opened.
#ifndef FILES
#define FILES 6
#endif
#ifndef CHANGES
#define CHANGES 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef DAMAGES
#define DAMAGES 1
#endif
#define PAGES 2
#define ALL 3               // both pages, as bits
#define BIT(n) (1 << (n))
#define HAS(set, n) ((((set) >> (n)) & 1) == 1)
#define AT(f, p) content[(f) * PAGES + (p)]
#define RUNNING (1 - newest_lineage)

// Memory. A page's image is its version; versions ascend, also over crashes.
byte image[PAGES];
byte versions = 1;
byte marks;
byte life;
bit guard, guard_before;    // the writer's guard; it was held when the checkpoint began to wait, and is still
// The lineages: files, pages that have changed, the next range. Sets of files and of pages are bits.
byte files[2], changed[2], next_range[2];
bit newest_lineage;
byte captured[PAGES];       // 0: not captured
bit distrusted;             // the scrubber has found damage, and no checkpoint was completed since
byte newest, before_newest; // the two checkpoints that are kept
byte passed_over;

// The disk.
byte exists, damaged;
byte ancestors[FILES + 1], previous[FILES + 1], range[FILES + 1], recent[FILES + 1];
byte content[(FILES + 1) * PAGES];  // 0: the file has no record of the page
byte damages;
bit found;                  // a start or the scrubber has found the damage

#define LINEAGE(f) (ancestors[f] | BIT(f))
#define READABLE(f) ((LINEAGE(f) & exists & ~damaged) == LINEAGE(f))

inline mark(p) { marks = marks | BIT(p) }

proctype Writer() {
  byte p, left = CHANGES, mine;
  do
  :: left > 0 ->
     atomic {  // code: dc/bwtree/mapping_table.cc MappingTable::SetImage
       left--;
       if
       :: p = 0
       :: p = 1
       fi;
       mine = life;
       guard = 1;
#if !defined(OMIT_checkpoint_mark_before)
       mark(p)
#endif
     };
     atomic {  // code: dc/bwtree/mapping_table.cc MappingTable::SetImage
       if
       :: mine == life -> versions++; image[p] = versions
       :: else
       fi
     };
     atomic {  // code: dc/bwtree/mapping_table.cc MappingTable::SetImage
       if
       :: mine == life ->
#if !defined(OMIT_checkpoint_mark_after)
          mark(p);
#endif
          guard = 0;
          guard_before = 0
       :: else
       fi;
       p = 0;
       mine = 0
     }
  :: else -> break
  od
}

// Takes the marks of `which` pages.
inline take_marks(which) {
  changed[RUNNING] = changed[RUNNING] | (marks & which);
#if !defined(OMIT_checkpoint_both_lineages)
  changed[newest_lineage] = changed[newest_lineage] | (marks & which);
#endif
  marks = marks & ~(which)
}

// together: the pages of which some file of the set has the range.
inline ranges_of(set, together) {
  together = 0;
  f = 1;
  do
  :: f <= FILES ->
     together = together | (HAS(set, f) -> range[f] : 0);
     f++
  :: else -> break
  od
}

// highest: the highest file of the set that is not above `limit`; 0: none.
inline highest_of(set, limit, highest) {
  highest = limit;
  do
  :: highest == 0 || HAS(set, highest) -> break
  :: else -> highest--  // unreached: in the fall-back, because with one damaged file no checkpoint between two kept ones was passed over
  od
}

// version: the one that checkpoint `number` has of page p.
inline look_up(number, version) {
  f = number;
  version = 0;
  do
  :: f == 0 || version != 0 -> break
  :: else ->
     version = (HAS(LINEAGE(number), f) -> AT(f, p) : 0);
     f--
  od
}

proctype DataComponent() {
  byte f, p, number, together, left = CRASHES, version, set;
  byte least[PAGES];
  bit shortage;
start:
  atomic {  // code: dc/checkpoint/recovery.cc RecoverPages, ForgetUnusable; dc/page_store/checkpoint_set.cc CheckpointSet::Open
    highest_of(exists, FILES, number);
    passed_over = 0;
    if
    :: READABLE(number) -> skip
    :: else ->
       passed_over = BIT(number);
       found = 1;
       highest_of(exists, number - 1, number)
    fi;
    assert(number > 0 && READABLE(number));
    newest = number;
    before_newest = 0;
    newest_lineage = 0;
    files[0] = LINEAGE(number);
    files[1] = previous[number];
#if !defined(OMIT_checkpoint_fresh_lineage)
    files[1] = (passed_over != 0 -> 0 : files[1]);
#endif
    files[1] = ((files[1] & exists) == files[1] -> files[1] : 0);
    changed[0] = 0;
    changed[1] = 0;
    next_range[0] = 0;
    next_range[1] = (range[number] == 1 -> 1 : 0);
#if defined(OMIT_checkpoint_recent_changes)
    marks = 0;
#else
    marks = recent[number];
#endif
    p = 0;
    do
    :: p < PAGES ->
       look_up(number, version);
       image[p] = version;
       p++
    :: else -> break
    od;
    p = 0; f = 0; number = 0; version = 0
  };
  do
  :: newest < FILES && passed_over < BIT(FILES) ->
     if
     :: (damaged & exists) != 0 && !found && !READABLE(newest) || (damaged & exists) != 0 && !found && before_newest != 0 && !READABLE(before_newest) ->
        atomic { distrusted = 1; found = 1 }  // code: dc/scrubber/checkpoint_scrub.cc ScrubCheckpoints; dc/checkpoint/checkpointer.h Checkpointer::ReplaceFiles
     :: skip
     fi;
     if
     :: left > 0 -> goto crash
     :: skip
     fi;
     atomic {  // code: dc/checkpoint/checkpoint_lineages.cc CheckpointLineages::ForgetFiles, CheckpointLineages::Begin
       highest_of(exists, FILES, number);
       number++;
       take_marks(ALL);
       captured[0] = 0;
       captured[1] = 0;
#if !defined(OMIT_checkpoint_replace_damaged)
       files[0] = (distrusted -> 0 : files[0]);
       files[1] = (distrusted -> 0 : files[1]);
#endif
       range[number] = (files[RUNNING] == 0 -> ALL : BIT(next_range[RUNNING]))
     };
     p = 0;
     do
     :: p < PAGES ->
        atomic {  // code: dc/checkpoint/checkpoint_lineages.cc CheckpointLineages::Capture
          captured[p] = (HAS(range[number] | changed[RUNNING], p) -> image[p] : 0);
          p++
        }
     :: else -> break
     od;
     atomic { guard_before = guard };  // code: dc/checkpoint/checkpointer.cc Checkpointer::WaitForGuards
     atomic {  // code: dc/checkpoint/checkpointer.cc Checkpointer::WaitForGuards, Checkpointer::CaptureStructure
       !guard_before;
       least[0] = image[0];
       least[1] = image[1];
       p = 0
     };
     do
     :: p < PAGES ->
        atomic {  // code: dc/checkpoint/checkpoint_lineages.cc CheckpointLineages::End
          version = (HAS(marks, p) -> 1 : 0);
          take_marks(BIT(p))
        };
        atomic {  // code: dc/checkpoint/checkpoint_lineages.cc CheckpointLineages::End
          captured[p] = (version == 1 -> image[p] : captured[p]);
          p++;
          version = 0
        }
     :: else -> break
     od;
     if
     :: left > 0 -> goto crash
     :: skip
     fi;
     atomic {  // code: dc/checkpoint/checkpoint_lineages.cc CheckpointLineages::SetAncestors, CheckpointLineages::FillHead; dc/page_store/checkpoint_lineage.cc DropSuperfluous
       AT(number, 0) = captured[0];
       AT(number, 1) = captured[1];
       set = files[RUNNING] | BIT(number);
       p = 1;
       do
       :: p < number ->
          if
          :: HAS(set, p) ->
             ranges_of(set & ~BIT(p), together);
#if !defined(OMIT_checkpoint_drop_covered)
             if
             :: together != ALL -> break
             :: else
             fi;
#endif
             set = set & ~BIT(p)
          :: else
          fi;
          p++
       :: else -> break
       od;
       ancestors[number] = set & ~BIT(number);
       previous[number] = files[newest_lineage];
       recent[number] = changed[newest_lineage];
       together = 0; set = 0; f = 0; p = 0
     };
     atomic {  // code: dc/checkpoint/checkpointer.cc Checkpointer::WriteFile; dc/page_store/checkpoint_set.cc CheckpointSet::Complete
       exists = exists | BIT(number);
       before_newest = newest;
       newest = number;
       assert(READABLE(number) || (damaged != 0 && !found));
       do
       :: p < PAGES ->
          look_up(number, version);
          assert(version >= least[p] && version <= image[p]);
          least[p] = 0;
          captured[p] = 0;
          p++
       :: else -> break
       od;
       if
       :: passed_over != 0 -> shortage = 1
       :: shortage = 0
       fi;
       if
#if defined(OMIT_checkpoint_count_completed)
       :: shortage -> skip
#endif
       :: else ->
          files[RUNNING] = LINEAGE(number);
          changed[RUNNING] = 0;
          next_range[RUNNING] = (range[number] == 1 -> 1 : 0);
          newest_lineage = RUNNING
       fi;
       distrusted = 0;
       p = 0; f = 0; version = 0; number = 0
     };
     if
     :: shortage -> shortage = 0  // model: the next checkpoint removes it
     :: else ->
        atomic {  // code: dc/page_store/checkpoint_set.cc CheckpointSet::RemovePassedOver
          exists = exists & ~passed_over;
          passed_over = 0
        };
        atomic {  // code: dc/page_store/checkpoint_set.cc CheckpointSet::RemoveOld, CheckpointSet::IsKept
#if defined(OMIT_checkpoint_keep_ancestors)
          set = BIT(newest) | BIT(before_newest);
#else
          set = LINEAGE(newest) | LINEAGE(before_newest);
#endif
          exists = exists & set;
          set = 0
        }
     fi
  :: else -> break
  od;
  goto ended;
crash:
  atomic {  // model: memory is lost; a file may be damaged meanwhile
    left--;
    life++;
    marks = 0;
    guard = 0;
    guard_before = 0;
    found = (distrusted -> 0 : found);
    distrusted = 0;
    captured[0] = 0; captured[1] = 0;
    least[0] = 0; least[1] = 0;
    f = 1;
    do
    :: f <= FILES && damages < DAMAGES && HAS(exists, f) -> damages++; damaged = BIT(f); break
    :: f <= FILES -> f++
    :: f > FILES -> break
    od;
    f = 0; p = 0; number = 0
  };
  goto start;
ended:
  skip
}

init {
  atomic {  // model: the first two checkpoints are there
    exists = BIT(1) | BIT(2);
    range[1] = ALL;
    range[2] = ALL;
    AT(1, 0) = 1; AT(1, 1) = 1;
    AT(2, 0) = 1; AT(2, 1) = 1;
    previous[2] = BIT(1);
    run Writer();
    run DataComponent()
  }
}
