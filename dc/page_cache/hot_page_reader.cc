#include "dc/page_cache/hot_page_reader.h"

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {

Result<std::unique_ptr<HotPageReader>> HotPageReader::Create(const BwTreeEnvironment& trees, SegmentStore& store,
                                                             TreeSource& source, const std::atomic<bool>& stop,
                                                             std::function<uint64_t()> room) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<RunReader> runs, RunReader::Create(store, {.runs_in_flight = kRunsInFlight}));
  return std::unique_ptr<HotPageReader>(new HotPageReader(trees, source, stop, std::move(room), std::move(runs)));
}

HotPageReader::HotPageReader(const BwTreeEnvironment& trees, TreeSource& source, const std::atomic<bool>& stop,
                             std::function<uint64_t()> room, std::unique_ptr<RunReader> runs)
    : trees_(trees), source_(source), stop_(stop), room_(std::move(room)), runs_(std::move(runs)) {}

HotPageReader::Outcome HotPageReader::Fetch(std::span<const HotPage> window) {
  DEUT_DCHECK(!trees_.domain.guard_held());
  outcome_ = Outcome();
  FindImages(window);
  DEUT_POINT("page_cache.hot.before_read");
  ReadAll();
  for (PageLoad& load : loads_) {
    if (stops()) break;
    if (Install(&load)) ++outcome_.pages;
    if (outcome_.no_room) break;
  }
  loads_.clear();
  runs_->Forget();
  return outcome_;
}

void HotPageReader::FindImages(std::span<const HotPage> window) {
  const ReclamationDomain::Guard guard(trees_.domain);
  for (const HotPage& page : window) {
    const ImageParts parts = trees_.pages.Image(page.id);
    if (parts.empty() || parts[parts.count() - 1] != page.base) continue;
    PageLoad load;
    load.id = page.id;
    load.parts = parts;
    loads_.push_back(std::move(load));
  }
}

void HotPageReader::ReadAll() {
  std::vector<PageAddress> parts;
  for (const PageLoad& load : loads_) parts.insert(parts.end(), load.parts.all().begin(), load.parts.all().end());
  runs_->Read(std::move(parts), [this] { return stops(); });
  outcome_.bytes = runs_->bytes_read();
  outcome_.shortage = runs_->met_shortage();
}

bool HotPageReader::Install(PageLoad* load) {
  const Status built = load->BuildImage([&](size_t i) { return runs_->Part(load->parts[i], load->id); });
  // An id of an older list may be that of an inner page by now.
  if (!built.ok() || !load->page->is_leaf()) return false;
  if (room_() < load->page->block_bytes()) {
    outcome_.no_room = true;
    return false;
  }
  const std::string low(load->page->low());
  DEUT_POINT("page_cache.hot.before_install");
  const ReclamationDomain::Guard guard(trees_.domain);
  BwTree* const tree = source_.FindTree(load->table);
  if (tree == nullptr) return false;
  return tree->FinishLoad(Target(low, Side::kAt), load).ok() && load->installed;
}

}  // namespace deut::dc
