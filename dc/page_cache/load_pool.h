// LoadPool: threads that bring pages into memory, several at once, for those who know that they need more than one.
//
// A call puts its pages on the queue, takes part in loading them, and comes back when each was tried. What the disk takes for one page it then
// takes for about all of them.
// Thread-safety: all methods from any thread. Ownership: of its threads; borrows the loader.
#ifndef DC_PAGE_CACHE_LOAD_POOL_H_
#define DC_PAGE_CACHE_LOAD_POOL_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/bwtree.h"
#include "dc/page_cache/page_loader.h"

namespace deut::dc {

class LoadPool {
 public:
  LoadPool(Runtime& runtime, PageLoader& loader, int threads);
  // REQUIRES: no call is running.
  ~LoadPool();
  LoadPool(const LoadPool&) = delete;
  LoadPool& operator=(const LoadPool&) = delete;

  PageLoader& loader() { return loader_; }
  // Brings in the leaves that Target(key, side) names. The loader tells what cannot be read. REQUIRES: no guard is held.
  void LoadAll(TableId table, std::span<const std::string> keys, Side side);

 private:
  // On its caller's stack: nobody touches it after `done`.
  struct Batch {
    Batch(TableId of_table, std::span<const std::string> of_pages, Side of_keys)
        : table(of_table), keys(of_pages), side(of_keys) {}
    TableId table;
    std::span<const std::string> keys;
    Side side;
    size_t begun = 0;   // under mutex_
    size_t loaded = 0;  // under mutex_
    Event done;
  };

  void Work();
  // The next page of the batch. REQUIRES: there is one.
  size_t TakeLocked(Batch* batch) DEUT_REQUIRES(mutex_);
  void Load(Batch* batch, size_t at);

  Runtime& runtime_;
  PageLoader& loader_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Batch*> queue_ DEUT_GUARDED_BY(mutex_);  // of which some pages are not taken
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_POOL_H_
