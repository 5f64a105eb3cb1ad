#include "integration/product/cli/command.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/base/concat.h"
#include "common/base/transaction_id.h"
#include "integration/product/cli/health.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"
#include "tc/client/scanner.h"
#include "tc/client/transaction.h"

namespace deut::cli {
namespace {

struct Shape {
  const char* words;       // fixed words, separated by a blank
  const char* parameters;  // names of the words that follow
  size_t count;            // number of parameters
  const char* meaning;
};

constexpr Shape kShapes[] = {
    {"put", "KEY VALUE", 2, "writes a record"},
    {"get", "KEY", 1, "shows a record's value"},
    {"delete", "KEY", 1, "removes a record, whether it is there or not"},
    {"delete-range", "", 0, "removes the records of a range, in one transaction: --low --high"},
    {"add", "KEY NUMBER", 2, "adds to the number of a record (none: 0), and shows the result"},
    {"compare-and-set", "KEY EXPECTED VALUE", 3, "writes a record's value if it has the expected one"},
    {"scan", "", 0, "shows records in key order: --low --high --limit --reverse"},
    {"tables list", "", 0, "shows name, id, and about how many records and bytes"},
    {"tables create", "NAME", 1, "creates a table: --compression"},
    {"tables drop", "NAME", 1, "drops a table with all its records"},
    {"outcome", "ID NUMBER", 2,
     "shows the outcome of a transaction whose answer was lost; ends one that is still open"},
    {"health", "", 0, "shows whether the store serves, how far a start has come, and the faults found"},
    {"status", "", 0, "shows the counters of the store, a name and a value a line"},
};

// The command's fixed words as one string: "tables list", "put".
std::string FixedWords(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  if (words[0] == "tables" && words.size() > 1) return words[0] + " " + words[1];
  return words[0];
}

std::string Usage(const Shape& shape) {
  return Concat("deut ", shape.words, *shape.parameters != '\0' ? " " : "", shape.parameters);
}

// Opens the table of the flags. For a missing table, the error names the command that creates it.
Result<TableId> OpenTable(Client& client, const CommandOptions& options) {
  Result<TableId> table = client.OpenTable(options.table, {.timeout = options.deadline});
  if (table.status() != ErrorCode::kNotFound) return table;
  return DEUT_ERROR(kNotFound, "no table is named \"", EncodeText(options.table, TextForm::kEscaped),
                    "\"; create it with: deut tables create ", options.table);
}

RetryOptions Retrying(const CommandOptions& options) {
  RetryOptions retry;
  retry.timeout = options.deadline;
  return retry;
}

Status Put(Client& client, const std::vector<std::string>& words, const CommandOptions& options) {
  DEUT_ASSIGN_OR_RETURN(const std::string key, DecodeText("key", words[1], options.form));
  DEUT_ASSIGN_OR_RETURN(const std::string value, DecodeText("value", words[2], options.form));
  DEUT_ASSIGN_OR_RETURN(const TableId table, OpenTable(client, options));
  OneShot put(client);
  put.Put(table, key, value);
  return RunOneShot(put, Retrying(options)).status();
}

Status Get(Client& client, const std::vector<std::string>& words, const CommandOptions& options, const Output& out) {
  DEUT_ASSIGN_OR_RETURN(const std::string key, DecodeText("key", words[1], options.form));
  DEUT_ASSIGN_OR_RETURN(const TableId table, OpenTable(client, options));
  OneShot get(client);
  get.Get(table, key);
  DEUT_RETURN_IF_ERROR(RunOneShot(get, Retrying(options)).status());
  const RecordBatch::Iterator it(get.result(0).records);
  if (!it.Valid()) return DEUT_ERROR(kNotFound, "no record has the key ", EncodeText(key, options.form));
  out(EncodeText(it.record().value, options.form) + "\n");
  return Status();
}

Status Delete(Client& client, const std::vector<std::string>& words, const CommandOptions& options) {
  DEUT_ASSIGN_OR_RETURN(const std::string key, DecodeText("key", words[1], options.form));
  DEUT_ASSIGN_OR_RETURN(const TableId table, OpenTable(client, options));
  OneShot remove(client);
  remove.Remove(table, key);
  return RunOneShot(remove, Retrying(options)).status();
}

Status DeleteRange(Client& client, const CommandOptions& options, const Output& out) {
  DEUT_ASSIGN_OR_RETURN(const std::string low, DecodeText("--low", options.low, options.form));
  DEUT_ASSIGN_OR_RETURN(const std::string high, DecodeText("--high", options.high, options.form));
  if (low.empty() && high.empty()) {
    return DEUT_ERROR(kInvalidArgument, "delete-range needs --low or --high; to empty a table, drop and create it");
  }
  DEUT_ASSIGN_OR_RETURN(const TableId table, OpenTable(client, options));
  uint64_t removed = 0;
  DEUT_RETURN_IF_ERROR(RunTransaction(client, Retrying(options), [&](Transaction& transaction) -> Status {
    DEUT_ASSIGN_OR_RETURN(removed, transaction.RemoveRange(table, low, high));
    return Status();
  }));
  out(Concat("records removed: ", removed, "\n"));
  return Status();
}

Status Add(Client& client, const std::vector<std::string>& words, const CommandOptions& options, const Output& out) {
  DEUT_ASSIGN_OR_RETURN(const std::string key, DecodeText("key", words[1], options.form));
  int64_t by = 0;
  if (!absl::SimpleAtoi(words[2], &by)) return DEUT_ERROR(kInvalidArgument, "no whole number: ", words[2]);
  DEUT_ASSIGN_OR_RETURN(const TableId table, OpenTable(client, options));
  int64_t sum = 0;
  DEUT_RETURN_IF_ERROR(RunTransaction(client, Retrying(options), [&](Transaction& transaction) -> Status {
    DEUT_ASSIGN_OR_RETURN(sum, transaction.Add(table, key, by));
    return Status();
  }));
  out(Concat(sum, "\n"));
  return Status();
}

Status CompareAndSet(Client& client, const std::vector<std::string>& words, const CommandOptions& options,
                     const Output& out) {
  DEUT_ASSIGN_OR_RETURN(const std::string key, DecodeText("key", words[1], options.form));
  DEUT_ASSIGN_OR_RETURN(const std::string expected, DecodeText("expected", words[2], options.form));
  DEUT_ASSIGN_OR_RETURN(const std::string value, DecodeText("value", words[3], options.form));
  DEUT_ASSIGN_OR_RETURN(const TableId table, OpenTable(client, options));
  std::optional<std::string> found;
  Status compared;
  Status status = RunTransaction(client, Retrying(options), [&](Transaction& transaction) {
    compared = transaction.CompareAndSet(table, key, expected, value, &found);
    return compared == ErrorCode::kConditionFailed ? Status()
                                                   : compared;  // `found` counts only if the transaction commits
  });
  if (!status.ok() || compared.ok()) return status;
  if (found.has_value()) out(EncodeText(*found, options.form) + "\n");
  return compared;
}

Status Outcome(Client& client, const std::vector<std::string>& words, const CommandOptions& options,
               const Output& out) {
  TransactionName name;
  if (!ParseTransactionId(words[1], &name.id) || !absl::SimpleAtoi(words[2], &name.not_before.value)) {
    return DEUT_ERROR(kInvalidArgument,
                      "usage: deut outcome ID NUMBER, as in the error of the lost answer: 32 digits and a number");
  }
  DEUT_ASSIGN_OR_RETURN(const OutcomeAnswer answer, client.AskOutcome(name, {.timeout = options.deadline}));
  switch (answer.outcome) {
    case TransactionOutcome::kCommitted:
      out(Concat("committed ", answer.commit.timestamp.value, "\n"));
      return Status();
    case TransactionOutcome::kNotCommitted:
      out("not committed\n");
      return Status();
    case TransactionOutcome::kTooOld:
      break;
  }
  return DEUT_ERROR(kOutcomeUnknown, "it is too long ago for the store to know");
}

// Collects the lines of a scan and prints them once its transaction is acknowledged. A scan of more than kHeldBytes
// is printed as its records arrive. If such a scan fails later, a note says that the printed lines are void (D1).
class ScanText {
 public:
  explicit ScanText(const Output& out) : out_(out) {}

  void Restart() { text_.clear(); }
  void Add(std::string_view line) {
    text_.append(line);
    if (text_.size() >= kHeldBytes) Flush();
  }
  void Flush() {
    if (text_.empty()) return;
    out_(text_);
    text_.clear();
    printed_ = true;
  }
  bool printed() const { return printed_; }

 private:
  static constexpr size_t kHeldBytes = 8 << 20;
  const Output& out_;
  std::string text_;
  bool printed_ = false;
};

Status Scan(Client& client, const CommandOptions& options, const Output& out, const Output& notes) {
  ScanOptions scan;
  DEUT_ASSIGN_OR_RETURN(scan.low, DecodeText("--low", options.low, options.form));
  DEUT_ASSIGN_OR_RETURN(scan.high, DecodeText("--high", options.high, options.form));
  scan.direction = options.reverse ? Direction::kDescending : Direction::kAscending;
  scan.limit_records = options.limit;
  DEUT_ASSIGN_OR_RETURN(const TableId table, OpenTable(client, options));
  ScanText text(out);
  std::optional<std::string> resume;
  Status status = RunTransaction(client, Retrying(options), [&](Transaction& transaction) {
    // A retry would print again what an earlier attempt has printed.
    if (text.printed()) return DEUT_ERROR(kCancelled, "the scan lost against another transaction");
    text.Restart();
    Scanner scanner = transaction.OpenScanner(table, scan);
    while (scanner.Next()) {
      text.Add(Concat(EncodeText(scanner.key(), options.form), "\t", EncodeText(scanner.value(), options.form), "\n"));
    }
    if (scanner.status().ok() && !scanner.complete()) resume = scanner.resume();
    return scanner.status();
  });
  if (!status.ok()) {
    if (text.printed()) notes("deut: the scan failed: the records printed above are not valid\n");
    return status;
  }
  text.Flush();
  if (resume.has_value()) {
    notes(Concat("# the limit of ", options.limit, " is reached; go on with --", options.reverse ? "high" : "low", "='",
                 EncodeText(*resume, options.form), "'\n"));
  }
  return Status();
}

Status ListTables(Client& client, const CommandOptions& options, const Output& out) {
  DEUT_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, client.ListTables({.timeout = options.deadline}));
  std::string text;
  for (const TableInfo& table : tables) {
    ConcatTo(&text, EncodeText(table.name, TextForm::kEscaped), "\tid ", table.id.value, "\trecords ", table.records,
             "\tbytes ", table.bytes, "\n");
  }
  out(text);
  return Status();
}

Status ShowHealth(Client& client, const CommandOptions& options, const Output& out) {
  DEUT_ASSIGN_OR_RETURN(const ServiceStatus status, client.GetStatus({.timeout = options.deadline}));
  const Health health = HealthOf(status);
  out(health.text);
  return health.serves ? Status() : DEUT_ERROR(kUnavailable, "the store does not serve now");
}

Status ShowStatus(Client& client, const CommandOptions& options, const Output& out) {
  DEUT_ASSIGN_OR_RETURN(const ServiceStatus status, client.GetStatus({.timeout = options.deadline}));
  std::string text;
  for (const CounterValue& counter : status.tc) ConcatTo(&text, "tc.", counter.name, " ", counter.value, "\n");
  for (const CounterValue& counter : status.dc) ConcatTo(&text, "dc.", counter.name, " ", counter.value, "\n");
  out(text);
  return Status();
}

}  // namespace

Status CheckCommand(const std::vector<std::string>& words) {
  if (words.empty()) return DEUT_ERROR(kInvalidArgument, "no command is given; there are:\n", CommandHelp());
  const std::string fixed = FixedWords(words);
  for (const Shape& shape : kShapes) {
    if (fixed != shape.words) continue;
    const size_t fixed_count = words[0] == "tables" ? 2 : 1;
    if (words.size() != fixed_count + shape.count) return DEUT_ERROR(kInvalidArgument, "usage: ", Usage(shape));
    return Status();
  }
  // The words are half a command: lists the commands that begin with them.
  std::string meant;
  for (const Shape& shape : kShapes) {
    if (std::string_view(shape.words).starts_with(words[0] + " ")) ConcatTo(&meant, "\n  ", Usage(shape));
  }
  if (!meant.empty()) return DEUT_ERROR(kInvalidArgument, "usage, one of:", meant);
  return DEUT_ERROR(kInvalidArgument, "no command is named \"", EncodeText(fixed, TextForm::kEscaped),
                    "\"; there are:\n", CommandHelp());
}

Status RunCommand(Client& client, const std::vector<std::string>& words, const CommandOptions& options,
                  const Output& out, const Output& notes) {
  const std::string command = FixedWords(words);
  const CallOptions call{.timeout = options.deadline};
  if (command == "put") return Put(client, words, options);
  if (command == "get") return Get(client, words, options, out);
  if (command == "delete") return Delete(client, words, options);
  if (command == "delete-range") return DeleteRange(client, options, out);
  if (command == "add") return Add(client, words, options, out);
  if (command == "compare-and-set") return CompareAndSet(client, words, options, out);
  if (command == "outcome") return Outcome(client, words, options, out);
  if (command == "scan") return Scan(client, options, out, notes);
  if (command == "tables list") return ListTables(client, options, out);
  if (command == "tables create") return client.CreateTable(words[2], options.of_table, call).status();
  if (command == "tables drop") return client.DropTable(words[2], call);
  if (command == "health") return ShowHealth(client, options, out);
  return ShowStatus(client, options, out);
}

std::string CommandHelp() {
  std::string help;
  for (const Shape& shape : kShapes) {
    std::string usage = Usage(shape);
    usage.resize(std::max<size_t>(usage.size(), 28), ' ');
    ConcatTo(&help, "  ", usage, " ", shape.meaning, "\n");
  }
  return help;
}

}  // namespace deut::cli
