// S9: large transactions are charged apart from the version budget (tc/txn/bulk_bytes.h).
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBudget = 4 * kMiB;
constexpr uint64_t kValueBytes = 64 << 10;
const std::string kValue(kValueBytes, 'v');
constexpr int kValuesInBudget = kBudget / kValueBytes;

// Puts up to `count` values. Returns how many were accepted; a refusal ends the transaction.
int PutMany(TestTransaction& t, const std::string& prefix, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string put = t.Put(prefix + std::to_string(i), kValue);
    if (put == "ok") continue;
    EXPECT_EQ(put, "RESOURCE_EXHAUSTED");
    return i;
  }
  return count;
}

class BulkBudgetTest : public ::testing::Test {
 protected:
  BulkBudgetTest() : f_({.log_segment_bytes = 64 << 20}) { f_.SetVersionBudget(kBudget); }

  std::string PutOne(const std::string& key) {
    TestTransaction t = f_.Begin();
    const std::string put = t.Put(key, "1");
    return put == "ok" ? t.Commit() : put;
  }

  EngineFixture f_;
};

TEST_F(BulkBudgetTest, S9ALargeTransactionRefusesNoOtherWriter) {
  {
    TestTransaction large = f_.Begin();
    EXPECT_EQ(PutMany(large, "large", 2 * kValuesInBudget), 2 * kValuesInBudget);
    EXPECT_GT(f_.engine->counters.pinned_bytes.load(), 2 * kBudget);
    EXPECT_EQ(PutOne("beside"), "ok");
    EXPECT_EQ(large.Commit(), "ok");
  }
  // The DC has not applied it.
  EXPECT_EQ(PutOne("behind"), "ok");
  EXPECT_GT(f_.engine->bulk->held(), 2 * kBudget);
  EXPECT_TRUE(f_.Settle());
  f_.domain.Collect();
  EXPECT_EQ(f_.engine->bulk->held(), 0u);
}

TEST_F(BulkBudgetTest, S9AnAbortedOneGivesItsChargeBack) {
  {
    TestTransaction large = f_.Begin();
    EXPECT_EQ(PutMany(large, "large", 2 * kValuesInBudget), 2 * kValuesInBudget);
    EXPECT_GT(f_.engine->bulk->held(), 2 * kBudget);
  }
  f_.Collect();
  f_.domain.Collect();
  EXPECT_EQ(f_.engine->bulk->held(), 0u);
}

// If each were refused for the other's bytes, neither could continue before the other one ended.
TEST_F(BulkBudgetTest, S9OfTwoLargeTransactionsOneGoesOn) {
  TestTransaction first = f_.Begin();
  EXPECT_EQ(PutMany(first, "first", kValuesInBudget), kValuesInBudget);
  TestTransaction second = f_.Begin();
  // It gets as much as the version budget, which no other transaction uses.
  const int taken = PutMany(second, "second", 3 * kValuesInBudget);
  EXPECT_LT(taken, 3 * kValuesInBudget);
  EXPECT_EQ(PutMany(first, "on", 3 * kValuesInBudget), 3 * kValuesInBudget);
  EXPECT_EQ(first.Commit(), "ok");
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(PutOne("after"), "ok");
}

}  // namespace
}  // namespace deut::tc
