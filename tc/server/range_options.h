// RangeOptions: into how many logical ranges the tables of a TC are cut, and how often that is decided
// (repartitioner.h).
#ifndef TC_SERVER_RANGE_OPTIONS_H_
#define TC_SERVER_RANGE_OPTIONS_H_

#include <cstdint>

#include "common/runtime/time.h"

namespace deut::tc {

struct RangeOptions {
  // A table has one range per records_per_range records, and more where much is updated, up to max_ranges. If
  // fixed_ranges is not 0 every table has that many.
  uint32_t records_per_range = 2000;
  uint32_t max_ranges = 8192;
  uint32_t fixed_ranges = 0;
  Duration period = milliseconds(500);
  // For tests. If not 0, all tables are cut into ranges at random, from this seed, in every period in which
  // transactions begin.
  uint64_t random_seed = 0;
};

}  // namespace deut::tc

#endif  // TC_SERVER_RANGE_OPTIONS_H_
