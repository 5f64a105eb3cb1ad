// The meaning of a leaf's chain: which version of each record counts. Point reads, scans and consolidation all decide
// it here.
//
// Rule X2: among a key's deltas and its entry in the base the largest (timestamp, sequence) wins, wherever it stands
// in the chain.
// Rule X1: an update at or below the page's flat timestamp is a duplicate, whatever the chain holds.
// Thread-safety: reads immutable nodes. Ownership: views into the chain; they live as long as the caller's
// reclamation guard.
#ifndef DC_BWTREE_LEAF_VIEW_H_
#define DC_BWTREE_LEAF_VIEW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"
#include "protocol/record_batch.h"

namespace deut::dc {

// Returns true if an update of this version was already applied to a page with this flat timestamp, or was superseded
// by an applied one.
inline bool IsDuplicate(Version version, Timestamp flat) {
  if (DEUT_OMITTED("X1.flat_hides")) return false;
  return version.timestamp <= flat;
}

// True if `candidate`, found deeper in the chain, wins over `found`.
inline bool Supersedes(Version candidate, Version found) {
  if (DEUT_OMITTED("X2.largest_wins")) return false;  // the delta that is newest in the chain wins
  return candidate > found;
}

// Looks up one key and appends its record to `answer`. False: there is no such record.
// REQUIRES: the chain belongs to a leaf and covers the key.
bool AppendRecord(const Node* head, std::string_view key, RecordBatch* answer);

// The records of a leaf in [low, high) (empty high: no bound but the page's), deltas and base merged.
class LeafMerge {
 public:
  LeafMerge(const Node* head, std::string_view low, std::string_view high);

  const BasePage& base() const { return *base_; }
  // Number of base entries that are still to come.
  size_t base_entries() const { return base_end_ - base_begin_; }
  // The image has all base entries in such a part, whatever they say of themselves.
  StoredIn base_stored_in() const { return base_in_; }

  // Steps through the winning versions in ascending or (Previous) descending order, tombstones included. False: there
  // are no more. A caller uses one object in one direction only.
  bool Next(PageEntry* entry);
  bool Previous(PageEntry* entry);

  // Ascending: the run of base entries [*begin, *end) before the next delta; empty if a delta is next.
  void NextRun(size_t* begin, size_t* end) const {
    *begin = base_begin_;
    *end = first_ < last_ ? deltas_[first_].place : base_end_;
  }
  // Removes `entries` entries from the front of that run.
  void SkipRun(size_t entries) { base_begin_ += entries; }
  // Descending: the run that lies above the next delta. SkipRunBack removes entries from its back.
  void PreviousRun(size_t* begin, size_t* end) const {
    *end = base_end_;
    *begin =
        first_ < last_ ? std::min(base_end_, deltas_[last_ - 1].place + size_t{deltas_[last_ - 1].equal}) : base_begin_;
  }
  void SkipRunBack(size_t entries) { base_end_ -= entries; }

 private:
  struct Placed {
    const RecordDelta* delta;
    uint32_t place;  // the base entry that has the same key (`equal`), else the next larger one
    bool equal;
    StoredIn in;  // where the image has the delta
  };

  void Collect(const Node* head, std::string_view low, std::string_view high);
  void KeepWinners();
  static PageEntry EntryOf(const Placed& placed);
  // The i-th base entry.
  PageEntry BaseEntry(size_t i) const;
  PageEntry Winner(const Placed& placed) const;

  const BasePage* const base_;
  size_t base_begin_ = 0;
  size_t base_end_ = 0;
  StoredIn base_in_ = StoredIn::kNoPart;
  size_t first_ = 0;
  size_t last_ = 0;
  absl::InlinedVector<Placed, 32> deltas_;  // [first_, last_) is ascending, with one delta for each key
};

}  // namespace deut::dc

#endif  // DC_BWTREE_LEAF_VIEW_H_
