#include "integration/bench/tpcc/population.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/random.h"
#include "integration/bench/bulk_writer.h"
#include "integration/bench/tpcc/tpcc_random.h"

namespace deut::bench::tpcc {
namespace {

constexpr int64_t kCustomerCreditLimit = 5'000'000;

void Copy(std::string_view text, char* field, size_t size) {
  std::fill(field, field + size, ' ');
  std::copy_n(text.begin(), std::min(size, text.size()), field);
}

Status PopulateItems(BulkWriter& writer, const Scale& scale, TpccRandom& choice) {
  for (uint32_t i = 1; i <= scale.items; ++i) {
    Item item{};
    item.image = choice.Between(1, 10'000);
    item.price = choice.Between(100, 10'000);
    choice.Text(item.name, 14);
    choice.Data(item.data);
    DEUT_RETURN_IF_ERROR(writer.Put(ItemKey(i), BytesOf(item)));
  }
  return writer.Flush();
}

Status PopulateWarehouse(BulkWriter& writer, const Scale& scale, uint32_t w, TpccRandom& choice) {
  Warehouse warehouse{};
  // The sum over its districts, each of which is the sum of its customers' first payments.
  warehouse.ytd = kFirstPayment * scale.customers * kDistricts;
  warehouse.tax = choice.Between(0, 2000);
  choice.FillAddress(&warehouse.address);
  choice.Text(warehouse.name, 6);
  DEUT_RETURN_IF_ERROR(writer.Put(WarehouseKey(w), BytesOf(warehouse)));
  for (uint32_t i = 1; i <= scale.items; ++i) {
    Stock stock{};
    stock.quantity = static_cast<int32_t>(choice.Between(10, 100));
    for (auto& district : stock.district) choice.Text(district);
    choice.Data(stock.data);
    DEUT_RETURN_IF_ERROR(writer.Put(StockKey(w, i), BytesOf(stock)));
  }
  return writer.Flush();
}

Status PopulateCustomers(BulkWriter& writer, const Scale& scale, uint32_t w, uint32_t d, TpccRandom& choice) {
  for (uint32_t c = 1; c <= scale.customers; ++c) {
    Customer customer{};
    customer.balance = -kFirstPayment;
    customer.ytd_payment = kFirstPayment;
    customer.credit_limit = kCustomerCreditLimit;
    customer.payments = 1;
    customer.discount = choice.Between(0, 5000);
    choice.Text(customer.first, 8);
    Copy("OE", customer.middle, sizeof(customer.middle));
    const std::string last = c <= 1000 ? TpccRandom::NameOf(c - 1) : choice.LastName(scale);
    Copy(last, customer.last, sizeof(customer.last));
    choice.FillAddress(&customer.address);
    choice.Digits(customer.phone);
    Copy(choice.Percent(10) ? "BC" : "GC", customer.credit, sizeof(customer.credit));
    choice.Text(customer.data, 300);
    DEUT_RETURN_IF_ERROR(writer.Put(CustomerKey(w, d, c), BytesOf(customer)));
    const std::string_view first(customer.first, sizeof(customer.first));
    DEUT_RETURN_IF_ERROR(writer.Put(NameKey(w, d, last, first, c), kNoRow));

    History history{};
    history.amount = kFirstPayment;
    history.date = c;
    choice.Text(history.data, 12);
    DEUT_RETURN_IF_ERROR(writer.Put(HistoryKey(w, d, /*terminal=*/0, c), BytesOf(history)));
  }
  return Status();
}

Status PopulateOrders(BulkWriter& writer, const Scale& scale, uint32_t w, uint32_t d, TpccRandom& choice) {
  // Each customer has one order, in random order.
  std::vector<uint32_t> customers(scale.customers);
  std::iota(customers.begin(), customers.end(), 1);
  for (uint32_t i = scale.customers; i > 1; --i) std::swap(customers[i - 1], customers[choice.Between(0, i - 1)]);
  for (uint32_t o = 1; o <= scale.customers; ++o) {
    const bool delivered = o < scale.first_new_order();
    Order order{};
    order.date = o;
    order.customer = customers[o - 1];
    order.carrier = delivered ? choice.Between(1, 10) : 0;
    order.lines = choice.Between(kMinLines, kMaxLines);
    order.all_local = 1;
    DEUT_RETURN_IF_ERROR(writer.Put(OrderKey(w, d, o), BytesOf(order)));
    DEUT_RETURN_IF_ERROR(writer.Put(OrderOfCustomerKey(w, d, order.customer, o), kNoRow));
    if (!delivered) DEUT_RETURN_IF_ERROR(writer.Put(NewOrderKey(w, d, o), kNoRow));
    for (uint32_t line = 1; line <= order.lines; ++line) {
      OrderLine row{};
      row.item = choice.Between(1, scale.items);
      row.supply_warehouse = w;
      row.quantity = 5;
      row.delivered = delivered ? order.date : 0;
      // Orders delivered before the first transaction have the amount 0 (clause 4.3.3.1).
      row.amount = delivered ? 0 : choice.Between(1, 999'999);
      choice.Text(row.district);
      DEUT_RETURN_IF_ERROR(writer.Put(OrderLineKey(w, d, o, line), BytesOf(row)));
    }
  }
  return Status();
}

Status PopulateDistrict(BulkWriter& writer, const Scale& scale, uint32_t w, uint32_t d, TpccRandom& choice) {
  District district{};
  district.ytd = kFirstPayment * scale.customers;
  district.tax = choice.Between(0, 2000);
  district.next_order = scale.customers + 1;
  choice.FillAddress(&district.address);
  choice.Text(district.name, 6);
  DEUT_RETURN_IF_ERROR(writer.Put(DistrictKey(w, d), BytesOf(district)));
  DEUT_RETURN_IF_ERROR(PopulateCustomers(writer, scale, w, d, choice));
  DEUT_RETURN_IF_ERROR(PopulateOrders(writer, scale, w, d, choice));
  return writer.Flush();
}

}  // namespace

Status Populate(Session& session, const Scale& scale, uint32_t part) {
  TpccRandom choice(Mix64(part));
  BulkWriter writer(session);
  if (part == 0) return PopulateItems(writer, scale, choice);
  if (part <= scale.warehouses) return PopulateWarehouse(writer, scale, part, choice);
  const uint32_t district = part - 1 - scale.warehouses;
  return PopulateDistrict(writer, scale, district / kDistricts + 1, district % kDistricts + 1, choice);
}

}  // namespace deut::bench::tpcc
