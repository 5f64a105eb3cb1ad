#include "integration/bench/tpcc/transactions.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "common/base/concat.h"

namespace deut::bench::tpcc {
namespace {

// Far above the number of waiting orders of a district, and of lines of an order.
constexpr uint32_t kAll = 100'000;
constexpr uint32_t kRecentOrders = 20;

using Values = std::vector<std::optional<std::string>>;

template <typename Row>
Result<Row> RowAt(const std::vector<std::string>& keys, const Values& values, size_t i) {
  if (!values[i].has_value()) return DEUT_ERROR(kCorruption, "the row ", Quoted(keys[i]), " is missing");
  return RowOf<Row>(keys[i], *values[i]);
}

template <typename Row>
Result<Row> ReadRow(InteractiveTransaction& transaction, const std::string& key) {
  Values values;
  const std::vector<std::string> keys = {key};
  DEUT_RETURN_IF_ERROR(transaction.Get(keys, &values));
  return RowAt<Row>(keys, values, 0);
}

// Clause 2.5.2.2: sorts the customers with this name by first name, and returns the one at position n/2, rounded up.
Result<uint32_t> NumberOf(InteractiveTransaction& transaction, const CustomerChoice& choice) {
  if (choice.number != 0) return choice.number;
  const std::string low = NamePrefix(choice.warehouse, choice.district, choice.last_name);
  const std::string high = NamePrefix(choice.warehouse, choice.district, choice.last_name, '/');
  std::vector<std::string> keys;
  DEUT_RETURN_IF_ERROR(transaction.Scan(low, high, bench::Order::kAscending, kAll,
                                        [&](std::string_view key, std::string_view) { keys.emplace_back(key); }));
  if (keys.empty()) return DEUT_ERROR(kCorruption, "no customer is named ", Quoted(choice.last_name));
  const std::string& middle = keys[(keys.size() - 1) / 2];
  DEUT_ASSIGN_OR_RETURN(const uint64_t number, NumberIn(middle, middle.size() - kCustomerDigits, kCustomerDigits));
  return static_cast<uint32_t>(number);
}

struct Line {
  std::string key;
  OrderLine row;
};

Result<std::vector<Line>> LinesOf(InteractiveTransaction& transaction, uint32_t w, uint32_t d, uint32_t first_order,
                                  uint32_t end_order) {
  std::vector<Line> lines;
  Status verdict;
  DEUT_RETURN_IF_ERROR(transaction.Scan(OrderLineKey(w, d, first_order, 0), OrderLineKey(w, d, end_order, 0),
                                        bench::Order::kAscending, kAll,
                                        [&](std::string_view key, std::string_view value) {
                                          const Result<OrderLine> row = RowOf<OrderLine>(key, value);
                                          if (row.ok()) {
                                            lines.push_back({std::string(key), *row});
                                          } else {
                                            verdict = row.status();
                                          }
                                        }));
  DEUT_RETURN_IF_ERROR(verdict);
  return lines;
}

// Clause 2.4.2.2: deducts a line's quantity from the stock.
void DeductFromStock(const NewOrderInput::Line& line, bool remote, Stock* stock) {
  const auto quantity = static_cast<int32_t>(line.quantity);
  stock->quantity -= quantity;
  if (stock->quantity < 10) stock->quantity += 91;
  stock->ytd += quantity;
  ++stock->orders;
  if (remote) ++stock->remote_orders;
}

// All rows that a new order reads, in one call.
struct NewOrderRows {
  static constexpr size_t kDistrict = 1, kItems = 3;

  explicit NewOrderRows(const NewOrderInput& input) {
    keys = {WarehouseKey(input.warehouse), DistrictKey(input.warehouse, input.district),
            CustomerKey(input.warehouse, input.district, input.customer)};
    for (const NewOrderInput::Line& line : input.lines) keys.push_back(ItemKey(line.item));
    for (const NewOrderInput::Line& line : input.lines) keys.push_back(StockKey(line.supply_warehouse, line.item));
  }

  std::vector<std::string> keys;
  Values values;
};

Status WriteLines(InteractiveTransaction& transaction, const NewOrderInput& input, const NewOrderRows& read,
                  uint32_t number) {
  const size_t count = input.lines.size();
  // If an item is ordered twice, the second line takes from what the first one has left.
  std::vector<std::pair<std::string_view, Stock>> stocks;
  for (size_t i = 0; i < count; ++i) {
    const NewOrderInput::Line& line = input.lines[i];
    DEUT_ASSIGN_OR_RETURN(const Item item, RowAt<Item>(read.keys, read.values, NewOrderRows::kItems + i));
    const size_t at = NewOrderRows::kItems + count + i;
    auto stock = std::find_if(stocks.begin(), stocks.end(), [&](const auto& s) { return s.first == read.keys[at]; });
    if (stock == stocks.end()) {
      DEUT_ASSIGN_OR_RETURN(const Stock row, RowAt<Stock>(read.keys, read.values, at));
      stock = stocks.insert(stocks.end(), {read.keys[at], row});
    }
    DeductFromStock(line, line.supply_warehouse != input.warehouse, &stock->second);
    OrderLine row{};
    row.item = line.item;
    row.supply_warehouse = line.supply_warehouse;
    row.quantity = line.quantity;
    row.amount = item.price * line.quantity;
    std::memcpy(row.district, stock->second.district[input.district - 1], sizeof(row.district));
    const auto line_number = static_cast<uint32_t>(i + 1);
    DEUT_RETURN_IF_ERROR(
        transaction.Put(OrderLineKey(input.warehouse, input.district, number, line_number), BytesOf(row)));
  }
  for (const auto& [key, stock] : stocks) DEUT_RETURN_IF_ERROR(transaction.Put(key, BytesOf(stock)));
  return Status();
}

Status RunNewOrder(InteractiveTransaction& transaction, const NewOrderInput& input) {
  NewOrderRows read(input);
  DEUT_RETURN_IF_ERROR(transaction.Get(read.keys, &read.values));
  if (!read.values[NewOrderRows::kItems + input.lines.size() - 1].has_value())
    return DEUT_ERROR(kConditionFailed, "there is no such item");
  DEUT_RETURN_IF_ERROR(RowAt<Warehouse>(read.keys, read.values, 0).status());
  DEUT_RETURN_IF_ERROR(RowAt<Customer>(read.keys, read.values, 2).status());
  DEUT_ASSIGN_OR_RETURN(District district, RowAt<District>(read.keys, read.values, NewOrderRows::kDistrict));
  const uint32_t number = district.next_order++;
  DEUT_RETURN_IF_ERROR(transaction.Put(read.keys[NewOrderRows::kDistrict], BytesOf(district)));

  const uint32_t w = input.warehouse, d = input.district;
  tpcc::Order order{};
  order.date = input.date;
  order.customer = input.customer;
  order.lines = static_cast<uint32_t>(input.lines.size());
  order.all_local = std::all_of(input.lines.begin(), input.lines.end(),
                                [w](const NewOrderInput::Line& line) { return line.supply_warehouse == w; })
                        ? 1
                        : 0;
  DEUT_RETURN_IF_ERROR(transaction.Put(OrderKey(w, d, number), BytesOf(order)));
  DEUT_RETURN_IF_ERROR(transaction.Put(OrderOfCustomerKey(w, d, input.customer, number), kNoRow));
  DEUT_RETURN_IF_ERROR(transaction.Put(NewOrderKey(w, d, number), kNoRow));
  return WriteLines(transaction, input, read, number);
}

// Clause 2.5.2.2: a customer with bad credit gets the payment added to its data.
void Remember(const PaymentInput& input, uint32_t number, Customer* customer) {
  char note[64];
  const int length =
      std::snprintf(note, sizeof(note), "%u %u %u %u %u %lld|", number, input.customer.district,
                    input.customer.warehouse, input.district, input.warehouse, static_cast<long long>(input.amount));
  const auto bytes = static_cast<size_t>(length);
  std::memmove(customer->data + bytes, customer->data, sizeof(customer->data) - bytes);
  std::memcpy(customer->data, note, bytes);
}

Status RunPayment(InteractiveTransaction& transaction, const PaymentInput& input) {
  DEUT_ASSIGN_OR_RETURN(const uint32_t number, NumberOf(transaction, input.customer));
  const std::vector<std::string> keys = {WarehouseKey(input.warehouse), DistrictKey(input.warehouse, input.district),
                                         CustomerKey(input.customer.warehouse, input.customer.district, number)};
  Values values;
  DEUT_RETURN_IF_ERROR(transaction.Get(keys, &values));
  DEUT_ASSIGN_OR_RETURN(Warehouse warehouse, RowAt<Warehouse>(keys, values, 0));
  DEUT_ASSIGN_OR_RETURN(District district, RowAt<District>(keys, values, 1));
  DEUT_ASSIGN_OR_RETURN(Customer customer, RowAt<Customer>(keys, values, 2));
  warehouse.ytd += input.amount;
  district.ytd += input.amount;
  customer.balance -= input.amount;
  customer.ytd_payment += input.amount;
  ++customer.payments;
  if (customer.credit[0] == 'B') Remember(input, number, &customer);
  DEUT_RETURN_IF_ERROR(transaction.Put(keys[0], BytesOf(warehouse)));
  DEUT_RETURN_IF_ERROR(transaction.Put(keys[1], BytesOf(district)));
  DEUT_RETURN_IF_ERROR(transaction.Put(keys[2], BytesOf(customer)));
  History history{};
  history.amount = input.amount;
  history.date = input.date;
  std::memcpy(history.data, warehouse.name, sizeof(warehouse.name));
  std::memcpy(history.data + sizeof(warehouse.name) + 4, district.name, sizeof(district.name));
  return transaction.Put(HistoryKey(input.warehouse, input.district, input.terminal, input.date), BytesOf(history));
}

Status RunOrderStatus(InteractiveTransaction& transaction, const CustomerChoice& choice) {
  DEUT_ASSIGN_OR_RETURN(const uint32_t c, NumberOf(transaction, choice));
  const uint32_t w = choice.warehouse, d = choice.district;
  DEUT_RETURN_IF_ERROR(ReadRow<Customer>(transaction, CustomerKey(w, d, c)).status());
  std::string last;
  DEUT_RETURN_IF_ERROR(transaction.Scan(OrderOfCustomerKey(w, d, c, 0), OrderOfCustomerKey(w, d, c + 1, 0),
                                        bench::Order::kDescending, 1,
                                        [&](std::string_view key, std::string_view) { last = key; }));
  // Each customer has had an order from the beginning.
  DEUT_ASSIGN_OR_RETURN(const uint64_t number, NumberIn(last, last.size() - kOrderDigits, kOrderDigits));
  const auto o = static_cast<uint32_t>(number);
  DEUT_ASSIGN_OR_RETURN(const tpcc::Order order, ReadRow<tpcc::Order>(transaction, OrderKey(w, d, o)));
  DEUT_ASSIGN_OR_RETURN(const std::vector<Line> lines, LinesOf(transaction, w, d, o, o + 1));
  if (order.customer != c || lines.size() != order.lines)
    return DEUT_ERROR(kCorruption, "order ", o, " of district ", d, " has ", lines.size(), " lines in place of ",
                      order.lines);
  return Status();
}

Status Deliver(InteractiveTransaction& transaction, const DeliveryInput& input, uint32_t d) {
  const uint32_t w = input.warehouse;
  std::string oldest;
  DEUT_RETURN_IF_ERROR(transaction.Scan(DistrictPrefix("Cq", w, d), DistrictPrefix("Cq", w, d + 1),
                                        bench::Order::kAscending, 1,
                                        [&](std::string_view key, std::string_view) { oldest = key; }));
  if (oldest.empty()) return Status();
  DEUT_ASSIGN_OR_RETURN(const uint64_t number, NumberIn(oldest, oldest.size() - kOrderDigits, kOrderDigits));
  const auto o = static_cast<uint32_t>(number);
  DEUT_RETURN_IF_ERROR(transaction.Remove(oldest));
  DEUT_ASSIGN_OR_RETURN(tpcc::Order order, ReadRow<tpcc::Order>(transaction, OrderKey(w, d, o)));
  order.carrier = input.carrier;
  DEUT_RETURN_IF_ERROR(transaction.Put(OrderKey(w, d, o), BytesOf(order)));
  DEUT_ASSIGN_OR_RETURN(std::vector<Line> lines, LinesOf(transaction, w, d, o, o + 1));
  int64_t amount = 0;
  for (Line& line : lines) {
    amount += line.row.amount;
    line.row.delivered = input.date;
    DEUT_RETURN_IF_ERROR(transaction.Put(line.key, BytesOf(line.row)));
  }
  const std::string key = CustomerKey(w, d, order.customer);
  DEUT_ASSIGN_OR_RETURN(Customer customer, ReadRow<Customer>(transaction, key));
  customer.balance += amount;
  ++customer.deliveries;
  return transaction.Put(key, BytesOf(customer));
}

Status RunStockLevel(InteractiveTransaction& transaction, const StockLevelInput& input, uint32_t* low) {
  const uint32_t w = input.warehouse, d = input.district;
  DEUT_ASSIGN_OR_RETURN(const District district, ReadRow<District>(transaction, DistrictKey(w, d)));
  const uint32_t end = district.next_order, first = end > kRecentOrders ? end - kRecentOrders : 1;
  DEUT_ASSIGN_OR_RETURN(const std::vector<Line> lines, LinesOf(transaction, w, d, first, end));
  std::vector<uint32_t> items;
  for (const Line& line : lines) items.push_back(line.row.item);
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  std::vector<std::string> keys;
  for (const uint32_t item : items) keys.push_back(StockKey(w, item));
  Values values;
  DEUT_RETURN_IF_ERROR(transaction.Get(keys, &values));
  *low = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    DEUT_ASSIGN_OR_RETURN(const Stock stock, RowAt<Stock>(keys, values, i));
    if (stock.quantity < input.threshold) ++*low;
  }
  return Status();
}

}  // namespace

Status NewOrder(Session& session, const NewOrderInput& input) {
  return session.RunInteractive(true, [&](InteractiveTransaction& tx) { return RunNewOrder(tx, input); });
}

Status Payment(Session& session, const PaymentInput& input) {
  return session.RunInteractive(true, [&](InteractiveTransaction& tx) { return RunPayment(tx, input); });
}

Status OrderStatus(Session& session, const CustomerChoice& customer) {
  return session.RunInteractive(false, [&](InteractiveTransaction& tx) { return RunOrderStatus(tx, customer); });
}

Status Delivery(Session& session, const DeliveryInput& input) {
  return session.RunInteractive(true, [&](InteractiveTransaction& tx) {
    for (uint32_t d = 1; d <= kDistricts; ++d) DEUT_RETURN_IF_ERROR(Deliver(tx, input, d));
    return Status();
  });
}

Status StockLevel(Session& session, const StockLevelInput& input, uint32_t* low) {
  return session.RunInteractive(false, [&](InteractiveTransaction& tx) { return RunStockLevel(tx, input, low); });
}

}  // namespace deut::bench::tpcc
