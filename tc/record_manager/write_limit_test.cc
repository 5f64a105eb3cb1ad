// The limit on what one transaction may write (--max_transaction_bytes), and which part of the version budget it
// meets.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/process_budget.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/pinned.h"

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

// An operator of a store with a small --memory has not set the flags of its parts.
TEST(WriteLimitTest, RefusalsNameTheFlagThatHelps) {
  EngineFixture f;
  const auto says = [](const Status& status, std::string_view text) {
    return status.message().find(text) != std::string_view::npos;
  };
  EXPECT_TRUE(says(OverTransactionLimit(*f.engine, 100, 100), "--memory"));
  EXPECT_TRUE(says(OverTransactionLimit(*f.engine, 100, 100), "--max_transaction_bytes"));
  EXPECT_TRUE(says(NoSpaceAtDc(), "--dc_memory"));
  EXPECT_FALSE(says(OverBudget(*f.engine), "--memory"));
  const ProcessBudget budget(RealRuntime(), uint64_t{64} << 20, {.resident_bytes = [] { return 0; }});
  f.engine->version_limit = &budget;
  for (const Status& status : {OverBudget(*f.engine), AbortedOverBudget(*f.engine, Timestamp{1})}) {
    EXPECT_TRUE(says(status, "--memory")) << status.ToString();
    EXPECT_TRUE(says(status, "--version_budget")) << status.ToString();
    EXPECT_TRUE(says(status, "16777216")) << status.ToString();
  }
  f.engine->version_limit = nullptr;
}

}  // namespace
}  // namespace deut::tc
