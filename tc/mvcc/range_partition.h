// RangePartition: the present ranges of a table, and how some of them are replaced by others while transactions go on (rules P).
//
// A change replaces, at each of its places, k neighbours by m new ranges with the same outer bounds: one by two (a split), two by one (a
//   merge), or more. It is prepared invisibly: the new ranges, still unfilled, and the whole new map. Then it is published, and from there
//   on anybody can finish it; each step is idempotent:
//   1. Seal each old range: SEALED in last_read (raises fail from then on), then the mark in the head of its postings (posts fail).
//   2. Each new range: last_read = max of the sealed values of the old ones at its place; postings = copies, built by whoever finishes and
//      put in by compare-and-swap from `unfilled`; who loses throws its copies away. Copied is every live posting of the old ranges at its
//      place whose origin (the range in which it was posted) overlaps the new range, once: not what is aborted or collected; of a committed
//      transaction only if it wrote a key in the new range's bounds (its write set is final); of an undecided one always. Without the origin
//      what is undecided would spread with every merge, to where nobody looks for it when it is collected.
//   3. Swing the map by compare-and-swap from the old one to the new one. Whoever loses finds it swung.
//   Whoever meets a seal (a raise or a post that fails) finishes the change, then starts over with the map that is there now. So nobody
//   waits for the thread that began the change. That thread alone takes the change down again, and retires the old map and ranges.
// Who finishes looks whether the map is still the change's old one *after* it has found the change, under one guard: then the old ranges
//   are not retired yet and stay for the guard's life; else there is nothing left to do.
//
// Why it is sound. W, earlier, writes key x; R, later, reads bounds with x in them. B is a range that W checks, of the map loaded *after*
//   x was published (R1 step 2); A the one that R raised and looked at, unsealed at the raise.
//   (W may check the range it posted in without a look at the map, if that range's last_read, loaded after the publication, is not sealed: ranges
//   are sealed before the map is swung, so the map of that moment has it.)
//   A = B: R1 and R2, as ever. Sealing takes nothing away: last_read only grows, and postings leave only when collected.
//   A is older: A was sealed after the raise, so B's last_read contains it, and W loses.
//   A is newer: the map with A was there only after W had loaded its map, so after x was published; W's posting, in B or an older range,
//     precedes the mark of that range (a post on a marked range fails), its origin
//     holds x, W was undecided at each copy or had x in its write set, so A has it; R
//     looks and finds W and x. (If W had been collected by then, the DC has it.)
//   R3: a SIX that posted on A may find A sealed when it raises: then it starts over, and posts, raises, looks and checks on one range. Sealed
//     after the raise: its posting is copied, so a later reader of the new range meets it; one that raised A before shows in A's last_read.
//   A scan may finish the bounds of the range it raised and looked at; it goes on at its resume key in the map of then.
//   T1: who drops raises the table's word, then loads the map: writers that published before have their postings in these ranges.
// Collected meanwhile: see tc/mvcc/posting_book.h; a range that was not sealed after postings were unlinked from it was not copied with them.
// Thread-safety: Replace and Recut: one thread at a time, all else any, under a guard of the domain.
// Ownership: owns the present ranges and the map; retires what is replaced.
#ifndef TC_MVCC_RANGE_PARTITION_H_
#define TC_MVCC_RANGE_PARTITION_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/range_table.h"

namespace deut::tc {

class RangePartition {
 public:
  // The ranges [first, first + count) of the present map go; in their place come those with these cuts, which lie inside their bounds.
  struct Place {
    size_t first = 0;
    size_t count = 1;
    std::vector<std::string> cuts = {};
  };
  // What one change may copy, about, and how many places it may have: so its window is short.
  static constexpr size_t kCopiesAtOnce = 1024;
  static constexpr size_t kPlacesAtOnce = 64;

  // `copies`: counts the copied postings in its ranges (S9); null: nobody does.
  explicit RangePartition(std::shared_ptr<std::atomic<uint64_t>> copies = nullptr);
  // REQUIRES: no postings are left, nobody uses it.
  ~RangePartition();
  RangePartition(const RangePartition&) = delete;
  RangePartition& operator=(const RangePartition&) = delete;

  // REQUIRES: a guard, for as long as the map is used.
  const RangeMap& map() const { return *map_.load(std::memory_order_seq_cst); }
  // For who has met a sealed range of a map loaded under the guard it holds: the change that sealed it is done afterwards.
  void Help() const;
  // Whether the range, of this partition, is in the present map. REQUIRES: a guard, a reference to the range.
  bool Holds(const Range& range) const;

  // One change. `places` ascend and do not overlap. Answers how long ranges were sealed that no new map replaced yet.
  Duration Replace(Runtime& runtime, ReclamationDomain& domain, const std::vector<Place>& places);
  // As many changes as it takes until the ranges are those with these cuts: first splits, then merges. Answers the longest.
  Duration Recut(Runtime& runtime, ReclamationDomain& domain, const std::vector<std::string>& cuts);

 private:
  struct Change;

  void Finish(const Change& change) const;
  // The next splits on the way to these cuts: a range with many postings is halved, and what is left of its cuts comes with the next call.
  std::vector<Place> Splits(ReclamationDomain& domain, const std::vector<std::string>& cuts) const;
  Duration ReplaceInSteps(Runtime& runtime, ReclamationDomain& domain, std::vector<Place> places);

  const std::shared_ptr<std::atomic<uint64_t>> copies_;
  // Swung and published by const helpers, too.
  mutable std::atomic<const RangeMap*> map_;
  std::atomic<const Change*> change_{nullptr};
};

}  // namespace deut::tc

#endif  // TC_MVCC_RANGE_PARTITION_H_
