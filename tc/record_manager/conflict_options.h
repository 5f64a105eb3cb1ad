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

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_CONFLICT_OPTIONS_H_
