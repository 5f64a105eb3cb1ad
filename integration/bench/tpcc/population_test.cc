#include "integration/bench/tpcc/population.h"

#include <gtest/gtest.h>

#include "integration/bench/tpcc/tpcc_fixture.h"

namespace deut::bench::tpcc {
namespace {

class PopulationTest : public TpccFixture {};

TEST_F(PopulationTest, ThePopulationIsWhatTheSpecificationSays) {
  EXPECT_EQ(RowsOf("Ci"), 200u);
  EXPECT_EQ(RowsOf("Cw"), 2u);
  EXPECT_EQ(RowsOf("Cs"), 400u);
  EXPECT_EQ(RowsOf("Cd"), 20u);
  for (const char* table : {"Cc", "Cn", "Ch", "Co", "Cx"}) EXPECT_EQ(RowsOf(table), 600u) << table;
  EXPECT_EQ(RowsOf("Cq"), 180u);  // 30 % of 600
  EXPECT_GE(RowsOf("Cl"), 600u * kMinLines);
  EXPECT_LE(RowsOf("Cl"), 600u * kMaxLines);
  const Status consistent = Check();
  EXPECT_TRUE(consistent.ok()) << consistent.ToString();
}

}  // namespace
}  // namespace deut::bench::tpcc
