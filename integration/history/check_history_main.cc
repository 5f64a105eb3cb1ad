// check_history: runs the checkers on a recorded history (README.md).
//   check_history FILE [--checker=both|timestamps|cycles] [--edn=FILE]
// Prints for each checker its verdict ("ok" or the gravest anomaly), counts of what it checked, and each violation:
// anomaly, transactions, cycle.
// Exit status: 0 no anomaly; 1 an anomaly; 2 wrong flags, or a file that cannot be read or written.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/history.h"
#include "integration/history/history_edn.h"
#include "integration/history/history_text.h"
#include "integration/history/report.h"
#include "integration/history/timestamp_checker.h"

namespace deut::history {
namespace {

constexpr int kClean = 0, kAnomaly = 1, kUsage = 2;

enum class Checkers : uint8_t { kBoth, kTimestamps, kCycles };

struct Options {
  Checkers checkers = Checkers::kBoth;
  std::string edn;
};

int Fail(const Status& status) {
  std::fprintf(stderr, "check_history: %s\n", status.ToString().c_str());
  return kUsage;
}

bool Show(const char* name, const History& history, Report (*check)(const History&)) {
  const MonotonicTime begin = RealRuntime().Now();
  const Report report = check(history);
  const double took = std::chrono::duration<double>(RealRuntime().Now() - begin).count();
  const double rate = static_cast<double>(history.transactions.size()) / std::max(took, 1e-9);
  std::printf("%s: %sin %.3f s, %.0f transactions/s\n", name, report.ToText().c_str(), took, rate);
  return report.ok();
}

Status WriteEdnFile(const History& history, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  DEUT_RETURN_IF_ERROR(WriteEdn(history, file));
  file.flush();
  return file ? Status() : DEUT_ERROR(kIoError, "cannot write ", path);
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags("check_history", "Judges a recorded history: check_history FILE");
  flags.AddEnum("checker", &options.checkers,
                {{"both", Checkers::kBoth}, {"timestamps", Checkers::kTimestamps}, {"cycles", Checkers::kCycles}},
                "which one");
  flags.Add("edn", &options.edn, "write the history to this file in the form that Elle reads");
  Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(files.status());
  const Result<std::vector<std::string>> operands = flags.Parse(argc, argv, **files);
  if (!operands.ok()) return Fail(operands.status());
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return kClean;
  }
  if (operands->size() != 1) return Fail(DEUT_ERROR(kInvalidArgument, "one FILE is wanted"));
  const Result<History> history = ReadHistory(operands->front());
  if (!history.ok()) return Fail(history.status());
  if (!options.edn.empty()) {
    const Status written = WriteEdnFile(*history, options.edn);
    if (!written.ok()) return Fail(written);
  }
  bool clean = true;
  if (options.checkers != Checkers::kCycles) clean &= Show("timestamps", *history, CheckTimestamps);
  if (options.checkers != Checkers::kTimestamps) clean &= Show("cycles", *history, CheckCycles);
  return clean ? kClean : kAnomaly;
}

}  // namespace
}  // namespace deut::history

int main(int argc, char** argv) { return deut::history::Main(argc, argv); }
