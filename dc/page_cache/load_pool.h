// LoadPool: threads that load pages into memory, several at once, for callers that need more than one page.
//
// A call enqueues its pages, takes part in loading them, and returns when each was tried. So all of them take about
// as long as one.
// Thread-safety: all methods from any thread. Ownership: owns its threads; borrows the loader.
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
  // Loads the leaves that Target(key, side) names. The loader logs pages that cannot be read. REQUIRES: no guard is
  // held.
  void LoadAll(TableId table, std::span<const std::string> keys, Side side);

 private:
  // Lives on its caller's stack: no thread touches it after `done`.
  struct Batch {
    Batch(TableId of_table, std::span<const std::string> of_pages, Side of_keys)
        : table(of_table), keys(of_pages), side(of_keys) {}
    TableId table;
    std::span<const std::string> keys;
    Side side;
    size_t begun = 0;   // guarded by LoadPool::mutex_
    size_t loaded = 0;  // guarded by LoadPool::mutex_
    Event done;
  };

  void Work();
  // Takes the next page of the batch. REQUIRES: there is one.
  size_t NextPageLocked(Batch* batch) DEUT_REQUIRES(mutex_);
  void Load(Batch* batch, size_t at);

  Runtime& runtime_;
  PageLoader& loader_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Batch*> queue_ DEUT_GUARDED_BY(mutex_);  // batches with pages that no thread has taken
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_POOL_H_
