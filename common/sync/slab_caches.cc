#include "common/sync/slab_caches.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace deut {
namespace {

// Every thread of the process passes a full fence before this returns. Returns false if the system refuses.
bool FenceAllThreads() { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0; }

}  // namespace

SlabCaches::SlabCaches(SlabHeap& heap)
    : heap_(heap), can_flush_others_(::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) {}

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
  if (!can_flush_others_) return;
  const MutexLock lock(mutex_);
  bool any = false;
  for (Member* member = members_; member != nullptr; member = member->next_) {
    const uint32_t uses = member->uses_.load(std::memory_order_relaxed);
    member->wanted_ = !idle_only || uses == member->seen_;
    if (idle_only) member->seen_ = uses;
    if (!member->wanted_) continue;
    member->claimed_.store(true, std::memory_order_relaxed);
    any = true;
  }
  if (!any) return;
  const bool fenced = FenceAllThreads();
  for (Member* member = members_; member != nullptr; member = member->next_) {
    if (!member->wanted_) continue;
    // An owner that has not seen the claim has made this odd before the fence.
    if (fenced && member->uses_.load(std::memory_order_acquire) % 2 == 0) {
      DEUT_POINT("slab_caches.before_flush");
      heap_.Flush(&member->cache_);
    }
    member->claimed_.store(false, std::memory_order_release);
  }
}

}  // namespace deut
