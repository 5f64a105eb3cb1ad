// The transactions of TPC-C (clauses 2.4 to 2.8), over the rows of schema.h. Their inputs are chosen before, so a
// retry does the same again. Each function is a whole transaction and returns the status of RunInteractive.
// CONDITION_FAILED: a new order that the specification requires to be rolled back.
// Thread-safety: stateless.
#ifndef INTEGRATION_BENCH_TPCC_TRANSACTIONS_H_
#define INTEGRATION_BENCH_TPCC_TRANSACTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "integration/bench/backend.h"
#include "integration/bench/tpcc/schema.h"

namespace deut::bench::tpcc {

struct CustomerChoice {
  uint32_t warehouse = 0, district = 0;
  uint32_t number = 0;    // 0: by name, the middle one of the customers with this name
  std::string last_name;  // a name that a customer has
};

struct NewOrderInput {
  uint32_t warehouse = 0, district = 0, customer = 0;
  uint64_t date = 0;
  struct Line {
    uint32_t item = 0;  // the last line may have an item that does not exist
    uint32_t supply_warehouse = 0;
    uint32_t quantity = 0;
  };
  std::vector<Line> lines;
};
Status NewOrder(Session& session, const NewOrderInput& input);

struct PaymentInput {
  uint32_t warehouse = 0, district = 0;
  CustomerChoice customer;
  int64_t amount = 0;
  // These two identify the history row.
  uint32_t terminal = 0;
  uint64_t date = 0;
};
Status Payment(Session& session, const PaymentInput& input);

// Reads a customer's last order.
Status OrderStatus(Session& session, const CustomerChoice& customer);

struct DeliveryInput {
  uint32_t warehouse = 0;
  uint32_t carrier = 0;
  uint64_t date = 0;
};
// Delivers the oldest new order of each district; skips a district without one.
Status Delivery(Session& session, const DeliveryInput& input);

struct StockLevelInput {
  uint32_t warehouse = 0, district = 0;
  int32_t threshold = 0;
};
// Reads the stock of the items of the last 20 orders; `low` receives the number of items below the threshold.
Status StockLevel(Session& session, const StockLevelInput& input, uint32_t* low);

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_TRANSACTIONS_H_
