#include "common/base/transaction_id.h"

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(TransactionIdTest, TextAndBack) {
  const TransactionId id{.high = 0x0123456789abcdef, .low = 0xf0};
  EXPECT_EQ(TransactionIdText(id), "0123456789abcdef00000000000000f0");
  TransactionId back;
  ASSERT_TRUE(ParseTransactionId(TransactionIdText(id), &back));
  EXPECT_EQ(back, id);
  EXPECT_TRUE(id.given());
  EXPECT_FALSE(TransactionId().given());
}

TEST(TransactionIdTest, MalformedTextsAreRefused) {
  TransactionId id;
  EXPECT_FALSE(ParseTransactionId("", &id));
  EXPECT_FALSE(ParseTransactionId("0123456789abcdef00000000000000f", &id));
  EXPECT_FALSE(ParseTransactionId("0123456789abcdef00000000000000f00", &id));
  EXPECT_FALSE(ParseTransactionId("0123456789abcdef00000000000000g0", &id));
}

}  // namespace
}  // namespace deut
