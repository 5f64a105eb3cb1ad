// judge looks for bugs of any kind in a store. It runs all workloads in turn, in short rounds (round.h), until it
// finds an error or the time is over.
//   judge --layer=embedded|restart|power|recorded|corruption|two_tcs [--seconds=N] [--rounds=N] [--seed=N] [--workload=NAME] [--keep=FILE]
// Each round prints its workload and seed before it begins. `judge --layer=L --workload=W --seed=S --rounds=1`
// repeats it; as threads run in any order, this may take several attempts. --keep writes the refused history, for
// check_history.
// The last line is `FOUND workload: verdict, ...` or `CLEAN ...`. Exit status: 0 no error found; 1 found; 2 wrong
// flags; 3 nothing moved for too long. A store that crashes ends the process by a signal, which counts as found, too.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "integration/bugs/round.h"
#include "integration/history/history_text.h"
#include "integration/history/workloads.h"

namespace deut::bugs {
namespace {

constexpr int kClean = 0, kFound = 1, kUsage = 2, kHangs = 3;

struct Options {
  Layer layer = Layer::kEmbedded;
  uint64_t seconds = 10;
  uint64_t rounds = UINT64_MAX;
  uint64_t seed = 0;
  uint64_t stall_seconds = 15;
  std::string workload;
  std::string keep;
};

int Fail(const Status& status) {
  std::fprintf(stderr, "judge: %s\n", status.ToString().c_str());
  return kUsage;
}

int Judge(const Options& options, const std::vector<std::string>& names) {
  Runtime& runtime = RealRuntime();
  const MonotonicTime begin = runtime.Now();
  const auto took = [&] { return duration_cast<milliseconds>(runtime.Now() - begin).count(); };
  const Deadline end = begin + seconds(static_cast<int64_t>(options.seconds));
  std::string workload;
  Watchdog watchdog(seconds(static_cast<int64_t>(options.stall_seconds)), [&] {
    std::printf("FOUND %s: no progress, %lld ms\n", workload.c_str(), static_cast<long long>(took()));
    std::fflush(stdout);
    _exit(kHangs);
  });
  uint64_t committed = 0, round = 0;
  for (; round < options.rounds && (round == 0 || runtime.Now() < end); ++round) {
    const uint64_t seed = options.seed + round;
    // The workload of --workload runs every second round, or, with --rounds, every round.
    const bool named = !options.workload.empty() && (round % 2 == 0 || options.rounds != UINT64_MAX);
    workload = options.layer == Layer::kRecorded ? "crash_points" : names[named ? 0 : seed % names.size()];
    std::printf("round %llu: %s --seed=%llu\n", static_cast<unsigned long long>(round), workload.c_str(),
                static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    const RoundResult result = RunRound({.layer = options.layer, .workload = workload, .seed = seed}, watchdog);
    committed += result.committed;
    if (result.verdict.empty()) continue;
    if (!options.keep.empty()) (void)history::WriteHistory(result.history, options.keep);
    std::printf("%s\nFOUND %s: %s, %lld ms, seed %llu\n", result.details.c_str(), workload.c_str(),
                result.verdict.c_str(), static_cast<long long>(took()), static_cast<unsigned long long>(seed));
    return kFound;
  }
  std::printf("CLEAN %llu rounds, %llu committed, %lld ms\n", static_cast<unsigned long long>(round),
              static_cast<unsigned long long>(committed), static_cast<long long>(took()));
  return kClean;
}

int Main(int argc, char** argv) {
  Options options;
  options.seed = RealRuntime().RandomSeed() % 1000000;
  FlagSet flags("judge", "Looks for bugs in a store: workloads under disturbance, judged by checkers of histories.");
  flags.AddEnum("layer", &options.layer,
                {{"embedded", Layer::kEmbedded},
                 {"restart", Layer::kRestart},
                 {"power", Layer::kPower},
                 {"recorded", Layer::kRecorded},
                 {"corruption", Layer::kCorruption},
                 {"two_tcs", Layer::kTwoTcs}},
                "faults that the rounds inject");
  flags.Add("seconds", &options.seconds, "how long; a round that has begun is finished");
  flags.Add("rounds", &options.rounds, "maximum number of rounds");
  flags.Add("seed", &options.seed, "of the first round; each following one has the next");
  flags.Add("stall_seconds", &options.stall_seconds,
            "a store in which nothing succeeds for this many seconds counts as hung");
  flags.Add("workload", &options.workload, "every second round is of this one, or all if --rounds is given");
  flags.Add("keep", &options.keep, "file for the history that was refused");
  Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(files.status());
  const Result<std::vector<std::string>> operands = flags.Parse(argc, argv, **files);
  if (!operands.ok()) return Fail(operands.status());
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return kClean;
  }
  std::vector<std::string> names = history::WorkloadNames();
  if (!options.workload.empty()) {
    const auto at = std::find(names.begin(), names.end(), options.workload);
    if (at == names.end()) return Fail(DEUT_ERROR(kInvalidArgument, "no workload has the name ", options.workload));
    std::rotate(names.begin(), at, names.end());
  }
  return Judge(options, names);
}

}  // namespace
}  // namespace deut::bugs

int main(int argc, char** argv) { return deut::bugs::Main(argc, argv); }
