#include "integration/bench/tpcc/consistency.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "integration/bench/record_scan.h"

namespace deut::bench::tpcc {
namespace {

// The figures of one district that the conditions compare.
struct Sums {
  int64_t ytd = 0;
  uint64_t next_order = 0;
  uint64_t last_order = 0, lines_by_orders = 0;
  uint64_t new_orders = 0, first_new_order = 0, last_new_order = 0;
  uint64_t lines = 0;
  int64_t paid = 0;  // according to its history
};

struct Totals {
  int64_t balances = 0, delivered = 0, paid = 0;
};

template <typename Row>
Result<Row> ReadRow(InteractiveTransaction& transaction, const std::string& key) {
  std::vector<std::optional<std::string>> values;
  DEUT_RETURN_IF_ERROR(transaction.Get({key}, &values));
  if (!values[0].has_value()) return DEUT_ERROR(kCorruption, "the row ", Quoted(key), " is missing");
  return RowOf<Row>(key, *values[0]);
}

// Calls `row` for the rows of one table in one district.
Status ForEachRow(InteractiveTransaction& transaction, std::string_view table, uint32_t w, uint32_t d,
                  absl::FunctionRef<Status(std::string_view, std::string_view)> row) {
  return ForEachRecord(transaction, DistrictPrefix(table, w, d), DistrictPrefix(table, w, d + 1), row);
}

Result<uint64_t> OrderOf(std::string_view key, std::string_view table) {
  return NumberIn(key, table.size() + kWarehouseDigits + kDistrictDigits, kOrderDigits);
}

Status AddOrders(InteractiveTransaction& transaction, uint32_t w, uint32_t d, Sums* sums, Totals* totals) {
  DEUT_RETURN_IF_ERROR(ForEachRow(transaction, "Co", w, d, [&](std::string_view key, std::string_view value) -> Status {
    DEUT_ASSIGN_OR_RETURN(const Order order, RowOf<Order>(key, value));
    DEUT_ASSIGN_OR_RETURN(const uint64_t number, OrderOf(key, "Co"));
    sums->last_order = std::max(sums->last_order, number);
    sums->lines_by_orders += order.lines;
    return Status();
  }));
  DEUT_RETURN_IF_ERROR(ForEachRow(transaction, "Cq", w, d, [&](std::string_view key, std::string_view) -> Status {
    DEUT_ASSIGN_OR_RETURN(const uint64_t number, OrderOf(key, "Cq"));
    if (sums->new_orders++ == 0) sums->first_new_order = number;
    sums->last_new_order = number;
    return Status();
  }));
  return ForEachRow(transaction, "Cl", w, d, [&](std::string_view key, std::string_view value) -> Status {
    DEUT_ASSIGN_OR_RETURN(const OrderLine line, RowOf<OrderLine>(key, value));
    ++sums->lines;
    if (line.delivered != 0) totals->delivered += line.amount;
    return Status();
  });
}

Status AddMoney(InteractiveTransaction& transaction, uint32_t w, uint32_t d, Sums* sums, Totals* totals) {
  DEUT_RETURN_IF_ERROR(ForEachRow(transaction, "Ch", w, d, [&](std::string_view key, std::string_view value) -> Status {
    DEUT_ASSIGN_OR_RETURN(const History history, RowOf<History>(key, value));
    sums->paid += history.amount;
    totals->paid += history.amount;
    return Status();
  }));
  return ForEachRow(transaction, "Cc", w, d, [&](std::string_view key, std::string_view value) -> Status {
    DEUT_ASSIGN_OR_RETURN(const Customer customer, RowOf<Customer>(key, value));
    totals->balances += customer.balance;
    return Status();
  });
}

Status CheckDistrict(const Sums& sums, uint32_t w, uint32_t d) {
  const auto broken = [&](int condition, std::string_view what, auto one, auto other) {
    return DEUT_ERROR(kCorruption, "TPC-C condition ", condition, " in district ", w, "/", d, ": ", what, ": ", one,
                      " and ", other);
  };
  if (sums.next_order != sums.last_order + 1)
    return broken(2, "the next order and the last one", sums.next_order, sums.last_order);
  if (sums.new_orders != 0 && sums.last_new_order != sums.last_order)
    return broken(2, "the last order and the last new one", sums.last_order, sums.last_new_order);
  if (sums.new_orders != 0 && sums.last_new_order - sums.first_new_order + 1 != sums.new_orders)
    return broken(3, "new orders by number and by count", sums.last_new_order - sums.first_new_order + 1,
                  sums.new_orders);
  if (sums.lines_by_orders != sums.lines)
    return broken(4, "lines by orders and by count", sums.lines_by_orders, sums.lines);
  if (sums.ytd != sums.paid) return broken(9, "the district's sum and its history's", sums.ytd, sums.paid);
  return Status();
}

Status CheckWarehouse(InteractiveTransaction& transaction, uint32_t w, Totals* totals) {
  DEUT_ASSIGN_OR_RETURN(const Warehouse warehouse, ReadRow<Warehouse>(transaction, WarehouseKey(w)));
  int64_t of_districts = 0, paid = 0;
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    DEUT_ASSIGN_OR_RETURN(const District district, ReadRow<District>(transaction, DistrictKey(w, d)));
    Sums sums{.ytd = district.ytd, .next_order = district.next_order};
    DEUT_RETURN_IF_ERROR(AddOrders(transaction, w, d, &sums, totals));
    DEUT_RETURN_IF_ERROR(AddMoney(transaction, w, d, &sums, totals));
    DEUT_RETURN_IF_ERROR(CheckDistrict(sums, w, d));
    of_districts += district.ytd;
    paid += sums.paid;
  }
  if (warehouse.ytd != of_districts)
    return DEUT_ERROR(kCorruption, "TPC-C condition 1: warehouse ", w, " has ", warehouse.ytd, ", its districts ",
                      of_districts);
  if (warehouse.ytd != paid)
    return DEUT_ERROR(kCorruption, "TPC-C condition 8: warehouse ", w, " has ", warehouse.ytd, ", its history ", paid);
  return Status();
}

}  // namespace

Status CheckConsistency(Session& session, const Scale& scale) {
  return session.RunInteractive(/*writes=*/false, [&](InteractiveTransaction& transaction) -> Status {
    Totals totals;
    for (uint32_t w = 1; w <= scale.warehouses; ++w) DEUT_RETURN_IF_ERROR(CheckWarehouse(transaction, w, &totals));
    // Sums over all customers, because a history row does not name its customer.
    if (totals.balances != totals.delivered - totals.paid) {
      return DEUT_ERROR(kCorruption, "TPC-C condition 10: customers have ", totals.balances, ", ", totals.delivered,
                        " were delivered and ", totals.paid, " paid");
    }
    return Status();
  });
}

}  // namespace deut::bench::tpcc
