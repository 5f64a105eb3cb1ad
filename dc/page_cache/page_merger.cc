#include "dc/page_cache/page_merger.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace deut::dc {
namespace {

// Upper bound of the back-off, in intervals, while pages cannot be merged yet.
constexpr uint32_t kMaxBackoffIntervals = 64;

}  // namespace

void PageMerger::Run(const std::function<bool()>& has_room) {
  DEUT_DCHECK(!domain_.guard_held());
  if (runtime_.Now() < next_) return;
  const std::vector<TableId> tables = tables_.LiveTables();
  // The search below would forget trees that still exist, and so begin their rounds again and again.
  DEUT_CHECK(std::is_sorted(tables.begin(), tables.end()));
  for (const TableId table : tables) {
    if (stop_()) return;
    TreeState& tree = trees_[table];
    if (runtime_.Now() >= tree.due) Round(table, &tree, has_room);
  }
  absl::erase_if(trees_,
                 [&](const auto& each) { return !std::binary_search(tables.begin(), tables.end(), each.first); });
  next_ = runtime_.Now() + interval_;
}

bool PageMerger::Step(TableId table, Progress* progress, const std::function<bool()>& has_room) {
  BwTree::MergeReport report;
  BwTree::Walk walk = progress->walk;
  {
    const ReclamationDomain::Guard guard(domain_);
    BwTree* const tree = source_.FindTree(table);
    if (tree == nullptr || progress->level >= tree->root_level()) return false;
    tree->MergePages(progress->level, &walk, &report);
  }
  progress->merged |= report.merged != 0;
  progress->postponed |= report.postponed || !report.to_load.empty();
  bool loaded = false;
  for (const std::string& key : report.to_load) {
    if (stop_() || !has_room()) break;
    // The loader logs a page that cannot be read.
    (void)loader_.Load(table, Target(key, Side::kAt), PageStay::kToWrite);
    loaded = true;
  }
  // Visits the same pages once more, so that the loaded pages are merged before they are evicted again.
  progress->returned = loaded && !progress->returned;
  if (progress->returned) return true;
  progress->walk = std::move(walk);
  if (progress->walk.complete) {
    progress->walk = BwTree::Walk();
    ++progress->level;
  }
  return true;
}

void PageMerger::Round(TableId table, TreeState* state, const std::function<bool()>& has_room) {
  const MonotonicTime begin = runtime_.Now();
  if (!state->progress) {
    const ReclamationDomain::Guard guard(domain_);
    BwTree* const tree = source_.FindTree(table);
    if (tree == nullptr || tree->small_pages() == state->handled_small_pages) return;
    DEUT_DCHECK(tree->small_pages() > state->handled_small_pages);  // no table's id is used twice
    state->progress.emplace().small_pages = tree->small_pages();
  }
  Progress& progress = *state->progress;
  bool stopped = false;
  while (!stopped && Step(table, &progress, has_room)) stopped = stop_();
  domain_.Collect();
  if (stopped) {
    state->backoff_intervals = 1;
  } else {
    // Another round follows if pages were merged (they may be merged further) or loaded (they may be merged now).
    const bool again = progress.merged || progress.postponed;
    if (!again) state->handled_small_pages = progress.small_pages;
    state->backoff_intervals =
        progress.merged || !again ? 1 : std::min(2 * state->backoff_intervals, kMaxBackoffIntervals);
    state->progress.reset();
  }
  // Searching for pages to merge takes at most a tenth of the time.
  const MonotonicTime now = runtime_.Now();
  state->due = now + std::max(interval_ * state->backoff_intervals, (now - begin) * 10);
}

}  // namespace deut::dc
