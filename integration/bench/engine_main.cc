// An engine: one open store that runs commands. Each command is a line on standard input; the answer is one line of
// JSON on standard output. Several stores can thus take turns within one run, each in a process of its own, whose
// memory, processor time and writes are the store's own.
//
//   load RECORDS THREADS            -> result
//   run MIX THREADS MILLISECONDS buffered|durable SEED [PIPELINE]   -> result; MIX as in mix.h; a thread runs PIPELINE transactions
//                                      in parallel
//   verify TRANSACTIONS SEED        -> result: points, short and long scans by one thread, each value checked whole; stores with equal content
//                                      have equal checksums
//   load_application NAME SIZE THREADS   -> result; NAME and SIZE as in applications.h
//   run_application NAME SIZE THREADS MILLISECONDS buffered|durable SEED   -> result, with "counted"; the application must be loaded
//   check_application NAME SIZE     -> result: runs the application's check, and computes the checksum of its records
//   settle                          -> {}; after a load: rearranges the data for reads
//   statistics                      -> the store's counters
//   quit                            (or the end of the input)
// The first line of output describes the store: {name, isolation, interactive, buffered, durable}.
//   result := {seconds, transactions, records_read, records_written, retries, checksum, p50_us, p99_us, p999_us, records}
// Exit status: 0 done; 1 the store or a check failed (see the standard error output); 2 wrong flags or lines.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/observe/histogram.h"
#include "common/runtime/huge_pages.h"
#include "common/runtime/runtime.h"
#include "integration/bench/application.h"
#include "integration/bench/application_runner.h"
#include "integration/bench/applications.h"
#include "integration/bench/backend.h"
#include "integration/bench/mix.h"
#include "integration/bench/runner.h"
#include "integration/ycsb/json.h"
#include "integration/ycsb/record.h"

namespace deut::bench {
namespace {

constexpr int kDone = 0, kFailed = 1, kUsage = 2;
constexpr uint32_t kLoadBatch = 100;

struct Options {
  BackendOptions backend;
  uint32_t value_bytes = 100;
  bool huge_pages = true;
};

double Microseconds(const Histogram& latency_ns, double percent) {
  constexpr double kNsPerUs = 1000;
  return static_cast<double>(latency_ns.Percentile(percent)) / kNsPerUs;
}

// Returns the result of an application, whose records and changes are not counted one by one.
std::string ResultJson(const ApplicationResult& result, uint64_t checksum) {
  return ycsb::JsonObject()
      .Number("seconds", result.seconds)
      .Number("transactions", result.transactions)
      .Number("counted", result.counted)
      .Number("records_read", uint64_t{0})
      .Number("records_written", uint64_t{0})
      .Number("retries", result.retries)
      .Text("checksum", Concat(absl::Hex(checksum)))
      .Number("p50_us", Microseconds(result.latency_ns, 50))
      .Number("p99_us", Microseconds(result.latency_ns, 99))
      .Number("p999_us", Microseconds(result.latency_ns, 99.9))
      .Str();
}

using Words = std::vector<std::string>;

std::string ResultJson(const RunResult& result, uint64_t records) {
  return ycsb::JsonObject()
      .Number("seconds", result.seconds)
      .Number("transactions", result.transactions)
      .Number("records_read", result.records_read)
      .Number("records_written", result.records_written)
      .Number("retries", result.retries)
      .Text("checksum", Concat(absl::Hex(result.checksum)))
      .Number("p50_us", Microseconds(result.latency_ns, 50))
      .Number("p99_us", Microseconds(result.latency_ns, 99))
      .Number("p999_us", Microseconds(result.latency_ns, 99.9))
      .Number("records", records)
      .Str();
}

class Engine {
 public:
  Engine(const Options& options, std::unique_ptr<Backend> backend)
      : backend_(std::move(backend)),
        runner_(*backend_, RealRuntime(), options.value_bytes),
        applications_(*backend_, RealRuntime()) {}

  std::string Hello() const {
    const BackendFacts facts = backend_->Facts();
    return ycsb::JsonObject()
        .Text("name", facts.name)
        .Text("isolation", facts.isolation)
        .Number("interactive", uint64_t{facts.interactive ? 1U : 0U})
        .Text("buffered", facts.buffered)
        .Text("durable", facts.durable)
        .Str();
  }

  Result<std::string> Obey(const Words& words);

 private:
  static Result<uint64_t> Number(const std::string& word) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) return DEUT_ERROR(kInvalidArgument, Quoted(word), " is no number");
    return number;
  }
  // Parses the words behind the command.
  static Result<std::unique_ptr<Application>> ApplicationOf(const Words& words);
  Result<std::string> Load(const Words& words);
  Result<std::string> Run(const Words& words);
  Result<std::string> Verify(const Words& words);
  Status SetDurable(const std::string& word);
  Result<std::string> LoadApplication(const Words& words);
  Result<std::string> RunApplication(const Words& words);
  Result<std::string> CheckApplication(const Words& words);

  const std::unique_ptr<Backend> backend_;
  Runner runner_;
  ApplicationRunner applications_;
};

Result<std::unique_ptr<Application>> Engine::ApplicationOf(const Words& words) {
  DEUT_ASSIGN_OR_RETURN(const uint64_t size, Number(words[2]));
  return ApplicationByName(words[1], static_cast<uint32_t>(size));
}

Status Engine::SetDurable(const std::string& word) {
  if (word != "durable" && word != "buffered")
    return DEUT_ERROR(kInvalidArgument, Quoted(word), " is neither durable nor buffered");
  return backend_->SetDurable(word == "durable");
}

Result<std::string> Engine::LoadApplication(const Words& words) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<Application> application, ApplicationOf(words));
  DEUT_ASSIGN_OR_RETURN(const uint64_t threads, Number(words[3]));
  DEUT_RETURN_IF_ERROR(backend_->SetDurable(false));
  DEUT_ASSIGN_OR_RETURN(const ApplicationResult result,
                        applications_.Load(*application, static_cast<uint32_t>(threads)));
  return ResultJson(result, 0);
}

Result<std::string> Engine::RunApplication(const Words& words) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<Application> application, ApplicationOf(words));
  DEUT_ASSIGN_OR_RETURN(const uint64_t threads, Number(words[3]));
  DEUT_ASSIGN_OR_RETURN(const uint64_t time, Number(words[4]));
  DEUT_RETURN_IF_ERROR(SetDurable(words[5]));
  DEUT_ASSIGN_OR_RETURN(const uint64_t seed, Number(words[6]));
  const ApplicationRun run{.threads = static_cast<uint32_t>(threads), .time = milliseconds(time), .seed = seed};
  DEUT_ASSIGN_OR_RETURN(const ApplicationResult result, applications_.Run(*application, run));
  return ResultJson(result, 0);
}

Result<std::string> Engine::CheckApplication(const Words& words) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<Application> application, ApplicationOf(words));
  DEUT_ASSIGN_OR_RETURN(const uint64_t checksum, applications_.Check(*application));
  return ResultJson(ApplicationResult(), checksum);
}

Result<std::string> Engine::Load(const Words& words) {
  DEUT_ASSIGN_OR_RETURN(const uint64_t records, Number(words[1]));
  DEUT_ASSIGN_OR_RETURN(const uint64_t threads, Number(words[2]));
  DEUT_RETURN_IF_ERROR(backend_->SetDurable(false));
  DEUT_ASSIGN_OR_RETURN(const RunResult result, runner_.Load(records, static_cast<uint32_t>(threads), kLoadBatch));
  return ResultJson(result, runner_.records());
}

Result<std::string> Engine::Run(const Words& words) {
  RunOptions run;
  DEUT_ASSIGN_OR_RETURN(run.mix, MixByName(words[1]));
  DEUT_ASSIGN_OR_RETURN(const uint64_t threads, Number(words[2]));
  run.threads = static_cast<uint32_t>(threads);
  DEUT_ASSIGN_OR_RETURN(const uint64_t time, Number(words[3]));
  run.time = milliseconds(time);
  DEUT_RETURN_IF_ERROR(SetDurable(words[4]));
  DEUT_ASSIGN_OR_RETURN(run.seed, Number(words[5]));
  if (words.size() > 6) {
    DEUT_ASSIGN_OR_RETURN(const uint64_t pipeline, Number(words[6]));
    run.pipeline = static_cast<uint32_t>(pipeline);
  }
  DEUT_ASSIGN_OR_RETURN(const RunResult result, runner_.Run(run));
  return ResultJson(result, runner_.records());
}

Result<std::string> Engine::Verify(const Words& words) {
  RunOptions run;
  run.check_every_value = true;
  DEUT_ASSIGN_OR_RETURN(run.transactions, Number(words[1]));
  DEUT_ASSIGN_OR_RETURN(run.seed, Number(words[2]));
  // Upper limits of the short and of the long scans.
  constexpr uint32_t kScans[] = {100, 10'000};
  DEUT_ASSIGN_OR_RETURN(run.mix, MixByName("c"));
  DEUT_ASSIGN_OR_RETURN(RunResult all, runner_.Run(run));
  for (const uint32_t longest : kScans) {
    DEUT_ASSIGN_OR_RETURN(run.mix, MixByName("l"));
    run.mix.scan_min = 1;
    run.mix.scan_max = longest;
    run.transactions = run.transactions / 10 + 1;
    DEUT_ASSIGN_OR_RETURN(const RunResult scans, runner_.Run(run));
    all.seconds += scans.seconds;
    all.transactions += scans.transactions;
    all.records_read += scans.records_read;
    all.checksum = all.checksum * 31 + scans.checksum;
  }
  return ResultJson(all, runner_.records());
}

Result<std::string> Engine::Obey(const Words& words) {
  if (words[0] == "load" && words.size() == 3) return Load(words);
  if (words[0] == "run" && (words.size() == 6 || words.size() == 7)) return Run(words);
  if (words[0] == "verify" && words.size() == 3) return Verify(words);
  if (words[0] == "load_application" && words.size() == 4) return LoadApplication(words);
  if (words[0] == "run_application" && words.size() == 7) return RunApplication(words);
  if (words[0] == "check_application" && words.size() == 3) return CheckApplication(words);
  if (words[0] == "settle" && words.size() == 1) {
    DEUT_RETURN_IF_ERROR(backend_->Settle());
    return std::string("{}");
  }
  if (words[0] == "statistics" && words.size() == 1) return backend_->StatisticsJson();
  return DEUT_ERROR(kInvalidArgument, "no command of an engine begins with ", Quoted(words[0]),
                    " and has this many words: ", words.size());
}

int Fail(const Status& status) {
  std::fprintf(stderr, "engine: %s\n", status.ToString().c_str());
  return status == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

void PrintLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  Options options;
  FlagSet flags("engine", "One store under measurement, which takes its commands from standard input.");
  flags.Add("dir", &options.backend.directory, "folder for the store's data, empty");
  flags.AddBytes("cache", &options.backend.cache_bytes,
                 "bytes of memory for the store's cache; this project's store keeps the whole process within them");
  flags.Add("variant", &options.backend.variant, "which of the ways to use this store; empty = the first");
  flags.Add("target", &options.backend.target, "where its server listens; empty = in this process");
  flags.Add("insecure", &options.backend.insecure, "the server is reached without TLS wherever it is");
  flags.Add("value_bytes", &options.value_bytes, "of each value", ycsb::kMinValueBytes, kMaxValueBytes);
  flags.Add("huge_pages", &options.huge_pages, "the heap asks the system for huge pages");
  Result<std::unique_ptr<Storage>> files = NewSystemStorage(IoKind::kPosix, RealRuntime());
  if (!files.ok()) return Fail(files.status());
  const Result<std::vector<std::string>> operands = flags.Parse(argc, argv, **files);
  if (!operands.ok()) return Fail(operands.status());
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return kDone;
  }
  if (options.huge_pages) {
    const std::string why = UseHugePages(argv);
    if (!why.empty()) std::fprintf(stderr, "engine: no huge pages: %s\n", why.c_str());
  }
  Result<std::unique_ptr<Backend>> backend = OpenBackend(options.backend);
  if (!backend.ok()) return Fail(backend.status());
  Engine engine(options, *std::move(backend));
  PrintLine(engine.Hello());
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const Result<std::string> answer = engine.Obey(absl::StrSplit(line, ' '));
    if (!answer.ok()) return Fail(answer.status());
    PrintLine(*answer);
  }
  return kDone;
}

}  // namespace
}  // namespace deut::bench

int main(int argc, char** argv) { return deut::bench::Main(argc, argv); }
