// LoadWaiter: waits for a page without a thread. LoadUrgency: what a load waits for. LoadAdmission: how a load asks for
// memory.
#ifndef DC_PAGE_CACHE_LOAD_WAITER_H_
#define DC_PAGE_CACHE_LOAD_WAITER_H_

#include <cstdint>
#include <utility>

#include "common/base/status.h"

namespace deut::dc {

enum class LoadUrgency : uint8_t {
  kNow,         // the caller has waited for memory, or frees some
  kWhenMemory,  // the load itself waits until the memory budget has room; without a waiter it is given up instead
};

enum class LoadAdmission : uint8_t {
  kSpeculative,  // nobody waits for the page
  kOrdinary,     // a continuation waits for it
  kOverdue,      // the same, and many urgent loads have passed it
};

// A continuation. One waiter waits for one load at a time. Its owner keeps it alive until OnLoaded is called.
class LoadWaiter {
 public:
  // The load has ended, with the status of PageLoader::Load. Called once for each load that was started with this
  // waiter, on a thread of the loader, without a guard. The callee must not block, neither for a load nor for memory.
  // Other loads wait for it meanwhile: it does a bounded piece of work, and asks for another call
  // (PageLoader::CallAgain) if more is left. From this call on it may destroy the waiter, or load again with it.
  virtual void OnLoaded(const Status& status) = 0;

 protected:
  ~LoadWaiter() = default;

 private:
  friend class LoadWaiterList;
  LoadWaiter* next_ = nullptr;
};

// Waiters in the order of their arrival. A list of borrowed objects. Thread-safety: none.
class LoadWaiterList {
 public:
  LoadWaiterList() = default;
  LoadWaiterList(LoadWaiterList&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}
  LoadWaiterList& operator=(LoadWaiterList&& other) noexcept {
    first_ = std::exchange(other.first_, nullptr);
    last_ = std::exchange(other.last_, nullptr);
    return *this;
  }

  bool empty() const { return first_ == nullptr; }
  // REQUIRES: the waiter is in no list.
  void Push(LoadWaiter* waiter) {
    waiter->next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = waiter;
    last_ = waiter;
  }
  // Removes and returns the first waiter. REQUIRES: not empty.
  LoadWaiter* Pop() {
    LoadWaiter* const waiter = first_;
    first_ = waiter->next_;
    return waiter;
  }

 private:
  LoadWaiter* first_ = nullptr;
  LoadWaiter* last_ = nullptr;  // valid if there is a first one
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_WAITER_H_
