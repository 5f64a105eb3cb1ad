#include "integration/bench/tpcc/tpcc_random.h"

#include <gtest/gtest.h>

#include "integration/bench/tpcc/tpcc_fixture.h"

namespace deut::bench::tpcc {
namespace {

TEST(TpccRandomTest, NamesAreOfThreeSyllables) {
  EXPECT_EQ(TpccRandom::NameOf(0), "BARBARBAR");
  EXPECT_EQ(TpccRandom::NameOf(371), "PRICALLYOUGHT");
  EXPECT_EQ(TpccRandom::NameOf(999), "EINGEINGEING");
}

TEST(TpccRandomTest, UnevenDrawsStayInTheirBounds) {
  TpccRandom choice(3);
  for (int i = 0; i < 10'000; ++i) {
    const uint32_t customer = choice.Customer(kSmall), item = choice.Item(kSmall);
    ASSERT_TRUE(customer >= 1 && customer <= kSmall.customers);
    ASSERT_TRUE(item >= 1 && item <= kSmall.items);
  }
}

}  // namespace
}  // namespace deut::bench::tpcc
