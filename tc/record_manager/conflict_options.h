// What an operation does where it meets an earlier transaction that is not decided (R8): choices whose worth depends on the load, correct either way.
#ifndef TC_RECORD_MANAGER_CONFLICT_OPTIONS_H_
#define TC_RECORD_MANAGER_CONFLICT_OPTIONS_H_

#include <cstdint>

namespace deut::tc {

// Which earlier uncommitted writers of a logical range a scan loses to (R8).
enum class RangePrecision : uint8_t {
  kRanges,  // every one, at once (the paper's)
  kKeys,    // one that has published or declared a key within the scan's bounds, when the scan comes to that key
};

// Whether key ranges take part in concurrency control at all.
enum class RangeControl : uint8_t {
  kRanges,
  // To measure what ranges cost point operations: writers post no intents and look at no range, nothing is folded, and whatever needs ranges (a scan,
  // the removal of a range, the drop of a table) is refused. Point transactions are serializable all the same: no one reads a range.
  kNone,
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_CONFLICT_OPTIONS_H_
