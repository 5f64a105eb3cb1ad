// TPC-C (revision 5.11) over an ordered key-value store. Terminals have no keying and thinking times, and each has a
// home warehouse. They run only new orders and payments, or the whole mix: 45 % new orders, 43 % payments, 4 % each
// of order status, delivery and stock level. No result of this is a TPC result.
// Thread-safety: as Application.
#ifndef INTEGRATION_BENCH_TPCC_TPCC_H_
#define INTEGRATION_BENCH_TPCC_TPCC_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "integration/bench/application.h"
#include "integration/bench/tpcc/schema.h"

namespace deut::bench::tpcc {

enum class Transactions : uint8_t { kAll, kNewOrdersAndPayments };

class Tpcc final : public Application {
 public:
  Tpcc(const Scale& scale, Transactions transactions) : scale_(scale), transactions_(transactions) {}

  uint32_t parts() const override;
  Status LoadPart(Session& session, uint32_t part) const override;
  std::unique_ptr<Terminal> NewTerminal(uint32_t number, uint64_t seed) const override;
  // Checks the consistency conditions 1 to 4 and 8 to 10 of clause 3.3.2.
  Status Check(Session& session) const override;
  std::string_view prefix() const override { return kPrefix; }

 private:
  const Scale scale_;
  const Transactions transactions_;
};

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_TPCC_H_
