// The tables of TPC-C (revision 5.11, clause 1.3) as records of one ordered store. A row's key is its table's prefix
// and its primary key. Two indexes, of customers by last name and of orders by customer, consist of records, too.
// Money is in cents, rates are in ten-thousandths. A date is the number of the transaction that its terminal has
// made.
#ifndef INTEGRATION_BENCH_TPCC_SCHEMA_H_
#define INTEGRATION_BENCH_TPCC_SCHEMA_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "integration/bench/row.h"

namespace deut::bench::tpcc {

constexpr std::string_view kPrefix = "C";
constexpr uint32_t kDistricts = 10;  // in a warehouse
constexpr uint32_t kMaxLines = 15;   // in an order
constexpr uint32_t kMinLines = 5;

// The size. The specification has 100,000 items, and 3,000 customers in each district.
struct Scale {
  uint32_t warehouses = 1;
  uint32_t items = 100'000;
  uint32_t customers = 3000;  // in each district; it has as many orders, of which the last 30 % are new
  uint32_t first_new_order() const { return customers - customers * 3 / 10 + 1; }
};

struct Address {
  char street_1[20], street_2[20], city[20], state[2], zip[9];
};

struct Warehouse {
  int64_t ytd;
  uint32_t tax;
  Address address;
  char name[10];
  char spare[3];
};

struct District {
  int64_t ytd;
  uint32_t tax;
  uint32_t next_order;
  Address address;
  char name[10];
  char spare[7];
};

struct Customer {
  int64_t balance, ytd_payment, credit_limit;
  uint32_t payments, deliveries, discount, since;
  char first[16], middle[2], last[16];
  Address address;
  char phone[16], credit[2];
  char data[500];
  char spare[1];
};

struct History {
  int64_t amount;
  uint64_t date;
  char data[24];
};

struct Order {
  uint64_t date;
  uint32_t customer;
  uint32_t carrier;  // 0: not delivered yet
  uint32_t lines;
  uint32_t all_local;
};

struct OrderLine {
  int64_t amount;
  uint64_t delivered;  // 0: not delivered yet
  uint32_t item, supply_warehouse, quantity;
  char district[24];
  char spare[4];
};

struct Item {
  int64_t price;
  uint32_t image;
  char name[24], data[50];
  char spare[2];
};

struct Stock {
  int64_t ytd;
  int32_t quantity;
  uint32_t orders, remote_orders;
  char district[kDistricts][24];
  char data[50];
  char spare[2];
};

// Value of records that only their keys matter for.
constexpr std::string_view kNoRow = "-";

constexpr int kWarehouseDigits = 5, kDistrictDigits = 2, kCustomerDigits = 5, kOrderDigits = 8, kLineDigits = 2,
              kItemDigits = 6, kTerminalDigits = 10, kDateDigits = 10;

// Prefix of a district's rows of one table. That of the next district is above them all.
inline std::string DistrictPrefix(std::string_view table, uint32_t w, uint32_t d) {
  return MakeRowKey(table, {{w, kWarehouseDigits}, {d, kDistrictDigits}});
}

inline std::string WarehouseKey(uint32_t w) { return MakeRowKey("Cw", {{w, kWarehouseDigits}}); }
inline std::string DistrictKey(uint32_t w, uint32_t d) { return DistrictPrefix("Cd", w, d); }
inline std::string CustomerKey(uint32_t w, uint32_t d, uint32_t c) {
  return MakeRowKey("Cc", {{w, kWarehouseDigits}, {d, kDistrictDigits}, {c, kCustomerDigits}});
}
// Customers of one name sort by first name between these two prefixes: '.' is below every letter, and '/' follows it.
inline std::string NamePrefix(uint32_t w, uint32_t d, std::string_view last, char end = '.') {
  return Concat(DistrictPrefix("Cn", w, d), last, std::string_view(&end, 1));
}
inline std::string NameKey(uint32_t w, uint32_t d, std::string_view last, std::string_view first, uint32_t c) {
  return MakeRowKey(Concat(NamePrefix(w, d, last), first, "."), {{c, kCustomerDigits}});
}
inline std::string HistoryKey(uint32_t w, uint32_t d, uint32_t terminal, uint64_t date) {
  return MakeRowKey("Ch",
                    {{w, kWarehouseDigits}, {d, kDistrictDigits}, {terminal, kTerminalDigits}, {date, kDateDigits}});
}
inline std::string NewOrderKey(uint32_t w, uint32_t d, uint32_t o) {
  return MakeRowKey("Cq", {{w, kWarehouseDigits}, {d, kDistrictDigits}, {o, kOrderDigits}});
}
inline std::string OrderKey(uint32_t w, uint32_t d, uint32_t o) {
  return MakeRowKey("Co", {{w, kWarehouseDigits}, {d, kDistrictDigits}, {o, kOrderDigits}});
}
inline std::string OrderOfCustomerKey(uint32_t w, uint32_t d, uint32_t c, uint32_t o) {
  return MakeRowKey("Cx", {{w, kWarehouseDigits}, {d, kDistrictDigits}, {c, kCustomerDigits}, {o, kOrderDigits}});
}
inline std::string OrderLineKey(uint32_t w, uint32_t d, uint32_t o, uint32_t line) {
  return MakeRowKey("Cl", {{w, kWarehouseDigits}, {d, kDistrictDigits}, {o, kOrderDigits}, {line, kLineDigits}});
}
inline std::string ItemKey(uint32_t i) { return MakeRowKey("Ci", {{i, kItemDigits}}); }
inline std::string StockKey(uint32_t w, uint32_t i) {
  return MakeRowKey("Cs", {{w, kWarehouseDigits}, {i, kItemDigits}});
}

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_SCHEMA_H_
