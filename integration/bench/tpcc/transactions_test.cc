#include "integration/bench/tpcc/transactions.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "integration/bench/tpcc/tpcc_fixture.h"

namespace deut::bench::tpcc {
namespace {

class TransactionsTest : public TpccFixture {};

TEST_F(TransactionsTest, ANewOrderTakesFromTheStock) {
  const NewOrderInput input{.warehouse = 1,
                            .district = 3,
                            .customer = 7,
                            .date = 5,
                            .lines = {{.item = 10, .supply_warehouse = 1, .quantity = 4},
                                      {.item = 11, .supply_warehouse = 2, .quantity = 2},
                                      {.item = 10, .supply_warehouse = 1, .quantity = 3}}};
  const Stock own = Read<Stock>(StockKey(1, 10)), remote = Read<Stock>(StockKey(2, 11));
  ASSERT_TRUE(NewOrder(session_, input).ok());
  EXPECT_EQ(Read<District>(DistrictKey(1, 3)).next_order, 32u);
  const Order order = Read<Order>(OrderKey(1, 3, 31));
  EXPECT_EQ(order.customer, 7u);
  EXPECT_EQ(order.lines, 3u);
  EXPECT_EQ(order.all_local, 0u);
  EXPECT_EQ(order.carrier, 0u);
  EXPECT_EQ(RowsOf(NewOrderKey(1, 3, 31)), 1u);
  EXPECT_EQ(RowsOf(OrderOfCustomerKey(1, 3, 7, 31)), 1u);
  const OrderLine line = Read<OrderLine>(OrderLineKey(1, 3, 31, 2));
  EXPECT_EQ(line.amount, 2 * Read<Item>(ItemKey(11)).price);
  EXPECT_EQ(line.delivered, 0u);
  const Stock after = Read<Stock>(StockKey(1, 10)), after_remote = Read<Stock>(StockKey(2, 11));
  EXPECT_EQ(after.ytd, own.ytd + 7);
  EXPECT_EQ(after.orders, own.orders + 2);
  EXPECT_EQ(after.remote_orders, 0u);
  EXPECT_EQ(after_remote.remote_orders, remote.remote_orders + 1);
  EXPECT_EQ((own.quantity - after.quantity + 182) % 91, 7);
  EXPECT_TRUE(Check().ok());
}

TEST_F(TransactionsTest, AnItemThatThereIsNotUndoesTheOrder) {
  const ModelSession::Records before = session_.records();
  const NewOrderInput input{.warehouse = 1,
                            .district = 1,
                            .customer = 1,
                            .date = 1,
                            .lines = {{.item = 1, .supply_warehouse = 1, .quantity = 1},
                                      {.item = kSmall.items + 1, .supply_warehouse = 1, .quantity = 1}}};
  EXPECT_EQ(NewOrder(session_, input).code(), ErrorCode::kConditionFailed);
  EXPECT_EQ(session_.records(), before);
}

TEST_F(TransactionsTest, APaymentByNameIsTheMiddleOnes) {
  // Adds three customers of one name; the second by first name is number 22.
  const std::string name = "ZZZ";
  for (const auto& [first, number] :
       std::vector<std::pair<std::string, uint32_t>>{{"Ann", 23}, {"Bob", 22}, {"Cid", 21}})
    session_.records()[NameKey(1, 2, name, first, number)] = "-";
  const Customer before = Read<Customer>(CustomerKey(1, 2, 22));
  const size_t history = RowsOf("Ch");
  const PaymentInput input{.warehouse = 2,
                           .district = 9,
                           .customer = {.warehouse = 1, .district = 2, .number = 0, .last_name = name},
                           .amount = 1234,
                           .terminal = 5,
                           .date = 6};
  ASSERT_TRUE(Payment(session_, input).ok());
  const Customer after = Read<Customer>(CustomerKey(1, 2, 22));
  EXPECT_EQ(after.balance, before.balance - 1234);
  EXPECT_EQ(after.ytd_payment, before.ytd_payment + 1234);
  EXPECT_EQ(after.payments, before.payments + 1);
  EXPECT_EQ(RowsOf("Ch"), history + 1);
  EXPECT_EQ(Read<History>(HistoryKey(2, 9, 5, 6)).amount, 1234);
  EXPECT_TRUE(Check().ok());
}

TEST_F(TransactionsTest, BadCreditIsWrittenDown) {
  Customer customer = Read<Customer>(CustomerKey(1, 1, 3));
  customer.credit[0] = 'B';
  Write(CustomerKey(1, 1, 3), customer);
  ASSERT_TRUE(Payment(session_, {.warehouse = 2,
                                 .district = 4,
                                 .customer = {.warehouse = 1, .district = 1, .number = 3, .last_name = {}},
                                 .amount = 99,
                                 .terminal = 1,
                                 .date = 1})
                  .ok());
  EXPECT_TRUE(std::string_view(Read<Customer>(CustomerKey(1, 1, 3)).data).starts_with("3 1 1 4 2 99|"));
}

TEST_F(TransactionsTest, ADeliveryTakesTheOldestOrderOfEachDistrict) {
  const uint32_t oldest = kSmall.first_new_order();
  int64_t amount = 0;
  const Order order = Read<Order>(OrderKey(2, 4, oldest));
  for (uint32_t line = 1; line <= order.lines; ++line)
    amount += Read<OrderLine>(OrderLineKey(2, 4, oldest, line)).amount;
  const Customer before = Read<Customer>(CustomerKey(2, 4, order.customer));
  const size_t waiting = RowsOf("Cq");
  ASSERT_TRUE(Delivery(session_, {.warehouse = 2, .carrier = 8, .date = 9}).ok());
  EXPECT_EQ(RowsOf("Cq"), waiting - kDistricts);
  EXPECT_EQ(RowsOf(NewOrderKey(2, 4, oldest)), 0u);
  EXPECT_EQ(Read<Order>(OrderKey(2, 4, oldest)).carrier, 8u);
  EXPECT_EQ(Read<OrderLine>(OrderLineKey(2, 4, oldest, 1)).delivered, 9u);
  const Customer after = Read<Customer>(CustomerKey(2, 4, order.customer));
  EXPECT_EQ(after.balance, before.balance + amount);
  EXPECT_EQ(after.deliveries, before.deliveries + 1);
  EXPECT_TRUE(Check().ok());
  // Delivers until warehouse 2 has no new orders left.
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Delivery(session_, {.warehouse = 2, .carrier = 8, .date = 9}).ok());
  EXPECT_EQ(RowsOf("Cq"), waiting / 2);
  EXPECT_TRUE(Check().ok());
}

TEST_F(TransactionsTest, OrderStatusSeesAnOrderWithoutItsLines) {
  const Order order = Read<Order>(OrderKey(1, 1, 30));
  const CustomerChoice customer{.warehouse = 1, .district = 1, .number = order.customer, .last_name = {}};
  EXPECT_TRUE(OrderStatus(session_, customer).ok());
  session_.records().erase(OrderLineKey(1, 1, 30, 2));
  EXPECT_EQ(OrderStatus(session_, customer).code(), ErrorCode::kCorruption);
}

TEST_F(TransactionsTest, TheStockLevelCountsWhatIsLow) {
  uint32_t low = 99;
  ASSERT_TRUE(StockLevel(session_, {.warehouse = 1, .district = 1, .threshold = 0}, &low).ok());
  EXPECT_EQ(low, 0u);
  ASSERT_TRUE(StockLevel(session_, {.warehouse = 1, .district = 1, .threshold = 1000}, &low).ok());
  EXPECT_GE(low, 30u);  // of 200 items, drawn at least 100 times
  const uint32_t item = Read<OrderLine>(OrderLineKey(1, 1, 30, 1)).item;
  Stock stock = Read<Stock>(StockKey(1, item));
  stock.quantity = -1;
  Write(StockKey(1, item), stock);
  ASSERT_TRUE(StockLevel(session_, {.warehouse = 1, .district = 1, .threshold = 0}, &low).ok());
  EXPECT_EQ(low, 1u);
}

}  // namespace
}  // namespace deut::bench::tpcc
