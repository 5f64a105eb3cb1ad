#include "integration/bench/applications.h"

#include "common/base/concat.h"
#include "integration/bench/tatp/tatp.h"
#include "integration/bench/tpcc/tpcc.h"

namespace deut::bench {

Result<std::unique_ptr<Application>> ApplicationByName(std::string_view name, uint32_t size) {
  constexpr uint32_t kMaxSize = 50'000;  // the keys have digits for at most this size
  if (size == 0 || size > kMaxSize)
    return DEUT_ERROR(kInvalidArgument, "an application of size ", size, "; there are 1 to ", kMaxSize);
  if (name == "tpcc" || name == "tpcc-np") {
    const auto transactions = name == "tpcc" ? tpcc::Transactions::kAll : tpcc::Transactions::kNewOrdersAndPayments;
    return std::unique_ptr<Application>(std::make_unique<tpcc::Tpcc>(tpcc::Scale{.warehouses = size}, transactions));
  }
  constexpr uint32_t kThousand = 1000;
  if (name == "tatp") return std::unique_ptr<Application>(std::make_unique<tatp::Tatp>(size * kThousand));
  return DEUT_ERROR(kInvalidArgument, "no application is named ", Quoted(name), "; there are tpcc, tpcc-np and tatp");
}

}  // namespace deut::bench
