// The conditions that always hold between the rows of TPC-C (clause 3.3.2): conditions 1 to 4, 8, 9 and 10.
// Thread-safety: stateless.
#ifndef INTEGRATION_BENCH_TPCC_CONSISTENCY_H_
#define INTEGRATION_BENCH_TPCC_CONSISTENCY_H_

#include "common/base/status.h"
#include "integration/bench/backend.h"
#include "integration/bench/tpcc/schema.h"

namespace deut::bench::tpcc {

// CORRUPTION names the condition that does not hold, and the district.
Status CheckConsistency(Session& session, const Scale& scale);

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_CONSISTENCY_H_
