#include "dc/page_cache/hot_pages.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/observe/log.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_bits.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/page_visitor.h"

namespace deut::dc {
namespace {

// A window is at most this part of the room, so that the last one leaves little room unused.
constexpr uint64_t kWindowsOfRoom = 64;
constexpr uint64_t kMinWindowBytes = 16 << 10;
constexpr size_t kIdsPerGuard = 4096;

// Collects the leaves that are in memory. A stub is not: it has only updates to a page on storage.
class LeafLister final : public PageVisitor {
 public:
  LeafLister(const MappingTable& pages, HotPageList* list) : pages_(pages), list_(*list) {}

  void Visit(const VisitedPage& page) override {
    const Node* const head = page.word.head();
    if (head == nullptr || IsStub(head)) return;
    // The next start has better uses for memory than what a long scan has passed over.
    const bool used = pages_.used(page.id) && !pages_.transient(page.id);
    std::vector<PageId>& ids = used ? list_.used : list_.others;
    if (ids.size() < HotPageList::kMaxPages) ids.push_back(page.id);
  }

 private:
  const MappingTable& pages_;
  HotPageList& list_;
};

}  // namespace

HotPages::HotPages(const HotPagesEnvironment& environment, int threads)
    : environment_(environment), threads_(threads), begun_(environment.runtime.Now()), mutex_(environment.runtime) {
  thread_ = environment.runtime.StartThread("dc-hot", [this] { Run(); });
}

HotPages::~HotPages() {
  GiveUp("the data component ends");
  thread_.reset();
}

void HotPages::Run() {
  DEUT_POINT("page_cache.hot.begin");
  HotPagePlan plan = Plan(ReadList());
  const bool found = plan.size() != 0;
  {
    const MutexLock lock(mutex_);
    plan_ = std::move(plan);
  }
  if (found) {
    std::unique_ptr<Thread> helper;
    if (threads_ > 1) helper = environment_.runtime.StartThread("dc-hot", [this] { FetchWindows(); });
    FetchWindows();
    helper.reset();
    LogEnd();
  }
  {
    const MutexLock lock(mutex_);
    plan_ = HotPagePlan();
  }
  ended_.store(true, std::memory_order_release);
}

HotPageList HotPages::ReadList() {
  Result<HotPageList> list = ReadHotPages(environment_.storage, environment_.directory);
  if (list.ok()) return std::move(*list);
  // A damaged list has no value; the next checkpoint replaces it.
  if (list.status() == ErrorCode::kVersionMismatch) may_replace_.store(false, std::memory_order_relaxed);
  if (list.status() != ErrorCode::kNotFound) {
    LogWarning("the pages of before are not fetched, but read when they are needed: ", list.status().message());
  }
  return {};
}

HotPagePlan HotPages::Plan(const HotPageList& list) {
  const MappingTable& pages = environment_.trees.pages;
  const uint64_t room = environment_.room();
  window_bytes_ = std::clamp(room / kWindowsOfRoom, kMinWindowBytes, kWindowBytes);
  std::vector<HotPage> chosen;
  uint64_t bytes = 0;
  for (const std::vector<PageId>* ids : {&list.used, &list.others}) {
    for (size_t first = 0; first < ids->size() && bytes < room && !stop_.load(); first += kIdsPerGuard) {
      const ReclamationDomain::Guard guard(environment_.trees.domain);
      for (size_t i = first; i < std::min(first + kIdsPerGuard, ids->size()) && bytes < room; ++i) {
        const PageId id = (*ids)[i];
        // The list may be damaged, or newer than the checkpoint: it may have any number.
        if (id == kNoPage || id.value > pages.last_id()) continue;
        const ImageParts parts = pages.Image(id);
        if (parts.empty()) continue;
        HotPage page{.base = parts[parts.count() - 1], .id = id};
        for (const PageAddress part : parts.all()) page.bytes += static_cast<uint32_t>(part.length_bound());
        bytes += page.bytes;
        chosen.push_back(page);
      }
    }
  }
  HotPagePlan plan(std::move(chosen));
  figures_.listed.store(plan.size(), std::memory_order_relaxed);
  return plan;
}

std::span<const HotPage> HotPages::TakeWindow() {
  const MutexLock lock(mutex_);
  return plan_.Take(window_bytes_);
}

void HotPages::GiveUp(std::string_view why) {
  const MutexLock lock(mutex_);
  if (given_up_.empty()) given_up_ = why;
  stop_.store(true, std::memory_order_relaxed);
}

uint64_t HotPages::Room() const { return DEUT_STEP("load.hot_room") ? environment_.room() : UINT64_MAX; }

void HotPages::FetchWindows() {
  const auto reader = HotPageReader::Create(environment_.trees, environment_.store, environment_.source, stop_,
                                            [this] { return Room(); });
  if (!reader.ok()) {
    LogWarning("pages of before are not fetched by this thread: ", reader.status().message());
    return;
  }
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::span<const HotPage> window = TakeWindow();
    if (window.empty()) return;
    uint64_t needed = 0;
    for (const HotPage& page : window) needed += 2 * uint64_t{page.bytes};
    // Both threads reserve before they look, so that one of them sees the other's window.
    const uint64_t reserved = reserved_bytes_.fetch_add(needed) + needed;
    if (Room() < reserved) return GiveUp("memory is used up");
    const HotPageReader::Outcome outcome = (*reader)->Fetch(window);
    reserved_bytes_.fetch_sub(needed);
    figures_.fetched.fetch_add(outcome.pages, std::memory_order_relaxed);
    figures_.bytes.fetch_add(outcome.bytes, std::memory_order_relaxed);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(environment_.runtime.Now() - begun_);
    figures_.milliseconds.store(static_cast<uint64_t>(took.count()), std::memory_order_relaxed);
    if (outcome.no_room) return GiveUp("memory is used up");
    if (outcome.shortage) return GiveUp("descriptors or kernel memory are short");
  }
}

void HotPages::LogEnd() {
  const HotPagesStatistics found = statistics();
  std::string_view why;
  {
    const MutexLock lock(mutex_);
    why = given_up_;
  }
  LogInfo("fetched ", found.fetched, " of ", found.listed, " pages of before in ", found.milliseconds, " ms, ",
          found.bytes, " bytes", why.empty() ? "" : "; the others are read when they are needed: ", why);
}

HotPagesStatistics HotPages::statistics() const {
  return {.listed = figures_.listed.load(std::memory_order_relaxed),
          .fetched = figures_.fetched.load(std::memory_order_relaxed),
          .bytes = figures_.bytes.load(std::memory_order_relaxed),
          .milliseconds = figures_.milliseconds.load(std::memory_order_relaxed)};
}

HotPageList HotPages::ListPagesInMemory() const {
  HotPageList list;
  LeafLister lister(environment_.trees.pages, &list);
  // The walk looks at these leaves only: a large store has far more on storage.
  const PageBits in_memory = PagesInMemory(environment_.trees.pages);
  for (const TableId table : environment_.tables.LiveTables()) {
    BwTree::Walk walk;
    while (!walk.complete) {
      const ReclamationDomain::Guard guard(environment_.trees.domain);
      BwTree* const tree = environment_.source.FindTree(table);
      if (tree == nullptr) break;
      tree->VisitPages(/*level=*/0, &walk, &lister, &in_memory);
    }
  }
  return list;
}

void HotPages::Record() {
  if (!ended() && DEUT_STEP("load.hot_list_kept")) return;
  if (!may_replace_.load(std::memory_order_relaxed) && DEUT_STEP("V.keep_what_is_not_understood")) return;
  const Status written = WriteHotPages(environment_.storage, environment_.directory, ListPagesInMemory());
  if (!written.ok()) LogWarning("the list of the pages in memory cannot be written: ", written.message());
}

}  // namespace deut::dc
