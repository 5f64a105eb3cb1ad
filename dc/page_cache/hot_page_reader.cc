#include "dc/page_cache/hot_page_reader.h"

#include <algorithm>
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
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue, store.NewQueue(kRunsInFlight));
  return std::unique_ptr<HotPageReader>(
      new HotPageReader(trees, store, source, stop, std::move(room), std::move(queue)));
}

HotPageReader::HotPageReader(const BwTreeEnvironment& trees, SegmentStore& store, TreeSource& source,
                             const std::atomic<bool>& stop, std::function<uint64_t()> room,
                             std::unique_ptr<IoQueue> queue)
    : trees_(trees), store_(store), source_(source), stop_(stop), room_(std::move(room)), queue_(std::move(queue)) {}

HotPageReader::Outcome HotPageReader::Fetch(std::span<const HotPage> window) {
  DEUT_DCHECK(!trees_.domain.guard_held());
  outcome_ = Outcome();
  FindImages(window);
  PlanReads();
  DEUT_POINT("page_cache.hot.before_read");
  ReadAll();
  for (PageLoad& load : loads_) {
    if (stops()) break;
    if (Install(&load)) ++outcome_.pages;
    if (outcome_.no_room) break;
  }
  loads_.clear();
  reads_.clear();
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

void HotPageReader::PlanReads() {
  std::vector<PageAddress> parts;
  for (const PageLoad& load : loads_) parts.insert(parts.end(), load.parts.all().begin(), load.parts.all().end());
  for (const RunOfParts& run : PlanRuns(&parts)) {
    auto read = std::make_unique<Read>();
    read->of = run;
    read->status = DEUT_ERROR(kCancelled, "the run was not read");
    reads_.push_back(std::move(read));
  }
}

void HotPageReader::ReadAll() {
  size_t begun = 0;
  for (;;) {
    while (begun < reads_.size() && queue_->in_flight() < kRunsInFlight && !stops() && !outcome_.shortage) {
      Begin(reads_[begun++].get());
    }
    if (queue_->in_flight() == 0) return;
    completed_.clear();
    queue_->Reap(&completed_, kNoDeadline);
    for (const IoRequest* request : completed_) {
      auto* const read = static_cast<Read*>(request->context);
      End(read, store_.EndReadRun(&read->run));
    }
  }
}

void HotPageReader::Begin(Read* read) {
  Status begun = store_.BeginReadRun(read->of.first, read->of.last, &read->run);
  if (begun.ok()) {
    read->run.request().context = read;
    begun = queue_->Submit(&read->run.request());
  }
  if (!begun.ok()) End(read, std::move(begun));
}

void HotPageReader::End(Read* read, Status status) {
  if (status == ErrorCode::kResourceExhausted) outcome_.shortage = true;
  if (status.ok()) outcome_.bytes += read->run.request().transferred;
  read->status = std::move(status);
}

// Each part of the window lies in exactly one run, and runs are in the order of their places.
Result<PartView> HotPageReader::PartOf(PageAddress address, PageId page) const {
  const auto behind = std::upper_bound(reads_.begin(), reads_.end(), address,
                                       [](PageAddress part, const auto& read) { return part < read->of.first; });
  DEUT_CHECK(behind != reads_.begin());
  Read& read = **std::prev(behind);
  DEUT_RETURN_IF_ERROR(read.status);
  return read.run.Part(address, page);
}

bool HotPageReader::Install(PageLoad* load) {
  const Status built = load->BuildImage([&](size_t i) { return PartOf(load->parts[i], load->id); });
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
