// The limit on what one transaction may write (--max_transaction_bytes), and which part of the version budget it
// meets.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

// A key of one byte with this value takes 100 bytes in the log.
const std::string kValue(83, 'v');

TEST(WriteLimitTest, TheWriteThatPassesTheLimitIsRefusedForGood) {
  EngineFixture f;
  f.engine->max_transaction_bytes = 300;
  TestTransaction t = f.Begin();
  EXPECT_EQ(t.Put("a", kValue), "ok");
  EXPECT_EQ(t.Put("b", kValue), "ok");
  EXPECT_EQ(t.Put("c", kValue + "1"), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Get("c"), "-");
  // The transaction goes on: a write that still fits is accepted, and committed.
  EXPECT_EQ(t.Put("c", kValue), "ok");
  EXPECT_EQ(t.Remove("a"), "INVALID_ARGUMENT");
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(f.Begin().Get("c"), kValue);
}

TEST(WriteLimitTest, ATransactionStartsFromNothing) {
  EngineFixture f;
  f.engine->max_transaction_bytes = 100;
  for (int i = 0; i < 3; ++i) {
    TestTransaction t = f.Begin();
    EXPECT_EQ(t.Put("a", kValue), "ok");
    EXPECT_EQ(t.Commit(), "ok");
  }
}

TEST(WriteLimitTest, AKeyThatIsWrittenAgainCountsAgain) {
  EngineFixture f;
  f.engine->max_transaction_bytes = 250;
  TestTransaction t = f.Begin();
  EXPECT_EQ(t.Put("a", kValue), "ok");
  EXPECT_EQ(t.Put("a", kValue), "ok");
  EXPECT_EQ(t.Put("a", kValue), "INVALID_ARGUMENT");
}

TEST(WriteLimitTest, ATransactionMayHoldMoreThanTheVersionBudget) {
  EngineFixture f;
  f.SetVersionBudget(1000);
  TestTransaction t = f.Begin();
  for (char key = 'a'; key <= 'z'; ++key) EXPECT_EQ(t.Put(std::string(1, key), kValue), "ok");
  EXPECT_GT(f.engine->counters.pinned_bytes.load(), 2000u);
  EXPECT_EQ(t.Commit(), "ok");
}

}  // namespace
}  // namespace deut::tc
