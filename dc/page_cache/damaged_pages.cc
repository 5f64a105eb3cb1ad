#include "dc/page_cache/damaged_pages.h"

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"

namespace deut::dc {

Status DamagedPages::RecentFailure(PageId page, TableId table) {
  if (count() == 0) return Status::Ok();
  const MutexLock lock(mutex_);
  const auto found = pages_.find(page);
  if (found == pages_.end() || found->second.table != table) return Status::Ok();
  return runtime_.Now() - found->second.read_at < kRetryAfter ? found->second.status : Status::Ok();
}

Status DamagedPages::RecordRead(PageId page, TableId table, const Status& read) {
  if (read.ok()) {
    Forget(page);
    return read;
  }
  if (read != ErrorCode::kCorruption && read != ErrorCode::kIoError) return read;
  Status described(read.code(), Concat("table ", table.value, ": ", read.message(),
                                       ". Restore its file from a copy; `deut dc verify` lists all damage"));
  bool is_new = false;
  bool is_last = false;
  // Logs after the mutex is released: a log line may take time.
  {
    const MutexLock lock(mutex_);
    DEUT_CHECK(count() == pages_.size());  // else a thread that sees 0 would not look for the page's failure
    if (pages_.size() < kLimit || pages_.contains(page)) {
      const auto [at, inserted] = pages_.try_emplace(page);
      is_new = inserted || at->second.table != table;
      is_last = inserted && pages_.size() == kLimit;
      DEUT_CHECK(pages_.size() <= kLimit);
      at->second = Damage{table, described, runtime_.Now()};
      count_.store(pages_.size(), std::memory_order_relaxed);
    }
  }
  if (is_new) {
    LogError("a page cannot be read: ", described.ToString(), ". Reads of its records fail; its updates are kept");
  }
  if (is_last) LogError(kLimit, " pages cannot be read: further ones are not logged");
  return described;
}

void DamagedPages::Forget(PageId page) {
  if (count() == 0) return;
  {
    const MutexLock lock(mutex_);
    if (pages_.erase(page) == 0) return;
    count_.store(pages_.size(), std::memory_order_relaxed);
  }
  LogInfo("page ", page.value, ", which could not be read, can be read again");
}

void DamagedPages::ForgetTables(const std::function<bool(TableId)>& gone) {
  if (count() == 0) return;
  const MutexLock lock(mutex_);
  absl::erase_if(pages_, [&](const auto& each) { return gone(each.second.table); });
  count_.store(pages_.size(), std::memory_order_relaxed);
}

}  // namespace deut::dc
