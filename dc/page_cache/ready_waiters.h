// ReadyWaiters: the waiters of loads that have ended, until the load thread calls them. Internal to PageLoader.
//
// The waiters of one load are called in the order of their arrival. Waiters of different loads take turns, so a page
// that thousands wait for delays the others by one waiter each.
// Thread-safety: none. Ownership: borrows the waiters.
#ifndef DC_PAGE_CACHE_READY_WAITERS_H_
#define DC_PAGE_CACHE_READY_WAITERS_H_

#include <deque>
#include <utility>

#include "common/base/status.h"
#include "dc/page_cache/load_waiter.h"

namespace deut::dc {

class ReadyWaiters {
 public:
  bool empty() const { return loads_.empty(); }

  // `status`: the outcome of their load.
  void Add(LoadWaiterList waiters, Status status) {
    if (!waiters.empty()) loads_.push_back({std::move(waiters), std::move(status)});
  }

  // Calls the next waiter, which may add another one. REQUIRES: not empty.
  void CallNext() {
    Ended load = std::move(loads_.front());
    loads_.pop_front();
    LoadWaiter* const waiter = load.waiters.Pop();
    // The others are put back first: they were here before a waiter that this one adds.
    Status status = load.status;
    if (!load.waiters.empty()) loads_.push_back(std::move(load));
    waiter->OnLoaded(status);
  }

 private:
  struct Ended {
    LoadWaiterList waiters;
    Status status;
  };

  std::deque<Ended> loads_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_READY_WAITERS_H_
