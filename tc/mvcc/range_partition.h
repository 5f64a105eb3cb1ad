// RangePartition: the present ranges of a table, and the change that replaces some of them while transactions go on (rules P).
//
// At each of its places a change replaces k neighbours by m new ranges with the same outer bounds. A split replaces one by two, a merge two by
//   one. One thread prepares it invisibly: the new ranges, still unfilled, and the whole new map. Then it publishes the change. From there on any
//   thread can finish it; each step is idempotent:
//   1. Seal each old range: SEALED in last_read (later raises fail), then the mark in the head of its postings (later posts fail).
//   2. Fill each new range. last_read = max of the sealed values of the old ranges at its place. Postings = copies, which each finishing thread
//      builds and tries to install by compare-and-swap from `unfilled`; a loser frees its copies. A copy is made, once, of every live posting
//      of the old ranges at its place whose origin (the range in which it was posted) overlaps the new range:
//      - none for an aborted or a collected transaction;
//      - for a committed one only if it wrote a key in the new range's bounds (its write set is final);
//      - for an undecided one always.
//      Without the origin, copies of undecided postings would spread with every merge, to ranges where the collector would not look for them.
//   3. Swing the map by compare-and-swap from the old one to the new one. A loser finds it swung.
//   A thread that meets a seal (its raise or post fails) finishes the change, then starts over with the present map. So no thread waits for the
//   one that began the change. That thread alone withdraws the change, and retires the old map and ranges.
// A thread that finishes checks *after* it has loaded the change, under one guard, whether the map is still the change's old one. If so, the old
//   ranges are not retired yet and stay valid while the guard is held; else nothing is left to do.
//
// Why it is sound. W, earlier, writes key x; R, later, reads bounds with x in them. B is a range that W checks, of the map loaded *after* x was
//   published (R1 step 2). A is the range that R raised and examined, unsealed at the raise.
//   (W may check the range it posted in without a look at the map, if that range's last_read, loaded after the publication, is not sealed: ranges
//   are sealed before the map is swung, so the map of that moment has it.)
//   A = B: R1 and R2, as ever. Sealing takes nothing away: last_read only grows, and postings leave only when collected.
//   A is older: A was sealed after the raise, so B's last_read contains it, and W loses.
//   A is newer: the map with A was there only after W had loaded its map, so after x was published. W's posting, in B or an older range,
//     precedes the mark of that range (a post on a marked range fails). Its origin holds x, and at each copy W was undecided or had x in its write
//     set, so A has the posting. R looks and finds W and x. (If W had been collected by then, the DC has it.)
//   R3: a SIX that posted on A may find A sealed when it raises: then it starts over, and posts, raises, looks and checks on one range. If A is
//     sealed after the raise, its posting is copied, so a later reader of the new range meets it. A reader that raised A before shows in A's
//     last_read.
//   A scan may finish the bounds of the range it raised and examined; it goes on at its resume key in the map of that time.
//   T1: a drop raises the table's word, then loads the map: writers that published before have their postings in these ranges.
// Collection during a change: see tc/mvcc/posting_book.h. A range that was not sealed after postings were unlinked from it was copied without them.
// Thread-safety: Replace and Recut: one thread at a time. All else: any thread, under a guard of the domain.
// Ownership: owns the present ranges and the map; retires replaced ones.
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
  // The ranges [first, first + count) of the present map are replaced by those with these cuts, which lie strictly inside their bounds.
  struct Place {
    size_t first = 0;
    size_t count = 1;
    std::vector<std::string> cuts = {};
  };
  // Approximate limit of the postings that one change copies, and limit of its places. They keep the time during which ranges are sealed short.
  static constexpr size_t kMaxCopiesPerChange = 1024;
  static constexpr size_t kMaxPlacesPerChange = 64;

  // `copies`: counts the copied postings in its ranges (S9); null: not counted.
  explicit RangePartition(std::shared_ptr<std::atomic<uint64_t>> copies = nullptr);
  // REQUIRES: no postings are left, and no thread uses it.
  ~RangePartition();
  RangePartition(const RangePartition&) = delete;
  RangePartition& operator=(const RangePartition&) = delete;

  // REQUIRES: a guard, held while the map is used.
  const RangeMap& map() const { return *map_.load(std::memory_order_seq_cst); }
  // For a thread that has met a sealed range of a map loaded under the guard it holds. Afterwards the change that sealed the range is complete.
  void FinishChange() const;
  // True if the range, which is of this partition, is in the present map. REQUIRES: a guard, a reference to the range.
  bool Holds(const Range& range) const;

  // Makes one change. `places` ascend and do not overlap. Returns the time from the publication of the change to the swing of the map.
  Duration Replace(Runtime& runtime, ReclamationDomain& domain, const std::vector<Place>& places);
  // Makes changes until the ranges are those with these cuts: first splits, then merges. Returns the longest of their times, as Replace.
  Duration Recut(Runtime& runtime, ReclamationDomain& domain, const std::vector<std::string>& cuts);

 private:
  struct Change;

  void Finish(const Change& change) const;
  // The next splits towards these cuts. A range with many postings is halved; its other cuts come with the next call.
  std::vector<Place> Splits(ReclamationDomain& domain, const std::vector<std::string>& cuts) const;
  Duration ReplaceInSteps(Runtime& runtime, ReclamationDomain& domain, std::vector<Place> places);

  const std::shared_ptr<std::atomic<uint64_t>> copies_;
  // Const threads that help also swing it.
  mutable std::atomic<const RangeMap*> map_;
  std::atomic<const Change*> change_{nullptr};
};

}  // namespace deut::tc

#endif  // TC_MVCC_RANGE_PARTITION_H_
