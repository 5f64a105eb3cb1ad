#include "dc/page_cache/page_evictor.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/observe/log.h"
#include "common/runtime/process_memory.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_memory.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {
namespace {

// Interval at which a sleeping evictor checks by itself, because garbage may have been freed, or may have come.
constexpr Duration kCheckInterval = std::chrono::milliseconds(50);
// Number of pages that the evictor loads itself before it writes and evicts them.
constexpr size_t kMaxLoadedPerBatch = 16;
// After this many rounds in a row that have not freed enough, the evictor loads pages to write them. A round may begin
// in the middle of a table, so the second one completes the first visit of all pages.
constexpr int kRoundsWithoutLoads = 2;

// Idle threads' caches of nodes are flushed at this interval.
constexpr Duration kFlushInterval = std::chrono::seconds(2);
// After more drains in a row that have gained nothing, the slabs are not held by garbage.
constexpr int kMaxIdleDrains = 3;
// The old memory of moved pages is at most a sixteenth of the budget, or this.
constexpr uint64_t kMinMovedBytes = 8 << 20;

// The free room of slabs is not the heap's, so to purge the heap does not lower it.
uint64_t ResidentBytesInUse() {
  const uint64_t resident = ResidentBytes();
  return resident - std::min(resident, PageMemory::FreeBytes());
}

}  // namespace

// Moves the pages that lie in slabs that are to be emptied.
class PageEvictor::MoveVisitor final : public PageVisitor {
 public:
  explicit MoveVisitor(BwTree& tree) : tree_(tree) {}

  void Visit(const VisitedPage& page) override {
    const Node* const head = page.word.head();
    if (head != nullptr && IsInDrainingSlab(head)) moved_ += tree_.Move(page) ? 1 : 0;
  }

  uint64_t moved() const { return moved_; }

 private:
  BwTree& tree_;
  uint64_t moved_ = 0;
};

// Visits the leaves of one parent. The leaves that the mode chooses are evicted if they are clean, else handed to the
// flusher; so are clean ones whose parts it merges. In mode kDrain this is done only with leaves that cannot be moved.
// Without `may_load`, leaves stay that have to be loaded because their images have no room for another part.
class PageEvictor::LeafVisitor final : public PageVisitor {
 public:
  LeafVisitor(BwTree& tree, MappingTable& pages, PageFlusher& flusher, Mode mode, bool may_load)
      : tree_(tree), pages_(pages), flusher_(flusher), mode_(mode), may_load_(may_load) {}

  void Visit(const VisitedPage& page) override {
    ++stepped_.visited;
    const Node* const head = page.word.head();
    if (head == nullptr || (mode_ == Mode::kDrain && !IsInDrainingSlab(head))) return;
    if (mode_ == Mode::kTransient && !pages_.transient(page.id)) return;
    if (mode_ == Mode::kDrain && tree_.Move(page)) {
      ++moved_;
      return;
    }
    if (page.parent == kNoPage) return;
    if (flusher_.full()) {
      if (!rest_) rest_.emplace(page.high);
      stepped_.kept = true;
      return;
    }
    const bool is_clean = IsClean(head);
    // Written updates whose base is on storage serve no read and no later update, so their mark is no second chance.
    const bool serves_nobody = is_clean && IsStub(head);
    if (mode_ != Mode::kDrain && !serves_nobody && pages_.TestAndClearUsed(page.id)) {
      stepped_.kept = true;
    } else if (is_clean) {
      EvictOrMergeParts(page);
    } else if (may_load_ || !IsStub(head) || pages_.Image(page.id).count() < ImageParts::kMax) {
      Write(page);
    }
  }

  const Stepped& stepped() const { return stepped_; }
  uint64_t moved() const { return moved_; }
  PageSet TakeAdded() { return std::move(added_); }
  std::vector<std::string> TakeToLoad() { return std::move(to_load_); }
  // The upper bound of the first page for which the batch had no room.
  const std::optional<std::string>& rest() const { return rest_; }

 private:
  void EvictOrMergeParts(const VisitedPage& page) {
    if (flusher_.AddMergedParts(tree_, page.id)) {
      added_.insert(page.id);
    } else {
      stepped_.evicted += tree_.Evict(page) ? 1 : 0;
    }
  }

  void Write(const VisitedPage& page) {
    switch (flusher_.Add(tree_, page.id)) {
      case PageFlusher::Added::kAdded:
        added_.insert(page.id);
        return;
      case PageFlusher::Added::kNotLoaded:
        to_load_.emplace_back(page.high);
        return;
      case PageFlusher::Added::kBusy:
        stepped_.kept = true;
        return;
      case PageFlusher::Added::kClean:
        return;
    }
  }

  BwTree& tree_;
  MappingTable& pages_;
  PageFlusher& flusher_;
  const Mode mode_;
  const bool may_load_;
  Stepped stepped_;
  uint64_t moved_ = 0;
  PageSet added_;
  std::vector<std::string> to_load_;
  std::optional<std::string> rest_;
};

// Visits the same leaves again, and hands those to the flusher that had to be loaded before they could be written.
class PageEvictor::FlushVisitor final : public PageVisitor {
 public:
  FlushVisitor(BwTree& tree, PageFlusher& flusher, std::span<const std::string> upper_bounds)
      : tree_(tree), flusher_(flusher), upper_bounds_(upper_bounds.begin(), upper_bounds.end()) {}

  void Visit(const VisitedPage& page) override {
    if (page.word.on_storage() || page.parent == kNoPage) return;
    if (flusher_.full() || !upper_bounds_.contains(page.high)) return;
    if (flusher_.Add(tree_, page.id) == PageFlusher::Added::kAdded) added_.insert(page.id);
  }

  PageSet TakeAdded() { return std::move(added_); }

 private:
  BwTree& tree_;
  PageFlusher& flusher_;
  const absl::flat_hash_set<std::string_view> upper_bounds_;
  PageSet added_;
};

// Visits the same leaves again, and evicts those that were written.
class PageEvictor::EvictVisitor final : public PageVisitor {
 public:
  EvictVisitor(BwTree& tree, const PageSet& written) : tree_(tree), written_(written) {}

  void Visit(const VisitedPage& page) override {
    if (!page.word.on_storage() && written_.contains(page.id)) evicted_ += tree_.Evict(page) ? 1 : 0;
  }

  uint64_t evicted() const { return evicted_; }

 private:
  BwTree& tree_;
  const PageSet& written_;
  uint64_t evicted_ = 0;
};

Result<std::unique_ptr<PageEvictor>> PageEvictor::Create(Runtime& runtime, const BwTreeEnvironment& trees,
                                                         SegmentStore& store, TreeSource& source, TableList& tables,
                                                         PageLoader& loader, MemoryBudget budget,
                                                         Duration merge_interval,
                                                         std::function<void(const Status&)> on_error) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<PageFlusher> flusher, PageFlusher::Create(trees, store, source));
  std::unique_ptr<PageEvictor> evictor(new PageEvictor(runtime, trees, source, tables, loader, std::move(budget),
                                                       merge_interval, std::move(on_error), std::move(flusher)));
  loader.SetMemoryGate([evictor = evictor.get()](uint64_t loading, LoadAdmission admission) {
    return evictor->AdmitsLoad(loading, admission);
  });
  evictor->thread_ = runtime.StartThread("dc-evictor", [evictor = evictor.get()] { evictor->Run(); });
  return evictor;
}

PageEvictor::PageEvictor(Runtime& runtime, const BwTreeEnvironment& trees, TreeSource& source, TableList& tables,
                         PageLoader& loader, MemoryBudget budget, Duration merge_interval,
                         std::function<void(const Status&)> on_error, std::unique_ptr<PageFlusher> flusher)
    : runtime_(runtime),
      trees_(trees),
      source_(source),
      tables_(tables),
      loader_(loader),
      budget_(std::move(budget)),
      on_error_(std::move(on_error)),
      flusher_(std::move(flusher)),
      merger_(runtime, trees.domain, source, tables, loader, merge_interval,
              [this] { return stops() || budget_.IsOverHighMark(); }),
      returner_(runtime, budget_, ResidentBytesInUse),
      waiters_(runtime, [this] { loader_.OnMemoryFreed(); }) {}

PageEvictor::~PageEvictor() {
  // From here on the loader does not ask this object. No load waits for memory any more. Those that nobody waits for
  // are given up, because without this object nothing would bound them.
  loader_.SetMemoryGate(
      [](uint64_t /*loading*/, LoadAdmission admission) { return admission != LoadAdmission::kSpeculative; });
  stop_.store(1, std::memory_order_relaxed);
  runtime_.WakeAll(stop_);
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
  thread_.reset();
}

void PageEvictor::WakeIfOverHighMark() {
  if (!budget_.IsOverHighMark()) return;
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
}

void PageEvictor::WaitForMemory(Purpose purpose) {
  // A thread that waited inside a guard would itself keep the memory of evicted pages from being freed.
  DEUT_DCHECK(!trees_.domain.guard_held());
  if (budget_.unlimited()) return;
  bool leaves_room = purpose == Purpose::kToApply;
  const MonotonicTime patience = runtime_.Now() + kMaxApplyWait;
  for (;;) {
    // Loaded before memory is measured: if some is freed in between, Wait returns at once.
    const uint32_t progress = waiters_.progress();
    // The limit may change while this thread waits.
    if (budget_.used() <= (leaves_room ? budget_.apply_limit() : budget_.limit()) || stops()) return;
    // The evictor's last rounds freed nothing, so waiting is useless; it goes on trying.
    if (waiters_.AdmitsWithoutProgress()) return;
    WakeIfOverHighMark();
    waiters_.Wait(progress, leaves_room ? Deadline(patience) : kNoDeadline);
    if (leaves_room && runtime_.Now() >= patience) leaves_room = false;
  }
}

bool PageEvictor::AdmitsLoad(uint64_t loading_bytes, LoadAdmission admission) {
  if (budget_.unlimited() || stops()) return true;
  const uint64_t used = budget_.used();
  if (used + loading_bytes <= budget_.limit()) return true;
  // A page that nobody waits for must not push out others, nor take an admission from a load that somebody waits for.
  if (admission == LoadAdmission::kSpeculative) return false;
  // As in WaitForMemory. While the loader reads pages, it asks again by itself when they are loaded.
  if (used <= budget_.limit() ? admission == LoadAdmission::kOverdue : waiters_.AdmitsWithoutProgress()) return true;
  WakeIfOverHighMark();
  return false;
}

void PageEvictor::Run() {
  MonotonicTime next_flush = runtime_.Now() + kFlushInterval;
  while (!stops()) {
    // Loaded before the work: a WakeIfOverHighMark during it changes the word, so the waits below return at once.
    const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
    merger_.Run([this] { return !budget_.IsOverHighMark(); });
    if (runtime_.Now() >= next_flush) {
      PageMemory::FlushIdleCaches();
      next_flush = runtime_.Now() + kFlushInterval;
    }
    if (budget_.unlimited()) {
      runtime_.Wait(wakes_, wakes, std::min(merger_.next(), next_flush));
      continue;
    }
    returner_.RunIfDue();
    if (!budget_.IsOverHighMark()) {
      waiters_.ReportRoom();  // garbage that was freed meanwhile counts as free memory
      runtime_.Wait(wakes_, wakes, std::min(merger_.next(), runtime_.Now() + kCheckInterval));
      continue;
    }
    const uint64_t freed = FreeSome();
    // Retired memory counts as used until the last guard that may see it ends. A guard never waits for memory, so the
    // memory becomes free however little can be evicted, and threads that wait for it wait for something that comes.
    // Without this, all pages are evicted while a thread inside its guard has no processor, and then each attempt that
    // finds nothing left to evict admits more data.
    // Below the limit this does not hold: there, a thread that applies the log waits for room that it only leaves to
    // readers, and must not wait each time if nothing can be evicted.
    const uint64_t pending = trees_.domain.pending_bytes();
    const bool exceeded = budget_.IsExceededWithout(pending);
    const bool comes_free = !exceeded && budget_.IsExceededWithout(0);
    // The same holds for slabs in which garbage is all that is left.
    const bool slabs_come_free = idle_drains_ != 0 && idle_drains_ <= kMaxIdleDrains;
    waiters_.ReportAttempt(/*freed=*/freed != 0 || comes_free || slabs_come_free, exceeded);
    if (freed != 0) continue;
    // The report above has woken loads and threads, which wake this thread again if they find no memory. Only the end
    // of this object shortens the pause.
    const MonotonicTime pause_end = runtime_.Now() + kPauseWithoutProgress;
    while (!stops() && runtime_.Now() < pause_end) runtime_.Wait(stop_, 0, pause_end);
    runtime_.Wait(wakes_, wakes, runtime_.Now() + kCheckInterval);
  }
  waiters_.Wake();
}

uint64_t PageEvictor::FreeSome() {
  const bool room_counts = budget_.BytesToDrain() != 0;
  const uint64_t drained = DrainSlabs();
  idle_drains_ = room_counts && drained == 0 ? std::min(idle_drains_, kMaxIdleDrains) + 1 : 0;
  uint64_t target = budget_.low_mark();
  if (idle_drains_ > kMaxIdleDrains && !MustStopMoving()) {
    // The room cannot be got back. With fewer pages the component has a smaller share of it.
    const uint64_t accounted = budget_.accounted();
    target = std::min(target, accounted - std::min(accounted, budget_.limit() / 16));
  }
  const uint64_t transient = DEUT_STEP("evict.transient_first") ? EvictTransient(target) : 0;
  if (transient != 0 && budget_.accounted() <= target) return drained + transient + AgeOthers();
  // A round starts where the last one ended. The first one may only clear marks, so up to three are run.
  uint64_t evicted = Round(target);
  for (int round = 1; round < 3 && evicted == 0; ++round) {
    LeaveSecondChance();
    evicted = Round(target);
  }
  return drained + transient + evicted;
}

uint64_t PageEvictor::EvictTransient(uint64_t target) {
  TransientPages& transient = loader_.transient_pages();
  const size_t places = transient.size();
  uint64_t evicted = 0;
  // The first visit may only clear marks, so each place but the youngest is visited twice. A place that is given up
  // leaves its second visit to the others, at last to the youngest: that is better than to take the marks of lasting
  // pages.
  for (size_t left = 2 * places - std::min<size_t>(places, 1); left > 0 && !ShouldStop(target); --left) {
    std::optional<TransientPages::Place> place = transient.Take();
    if (!place.has_value()) break;
    returner_.RunIfDue();
    BwTree::Walk leaves{.high = place->high, .complete = false};
    const Stepped stepped = Step(place->table, Mode::kTransient, &leaves);
    if (stepped.kept) transient.Add(*std::move(place));
    NoteEvicted(stepped.evicted);
    evicted += stepped.evicted;
  }
  return evicted;
}

uint64_t PageEvictor::AgeOthers() {
  const auto pages = static_cast<int64_t>(trees_.pages.used());
  // Rounds have moved the hand as well. At most one rotation of theirs counts.
  hand_.owed = std::max(hand_.owed, -pages) + pages / static_cast<int64_t>(kAttemptsOfRotation) + 1;
  return Sweep([this] { return stops() || hand_.owed <= 0; });
}

void PageEvictor::LeaveSecondChance() {
  DEUT_POINT("evictor.second_chance");
  const MonotonicTime end = runtime_.Now() + kSecondChance;
  while (!stops() && runtime_.Now() < end) runtime_.Wait(stop_, 0, end);
}

bool PageEvictor::MustStopMoving() const {
  return stops() || trees_.domain.pending_bytes() > std::max(budget_.limit() / 16, kMinMovedBytes);
}

uint64_t PageEvictor::DrainSlabs() {
  const uint64_t bytes = budget_.BytesToDrain();
  if (bytes == 0) return 0;
  // A block in a cache would hold its slab back.
  PageMemory::FlushCaches();
  const PageMemory::Drain drain(bytes);
  uint64_t freed = 0;
  for (const TableId table : tables_.LiveTables()) {
    if (MustStopMoving()) break;
    freed += DrainTable(table);
  }
  return freed;
}

uint64_t PageEvictor::DrainTable(TableId table) {
  const uint64_t moved_before = moves();
  uint64_t evicted = 0;
  BwTree::Walk leaves;
  while (!leaves.complete && !MustStopMoving()) {
    returner_.RunIfDue();
    const uint64_t freed_before = evicted + moves();
    evicted += Step(table, Mode::kDrain, &leaves).evicted;
    if (evicted + moves() == freed_before) continue;
    trees_.domain.Collect();
    waiters_.Wake();
  }
  evictions_.fetch_add(evicted, std::memory_order_relaxed);
  BwTree::Walk inner;
  for (uint8_t level = 1; !MustStopMoving();) {
    {
      const ReclamationDomain::Guard guard(trees_.domain);
      BwTree* const tree = source_.FindTree(table);
      if (tree == nullptr || level > tree->root_level()) break;
      MoveVisitor visitor(*tree);
      tree->VisitPages(level, &inner, &visitor);
      moves_.fetch_add(visitor.moved(), std::memory_order_relaxed);
    }
    trees_.domain.Collect();
    if (!inner.complete) continue;
    inner = BwTree::Walk();
    ++level;
  }
  return evicted + moves() - moved_before;
}

uint64_t PageEvictor::Round(uint64_t target) {
  rounds_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t evicted = Sweep([&] { return ShouldStop(target); });
  hand_.short_rounds = ShouldStop(target) ? 0 : std::min(hand_.short_rounds, kRoundsWithoutLoads) + 1;
  return evicted;
}

uint64_t PageEvictor::Sweep(absl::FunctionRef<bool()> done) {
  uint64_t evicted = 0;
  std::vector<TableId> tables = tables_.LiveTables();
  std::ranges::rotate(tables, std::ranges::lower_bound(tables, hand_.table));
  for (const TableId table : tables) {
    hand_.table = table;
    evicted += SweepTable(table, done);
    // A step often ends a small table and the sweep together. If the hand began with that table again, its pages would
    // have no time for their second chance, and the hand might never get to the other tables.
    if (hand_.at[table].complete) hand_.table = TableId(table.value + 1);
    if (done()) break;
  }
  if (hand_.at.size() > 2 * tables.size()) hand_.at.clear();  // most are of dropped tables
  trees_.domain.Collect();
  return evicted;
}

uint64_t PageEvictor::SweepTable(TableId table, absl::FunctionRef<bool()> done) {
  uint64_t evicted = 0;
  BwTree::Walk& at = hand_.at[table];
  if (at.complete) at = BwTree::Walk();
  while (!at.complete && !done()) {
    returner_.RunIfDue();
    const Stepped stepped = Step(table, Mode::kClock, &at);
    hand_.owed -= static_cast<int64_t>(stepped.visited);
    NoteEvicted(stepped.evicted);
    evicted += stepped.evicted;
  }
  return evicted;
}

void PageEvictor::NoteEvicted(uint64_t pages) {
  evictions_.fetch_add(pages, std::memory_order_relaxed);
  if (pages == 0) return;
  trees_.domain.Collect();
  waiters_.Wake();
}

bool PageEvictor::HasRoomToWrite() const { return !failing_ || !flusher_->IsShortOfSpace(); }

bool PageEvictor::MayLoad(Mode mode) const {
  return (mode == Mode::kDrain || hand_.short_rounds >= kRoundsWithoutLoads) && HasRoomToWrite();
}

bool PageEvictor::MayMergeParts() const { return !failing_ && budget_.used() <= budget_.apply_limit(); }

PageEvictor::Stepped PageEvictor::Step(TableId table, Mode mode, BwTree::Walk* walk) {
  DEUT_CHECK(flusher_->empty());  // each batch was written or given up, so no page stays claimed
  flusher_->SetMergesParts(mode != Mode::kDrain && MayMergeParts());
  const bool may_load = MayLoad(mode);
  Stepped stepped;
  BwTree::Walk next = *walk;
  PageSet written;
  std::vector<std::string> to_load;
  {
    const ReclamationDomain::Guard guard(trees_.domain);
    BwTree* const tree = source_.FindTree(table);
    if (tree == nullptr) {
      walk->complete = true;
      return stepped;
    }
    LeafVisitor sweep(*tree, trees_.pages, *flusher_, mode, may_load);
    tree->VisitPages(/*level=*/0, &next, &sweep);
    stepped = sweep.stepped();
    moves_.fetch_add(sweep.moved(), std::memory_order_relaxed);
    if (sweep.rest()) next = BwTree::Walk{*sweep.rest(), /*complete=*/false};
    written = sweep.TakeAdded();
    to_load = sweep.TakeToLoad();
  }
  const auto write = [&] {
    if (flusher_->empty()) return true;
    const Status status = flusher_->Write();
    if (!status.ok()) {
      if (!failing_) LogWarning("pages cannot be written: ", status.message());
      on_error_(status);
    }
    failing_ = !status.ok();
    if (status.ok()) stepped.evicted += EvictWritten(table, *walk, written);
    return status.ok();
  };
  bool writable = write() && HasRoomToWrite();
  for (std::span<const std::string> rest(to_load); writable && !rest.empty() && !stops();) {
    const std::span<const std::string> some = rest.first(std::min(kMaxLoadedPerBatch, rest.size()));
    rest = rest.subspan(some.size());
    written = LoadSome(table, *walk, some);
    writable = write();
  }
  *walk = std::move(next);
  return stepped;
}

uint64_t PageEvictor::EvictWritten(TableId table, BwTree::Walk walk, const PageSet& written) {
  const ReclamationDomain::Guard guard(trees_.domain);
  BwTree* const tree = source_.FindTree(table);
  if (tree == nullptr) return 0;
  EvictVisitor visitor(*tree, written);
  tree->VisitPages(/*level=*/0, &walk, &visitor);
  DEUT_DCHECK(visitor.evicted() <= written.size());
  return visitor.evicted();
}

PageEvictor::PageSet PageEvictor::LoadSome(TableId table, BwTree::Walk walk,
                                           std::span<const std::string> upper_bounds) {
  // A page that cannot be read stays as it is. The loader has noted the damage.
  (void)loader_.LoadAll(table, upper_bounds, Side::kBelow);
  const ReclamationDomain::Guard guard(trees_.domain);
  BwTree* const tree = source_.FindTree(table);
  if (tree == nullptr) return {};
  FlushVisitor visitor(*tree, *flusher_, upper_bounds);
  tree->VisitPages(/*level=*/0, &walk, &visitor);
  return visitor.TakeAdded();
}

}  // namespace deut::dc
