// LeafLoad: one load on its way through a LoadThread. LoadArrival: the call that starts it. Internal to PageLoader.
// Plain values; load_thread.h has the states.
#ifndef DC_PAGE_CACHE_LEAF_LOAD_H_
#define DC_PAGE_CACHE_LEAF_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/inner_view.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_cache/image_read.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

struct LoadArrival {
  PageId id;
  TableId table;
  std::string key;
  Side side = Side::kAt;
  LoadUrgency urgency = LoadUrgency::kNow;
  PageStay stay = PageStay::kLasting;
  LoadWaiter* waiter = nullptr;
};

struct LeafLoad {
  PageId id;
  TableId table;
  std::string key;
  Side side = Side::kAt;
  LoadUrgency urgency = LoadUrgency::kNow;
  PageStay stay = PageStay::kLasting;
  LoadWaiterList waiters;
  bool waiting = true;              // it is in the LoadQueue
  std::unique_ptr<ImageRead> read;  // while its files are opened, and while it is read
  size_t transfers_left = 0;        // while it is read
  MonotonicTime open_until = {};    // once a file of it had to be opened: a shortage is waited out until then
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LEAF_LOAD_H_
