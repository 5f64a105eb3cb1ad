// R5, R6: a bucket of the record table grows into a branch, and one of the branch's buckets into another, under insertions, a reader and a removal.
//
// Keys A and B share their buckets on levels 0 and 1 and part on level 2; C always goes with A. B, then C are there when all begins, and B may be
// removed. Two writers insert A, each where it has looked at the whole chain; the first, of timestamp 1, then checks the floors. A reader of
// timestamp 2 looks for A, raises the floor, looks again. A looker looks for C, once. A grower makes one branch, then the other, when it likes. A walk is a step for each link. Removal and growth take the
// structure into their hands, one at a time.
// Bounds: one writer, with the reader; with TWO_WRITERS, or with LOOKER, these in the reader's place.
// Properties: at the end a look finds the one live entry of A, and B's if it is live; the looker finds C; a reader that found nothing has made the
// first writer lose.
#define NONE 0
#define ENTRIES 4
#define BRANCH 9
#define KEY_A 1
#define KEY_B 2
#define KEY_C 3
// The processes under a guard.
#define WRITER_1 1
#define WRITER_2 2
#define READER 4
#define LOOKER_ 8

byte made;
byte key[ENTRIES + 1];
bit dead[ENTRIES + 1];
byte even[ENTRIES + 1];  // the links of levels 0 and 2
byte odd[ENTRIES + 1];   // of level 1
// Buckets: 0 on level 0, 1 on level 1, 2 and 3 on level 2.
byte head[4];
byte floor[4];
byte inside;             // guards that are held
byte waits_for;          // guards from before the first growth, still held
bit structure;
bit committed, reader_absent;
byte ended;

#define BUCKET(k) ((k) == KEY_B -> 3 : 2)
#define ENTER(me) inside = inside | me
#define LEAVE(me) inside = inside & ~me; waits_for = waits_for & ~me

// Level 0, then, if that is a branch, level 1, then level 2 (the key's own). One step: heads change only from a chain to a branch.
inline locate(k) {
  b = 0;
  if
  :: head[0] == BRANCH -> b = 1;
     if
     :: head[1] == BRANCH -> b = BUCKET(k)
     :: else
     fi
  :: else
  fi;
  first = head[b]
}

inline follow() {
  e = (b == 1 -> odd[e] : even[e])
}

// e: the live entry of the key in the chain from `first` on.
inline walk(k) {
  e = first;
  do
  :: atomic {  // code: tc/mvcc/record_table.cc RecordTable::FindIn
       if
       :: e == NONE || (key[e] == k && !dead[e]) -> break
       :: else -> follow()
       fi
     }
  od
}

proctype Writer(byte me) {
  byte b, first, e, seen;
  atomic { ENTER(me) };  // code: tc/record_manager/write_path.cc WritePath::Install
find_or_create:
  atomic { locate(KEY_A) };  // code: tc/mvcc/record_table.cc RecordTable::Locate
  walk(KEY_A);
  if
  :: e == NONE ->
     atomic {  // code: tc/mvcc/record_table.cc RecordTable::FindOrCreate
       if
       :: head[b] == first ->
          made++; e = made; key[e] = KEY_A;
          if
          :: b == 1 -> odd[e] = first
          :: else -> even[e] = first
          fi;
          head[b] = e
       :: else -> goto find_or_create
       fi
     }
  :: else
  fi;
  if
  :: me == WRITER_2 -> goto out
  :: else
  fi;
  // Install, then the check: of each bucket on the way, from the first level on.
  b = 0;
  seen = 0;
  do
  :: atomic {  // code: tc/mvcc/record_table.cc RecordTable::Floor
#if defined(OMIT_R6_floors_on_the_way)
       if
       :: head[b] != BRANCH && floor[b] > seen -> seen = floor[b]
       :: else
       fi;
#else
       if
       :: floor[b] > seen -> seen = floor[b]
       :: else
       fi;
#endif
       if
       :: head[b] != BRANCH -> break
       :: head[b] == BRANCH && b == 0 -> b = 1
       :: head[b] == BRANCH && b == 1 -> b = BUCKET(KEY_A)
       fi
     }
  od;
  committed = (seen < 1 -> 1 : 0);  // code: tc/record_manager/write_path.cc WritePath::CheckReads
out:
  atomic { LEAVE(me); ended++; b = 0; first = 0; e = 0; seen = 0 }  // model: the guard ends; what is of no more use is forgotten
}

#if !defined(TWO_WRITERS) && !defined(LOOKER)
#define READS
#endif

#if defined(READS)
proctype Reader() {
  byte b, first, e;
  atomic { ENTER(READER) };  // code: tc/record_manager/read_path.cc ReadPath::Look
  atomic { locate(KEY_A) };  // code: tc/mvcc/record_table.cc RecordTable::Locate
  walk(KEY_A);
  if
  :: e == NONE ->
     atomic { floor[b] = 2 };  // code: tc/mvcc/record_table.cc RecordTable::Raise
     atomic {  // code: tc/mvcc/record_table.h RecordTable::FindAgain
       if
       :: head[b] == first -> reader_absent = 1; goto out
       :: else
       fi
     };
     atomic { locate(KEY_A) };  // code: tc/mvcc/record_table.cc RecordTable::Find
     walk(KEY_A);
     reader_absent = (e == NONE -> 1 : 0)
  :: else
  fi;
out:
  atomic { LEAVE(READER); ended++; b = 0; first = 0; e = 0 }  // model: the guard ends; what is of no more use is forgotten
}

#endif

#if defined(LOOKER)
proctype Looker() {
  byte b, first, e;
  atomic { ENTER(LOOKER_) };  // code: tc/record_manager/read_path.cc ReadPath::Look
  atomic { locate(KEY_C) };  // code: tc/mvcc/record_table.cc RecordTable::Locate
  walk(KEY_C);
  assert(e != NONE);
  atomic { LEAVE(LOOKER_); ended++; b = 0; first = 0; e = 0 }  // model: the guard ends; what is of no more use is forgotten
}
#endif

// Links all entries of the chain from `from` on, up to `moved`, into the buckets of the next level.
inline link_anew(level) {
  e = from;
  do
  :: e != moved ->
     if
     :: level == 0 -> odd[e] = target[0]; target[0] = e; e = even[e]
     :: level == 1 -> even[e] = target[BUCKET(key[e]) - 2]; target[BUCKET(key[e]) - 2] = e; e = odd[e]
     fi
  :: else -> break
  od
}

inline take_structure() {
#if defined(OMIT_R5_one_at_a_time)
  skip
#else
  atomic { !structure -> structure = 1 }  // code: tc/mvcc/record_table.cc RecordTable::Grow, RecordTable::Remove
#endif
}

proctype Grower() {
  byte from, e, moved, level;
  byte target[2];
  do
  :: level < 2 ->
#if !defined(OMIT_R5_grow_settled)
     atomic { level == 0 || waits_for == 0 };  // code: tc/mvcc/record_table.cc RecordTable::Grow
#endif
     take_structure();
     moved = NONE;
     target[0] = NONE;
     target[1] = NONE;
     from = head[level];
     do
     :: atomic { link_anew(level) };  // code: tc/mvcc/record_table.cc RecordTable::Grow
        moved = from;
        atomic {  // code: tc/mvcc/record_table.cc RecordTable::Grow
          if
#if defined(OMIT_R5_grow_swap)
          :: true ->
#else
          :: head[level] == from ->
#endif
             if
             :: level == 0 -> head[1] = target[0]; waits_for = inside
             :: level == 1 -> head[2] = target[0]; head[3] = target[1]
             fi;
             head[level] = BRANCH;
             break
#if !defined(OMIT_R5_grow_swap)
          :: else -> from = head[level]
#endif
          fi
        }
     od;
     atomic { structure = 0; level++; from = 0; e = 0; moved = 0; target[0] = 0; target[1] = 0 }  // code: tc/mvcc/record_table.cc RecordTable::Grow
  :: level < 2 -> break
  :: level == 2 -> break
  od;
  atomic { ended++; level = 0 }  // model: what is of no more use is forgotten
}

proctype Remover() {
  byte b, first, e, k;
  if
  :: skip -> goto out
  :: skip
  fi;
  take_structure();
  dead[1] = 1;  // code: tc/mvcc/record_table.cc RecordTable::Remove
  atomic { locate(KEY_B) };  // code: tc/mvcc/record_table.cc RecordTable::Unlink
  do
  :: atomic {  // code: tc/mvcc/record_table.cc RecordTable::Unlink
       first = head[b];
       if
       :: first == 1 -> e = NONE
       :: else ->
          e = first;
          do
          :: (b == 1 -> odd[e] : even[e]) == 1 || e == NONE -> break
          :: else -> follow()
          od
       fi
     };
     atomic {  // code: tc/mvcc/record_table.cc RecordTable::Unlink
       k = (b == 1 -> odd[1] : even[1]);
       if
       :: e != NONE && b == 1 -> odd[e] = k; break
       :: e != NONE && b != 1 -> even[e] = k; break
       :: e == NONE && head[b] == 1 -> head[b] = k; break
       :: else  // an insertion came first
       fi
     }
  od;
  structure = 0;
out:
  atomic { ended++; b = 0; first = 0; e = 0; k = 0 }  // model: what is of no more use is forgotten
}

proctype Check() {
  byte b, first, e, live, found;
  ended == 4;
  atomic {  // model: the properties
    e = 1;
    do
    :: e <= made ->
       live = live + (key[e] == KEY_A && !dead[e] -> 1 : 0);
       e++
    :: else -> break
    od;
    assert(live == 1);  // of A: nobody removes it
    locate(KEY_A);
    e = first;
    do
    :: e != NONE && !(key[e] == KEY_A && !dead[e]) -> follow()
    :: else -> break
    od;
    assert(e != NONE);
    locate(KEY_B);
    e = first;
    do
    :: e != NONE && !(key[e] == KEY_B && !dead[e]) -> follow()
    :: else -> break
    od;
    assert(dead[1] || e == 1);
    assert(!(reader_absent && committed))
  }
}

init {
  atomic {  // model: B and C are there
    made = 2;
    key[1] = KEY_B;
    key[2] = KEY_C;
    head[0] = 1;
    even[1] = 2;
    run Writer(WRITER_1);
#if defined(TWO_WRITERS)
    run Writer(WRITER_2);
#elif defined(LOOKER)
    run Looker();
#else
    run Reader();
#endif
    run Grower();
    run Remover();
    run Check()
  }
}
