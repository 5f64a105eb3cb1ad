#include "dc/page_cache/page_merger.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace deut::dc {
namespace {

// Upper bound of the back-off, in intervals, while pages cannot be merged yet.
constexpr uint32_t kMaxPauses = 64;

}  // namespace

void PageMerger::Run(const std::function<bool()>& has_room) {
  if (runtime_.Now() < next_) return;
  const std::vector<TableId> tables = tables_.LiveTables();
  for (const TableId table : tables) {
    if (stop_()) return;
    Tree& tree = trees_[table];
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
    (void)loader_.Load(table, Target(key, Side::kAt));  // the loader logs a page that cannot be read
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

void PageMerger::Round(TableId table, Tree* seen, const std::function<bool()>& has_room) {
  const MonotonicTime begin = runtime_.Now();
  if (!seen->progress) {
    const ReclamationDomain::Guard guard(domain_);
    BwTree* const tree = source_.FindTree(table);
    if (tree == nullptr || tree->small_pages() == seen->seen) return;
    seen->progress.emplace().small_pages = tree->small_pages();
  }
  Progress& progress = *seen->progress;
  bool stopped = false;
  while (!stopped && Step(table, &progress, has_room)) stopped = stop_();
  domain_.Collect();
  if (stopped) {
    seen->pauses = 1;
  } else {
    // Another round follows if pages were merged (they may be merged further) or loaded (they may be merged now).
    const bool again = progress.merged || progress.postponed;
    if (!again) seen->seen = progress.small_pages;
    seen->pauses = progress.merged || !again ? 1 : std::min(2 * seen->pauses, kMaxPauses);
    seen->progress.reset();
  }
  // Searching for pages to merge takes at most a tenth of the time.
  const MonotonicTime now = runtime_.Now();
  seen->due = now + std::max(interval_ * seen->pauses, (now - begin) * 10);
}

}  // namespace deut::dc
