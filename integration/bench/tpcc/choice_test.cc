#include "integration/bench/tpcc/choice.h"

#include <gtest/gtest.h>

#include "integration/bench/tpcc/tpcc_fixture.h"

namespace deut::bench::tpcc {
namespace {

TEST(ChoiceTest, NamesAreOfThreeSyllables) {
  EXPECT_EQ(Choice::NameOf(0), "BARBARBAR");
  EXPECT_EQ(Choice::NameOf(371), "PRICALLYOUGHT");
  EXPECT_EQ(Choice::NameOf(999), "EINGEINGEING");
}

TEST(ChoiceTest, UnevenDrawsStayInTheirBounds) {
  Choice choice(3);
  for (int i = 0; i < 10'000; ++i) {
    const uint32_t customer = choice.Customer(kSmall), item = choice.Item(kSmall);
    ASSERT_TRUE(customer >= 1 && customer <= kSmall.customers);
    ASSERT_TRUE(item >= 1 && item <= kSmall.items);
  }
}

}  // namespace
}  // namespace deut::bench::tpcc
