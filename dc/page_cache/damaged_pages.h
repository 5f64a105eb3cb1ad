// DamagedPages: the pages that could not be read when they were wanted, so that it is known that there are some, each is told once, and nobody
// asks the disk for the same one again and again.
//
// A page comes in when its reading fails (CORRUPTION, IO_ERROR) and goes out when it is read after all (somebody has brought its file back), or its
//   table is dropped: until one of both it is a page, as it cannot be merged without being read. Its id is another page's after the drop, of
//   another table: no table's id is used twice. Within kRetryAfter of a failed reading the answer is that failure; who wants the page later
//   reads again.
// Thread-safety: all methods from any thread; while there are none, no lock is taken.
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
  // So many are known. A line in the log says when there are; of further ones only those hear who want them.
  static constexpr size_t kLimit = 4096;

  explicit DamagedPages(Runtime& runtime) : runtime_(runtime), mutex_(runtime) {}

  // Why the page could not be read a moment ago; OK: read it.
  Status Known(PageId page, TableId table);
  // The outcome of reading it. Answers the same, with what to do about it.
  Status Note(PageId page, TableId table, const Status& read);
  // Those of tables that are gone.
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
