#include "dc/page_cache/damaged_pages.h"

#include "common/base/concat.h"
#include "common/observe/log.h"

namespace deut::dc {

Status DamagedPages::Known(PageId page) {
  if (count() == 0) return Status::Ok();
  const MutexLock lock(mutex_);
  const auto found = pages_.find(page);
  if (found == pages_.end() || runtime_.Now() - found->second.read_at >= kRetryAfter) return Status::Ok();
  return found->second.status;
}

Status DamagedPages::Note(PageId page, TableId table, const Status& read) {
  if (read.ok()) {
    Forget(page);
    return read;
  }
  if (read != ErrorCode::kCorruption && read != ErrorCode::kIoError) return read;
  Status told(read.code(), Concat("table ", table.value, ": ", read.message(),
                                  ". Bring its file back from a copy; `deut dc verify` lists all that is damaged"));
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    if (pages_.size() < kLimit || pages_.contains(page)) {
      is_new = pages_.insert_or_assign(page, Damage{told, runtime_.Now()}).second;
      count_.store(pages_.size(), std::memory_order_relaxed);
    }
  }
  if (is_new) {
    LogError("a page cannot be read: ", told.ToString(), ". Its records are not answered; its updates are kept");
  }
  return told;
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

void DamagedPages::ForgetIf(const std::function<bool(PageId)>& gone) {
  if (count() == 0) return;
  const MutexLock lock(mutex_);
  absl::erase_if(pages_, [&](const auto& each) { return gone(each.first); });
  count_.store(pages_.size(), std::memory_order_relaxed);
}

}  // namespace deut::dc
