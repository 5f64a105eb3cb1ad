// LoadWaiter: waits for a page without a thread. LoadUrgency: what a load waits for.
#ifndef DC_PAGE_CACHE_LOAD_WAITER_H_
#define DC_PAGE_CACHE_LOAD_WAITER_H_

#include <cstdint>

#include "common/base/status.h"

namespace deut::dc {

enum class LoadUrgency : uint8_t {
  kNow,         // the caller has waited for memory, or frees some
  kWhenMemory,  // the load itself waits until the memory budget has room
};

// A continuation. One waiter waits for one load at a time. Ownership: its owner keeps it alive until OnLoaded is called.
class LoadWaiter {
 public:
  // The load has ended, with the status of PageLoader::Load. Called once for each load that was started with this
  // waiter, on a thread of the loader, without a guard. The callee must not block, neither for a load nor for memory.
  // From this call on it may destroy the waiter, or start another load with it.
  virtual void OnLoaded(const Status& status) = 0;

 protected:
  ~LoadWaiter() = default;

 private:
  friend class LoadThread;
  LoadWaiter* next_ = nullptr;  // the next waiter for the same load
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_WAITER_H_
