#include "dc/page_cache/page_merger.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/observe/log.h"

namespace deut::dc {
namespace {

// Of what is left for later, and stays so.
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
  if (trees_.size() > 2 * tables.size()) trees_.clear();  // most are of dropped tables
  next_ = runtime_.Now() + interval_;
}

void PageMerger::Round(TableId table, Tree* seen, const std::function<bool()>& has_room) {
  const MonotonicTime begin = runtime_.Now();
  uint64_t small_pages = 0;
  bool ended = false;
  BwTree::MergeReport all;
  for (uint8_t level = 0; !ended; ++level) {
    for (BwTree::Walk walk; !walk.complete && !ended;) {
      BwTree::MergeReport report;
      {
        const ReclamationDomain::Guard guard(domain_);
        BwTree* const tree = source_.FindTree(table);
        if (tree == nullptr) return;
        if (level == 0 && walk.high.empty()) {
          small_pages = tree->small_pages();
          if (small_pages == seen->seen) return;
        }
        if (level >= tree->root_level()) {
          ended = true;
          break;
        }
        tree->MergePages(level, &walk, &report);
      }
      all.merged += report.merged;
      all.postponed |= report.postponed || !report.to_load.empty();
      for (const std::string& key : report.to_load) {
        if (stop_() || !has_room()) break;
        (void)loader_.Load(table, Target(key, Side::kAt));  // the loader tells what cannot be read
      }
      ended = ended || stop_();
    }
  }
  domain_.Collect();
  // What was merged may be merged further, and what was loaded merged at all.
  const bool again = all.merged != 0 || all.postponed;
  if (!again) seen->seen = small_pages;
  seen->pauses = all.merged != 0 || !again ? 1 : std::min(2 * seen->pauses, kMaxPauses);
  // Looking for pages to merge takes a tenth of the time at the most.
  const MonotonicTime now = runtime_.Now();
  seen->due = now + std::max(interval_ * seen->pauses, (now - begin) * 10);
}

}  // namespace deut::dc
