// The records of TPC-C before its first transaction (clause 4.3.3).
// Thread-safety: stateless.
#ifndef INTEGRATION_BENCH_TPCC_POPULATION_H_
#define INTEGRATION_BENCH_TPCC_POPULATION_H_

#include <cstdint>

#include "common/base/status.h"
#include "integration/bench/backend.h"
#include "integration/bench/tpcc/schema.h"

namespace deut::bench::tpcc {

// What each customer has paid before the first transaction.
constexpr int64_t kFirstPayment = 1000;

// Part 0 is the items; then one a warehouse (with its stock), and one a district.
inline uint32_t PopulationParts(const Scale& scale) { return 1 + scale.warehouses * (1 + kDistricts); }

// Writes a part, in transactions of a few hundred records. REQUIRES: part < PopulationParts(scale).
Status Populate(Session& session, const Scale& scale, uint32_t part);

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_POPULATION_H_
