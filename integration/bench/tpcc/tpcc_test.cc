#include "integration/bench/tpcc/tpcc.h"

#include <gtest/gtest.h>

#include <memory>

#include "integration/bench/tpcc/tpcc_fixture.h"

namespace deut::bench::tpcc {
namespace {

class TpccTest : public TpccFixture {};

TEST_F(TpccTest, EveryTransactionLeavesItConsistent) {
  for (const Transactions transactions : {Transactions::kAll, Transactions::kNewOrdersAndPayments}) {
    const Tpcc tpcc(kSmall, transactions);
    const uint32_t first = transactions == Transactions::kAll ? 0 : 10;
    uint64_t counted = 0;
    const size_t before = RowsOf("Co");
    for (uint32_t t = 0; t < 4; ++t) {
      const std::unique_ptr<Terminal> terminal = tpcc.NewTerminal(first + t, 77 + t);
      for (int i = 0; i < 500; ++i) {
        const Status status = terminal->RunNext(session_);
        ASSERT_TRUE(status.ok()) << status.ToString();
      }
      counted += terminal->counted();
    }
    const Status consistent = tpcc.Check(session_);
    EXPECT_TRUE(consistent.ok()) << consistent.ToString();
    EXPECT_EQ(RowsOf("Co") - before, counted);
    EXPECT_GT(counted, 700u);  // 45 or 51 % of 2,000
  }
}

}  // namespace
}  // namespace deut::bench::tpcc
