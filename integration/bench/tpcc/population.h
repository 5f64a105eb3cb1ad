// The records of TPC-C before its first transaction (clause 4.3.3).
// Thread-safety: stateless.
#ifndef INTEGRATION_BENCH_TPCC_POPULATION_H_
#define INTEGRATION_BENCH_TPCC_POPULATION_H_

#include <cstdint>

#include "common/base/status.h"
#include "integration/bench/backend.h"
#include "integration/bench/tpcc/schema.h"

namespace deut::bench::tpcc {

// The sum that each customer has paid before the first transaction, in cents.
constexpr int64_t kFirstPayment = 1000;

// Part 0 has the items. The next parts are one for each warehouse (with its stock), and one for each district.
inline uint32_t PopulationParts(const Scale& scale) { return 1 + scale.warehouses * (1 + kDistricts); }

// Writes a part, in transactions of a few hundred records. REQUIRES: part < PopulationParts(scale).
Status Populate(Session& session, const Scale& scale, uint32_t part);

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_POPULATION_H_
