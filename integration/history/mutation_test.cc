// Tests of the checkers: they accept histories of a store that cannot be wrong, and refuse them after one result was
// changed.
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/history_text.h"
#include "integration/history/simulator.h"
#include "integration/history/timestamp_checker.h"

namespace deut::history {
namespace {

constexpr int kRounds = 600;

std::string TextOf(const History& history) {
  std::ostringstream out;
  WriteHistory(history, out);
  return out.str();
}

SimulatorOptions AnyOptions(Random& random) {
  SimulatorOptions options = {.transactions = static_cast<uint32_t>(5 + random.Below(80)),
                              .keys = static_cast<uint32_t>(1 + random.Below(12)),
                              .max_operations = static_cast<uint32_t>(1 + random.Below(6)),
                              .lists = random.OneIn(2),
                              .deletes = random.OneIn(2),
                              .scans = random.OneIn(2),
                              .snapshots = random.OneIn(2),
                              .unknown = random.OneIn(2),
                              .unknown_one_in = 6,
                              .unknown_deletes = false,
                              .untimed = random.OneIn(2),
                              .overlap = static_cast<uint32_t>(random.Below(6))};
  // An append without a timestamp is visible only in the lists that later reads return, so list histories have no
  // untimed ones.
  if (options.lists) options.untimed = false;
  return options;
}

class MutationTest : public ::testing::Test {
 protected:
  const uint64_t seed_ = RealRuntime().RandomSeed();
  Random random_{seed_};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, Concat("seed ", seed_)};
};

TEST_F(MutationTest, ValidHistoriesAreAccepted) {
  for (int round = 0; round < kRounds; ++round) {
    const History history = Simulate(AnyOptions(random_), random_);
    const Report timestamps = CheckTimestamps(history);
    ASSERT_TRUE(timestamps.ok()) << timestamps.ToText() << TextOf(history);
    const Report cycles = CheckCycles(history);
    ASSERT_TRUE(cycles.ok()) << cycles.ToText() << TextOf(history);
  }
}

TEST_F(MutationTest, SeveralOfUnknownOutcomeArePlacedTogether) {
  for (int round = 0; round < kRounds; ++round) {
    SimulatorOptions options = AnyOptions(random_);
    options.transactions = static_cast<uint32_t>(10 + random_.Below(20));
    options.keys = static_cast<uint32_t>(2 + random_.Below(4));
    options.lists = false;
    options.unknown = true;
    options.unknown_one_in = 2;
    options.untimed = true;
    const History history = Simulate(options, random_);
    const Report timestamps = CheckTimestamps(history);
    ASSERT_TRUE(timestamps.ok()) << timestamps.ToText() << TextOf(history);
  }
}

TEST_F(MutationTest, ADeletionOfUnknownOutcomeIsDecidedByWhatIsAbsent) {
  for (int round = 0; round < kRounds; ++round) {
    SimulatorOptions options = AnyOptions(random_);
    options.lists = false;
    options.deletes = true;
    options.unknown = true;
    options.unknown_deletes = true;
    options.untimed = false;
    // One key a transaction: the choice among several deletions then cannot affect another key.
    options.max_operations = 1;
    const History history = Simulate(options, random_);
    const Report timestamps = CheckTimestamps(history);
    ASSERT_TRUE(timestamps.ok()) << timestamps.ToText() << TextOf(history);
    const Report cycles = CheckCycles(history);
    ASSERT_TRUE(cycles.ok()) << cycles.ToText() << TextOf(history);
  }
}

TEST_F(MutationTest, AChangedResultIsFoundByTheTimestamps) {
  int changed = 0;
  for (int round = 0; round < kRounds; ++round) {
    History history = Simulate(AnyOptions(random_), random_);
    std::string what;
    if (!CorruptOneResult(&history, random_, &what)) continue;
    ++changed;
    ASSERT_FALSE(CheckTimestamps(history).ok()) << what << "\n" << TextOf(history);
  }
  EXPECT_GT(changed, kRounds / 2);
}

// Without timestamps, a change is certain to be found only if no two transactions overlap, so that there is one
// order, and if a key's absence has one cause only.
TEST_F(MutationTest, AChangedResultIsFoundByCycles) {
  int changed = 0;
  for (int round = 0; round < kRounds; ++round) {
    SimulatorOptions options = AnyOptions(random_);
    options.overlap = 0;
    options.snapshots = false;
    options.deletes = false;
    History history = Simulate(options, random_);
    std::string what;
    if (!CorruptOneResult(&history, random_, &what)) continue;
    ++changed;
    ASSERT_FALSE(CheckCycles(history).ok()) << what << "\n" << TextOf(history);
  }
  EXPECT_GT(changed, kRounds / 2);
}

TEST_F(MutationTest, ATimestampOutOfRealTimeIsFound) {
  for (int round = 0; round < kRounds / 3; ++round) {
    SimulatorOptions options = AnyOptions(random_);
    options.overlap = 0;
    options.snapshots = false;
    options.unknown = false;
    History history = Simulate(options, random_);
    std::erase_if(history.transactions, [](const TransactionRecord& t) { return t.outcome != Outcome::kCommitted; });
    if (history.transactions.size() < 2) continue;
    const size_t other = 1 + random_.Below(history.transactions.size() - 1);
    std::swap(history.transactions[0].timestamp, history.transactions[other].timestamp);
    ASSERT_FALSE(CheckTimestamps(history).ok()) << TextOf(history);
  }
}

// Also prints how fast the checkers are.
TEST_F(MutationTest, LongHistoriesTakeLinearTime) {
  for (const bool lists : {false, true}) {
    const SimulatorOptions options{
        .transactions = 5000, .keys = 200, .lists = lists, .scans = !lists, .unknown_deletes = false};
    const History history = Simulate(options, random_);
    const MonotonicTime begin = RealRuntime().Now();
    const Report timestamps = CheckTimestamps(history);
    const MonotonicTime between = RealRuntime().Now();
    const Report cycles = CheckCycles(history);
    const MonotonicTime end = RealRuntime().Now();
    EXPECT_TRUE(timestamps.ok()) << timestamps.ToText();
    EXPECT_TRUE(cycles.ok()) << cycles.ToText();
    const auto rate = [&](Duration took) {
      return static_cast<double>(history.transactions.size()) * 1e9 / static_cast<double>(took.count());
    };
    std::cout << (lists ? "lists" : "registers") << ": " << timestamps.reads << " values read, " << cycles.edges
              << " edges; by timestamps " << static_cast<int64_t>(rate(between - begin))
              << " transactions/s, by cycles " << static_cast<int64_t>(rate(end - between)) << " transactions/s\n";
  }
}

}  // namespace
}  // namespace deut::history
