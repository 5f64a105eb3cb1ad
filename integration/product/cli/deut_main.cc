// deut examines a store and changes single records, from the command line. Its commands: command.h.
// The commands that examine the directory of a stopped component: dc_command.h, tc_command.h.
// Exit status:
// - 0: done.
// - 1: the store refused, it has no such record, or the directory is damaged.
// - 2: words or flags are wrong, or the directory cannot be examined.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "integration/product/cli/command.h"
#include "integration/product/cli/dc_command.h"
#include "integration/product/cli/failure.h"
#include "integration/product/cli/target.h"
#include "integration/product/cli/tc_command.h"

namespace deut::cli {
namespace {

constexpr int kDone = 0, kRefused = 1, kUsage = 2;

struct Options {
  TargetOptions target;
  CommandOptions command;
  TcCommandOptions tc_command;
  bool hex = false;
};

FlagSet MakeFlags(Options* options) {
  FlagSet flags("deut", Concat("Reads and writes a store from the command line: deut [flags] COMMAND\n", CommandHelp(),
                               "Looks at the directory of a stopped component:\n", DcCommandHelp(), TcCommandHelp()));
  AddTargetFlags(&flags, &options->target);
  flags.Add("table", &options->command.table, "the table; tc dump: only updates of the table with this id");
  flags.Add("hex", &options->hex, "keys and values as hexadecimal digits, in place of text with \\xNN for other bytes");
  flags.Add("low", &options->command.low, "scan: the lowest key; empty = from the first");
  flags.Add("high", &options->command.high, "scan: the key before which it ends; empty = to the last");
  flags.Add("limit", &options->command.limit, "scan: maximum number of records; 0 = all");
  flags.Add("reverse", &options->command.reverse, "scan: from the highest key down");
  flags.Add("from", &options->tc_command.from, "tc dump: only records from this LSN on");
  flags.Add("to", &options->tc_command.to, "tc dump: only records before this LSN; 0 = to the end");
  flags.Add("key", &options->tc_command.key, "tc dump: only updates of this key");
  flags.AddEnum("compression", &options->command.of_table.compression,
                {{"default", std::nullopt},
                 {"none", Compression::kNone},
                 {"lz4", Compression::kLz4},
                 {"zstd", Compression::kZstd}},
                "tables create: how its pages are compressed on disk; default = as --dc_compression of the store says");
  flags.Add("deadline", &options->command.deadline, "how long to try");
  return flags;
}

bool Given(const FlagSet& flags, std::string_view name) {
  return std::ranges::any_of(flags.Given(),
                             [&](const std::string& each) { return each.starts_with(Concat(name, "=")); });
}

int Fail(const Status& status, int code) {
  const FailureKind kind = code == kUsage ? FailureKind::kUsage : FailureKind::kRun;
  std::fputs(FailureText("deut", status, kind).c_str(), stderr);
  return code;
}

// Drops informational messages: an embedded store logs its start, which does not interest a user who asks for one
// record.
class WarningsOnly final : public LogSink {
 public:
  void Write(LogLevel level, std::string_view text) override {
    if (level == LogLevel::kInfo) return;
    std::fprintf(stderr, "deut: %.*s\n", static_cast<int>(text.size()), text.data());
  }
};

void Print(std::FILE* file, std::string_view text) { std::fwrite(text.data(), 1, text.size(), file); }

int OutputFailed() { return Fail(DEUT_ERROR(kIoError, "cannot write the output"), kRefused); }

// Output that could not be written (disk full, closed pipe) is a failure, too.
bool Flushed() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

int RunOffline(Storage& files, const std::vector<std::string>& words, const Options& options) {
  const bool dc = IsDcCommand(words);
  const Status checked = dc ? CheckDcCommand(words) : CheckTcCommand(words, options.tc_command);
  if (!checked.ok()) return Fail(checked, kUsage);
  const Output out = [](std::string_view text) { Print(stdout, text); };
  const Status status = dc ? RunDcCommand(files, RealRuntime(), words, options.command.form, out)
                           : RunTcCommand(files, words, options.tc_command, out);
  if (!Flushed()) return OutputFailed();
  if (status.ok()) return kDone;
  std::fputs(FailureText("deut", status, FailureKind::kRun).c_str(), stderr);
  return status == ErrorCode::kCorruption ? kRefused : kUsage;
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags = MakeFlags(&options);
  Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(files.status(), kRefused);
  const Result<std::vector<std::string>> words = flags.Parse(argc, argv, **files);
  if (!words.ok()) return Fail(words.status(), kUsage);
  if (flags.text_requested()) {
    Print(stdout, flags.RequestedText());
    return kDone;
  }
  if (options.hex) options.command.form = options.tc_command.form = TextForm::kHex;
  if (Given(flags, "table")) options.tc_command.table = options.command.table;
  if (IsDcCommand(*words) || IsTcCommand(*words)) return RunOffline(**files, *words, options);
  if (const Status status = CheckCommand(*words); !status.ok()) return Fail(status, kUsage);
  options.target.connect.client.default_timeout = options.command.deadline;
  static WarningsOnly warnings;  // static, because another thread may still log after main
  SetLogSink(&warnings);
  Result<std::unique_ptr<Target>> target = Target::Open(options.target);
  if (!target.ok()) return Fail(target.status(), target.status() == ErrorCode::kInvalidArgument ? kUsage : kRefused);
  const Status status =
      RunCommand((*target)->client(), *words, options.command, [](std::string_view text) { Print(stdout, text); },
                 [](std::string_view text) { Print(stderr, text); });
  if (!Flushed()) return OutputFailed();
  return status.ok() ? kDone : Fail(status, kRefused);
}

}  // namespace
}  // namespace deut::cli

int main(int argc, char** argv) { return deut::cli::Main(argc, argv); }
