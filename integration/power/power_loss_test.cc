// Whole stores that lose power at every changing operation of their disk, and again during the recovery that follows.
// DEUT_POWER_STEP: tests every Nth operation (1: all; the default takes about a minute). DEUT_SEED: seed of the runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "integration/power/figures.h"
#include "integration/power/power_run.h"

namespace deut::power {
namespace {

uint64_t Seed() { return FromEnvironment("DEUT_SEED", 1); }

struct Case {
  const char* name;
  uint32_t threads;
  bool keeps_pages;
  uint32_t steps;
};

constexpr Case kCases[] = {{"OneClientDcOnDisk", 1, false, 160},
                           {"OneClientKeepingDc", 1, true, 160},
                           {"FourClientsDcOnDisk", 4, false, 160},
                           {"FourClientsKeepingDc", 4, true, 160}};

RunOptions OptionsOf(const Case& which, uint64_t seed) {
  return {.seed = seed, .threads = which.threads, .keeps_pages = which.keeps_pages};
}

// The end of every run: a life that recovers, is judged and works; one that only reads; the verdict on the whole
// history.
std::string EndOf(PowerRun& run, uint32_t steps) {
  std::string wrong = run.RunLife({.steps = steps});
  if (wrong.empty()) wrong = run.RunLife({});
  return wrong.empty() ? run.Finish() : wrong;
}

class PowerLoss : public ::testing::TestWithParam<Case> {};

// Returns the number of changing operations in an undisturbed life.
uint64_t OperationsOfALife(const Case& which, uint64_t seed, void (*prepare)(FaultyDisk&) = nullptr) {
  PowerRun run(OptionsOf(which, seed));
  if (prepare != nullptr) prepare(run.disk());
  EXPECT_EQ(run.RunLife({.steps = which.steps}), "");
  return run.disk().counts().changing;
}

// recorded_run_test has most of the crash points of a DC on the disk. This test has fewer, in which the store
// continues for a while without its disk.
uint64_t StepOf(const Case& which) {
  const uint64_t step = FromEnvironment("DEUT_POWER_STEP", 5);
  return which.keeps_pages || step == 1 ? step : 3 * step;
}

std::string Repeat(const Case& which, uint64_t seed) {
  return Concat("\nrepeat: bazel test --config=test --test_env=DEUT_SEED=", seed,
                " --test_env=DEUT_POWER_STEP=1 --test_filter='*", which.name, "*' //integration/power:power_loss_test");
}

TEST_P(PowerLoss, AtEveryOperationAndAgainInRecovery) {
  const Case which = GetParam();
  const uint64_t step = StepOf(which);
  Figures figures;
  // The number of writes in a life depends on how many commits share a write. A life with few writes is repeated.
  uint64_t operations = 0;
  for (int life = 0; life < 50 && operations <= which.steps / 5; ++life) operations = OperationsOfALife(which, Seed());
  ASSERT_GT(operations, which.steps / 5);
  for (uint64_t at = 1 + Seed() % step; at <= operations; at += step) {
    PowerRun run(OptionsOf(which, Seed()));
    Random random(Seed() * 1000 + at);
    std::string wrong = run.RunLife({.crash_after = at, .steps = which.steps});
    ++figures.crash_points;
    // Loses power once more during the recovery, or soon after it.
    if (wrong.empty()) wrong = run.RunLife({.crash_after = 1 + random.Below(20), .steps = 4});
    figures.second_crashes += run.was_read() ? 0 : 1;
    if (wrong.empty()) wrong = EndOf(run, 4);
    figures.Add(run);
    ASSERT_EQ(wrong, "") << "seed " << Seed() << ", crash at operation " << at << Repeat(which, Seed());
  }
  if (!which.keeps_pages) EXPECT_GE(figures.dc.cleaned, figures.crash_points);
}

TEST_P(PowerLoss, AtEveryOperationOfRecovery) {
  const Case which = GetParam();
  const uint64_t step = StepOf(which);
  Figures figures;
  const uint64_t operations = OperationsOfALife(which, Seed());
  Random random(Seed());
  for (uint64_t at = operations; at > operations / 8; at -= std::min(at, 1 + operations * step / 20)) {
    bool in_recovery = true;
    // A DC on the disk does more in its first moments (checkpoints, cleaning), so fewer crash points suffice.
    const uint64_t stride = which.keeps_pages ? 1 : (step + 1) / 2;
    for (uint64_t second = 1 + random.Below(stride); in_recovery; second += stride) {
      PowerRun run(OptionsOf(which, Seed()));
      std::string wrong = run.RunLife({.crash_after = at, .steps = which.steps});
      ++figures.crash_points;
      if (wrong.empty()) wrong = run.RunLife({.crash_after = second});
      in_recovery = run.crashed();
      figures.second_crashes += in_recovery ? 1 : 0;
      if (wrong.empty()) wrong = EndOf(run, 4);
      figures.Add(run);
      ASSERT_EQ(wrong, "") << "seed " << Seed() << ", crash at operation " << at << ", then at operation " << second
                           << " of the recovery" << Repeat(which, Seed());
    }
  }
}

TEST_P(PowerLoss, ManyLives) {
  const Case which = GetParam();
  const uint64_t runs = std::max<uint64_t>(1, 15 / FromEnvironment("DEUT_POWER_STEP", 5));
  Figures figures;
  for (uint64_t seed = Seed(); seed < Seed() + runs; ++seed) {
    PowerRun run(OptionsOf(which, seed));
    Random random(seed);
    std::string wrong;
    for (int life = 0; life < 10 && wrong.empty(); ++life) {
      wrong = run.RunLife({.crash_after = random.OneIn(4) ? 0 : 1 + random.Below(100),
                           .steps = which.steps,
                           .keeps_power = random.OneIn(2)});
      ++figures.crash_points;
    }
    if (wrong.empty()) wrong = EndOf(run, 4);
    figures.Add(run);
    ASSERT_EQ(wrong, "") << "seed " << seed << Repeat(which, seed);
  }
  if (which.keeps_pages) EXPECT_GT(figures.trimmed_runs, 0u);
}

// --- A disk that fails in other ways than by losing power: the store stops with a message, and acknowledged
// transactions are there afterwards.

struct FaultCase {
  const char* name;
  DiskFault::Action action;
  uint32_t kinds;
  bool expect_failure;  // the log cannot go on
};

constexpr FaultCase kFaults[] = {
    {"a write fails", DiskFault::Action::kIoError, kDiskWrite, true},
    {"a write ends early", DiskFault::Action::kShort, kDiskWrite, true},
    {"a sync fails", DiskFault::Action::kIoError, kDiskSync | kDiskSyncDirectory, true},
    {"no space in a file", DiskFault::Action::kNoSpace, kDiskAllocate, false},
    {"no space for a name", DiskFault::Action::kNoSpace, kDiskName, false},
    {"a file cannot be made longer", DiskFault::Action::kIoError, kDiskAllocate, true},
};

TEST_P(PowerLoss, DiskFaults) {
  const Case which = GetParam();
  const uint64_t runs = 200 / FromEnvironment("DEUT_POWER_STEP", 5);
  Figures figures;
  uint64_t struck = 0, stopped = 0;
  for (uint64_t seed = Seed(); seed < Seed() + runs; ++seed) {
    Random random(seed);
    const FaultCase& fault_case = kFaults[seed % std::size(kFaults)];
    int fault = 0;
    // Either the TC's log or the DC's pages get errors. (A state file of the DC that cannot be written is written
    // anew.)
    const std::string where = which.keeps_pages || random.OneIn(2) ? "/store/tc" : "/store/dc/pages";
    const auto add = [&](FaultyDisk& disk) {
      fault = disk.AddFault({.action = fault_case.action,
                             .kinds = fault_case.kinds,
                             .path_contains = where,
                             .skip = random.Below(fault_case.kinds == kDiskWrite ? 30 : 4),
                             .count = 1 + random.Below(2)});
    };
    PowerRun run(OptionsOf(which, seed));
    std::string wrong = run.RunLife({.steps = 20});
    Life life{.steps = which.steps, .faulty = true};
    (random.OneIn(3) ? life.before_open : life.before_work) = add;
    life.expect_failure = [&](FaultyDisk& disk) { return fault_case.expect_failure && disk.hits(fault) > 0; };
    life.keeps_power =
        random.OneIn(2);  // then the next life builds on what the failed one left, and power is lost after that
    if (wrong.empty()) wrong = run.RunLife(life);
    struck += run.disk().hits(fault) > 0 ? 1 : 0;
    if (!run.failure().ok()) {
      ++stopped;
      EXPECT_NE(run.failure().message().find(where), std::string::npos) << run.failure().ToString();
    }
    run.disk().RemoveAllFaults();
    if (wrong.empty()) wrong = EndOf(run, 4);
    figures.Add(run);
    ASSERT_EQ(wrong, "") << "seed " << seed << ", " << fault_case.name << Repeat(which, seed);
  }
  std::printf("faults that struck %lu, stores that stopped %lu\n", struck, stopped);
  EXPECT_GT(stopped, runs / 4);
}

TEST_P(PowerLoss, ADeviceThatHangs) {
  const Case which = GetParam();
  constexpr int kHangs = 3;
  Figures figures;
  int hung = 0;
  for (uint64_t seed = Seed(); hung < kHangs; ++seed) {
    // On a machine that stalls longer than the device timeout, the store takes its device for a hanging one too
    // early.
    ASSERT_LT(seed, Seed() + uint64_t{10} * kHangs) << "the work ends by itself";
    RunOptions options = OptionsOf(which, seed);
    options.sizes.device_timeout = milliseconds(200);
    PowerRun run(options);
    std::atomic<bool> hangs{false}, stopped{false};
    std::unique_ptr<Thread> hanger;
    Life life{.steps = 1'000'000, .faulty = true};  // until it fails
    // The device stops completing operations in the middle of the work.
    life.before_work = [&](FaultyDisk& disk) {
      hanger = RealRuntime().StartThread("hanger", [&, last = disk.counts().writes + Random(seed).Below(10)] {
        while (disk.counts().writes <= last) {
          if (stopped.load()) return;
          RealRuntime().Yield();
        }
        disk.HoldCompletions(true);
        hangs.store(true);
      });
    };
    life.expect_failure = [&](FaultyDisk&) {
      stopped.store(true);
      hanger.reset();
      return hangs.load();
    };
    std::string wrong = run.RunLife(life);
    if (hangs.load()) {
      ++hung;
      EXPECT_NE(run.failure().message().find("/store/tc"), std::string::npos) << run.failure().ToString();
    }
    if (wrong.empty()) wrong = EndOf(run, 4);
    figures.Add(run);
    ASSERT_EQ(wrong, "") << "seed " << seed << Repeat(which, seed);
  }
}

// --- Bits that flip on their way from the disk: the store either refuses, or answers correctly.
TEST_P(PowerLoss, ReadsThatFlipBits) {
  const Case which = GetParam();
  const uint64_t runs = 150 / FromEnvironment("DEUT_POWER_STEP", 5);
  Figures figures;
  uint64_t struck = 0, refused = 0;
  for (uint64_t seed = Seed(); seed < Seed() + runs; ++seed) {
    Random random(seed);
    PowerRun run(OptionsOf(which, seed));
    std::string wrong = run.RunLife({.steps = which.steps, .orderly_stop = true});
    // The first block of this life proves that everything before it was durable: damage in the very last blocks of a
    // log cannot be told from a torn write.
    if (wrong.empty()) wrong = run.RunLife({.judge_first = false, .orderly_stop = true});
    int fault = 0;
    // Only one of the two disks errs: a log that lost its end is told from one torn there by the position that the DC
    // has applied.
    const std::string where = random.OneIn(2) ? "/store/tc/" : "/store/dc/";
    const auto add = [&](FaultyDisk& disk) {
      fault = disk.AddFault({.action = DiskFault::Action::kFlipBit,
                             .kinds = kDiskRead,
                             .path_contains = where,
                             .skip = random.Below(12),
                             .count = 1 + random.Below(3)});
    };
    Life life{.steps = 20, .faulty = true, .orderly_stop = true};
    (random.OneIn(5) ? life.before_work : life.before_open) = add;
    if (wrong.empty()) wrong = run.RunLife(life);
    struck += run.disk().hits(fault) > 0 ? 1 : 0;
    refused += run.failure().ok() ? 0 : 1;
    run.disk().RemoveAllFaults();
    if (wrong.empty()) wrong = EndOf(run, 4);
    figures.Add(run);
    ASSERT_EQ(wrong, "") << "seed " << seed << Repeat(which, seed);
  }
  std::printf("runs with flipped bits %lu, refused %lu\n", struck, refused);
  EXPECT_GT(refused, 0u);
}

// --- The oracle finds stores that are wrong.

// Most omissions are found within seconds, some by one run of hundreds. The limit leaves time for a busy machine.
constexpr Duration kHunt = seconds(300);

// Cycles through all kinds of runs until one finds an error, which it returns, or the time is over.
std::string Hunt(Duration time, void (*prepare)(FaultyDisk&)) {
  const Deadline end = RealRuntime().Now() + time;
  for (uint64_t seed = Seed(); RealRuntime().Now() < end; ++seed) {
    const Case& which = kCases[seed % std::size(kCases)];
    PowerRun run(OptionsOf(which, seed));
    prepare(run.disk());
    Random random(seed);
    std::string wrong;
    for (int life = 0; life < 5 && wrong.empty(); ++life) {
      Life next{.crash_after = random.OneIn(4) ? 0 : 1 + random.Below(80), .steps = which.steps};
      if (random.OneIn(4)) {
        // A failed write whose bytes may be on the disk: the process ends, and power is lost later.
        next = {.steps = which.steps, .faulty = true, .keeps_power = true};
        next.before_work = [&random](FaultyDisk& disk) {
          disk.AddFault({.action = DiskFault::Action::kIoError,
                         .kinds = kDiskWrite,
                         .path_contains = "/store/tc",
                         .skip = random.Below(20),
                         .count = 1});
        };
      }
      wrong = run.RunLife(next);
      run.disk().RemoveAllFaults();
    }
    if (wrong.empty()) wrong = EndOf(run, 4);
    if (!wrong.empty()) return Concat("seed ", seed, " (", which.name, "): ", wrong);
  }
  return "";
}

TEST(PowerLossOracle, FindsADiskThatIgnoresSyncs) {
  const std::string found = Hunt(kHunt, [](FaultyDisk& disk) { disk.SetIgnoreSync(true); });
  EXPECT_NE(found, "");
  std::printf("found: %s\n", found.c_str());
}

#ifdef DEUT_MUTATIONS
class OmittedStep : public ::testing::TestWithParam<const char*> {};

TEST_P(OmittedStep, IsFound) {
  std::array<char, 4096> self{};
  ASSERT_GT(readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
  const std::string command = Concat("DEUT_OMIT=", GetParam(), " ", self.data(), " --hunt 2>&1");
  FILE* const child = popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  std::string output;
  std::array<char, 4096> part{};
  while (const size_t bytes = fread(part.data(), 1, part.size(), child)) output.append(part.data(), bytes);
  pclose(child);
  // Either the judge finds the loss, or an assertion ends the child before.
  size_t at = output.find("invariant does not hold: ");
  if (at == std::string::npos) at = output.find("found: ");
  ASSERT_NE(at, std::string::npos) << output;
  const std::string found = output.substr(at, output.find('\n', at) - at);
  EXPECT_GT(found.size(), std::string_view("invariant does not hold: ").size());
  std::printf("%s %s\n", GetParam(), found.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, OmittedStep,
                         ::testing::Values("D1.wait_own", "D1.wait_dependencies", "D2.dsync", "D2.sync_directory",
                                           "D2.in_order", "D2.write_again", "D3.reserve_first", "D3.repeat_in_header",
                                           "S2.log_before_trim", "S2.first_record", "X4.wait_applied"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });
#endif  // DEUT_MUTATIONS

INSTANTIATE_TEST_SUITE_P(All, PowerLoss, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace

// Runs for OmittedStep in a process of its own, because DEUT_OMIT is read from the environment once.
int HuntOnly() {
  std::printf("found: %s\n", Hunt(kHunt, [](FaultyDisk&) {}).c_str());
  return 0;
}

}  // namespace deut::power

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--hunt") return deut::power::HuntOnly();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
