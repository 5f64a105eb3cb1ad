// The applications there are, by name.
#ifndef INTEGRATION_BENCH_APPLICATIONS_H_
#define INTEGRATION_BENCH_APPLICATIONS_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/status.h"
#include "integration/bench/application.h"

namespace deut::bench {

// tpcc and tpcc-np (new orders and payments alone): `size` is warehouses; both have the same records. tatp: thousands of subscribers.
// INVALID_ARGUMENT, naming those there are, or for a size of none.
Result<std::unique_ptr<Application>> ApplicationByName(std::string_view name, uint32_t size);

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_APPLICATIONS_H_
