#include "integration/bench/application_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "integration/bench/model_session.h"

namespace deut::bench {
namespace {

// Records Z0 to Z9; each transaction increments one of them.
class Counters final : public Application {
 public:
  uint32_t parts() const override { return 10; }
  Status LoadPart(Session& session, uint32_t part) const override {
    return session.RunInteractive(
        true, [&](InteractiveTransaction& transaction) { return transaction.Put(Concat("Z", part), "0"); });
  }
  std::unique_ptr<Terminal> NewTerminal(uint32_t number, uint64_t seed) const override {
    numbers_.fetch_or(1U << number);
    return std::make_unique<User>(static_cast<uint32_t>(seed % 10));
  }
  Status Check(Session& /*session*/) const override { return broken_ ? DEUT_ERROR(kCorruption, "broken") : Status(); }
  std::string_view prefix() const override { return "Z"; }

  uint32_t numbers() const { return numbers_.load(); }
  void Break() { broken_ = true; }

 private:
  class User final : public Terminal {
   public:
    explicit User(uint32_t record) : key_(Concat("Z", record)) {}
    Status RunNext(Session& session) override {
      DEUT_RETURN_IF_ERROR(session.RunInteractive(true, [&](InteractiveTransaction& transaction) -> Status {
        std::vector<std::optional<std::string>> values;
        DEUT_RETURN_IF_ERROR(transaction.Get({key_}, &values));
        return transaction.Put(key_, Concat(std::stoi(values[0].value_or("-1000000")) + 1));
      }));
      ++counted_;
      return Status();
    }

   private:
    const std::string key_;
  };

  mutable std::atomic<uint32_t> numbers_{0};
  bool broken_ = false;
};

TEST(ApplicationRunnerTest, LoadsRunsAndChecks) {
  ModelBackend backend;
  Counters counters;
  ApplicationRunner runner(backend, RealRuntime());
  ASSERT_TRUE(runner.Load(counters, 3).ok());
  EXPECT_EQ(backend.session().records().size(), 10u);
  const Result<uint64_t> before = runner.Check(counters);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(*before, *runner.Check(counters));

  const Result<ApplicationResult> run = runner.Run(counters, {.threads = 4, .transactions = 25});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->transactions, 100u);
  EXPECT_EQ(run->counted, 100u);
  EXPECT_EQ(run->latency_ns.count(), 100u);
  int sum = 0;
  for (const auto& [key, value] : backend.session().records()) sum += std::stoi(value);
  EXPECT_EQ(sum, 100);
  EXPECT_NE(*before, *runner.Check(counters));

  // No terminal's number is used twice.
  ASSERT_TRUE(runner.Run(counters, {.threads = 2, .transactions = 1}).ok());
  EXPECT_EQ(counters.numbers(), 0b111111u);

  counters.Break();
  EXPECT_EQ(runner.Check(counters).status().code(), ErrorCode::kCorruption);
}

TEST(ApplicationRunnerTest, ARunEndsByTime) {
  ModelBackend backend;
  const Counters counters;
  ApplicationRunner runner(backend, RealRuntime());
  ASSERT_TRUE(runner.Load(counters, 1).ok());
  const Result<ApplicationResult> run = runner.Run(counters, {.threads = 1, .time = milliseconds(10)});
  ASSERT_TRUE(run.ok());
  EXPECT_GE(run->seconds, 0.01);
}

}  // namespace
}  // namespace deut::bench
