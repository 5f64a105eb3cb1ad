// Scans, one page at a time. HOT PATH: no lock, no system call; allocates only for the answer, for bounds that outgrow
// the cursor's strings, for a long chain (LeafMerge), and for a consolidation now and then.
// A scan holds nothing between calls: it reads a page that was split or refilled meanwhile in its current state.
#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {
namespace {

// Cache misses that a scan spends on each delta: for the delta itself, and for finding its place in the base.
constexpr size_t kScanWork = 4;

bool Fits(const PageEntry& entry, const ScanBudget& budget, const RecordBatch& answer) {
  if (answer.empty()) return true;
  const uint64_t bytes = RecordBatch::kHeaderBytes + entry.key_bytes + uint64_t{entry.value_bytes};
  return answer.size() < budget.records && answer.bytes().size() + bytes <= budget.bytes;
}

// Returns how many of the base entries [begin, end), none of them a tombstone, fit as a run.
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

// Copies the entries before the next delta in one piece, as far as they are records and fit.
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
  answer->AppendRun(base.run(begin, begin + fitting), fitting, base.newest());
  merge->SkipRun(fitting);
}

// The same from the other end, one record at a time.
void AppendRunBack(LeafMerge* merge, const ScanBudget& budget, RecordBatch* answer, std::string_view* last) {
  const BasePage& base = merge->base();
  size_t begin;
  size_t end;
  merge->PreviousRun(&begin, &end);
  size_t i = end;
  for (; i > begin && !base.tombstone(i - 1); --i) {
    const std::string_view record = base.run(i - 1, i);
    if (answer->size() >= budget.records || answer->bytes().size() + record.size() > budget.bytes) break;
    answer->AppendRun(record, 1, base.newest());
  }
  if (i == end) return;
  *last = base.key(i);
  merge->SkipRunBack(end - i);
}

// The tombstones that a scan has met in a page.
struct Tombstones {
  size_t count = 0;
  Timestamp newest;
  void Count(const PageEntry& entry) {
    ++count;
    newest = std::max(newest, entry.version.timestamp);
  }
};

}  // namespace

// An id in a fence that was read inside the current guard still names the same page: it is not used again
// (mapping_table.h). So the page begins at the cursor (N4), whatever it has split off since. A page that is being
// merged into its left neighbour, or that is not in memory, is left to a descent, which helps.
BwTree::PageView BwTree::PageOf(const ScanCursor& cursor, ScanHint hint) {
  if (hint.page != kNoPage) {
    DEUT_POINT("bwtree.scan.before_sibling");
    const PageView page{hint.page, pages_.LoadWord(hint.page)};
    if (page.loaded() && !IsRemoved(page.head())) {
      DEUT_DCHECK(page.head()->base->low() == cursor.low);
      return page;
    }
  }
  return Descend(/*level=*/0, Target(cursor.low, Side::kAt));
}

// The first pages of a scan count like those of point accesses. A long scan does not come back to a page, and may read
// more pages than memory holds. With marks for its pages it would push out those that others use.
void BwTree::NoteScanned(PageId id, ScanCursor* cursor) {
  if (!cursor->is_long()) pages_.MarkUsed(id);
  ++cursor->pages;
}

bool BwTree::ScanAscending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer, ScanHint* hint) {
  const ScanHint here = std::exchange(*hint, ScanHint());
  if (!cursor->high.empty() && cursor->low >= cursor->high) {
    cursor->complete = true;
    return true;
  }
  const ReclamationDomain::Guard guard(domain_);
  const PageView page = PageOf(*cursor, here);
  if (!page.loaded()) return false;
  NoteScanned(page.id, cursor);
  const Fence& fence = *page.head()->fence;
  const bool last_page = !fence.bounded() || (!cursor->high.empty() && cursor->high <= fence.high_key());
  // A page that the scan enters at its low end needs no search.
  const std::string_view low = page.head()->base->low() == cursor->low ? std::string_view() : cursor->low;
  // A page that ends below `high` needs no search for it either.
  LeafMerge merge(page.head(), low, last_page ? std::string_view(cursor->high) : std::string_view());
  // The next page is prefetched while this one is copied, if the scan will reach it.
  const Node* next = nullptr;
  if (!last_page && budget->records - answer->size() > merge.base_entries()) {
    next = pages_.Load(fence.sibling);  // null if it is on storage
    BasePage::Prefetch(next);
  }
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
      DEUT_DCHECK(entry.key() >= cursor->low);
      cursor->low.assign(entry.key());
      if (page.head()->chain_length != 0) ConsolidateForReaders(page, kScanWork * page.head()->chain_length);
      return true;
    }
    answer->Append(entry.key(), entry.value(), entry.version);
  }
  if (last_page) {
    cursor->complete = true;
    return true;
  }
  if (next != nullptr && next->kind == NodeKind::kBase) static_cast<const BasePage*>(next)->PrefetchEntries();
  DEUT_DCHECK(fence.high_key() > cursor->low);  // each page moves the scan
  cursor->low.assign(fence.high_key());
  hint->page = fence.sibling;
  if (page.head()->chain_length != 0) ConsolidateForReaders(page, kScanWork * page.head()->chain_length);
  DropTombstones(page, tombstones.count, tombstones.newest, answer->size() - before);
  return true;
}

bool BwTree::ScanDescending(ScanCursor* cursor, ScanBudget* budget, RecordBatch* answer) {
  if (!cursor->high.empty() && cursor->low >= cursor->high) {
    cursor->complete = true;
    return true;
  }
  const ReclamationDomain::Guard guard(domain_);
  const PageView page = Descend(/*level=*/0, Target(cursor->high, Side::kBelow));
  if (!page.loaded()) return false;
  NoteScanned(page.id, cursor);
  LeafMerge merge(page.head(), cursor->low, cursor->high);
  Tombstones tombstones;
  const size_t before = answer->size();
  std::string_view last;
  for (;;) {
    AppendRunBack(&merge, *budget, answer, &last);
    PageEntry entry;
    if (!merge.Previous(&entry)) break;
    if (entry.tombstone) {
      tombstones.Count(entry);
      continue;
    }
    if (!Fits(entry, *budget, *answer)) {
      budget->spent = true;
      DEUT_DCHECK(cursor->high.empty() || last < cursor->high);
      if (!last.empty()) cursor->high.assign(last);
      if (page.head()->chain_length != 0) ConsolidateForReaders(page, kScanWork * page.head()->chain_length);
      return true;
    }
    answer->Append(entry.key(), entry.value(), entry.version);
    last = entry.key();
  }
  const std::string_view low = page.head()->base->low();
  if (low.empty() || low <= cursor->low) {
    cursor->complete = true;
    return true;
  }
  cursor->high.assign(low);
  if (page.head()->chain_length != 0) ConsolidateForReaders(page, kScanWork * page.head()->chain_length);
  DropTombstones(page, tombstones.count, tombstones.newest, answer->size() - before);
  return true;
}

}  // namespace deut::dc
