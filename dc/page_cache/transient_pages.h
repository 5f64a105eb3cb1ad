// TransientPages: where the pages are that were loaded for long scans or checkpoints (PageStay::kTransient), so that
// the evictor finds them without a walk over all pages. A place is an inner page that was the parent of some; the
// oldest place comes first.
//
// It is advice. A place may have no transient page any more, and a page may be in no place: its parent was split, or
// there were more than kMaxPlaces. Such a page is treated like any other one that is not used.
// Thread-safety: all methods from any thread. Ownership: borrows the runtime. Memory: the upper bound of each place,
// and some dozens of bytes.
#ifndef DC_PAGE_CACHE_TRANSIENT_PAGES_H_
#define DC_PAGE_CACHE_TRANSIENT_PAGES_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

class TransientPages {
 public:
  struct Place {
    TableId table;
    PageId parent;
    std::string high;  // the parent's upper bound; empty: there is none
  };
  // With pages of 32 KiB, the leaves below so many parents are some hundred gigabytes.
  static constexpr size_t kMaxPlaces = size_t{1} << 16;

  explicit TransientPages(Runtime& runtime) : mutex_(runtime) {}

  // Puts the place behind the others, unless it is among them. If there are too many, the oldest one is forgotten.
  void Add(Place place);
  // Removes and returns the oldest place.
  std::optional<Place> Take();
  size_t size() const;

 private:
  std::optional<Place> TakeFirst() DEUT_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::deque<Place> places_ DEUT_GUARDED_BY(mutex_);
  absl::flat_hash_set<PageId> parents_ DEUT_GUARDED_BY(mutex_);  // of places_
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_TRANSIENT_PAGES_H_
