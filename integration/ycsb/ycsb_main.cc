// ycsb: the YCSB core workloads against a store, over the client library. README.md shows the flags in use.
// Exit status: 0 done; 1 an error that was not resolved; 2 wrong flags.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "integration/product/cli/failure.h"
#include "integration/product/cli/target.h"
#include "integration/ycsb/benchmark_options.h"
#include "integration/ycsb/journal.h"
#include "integration/ycsb/old_readers.h"
#include "integration/ycsb/phase.h"
#include "integration/ycsb/report.h"
#include "integration/ycsb/settle.h"
#include "protocol/transaction_service.h"
#include "tc/client/client.h"
#include "tc/client/transaction.h"

namespace deut::ycsb {
namespace {

constexpr int kDone = 0, kFailed = 1, kUsage = 2;
constexpr uint32_t kMaxThreads = 4096;

struct Options {
  cli::TargetOptions target;
  BenchmarkOptions benchmark;
  std::string workload = "e";
  uint32_t scan_percent = 0;
  uint64_t seconds = 10;
  bool load = true;
  bool settle = false;
  uint32_t old_readers = 0;
  Duration old_reader_time{0};
  std::string table = "usertable";
  std::string json_file;
  std::string journal_file;
  std::string timeline_file;
};

FlagSet MakeFlags(Options* options) {
  FlagSet flags("ycsb",
                "Runs a YCSB core workload. Every value read is checked; an error that the retry loop does not resolve "
                "fails the run.");
  BenchmarkOptions& benchmark = options->benchmark;
  cli::AddTargetFlags(&flags, &options->target);
  flags.Add("workload", &options->workload,
            "a, b, c, d, e (95 % scans, 5 % inserts), e-update (95 % scans, 5 % updates), f, hot (scans and "
            "interactive writes "
            "in a small table) or long (long scans among inserts)");
  flags.Add(
      "scan_percent", &options->scan_percent,
      "workload e-update: percentage of transactions that are scans, the others are updates; 0 = the workload's own",
      uint32_t{0}, uint32_t{100});
  flags.Add("records", &benchmark.records, "records to load, or that are there when --load=false", uint64_t{1},
            uint64_t{1} << 48);
  flags.Add("value_bytes", &benchmark.value_bytes, "of each value", kMinValueBytes, kMaxValueBytes);
  flags.Add("threads", &benchmark.threads, "workers, each with one transaction at a time", uint32_t{1}, kMaxThreads);
  flags.Add("seconds", &options->seconds, "of the run phase; 0 = load only, unless --operations is given", uint64_t{0},
            uint64_t{1} << 30);
  flags.Add("operations", &benchmark.operations, "ends the run phase after this many transactions; 0 = by time only");
  flags.Add("min_writes", &benchmark.min_writes,
            "the run phase goes on beyond --seconds, up to six times as long, until this many writes are acknowledged");
  flags.Add("theta", &benchmark.theta, "skew of the Zipfian distribution, 0 (none) to below 1");
  flags.Add("scan_min", &benchmark.scan_min, "minimum number of records that a scan asks for", uint32_t{1},
            uint32_t{1} << 24);
  flags.Add("scan_max", &benchmark.scan_max, "maximum number of records that a scan asks for", uint32_t{1},
            uint32_t{1} << 24);
  flags.Add("interactive_records", &benchmark.interactive_records,
            "records that an interactive write puts, each in a message of its own (workload hot)", uint32_t{1},
            uint32_t{1000});
  flags.Add("think_time", &benchmark.think_time, "pause of an interactive write between its messages (workload hot)");
  flags.Add("load", &options->load, "load the records first");
  flags.Add("settle", &options->settle,
            "before the run phase, wait until the data component holds it all and the transaction component keeps none "
            "of it");
  flags.Add(
      "old_readers", &options->old_readers,
      "number of transactions that stay open during the run phase, each checked to see the same data all the time; "
      "later commits stay in the transaction component",
      uint32_t{0}, uint32_t{10'000});
  flags.Add("old_reader_time", &options->old_reader_time,
            "time after which an old reader is replaced by a new one; 0 = they stay to the end");
  flags.Add("load_batch", &benchmark.load_batch, "records that the load phase puts into one transaction", uint32_t{1},
            uint32_t{1000});
  flags.Add("table", &options->table, "the table; made if there is none");
  flags.Add("json", &options->json_file, "write the result there, as JSON (- = to the standard output)");
  flags.Add("journal", &options->journal_file,
            "append every try and acknowledgement of a write there, for verify_journal");
  flags.Add("timeline", &options->timeline_file,
            "append counts there, ten times a second: wall_us phase elapsed_s transactions records aborts errors");
  flags.Add("deadline", &benchmark.deadline, "for one transaction with its repetitions");
  flags.Add("tolerate_unavailable", &benchmark.tolerate_unavailable,
            "count UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED and OUTCOME_UNKNOWN and go on (for runs in which "
            "daemons are killed)");
  flags.AddEnum("read_isolation", &benchmark.read_isolation,
                {{"serializable", Isolation::kSerializable}, {"snapshot", Isolation::kSnapshot}},
                "of transactions that only read");
  flags.AddEnum("durability", &benchmark.durability,
                {{"durable", Durability::kDurable}, {"buffered", Durability::kBuffered}}, "of commits");
  flags.Add("seed", &benchmark.seed, "of the random choices");
  return flags;
}

int Fail(const Status& status, int code) {
  const cli::FailureKind kind = code == kUsage ? cli::FailureKind::kUsage : cli::FailureKind::kRun;
  std::fputs(cli::FailureText("ycsb", status, kind).c_str(), stderr);
  return code;
}

Status CheckOptions(Options* options) {
  BenchmarkOptions& benchmark = options->benchmark;
  DEUT_ASSIGN_OR_RETURN(benchmark.workload, WorkloadByName(options->workload));
  if (options->scan_percent != 0) DEUT_RETURN_IF_ERROR(benchmark.workload.SetScanPercent(options->scan_percent));
  if (!(benchmark.theta >= 0 && benchmark.theta < 1)) {
    return DEUT_ERROR(kInvalidArgument, "--theta=", benchmark.theta, ": 0 to below 1 is meant");
  }
  if (benchmark.scan_min > benchmark.scan_max) {
    return DEUT_ERROR(kInvalidArgument, "--scan_min=", benchmark.scan_min,
                      " is more than --scan_max=", benchmark.scan_max);
  }
  if (benchmark.interactive_records > benchmark.records) {
    return DEUT_ERROR(kInvalidArgument, "--interactive_records=", benchmark.interactive_records,
                      " is more than there are (--records=", benchmark.records, ")");
  }
  if (benchmark.min_writes != 0 && options->seconds == 0) {
    return DEUT_ERROR(kInvalidArgument, "--min_writes=", benchmark.min_writes,
                      " prolongs a run of --seconds, and --seconds is 0");
  }
  benchmark.run_time = seconds(options->seconds);
  options->target.connect.client.default_timeout = benchmark.deadline;
  options->target.connect.client.max_idle_sessions = std::max(benchmark.threads, 16U);
  return Status();
}

void PrintLine(std::string_view line) {
  std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  std::fflush(stdout);
}

// A file that its destructor closes; "-" is the standard output.
class OutputFile {
 public:
  static Result<std::unique_ptr<OutputFile>> Open(const std::string& path, const char* mode) {
    std::FILE* const file = path == "-" ? stdout : std::fopen(path.c_str(), mode);
    if (file == nullptr) return DEUT_ERROR(kIoError, "cannot open ", path, ": ", std::strerror(errno));
    return std::unique_ptr<OutputFile>(new OutputFile(file, path));
  }
  ~OutputFile() {
    if (file_ != stdout) std::fclose(file_);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Flushes at once, for processes that follow the file.
  Status Write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0) return Status();
    return DEUT_ERROR(kIoError, "cannot write to ", path_, ": ", std::strerror(errno));
  }

 private:
  OutputFile(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  std::FILE* const file_;
  const std::string path_;
};

Result<TableId> OpenOrCreateTable(Client& client, const std::string& name) {
  Result<TableId> table = client.OpenTable(name);
  if (table.status() != ErrorCode::kNotFound) return table;
  table = client.CreateTable(name);
  // Another process may have created the table first.
  return table.status() == ErrorCode::kAlreadyExists ? client.OpenTable(name) : table;
}

class Program {
 public:
  explicit Program(const Options& options) : options_(options) {}
  int Run();

 private:
  Status Prepare();
  PhaseResult RunOne(PhaseKind kind);
  Status RunSettle();

  const Options& options_;
  std::unique_ptr<cli::Target> target_;
  TableId table_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<OutputFile> timeline_, json_;
};

Status Program::Prepare() {
  DEUT_ASSIGN_OR_RETURN(target_, cli::Target::Open(options_.target));
  if (!options_.journal_file.empty()) {
    DEUT_ASSIGN_OR_RETURN(journal_, Journal::Open(options_.journal_file, RealRuntime()));
  }
  if (!options_.timeline_file.empty()) {
    DEUT_ASSIGN_OR_RETURN(timeline_, OutputFile::Open(options_.timeline_file, "a"));
  }
  // Opens the file before the run, so that an error shows at once.
  if (!options_.json_file.empty()) {
    DEUT_ASSIGN_OR_RETURN(json_, OutputFile::Open(options_.json_file, "w"));
  }
  DEUT_ASSIGN_OR_RETURN(table_, OpenOrCreateTable(target_->client(), options_.table));
  return Status();
}

PhaseResult Program::RunOne(PhaseKind kind) {
  PhaseOutput output;
  output.progress = PrintLine;
  Status timeline_status;
  if (timeline_ != nullptr) {
    output.tick = [&](const Tick& tick) {
      if (!timeline_status.ok()) return;
      timeline_status = timeline_->Write(absl::StrFormat("%d\t%s\t%.3f\t%d\t%d\t%d\t%d\n", tick.wall_us,
                                                         kind == PhaseKind::kLoad ? "load" : "run", tick.elapsed,
                                                         tick.transactions, tick.records, tick.aborts, tick.errors));
    };
  }
  PhaseResult result = RunPhase(kind, target_->client(), table_, options_.benchmark, journal_.get(), output);
  if (result.failure.ok()) result.failure = timeline_status;
  return result;
}

Status Program::RunSettle() {
  const MonotonicTime begun = RealRuntime().Now();
  DEUT_RETURN_IF_ERROR(
      Settle(target_->client(), {.tolerate_unavailable = options_.benchmark.tolerate_unavailable}, PrintLine));
  std::printf("settled in %.1f s\n", std::chrono::duration<double>(RealRuntime().Now() - begun).count());
  std::fflush(stdout);
  return Status();
}

int Program::Run() {
  if (const Status status = Prepare(); !status.ok())
    return Fail(status, status == ErrorCode::kInvalidArgument ? kUsage : kFailed);
  std::unique_ptr<PhaseResult> load, run;
  Status failure;
  if (options_.load) {
    load = std::make_unique<PhaseResult>(RunOne(PhaseKind::kLoad));
    failure = load->failure;
    std::printf("loaded %s records in %.1f s (%.0f/s)\n", Concat(load->total.records).c_str(), load->seconds,
                static_cast<double>(load->total.records) / std::max(load->seconds, 1e-9));
  }
  if (failure.ok() && options_.settle) failure = RunSettle();
  OldReaders readers(target_->client(), table_, options_.benchmark, options_.old_readers, options_.old_reader_time);
  if (failure.ok() && options_.old_readers != 0) failure = readers.Start();
  if (failure.ok() && (options_.seconds != 0 || options_.benchmark.operations != 0)) {
    run = std::make_unique<PhaseResult>(RunOne(PhaseKind::kRun));
    failure = run->failure;
    std::fputs(ReportText(*run).c_str(), stdout);
  }
  if (options_.old_readers != 0) {
    const Status held = readers.Stop();
    if (failure.ok()) failure = held;
    const OldReaders::Counters& counters = readers.counters();
    std::printf("old readers: %s begun, %s looked again and saw the same, %s aborted, the longest open for %.1f s\n",
                Concat(counters.begun).c_str(), Concat(counters.looks).c_str(), Concat(counters.aborted).c_str(),
                counters.longest_held);
  }
  if (json_ != nullptr) {
    const Status written = json_->Write(ReportJson(options_.benchmark, options_.target.target, load.get(), run.get()));
    if (!written.ok()) return Fail(written, kFailed);
  }
  return failure.ok() ? kDone : Fail(failure, kFailed);
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags = MakeFlags(&options);
  Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(files.status(), kFailed);
  const Result<std::vector<std::string>> operands = flags.Parse(argc, argv, **files);
  if (!operands.ok()) return Fail(operands.status(), kUsage);
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return kDone;
  }
  if (!operands->empty())
    return Fail(DEUT_ERROR(kInvalidArgument, "ycsb takes flags only (--name=value), not \"", operands->front(), "\""),
                kUsage);
  if (const Status status = CheckOptions(&options); !status.ok()) return Fail(status, kUsage);
  return Program(options).Run();
}

}  // namespace
}  // namespace deut::ycsb

int main(int argc, char** argv) { return deut::ycsb::Main(argc, argv); }
