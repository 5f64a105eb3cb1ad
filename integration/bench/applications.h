// Makes an application by its name.
// Thread-safety: any thread.
#ifndef INTEGRATION_BENCH_APPLICATIONS_H_
#define INTEGRATION_BENCH_APPLICATIONS_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/status.h"
#include "integration/bench/application.h"

namespace deut::bench {

// For tpcc and tpcc-np (new orders and payments only), `size` is the number of warehouses; both have the same
// records. For tatp, it is thousands of subscribers. INVALID_ARGUMENT for an unknown name, naming the known ones, or
// for a size out of bounds.
Result<std::unique_ptr<Application>> ApplicationByName(std::string_view name, uint32_t size);

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_APPLICATIONS_H_
