// Scans, a page at a time. HOT PATH: no lock, no system call; allocates only where bounds outgrow the cursor's strings.
// Each call descends anew, so nothing is held between calls: a page that was split or refilled meanwhile is met as it is.
#include <algorithm>

#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {
namespace {

bool Fits(const PageEntry& entry, const ScanBudget& budget, const RecordBatch& answer) {
  if (answer.empty()) return true;
  const uint64_t bytes = RecordBatch::kHeaderBytes + entry.key_bytes + uint64_t{entry.value_bytes};
  return answer.size() < budget.records && answer.bytes().size() + bytes <= budget.bytes;
}

// How many of the base entries [begin, end), none of them a tombstone, fit as a run.
size_t FittingRun(const BasePage& base, size_t begin, size_t end, const ScanBudget& budget, const RecordBatch& answer) {
  if (answer.size() >= budget.records || answer.bytes().size() >= budget.bytes) return 0;
  const size_t count = static_cast<size_t>(std::min<uint64_t>(end - begin, budget.records - answer.size()));
  const uint64_t bytes = budget.bytes - answer.bytes().size();
  if (base.run_bytes(begin, begin + count) <= bytes) return count;
  size_t low = 0;  // fits
  size_t high = count;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    (base.run_bytes(begin, begin + middle) <= bytes ? low : high) = middle;
  }
  return low;
}

// Copies the entries before the next delta, as far as they are records and fit, in one piece.
void AppendRun(LeafMerge* merge, const ScanBudget& budget, RecordBatch* answer) {
  const BasePage& base = merge->base();
  size_t begin;
  size_t end;
  merge->NextRun(&begin, &end);
  if (base.tombstones() != 0) {
    size_t i = begin;
    while (i < end && !base.tombstone(i)) ++i;
    end = i;
  }
  if (begin >= end) return;
  const size_t fitting = FittingRun(base, begin, end, budget, *answer);
  if (fitting == 0) return;
  answer->AppendRun(base.run(begin, begin + fitting), fitting);
  merge->SkipRun(fitting);
}

// The tombstones a scan has met in a page.
struct Tombstones {
  size_t count = 0;
  Timestamp newest;
  void Count(const PageEntry& entry) {
    ++count;
    newest = std::max(newest, entry.version.timestamp);
  }
};

}  // namespace

void BwTree::ScanAscending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer) {
  if (!cursor->high.empty() && cursor->low >= cursor->high) {
    cursor->complete = true;
    return;
  }
  const ReclamationDomain::Guard guard(domain_);
  const PageView page = Descend(/*level=*/0, cursor->low, Side::kAt);
  LeafMerge merge(page.head, cursor->low, cursor->high);
  Tombstones tombstones;
  const size_t before = answer->size();
  for (;;) {
    AppendRun(&merge, *budget, answer);
    PageEntry entry;
    if (!merge.Next(&entry)) break;
    if (entry.tombstone) {
      tombstones.Count(entry);
      continue;
    }
    if (!Fits(entry, *budget, *answer)) {
      budget->spent = true;
      cursor->low.assign(entry.key());
      return;
    }
    answer->Append(entry.key(), entry.value(), entry.version);
  }
  const Fence& fence = *page.head->fence;
  if (!fence.bounded() || (!cursor->high.empty() && cursor->high <= fence.high_key())) {
    cursor->complete = true;
    return;
  }
  cursor->low.assign(fence.high_key());
  DropTombstones(page, tombstones.count, tombstones.newest, answer->size() - before);
}

void BwTree::ScanDescending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer) {
  if (!cursor->high.empty() && cursor->low >= cursor->high) {
    cursor->complete = true;
    return;
  }
  const ReclamationDomain::Guard guard(domain_);
  const PageView page = Descend(/*level=*/0, cursor->high, Side::kBelow);
  LeafMerge merge(page.head, cursor->low, cursor->high);
  Tombstones tombstones;
  const size_t before = answer->size();
  std::string_view last;
  for (PageEntry entry; merge.Previous(&entry);) {
    if (entry.tombstone) {
      tombstones.Count(entry);
      continue;
    }
    if (!Fits(entry, *budget, *answer)) {
      budget->spent = true;
      if (!last.empty()) cursor->high.assign(last);
      return;
    }
    answer->Append(entry.key(), entry.value(), entry.version);
    last = entry.key();
  }
  const std::string_view low = page.head->base->low();
  if (low.empty() || low <= cursor->low) {
    cursor->complete = true;
    return;
  }
  cursor->high.assign(low);
  DropTombstones(page, tombstones.count, tombstones.newest, answer->size() - before);
}

}  // namespace deut::dc
