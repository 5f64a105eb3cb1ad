// Litmus of rule L1 on the real functions: one thread begins and ends transactions, one runs rounds, ten million times. No timestamp may ever be
// below low-water while its transaction is open. Without `L1.publish_first` or `L1.counter_first` some are.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {
namespace {

constexpr uint64_t kRounds = 10'000'000;

ActiveTransactions::Options Few() {
  ActiveTransactions::Options options;
  options.max_transactions = 64;
  return options;
}

void RunL1(uint64_t times) {
  ActiveTransactions active(Few(), RealRuntime());
  std::atomic<bool> done{false};
  std::atomic<uint64_t> violations{0};
  std::atomic<uint64_t> rounds{0};
  std::unique_ptr<Thread> thread = RealRuntime().StartThread("rounds", [&] {
    while (!done.load(std::memory_order_relaxed)) {
      active.AdvanceNow();
      rounds.store(rounds.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  });
  uint64_t transactions = 0;
  // At least `times` of both, however the machine schedules the threads; one violation ends the test.
  for (; (transactions < times || rounds.load(std::memory_order_relaxed) < times) && violations.load() == 0;
       ++transactions) {
    const Result<ActiveTransactions::Begun> begun = active.Begin(kNoDeadline);
    ASSERT_TRUE(begun.ok());
    // The timestamp at which a snapshot would begin has the same bound.
    if (std::max(active.proposed(), active.low_water()) > begun->timestamp) violations.fetch_add(1);
    active.End(begun->slot);
  }
  done.store(true);
  thread.reset();
  EXPECT_EQ(violations.load(), 0u) << "after " << transactions << " transactions and " << rounds.load() << " rounds";
}

TEST(ActiveTransactionsLitmusTest, L1NoTimestampBelowLowWater) { RunL1(kRounds); }

// On busy cores two threads seldom meet in a window of nanoseconds. Here some rounds yield the processor within the window.
TEST(ActiveTransactionsLitmusTest, L1NoTimestampBelowLowWaterWithPauses) {
  testing::SetPointHandler([](std::string_view name) {
    static std::atomic<uint64_t> passed{0};
    if (name == "active.round.between" && passed.fetch_add(1, std::memory_order_relaxed) % 64 == 0)
      RealRuntime().Yield();
  });
  RunL1(kRounds / 50);
  testing::SetPointHandler(nullptr);
}

// L2 in the same way: no snapshot is below low-water while it is open.
TEST(ActiveTransactionsLitmusTest, L2NoSnapshotBelowLowWater) {
  ActiveTransactions active(Few(), RealRuntime());
  std::atomic<bool> done{false};
  std::atomic<uint64_t> violations{0};
  std::unique_ptr<Thread> thread = RealRuntime().StartThread("rounds", [&] {
    while (!done.load(std::memory_order_relaxed)) {
      const Result<ActiveTransactions::Begun> writer = active.Begin(kNoDeadline);
      active.AdvanceNow();
      if (writer.ok()) active.End(writer->slot);
      active.AdvanceNow();
    }
  });
  for (uint64_t i = 0; i < kRounds && violations.load() == 0; ++i) {
    const Result<ActiveTransactions::Begun> snapshot = active.BeginSnapshot(Timestamp{0}, kNoDeadline);
    ASSERT_TRUE(snapshot.ok());
    if (active.low_water() > snapshot->timestamp) violations.fetch_add(1);
    active.End(snapshot->slot);
  }
  done.store(true);
  thread.reset();
  EXPECT_EQ(violations.load(), 0u);
}

}  // namespace
}  // namespace deut::tc
