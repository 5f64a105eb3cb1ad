#include "integration/bench/tpcc/consistency.h"

#include <gtest/gtest.h>

#include <string>

#include "integration/bench/tpcc/tpcc_fixture.h"

namespace deut::bench::tpcc {
namespace {

class ConsistencyTest : public TpccFixture {
 protected:
  // Expects that Check reports this condition.
  void ExpectBroken(int condition) {
    const Status status = Check();
    EXPECT_EQ(status.code(), ErrorCode::kCorruption);
    EXPECT_NE(status.ToString().find("condition " + std::to_string(condition)), std::string::npos) << status.ToString();
  }
};

TEST_F(ConsistencyTest, EveryConditionThatIsBrokenIsTold) {
  const ModelSession::Records whole = session_.records();
  const auto change = [&](auto row, const std::string& key, auto&& how) {
    session_.records() = whole;
    row = Read<decltype(row)>(key);
    how(row);
    Write(key, row);
  };
  change(Warehouse{}, WarehouseKey(1), [](Warehouse& w) { w.ytd += 1; });
  ExpectBroken(1);
  change(District{}, DistrictKey(1, 5), [](District& d) { d.next_order += 1; });
  ExpectBroken(2);
  session_.records() = whole;
  session_.records().erase(NewOrderKey(1, 5, 30));  // the last new order
  ExpectBroken(2);
  session_.records() = whole;
  session_.records().erase(NewOrderKey(1, 5, 28));
  ExpectBroken(3);
  session_.records() = whole;
  session_.records().erase(OrderLineKey(2, 10, 4, 1));
  ExpectBroken(4);
  change(History{}, HistoryKey(1, 1, 0, 3), [](History& h) { h.amount -= 1; });
  ExpectBroken(9);
  change(Customer{}, CustomerKey(2, 2, 2), [](Customer& c) { c.balance += 1; });
  ExpectBroken(10);
  session_.records() = whole;
  EXPECT_TRUE(Check().ok());
}

}  // namespace
}  // namespace deut::bench::tpcc
