// verify_journal checks a store against a journal that `ycsb --journal` wrote (journal.h), without other knowledge.
// Then it reads records by scans and by points, compares them, and shows that they came from the data component.
// Exit status: 0 all records are right; 1 a record is missing or wrong, the journal proves too little, or a read
// failed; 2 wrong flags.
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "integration/product/cli/failure.h"
#include "integration/product/cli/target.h"
#include "integration/ycsb/journal_reader.h"
#include "integration/ycsb/verify.h"
#include "tc/client/client.h"

namespace deut::ycsb {
namespace {

constexpr int kDone = 0, kFailed = 1, kUsage = 2;

struct Options {
  cli::TargetOptions target;
  std::string table = "usertable";
  std::string journal;
  uint64_t min_acknowledged = 0;
  std::vector<std::string> kill_at_us;
  uint64_t read_check = 0;
  Duration deadline = seconds(60);
};

FlagSet MakeFlags(Options* options) {
  FlagSet flags("verify_journal", "Checks that a store holds the writes that are acknowledged in a journal of ycsb.");
  cli::AddTargetFlags(&flags, &options->target);
  flags.Add("table", &options->table, "the table");
  flags.Add("journal", &options->journal, "the journal");
  flags.Add("min_acknowledged", &options->min_acknowledged, "fails if fewer writes of the run phase were acknowledged");
  flags.Add("kill_at_us", &options->kill_at_us,
            "times of kills, microseconds since 1970, comma-separated; fails if one is not between acknowledgements of "
            "the run phase");
  flags.Add("read_check", &options->read_check,
            "number of records to read by scans and by points, with the caches emptied; 0 = none");
  flags.Add("deadline", &options->deadline, "for one transaction with its repetitions");
  return flags;
}

int Fail(const Status& status, int code) {
  const cli::FailureKind kind = code == kUsage ? cli::FailureKind::kUsage : cli::FailureKind::kRun;
  std::fputs(cli::FailureText("verify_journal", status, kind).c_str(), stderr);
  return code;
}

void Print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

Result<std::vector<int64_t>> ParseTimes(const std::vector<std::string>& texts) {
  std::vector<int64_t> times;
  for (const std::string& text : texts) {
    int64_t time = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
    if (error != std::errc() || end != text.data() + text.size()) {
      return DEUT_ERROR(kInvalidArgument, "--kill_at_us: \"", text, "\" is no time in microseconds");
    }
    times.push_back(time);
  }
  return times;
}

// Counters of the data component since its start.
struct Served {
  uint64_t reads = 0;
  uint64_t scans = 0;
  uint64_t records = 0;
  uint64_t applied = 0;
};

Result<Served> AskServed(Client& client) {
  DEUT_ASSIGN_OR_RETURN(const ServiceStatus status, client.GetStatus());
  Served served;
  for (const CounterValue& counter : status.dc) {
    if (counter.name == "reads") served.reads = counter.value;
    if (counter.name == "scans") served.scans = counter.value;
    if (counter.name == "records_returned") served.records = counter.value;
    if (counter.name == "updates_applied") served.applied = counter.value;
  }
  return served;
}

Status CheckJournal(Client& client, TableId table, const Options& options, const std::vector<int64_t>& kills) {
  DEUT_ASSIGN_OR_RETURN(const JournalContents journal, ReadJournal(options.journal));
  DEUT_ASSIGN_OR_RETURN(const JournalCheck check, CheckAgainstJournal(client, table, journal, options.deadline));
  Print(check.Summary());
  for (const std::string& detail : check.details) Print("  " + detail);
  Print(Concat("of these acknowledged during the run ", journal.run_acknowledged, ", within ",
               (journal.last_run_ack_us - journal.first_run_ack_us) / 1'000'000, " s, by ", journal.processes,
               journal.processes == 1 ? " process" : " processes"));
  if (check.missing != 0 || check.wrong != 0 || check.checked != check.acknowledged) {
    return DEUT_ERROR(kCorruption, "the store lacks acknowledged writes");
  }
  if (journal.run_acknowledged < options.min_acknowledged) {
    return DEUT_ERROR(kNotFound, "only ", journal.run_acknowledged,
                      " writes were acknowledged during the run; at least ", options.min_acknowledged, " are wanted");
  }
  return CheckKillTimes(journal, kills);
}

Status CheckReading(Client& client, TableId table, const Options& options) {
  DEUT_ASSIGN_OR_RETURN(const Served before, AskServed(client));
  DEUT_ASSIGN_OR_RETURN(const ReadCheck check, CheckReads(client, table, options.read_check, options.deadline));
  DEUT_ASSIGN_OR_RETURN(const Served after, AskServed(client));
  Print(Concat("read through the data component: ", check.scanned_ascending, " records by ascending scans, ",
               check.scanned_descending, " by descending scans, ", check.points, " by points; disagreements ",
               check.disagreements));
  for (const std::string& detail : check.details) Print("  " + detail);
  Print(Concat("data component: served ", after.reads, " reads, ", after.scans, " scans, ", after.records,
               " records (of these now ", after.reads - before.reads, " reads, ", after.records - before.records,
               " records); applied ", after.applied, " updates"));
  if (check.disagreements != 0) return DEUT_ERROR(kCorruption, "scans and point reads do not agree");
  if (after.applied == 0) return DEUT_ERROR(kNotFound, "the data component has applied nothing");
  // Each record was read twice. A read that the data component did not serve proves nothing about it.
  if (after.reads - before.reads < check.points || after.records - before.records < 2 * check.points) {
    return DEUT_ERROR(kNotFound, "not all of these reads went to the data component");
  }
  return Status();
}

Status Verify(const Options& options, const std::vector<int64_t>& kills) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<cli::Target> target, cli::Target::Open(options.target));
  Client& client = target->client();
  DEUT_ASSIGN_OR_RETURN(const TableId table, client.OpenTable(options.table));
  DEUT_RETURN_IF_ERROR(CheckJournal(client, table, options, kills));
  return options.read_check == 0 ? Status() : CheckReading(client, table, options);
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
  if (!operands->empty() || options.journal.empty())
    return Fail(DEUT_ERROR(kInvalidArgument, "--journal=FILE is wanted, and flags only"), kUsage);
  const Result<std::vector<int64_t>> kills = ParseTimes(options.kill_at_us);
  if (!kills.ok()) return Fail(kills.status(), kUsage);
  const Status status = Verify(options, *kills);
  return status.ok() ? kDone : Fail(status, kFailed);
}

}  // namespace
}  // namespace deut::ycsb

int main(int argc, char** argv) { return deut::ycsb::Main(argc, argv); }
