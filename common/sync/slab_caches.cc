#include "common/sync/slab_caches.h"

#include <utility>

namespace deut {

SlabCaches::Member* SlabCaches::Join() {
  auto* const member = new Member;
  count_.fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  member->next_ = std::exchange(members_, member);
  if (member->next_ != nullptr) member->next_->previous_ = member;
  return member;
}

void SlabCaches::Leave(Member* member) {
  {
    const MutexLock lock(mutex_);  // no flush is running
    (member->previous_ != nullptr ? member->previous_->next_ : members_) = member->next_;
    if (member->next_ != nullptr) member->next_->previous_ = member->previous_;
  }
  heap_.Flush(&member->cache_);
  delete member;
  count_.fetch_sub(1, std::memory_order_relaxed);
}

void SlabCaches::FlushSome(bool idle_only) {
  const MutexLock lock(mutex_);
  for (Member* member = members_; member != nullptr; member = member->next_) {
    bool locked = false;
    // Where this fails, the owner uses the cache.
    if (!member->locked_.compare_exchange_strong(locked, true, std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    if (!idle_only || !std::exchange(member->used_, false)) {
      DEUT_POINT("slab_caches.before_flush");
      heap_.Flush(&member->cache_);
    }
    Unlock(member);
  }
}

}  // namespace deut
