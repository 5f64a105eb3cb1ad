// ConflictOptions: what an operation does when it meets an earlier transaction that is not decided (R8, R9). Every
// choice is correct. Their cost depends on the load.
#ifndef TC_RECORD_MANAGER_CONFLICT_OPTIONS_H_
#define TC_RECORD_MANAGER_CONFLICT_OPTIONS_H_

#include <cstdint>

#include "common/runtime/time.h"

namespace deut::tc {

// The earlier uncommitted writers of a logical range to which a scan loses (R8).
enum class RangePrecision : uint8_t {
  kRanges,  // every writer, at once (as in the paper)
  kKeys,    // a writer of a key within the scan's bounds, published or declared, when the scan reaches that key
};

// Whether key ranges take part in concurrency control at all.
enum class RangeControl : uint8_t {
  kRanges,
  // For measuring the cost of ranges to point operations. Writers post no intents and look at no range, and nothing
  // is folded.
  // Every operation that needs ranges (a scan, the removal of a range, the drop of a table) is refused. Point
  // transactions are still serializable, because no transaction reads a range.
  kNone,
};

struct ConflictOptions {
  RangePrecision range_precision = RangePrecision::kKeys;
  RangeControl range_control = RangeControl::kRanges;  // daemons have no flag for it
  // R9: how long an operation may wait, in all, for earlier transactions that are committing already; 0: it aborts at
  // once.
  Duration wait{0};
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_CONFLICT_OPTIONS_H_
