// PageKeeper: keeps the data component within its memory budget. [LLAMA, PVLDB 6(10), 2013, section 3.3: swapping out]
//
// A thread of its own walks over the leaves, as a clock with a second chance: a page that was used since the last visit loses its mark;
// else it is swapped out if it is clean, or written if it is not, and swapped out then.
// Inner pages, and the root of every table, stay: some thousandths of the data.
// States of memory: below the low mark: the thread sleeps. Above the high mark it works. Above the budget, besides, those who bring in
//   data wait (WaitForRoom), on threads that may: never who commits, never who answers what is in memory.
// What cannot be swapped out (nothing but inner pages left, the disk full) does not make them wait for ever: when a whole round has gained
//   nothing, they go on, some for each try of the thread, so that memory does not grow without limit, and `exhausted` says so; the transaction
//   component then refuses puts (rule X7).
// Pages come and go in all sizes, so much of what was freed stays with the allocator, in pieces: several times the budget, unless it is made to
//   give it back now and then. The thread does that when the process has grown by more than a sixteenth of the budget over what is accounted for.
// The same thread merges pages (page_merger.h), as what is merged must not be swapped out meanwhile.
// Thread-safety: all methods from any thread. Ownership: of its thread; borrows the rest.
#ifndef DC_PAGE_CACHE_PAGE_KEEPER_H_
#define DC_PAGE_CACHE_PAGE_KEEPER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/page_cache/load_pool.h"
#include "dc/page_cache/page_merger.h"

namespace deut::dc {

class PageKeeper {
 public:
  // `used`: bytes that count against `budget`. `budget` 0: no limit; then nothing is swapped out. `merge_interval`: see PageMerger.
  // `on_error`: told, on the keeper's thread, why pages cannot be written.
  static Result<std::unique_ptr<PageKeeper>> Create(Runtime& runtime, const BwTreeEnvironment& trees,
                                                    SegmentStore& store, TreeSource& source, TableList& tables,
                                                    LoadPool& loads, std::function<uint64_t()> used, uint64_t budget,
                                                    Duration merge_interval,
                                                    std::function<void(const Status&)> on_error);
  ~PageKeeper();
  PageKeeper(const PageKeeper&) = delete;
  PageKeeper& operator=(const PageKeeper&) = delete;

  // After something was brought in. Cheap.
  void Look();
  // Waits while the budget is exceeded and the thread gets anywhere. Who applies the log leaves a sixteenth of it to those who read, whose
  // pages are the first to be asked for again; but for kPatience only: readers that miss all the time would keep it out for ever.
  // REQUIRES: no guard.
  enum class Room : uint8_t { kToRead, kToApply };
  static constexpr Duration kPatience = std::chrono::milliseconds(50);
  void WaitForRoom(Room room);
  // Nothing more can be swapped out, and the budget is exceeded.
  bool exhausted() const { return exhausted_.load(std::memory_order_acquire); }

  uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }
  uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }

 private:
  class Sweep;
  class Rewrite;
  class Settle;
  using PageSet = absl::flat_hash_set<PageId>;

  PageKeeper(Runtime& runtime, const BwTreeEnvironment& trees, TreeSource& source, TableList& tables, LoadPool& loads,
             std::function<uint64_t()> used, uint64_t budget, Duration merge_interval,
             std::function<void(const Status&)> on_error, std::unique_ptr<PageFlusher> flusher);

  void Run();
  void ReturnFreed();
  void WakeWaiters();
  // A round over all tables, or until memory is below the low mark. Answers how many pages were swapped out.
  uint64_t Round();
  uint64_t SweepTable(TableId table);
  // One parent's leaves, below the walk's bound.
  uint64_t Step(TableId table, BwTree::Walk* walk);
  uint64_t SwapOutWritten(TableId table, BwTree::Walk walk, const PageSet& written);
  // Of those with these upper bounds: chains of updates on pages that are not there, grown too long for one more part. They are loaded and handed
  // to the flusher, so that they are swapped out before the next ones come: who makes room must not fill it. Answers which were handed over.
  PageSet LoadSome(TableId table, BwTree::Walk walk, std::span<const std::string> highs);
  bool Enough() const { return stop_.load(std::memory_order_relaxed) || used_() <= low_; }

  Runtime& runtime_;
  const BwTreeEnvironment trees_;
  TreeSource& source_;
  TableList& tables_;
  LoadPool& loads_;
  const std::function<uint64_t()> used_;
  const uint64_t budget_;
  const uint64_t high_;
  const uint64_t low_;
  const std::function<void(const Status&)> on_error_;
  const std::unique_ptr<PageFlusher> flusher_;
  std::atomic<bool> stop_{false};
  // The keeper's own thread.
  PageMerger merger_;
  MonotonicTime next_return_;
  uint64_t unaccounted_ = 0;  // the least resident bytes besides `used` since freed memory was last given back
  absl::flat_hash_map<TableId, BwTree::Walk> hands_;  // where the last round ended
  bool failing_ = false;

  std::atomic<uint32_t> looks_{0};     // changes wake the thread
  std::atomic<uint32_t> progress_{0};  // changes wake those who wait for room
  std::atomic<bool> stuck_{false};     // a whole round has gained nothing
  std::atomic<int> let_in_{0};         // while stuck: so many more of those who wait go on before the next try
  std::atomic<bool> exhausted_{false};
  std::atomic<uint64_t> evictions_{0};
  std::atomic<uint64_t> rounds_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_PAGE_KEEPER_H_
