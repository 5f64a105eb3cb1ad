// scenario: runs scenarios (README.md) and reports their verdicts.
//   scenario FILE... [--seed=N] [--duration=S] [--cycles=N] [--ledger=FILE] [--keep=DIR]
// Exit status: 0 all held; 1 one did not (the command that repeats it is printed); 2 wrong flags or files. A scenario
// that the machine does not allow is reported as skipped.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "integration/scenarios/scenario_file.h"
#include "integration/scenarios/scenario_run.h"

namespace deut::scenarios {
namespace {

constexpr int kHeld = 0, kFailed = 1, kUsage = 2;

struct Options {
  uint64_t seed = 0;
  uint64_t cycles = UINT64_MAX;
  Duration duration = seconds(0);
  std::string ledger, keep, commit = "unknown", tcd, dcd;
};

int Refuse(const Status& status) {
  std::fprintf(stderr, "scenario: %s\n", status.ToString().c_str());
  return kUsage;
}

// Finds a daemon's program for Cluster: named by the flag, by the environment, or at the place where a build puts it.
Status SetProgram(const char* variable, const std::string& flag, const std::string& self, const char* beside) {
  const char* given = std::getenv(variable);
  std::string path = !flag.empty() ? flag : given != nullptr ? given : "";
  if (path.empty()) path = (std::filesystem::path(self).parent_path() / "../.." / beside).lexically_normal().string();
  if (!std::filesystem::exists(path)) {
    return DEUT_ERROR(kNotFound, "there is no program ", path, "; name it by --tcd and --dcd");
  }
  setenv(variable, std::filesystem::absolute(path).string().c_str(), 1);
  return Status();
}

void Tell(const Scenario& scenario, const std::string& file, const RunReport& report) {
  const double took = std::chrono::duration<double>(report.took).count();
  std::cout << scenario.name << ": " << report.verdict << "; " << report.cycles << " cycles, " << report.histories
            << " histories, " << report.committed << " transactions committed, " << report.aborted << " aborted, "
            << report.unknown_committed + report.unknown_dropped << " of unknown outcome (" << report.unknown_committed
            << " seen), " << report.reads << " values read, " << report.edges << " edges; " << took
            << " s, the longest cycle " << duration_cast<milliseconds>(report.longest_cycle).count() << " ms\n";
  for (const auto& [effect, count] : report.effects) std::cout << "  " << effect << ": " << count << "\n";
  if (report.ok()) return;
  std::cout << report.details;
  if (report.verdict == "skipped") return;
  std::cout << "to repeat: scenario " << file << " --seed=" << report.failed_seed << " --cycles=" << scenario.history
            << std::endl;
}

int RunAll(const std::vector<std::string>& files, const Options& options) {
  std::vector<Scenario> scenarios;
  for (const std::string& file : files) {
    Result<Scenario> scenario = ReadScenario(file);
    if (!scenario.ok()) return Refuse(scenario.status());
    scenarios.push_back(*std::move(scenario));
  }
  bool held = true;
  for (size_t i = 0; i < files.size(); ++i) {
    RunOptions run{.seed = options.seed, .cycles = options.cycles, .keep = options.keep};
    if (run.seed == 0) run.seed = RealRuntime().RandomSeed() >> 16;
    if (options.duration > Duration(0)) run.duration = options.duration;
    if (options.duration == Duration(0) && options.cycles == UINT64_MAX) run.cycles = 20;
    const RunReport report = RunScenario(scenarios[i], run, std::cout);
    Tell(scenarios[i], files[i], report);
    held &= report.ok() || report.verdict == "skipped";
    if (options.ledger.empty()) continue;
    std::ofstream ledger(options.ledger, std::ios::app);
    ledger << LedgerLine(options.commit, scenarios[i], run, report) << std::flush;
    if (!ledger) return Refuse(DEUT_ERROR(kIoError, "cannot write ", options.ledger));
  }
  return held ? kHeld : kFailed;
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags("scenario",
                "Runs workloads on a cluster of real processes with faults, and judges them: scenario FILE...");
  flags.Add("seed", &options.seed, "seed of all random choices; 0 = another one each time");
  flags.Add("cycles", &options.cycles,
            "maximum number of cycles of each scenario; 20 if neither this nor a duration is given");
  flags.Add("duration", &options.duration, "maximum time of each scenario");
  flags.Add("ledger", &options.ledger, "append a line for each scenario to this file");
  flags.Add("keep", &options.keep, "folder for the histories and logs of a failure");
  flags.Add("commit", &options.commit, "name of the tested code in the ledger");
  flags.Add("tcd", &options.tcd, "the transaction component's program");
  flags.Add("dcd", &options.dcd, "the data component's program");
  Result<std::unique_ptr<Storage>> storage = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!storage.ok()) return Refuse(storage.status());
  const Result<std::vector<std::string>> files = flags.Parse(argc, argv, **storage);
  if (!files.ok()) return Refuse(files.status());
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return kHeld;
  }
  if (files->empty()) return Refuse(DEUT_ERROR(kInvalidArgument, "a FILE is wanted"));
  for (const Status& found :
       {SetProgram("TCD", options.tcd, argv[0], "tc/tcd"), SetProgram("DCD", options.dcd, argv[0], "dc/dcd")}) {
    if (!found.ok()) return Refuse(found);
  }
  return RunAll(*files, options);
}

}  // namespace
}  // namespace deut::scenarios

int main(int argc, char** argv) { return deut::scenarios::Main(argc, argv); }
