// Mix: the operations that the transactions of a workload consist of. a to f are as in YCSB (Cooper et al., SoCC
// 2010), with one change: e updates instead of inserting, so that all stores keep the same size. There are three
// more:
//   a  50 % reads, 50 % updates      d  95 % reads of the latest, 5 % inserts       t  four operations each, 84 % reads, 16 % updates
//   b  95 % reads, 5 % updates       e  95 % scans of 1 to 100, 5 % updates         l  scans of 10,000
//   c  reads                         f  50 % reads, 50 % read-modify-writes         u  updates, durable when acknowledged
// Keys are drawn by Zipf 0.99, in e by Zipf 0.877, in l and u uniformly. The mixes of points a, b, c, f and t also exist
// with uniform keys, as a-uniform and so on. A cache that holds half of the records then serves half of the points.
#ifndef INTEGRATION_BENCH_MIX_H_
#define INTEGRATION_BENCH_MIX_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/random.h"
#include "integration/bench/backend.h"
#include "integration/ycsb/key_chooser.h"

namespace deut::bench {

struct Mix {
  std::string_view name;
  std::array<uint32_t, kStepKinds> percent{};  // by StepKind
  uint32_t steps = 1;                          // number of steps of a transaction
  ycsb::Distribution distribution = ycsb::Distribution::kZipfian;
  double theta = 0.99;
  uint32_t scan_min = 1;
  uint32_t scan_max = 100;

  StepKind Choose(Random& random) const;
};

// Returns the mix with this name, which may end in "-uniform". INVALID_ARGUMENT names the known mixes.
Result<Mix> MixByName(std::string_view name);

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_MIX_H_
