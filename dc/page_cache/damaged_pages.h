// DamagedPages: the pages that could not be read when they were needed. So their existence is known, each is logged
// once, and threads do not ask the disk for the same page again and again.
//
// A page is added when its read fails (CORRUPTION, IO_ERROR). It is removed when a read succeeds (somebody has
//   restored its file), or its table is dropped. Until then the page keeps its id, because it cannot be merged without
//   being read. After the drop the id may become that of a page of another table. The table's id tells the two apart,
//   because no table's id is used twice.
// Within kRetryAfter of a failed read, RecentFailure returns that failure; a thread that needs the page later reads
// again.
// Thread-safety: all methods from any thread; while there are no damaged pages, no lock is taken.
#ifndef DC_PAGE_CACHE_DAMAGED_PAGES_H_
#define DC_PAGE_CACHE_DAMAGED_PAGES_H_

#include <atomic>
#include <cstddef>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

class DamagedPages {
 public:
  static constexpr Duration kRetryAfter = std::chrono::seconds(1);
  // At most this many pages are remembered; a log line says when the limit is reached. Further ones are only reported
  // to the threads that need them.
  static constexpr size_t kLimit = 4096;

  explicit DamagedPages(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  // Returns the reason why a recent read of the page failed; OK: read it.
  Status RecentFailure(PageId page, TableId table);
  // Takes the outcome of a read. Returns the same outcome, and adds to an error what to do about it.
  Status RecordRead(PageId page, TableId table, const Status& read);
  // Removes the pages of dropped tables.
  void ForgetTables(const std::function<bool(TableId)>& gone);

  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Damage {
    TableId table;
    Status status;
    MonotonicTime read_at;
  };

  void Forget(PageId page);

  Runtime& runtime_;
  std::atomic<size_t> count_{0};
  Mutex mutex_;
  absl::flat_hash_map<PageId, Damage> pages_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_DAMAGED_PAGES_H_
