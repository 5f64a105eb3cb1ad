// This project's store: both components inside this process, or a tcd (BackendOptions::target). Operations known
// beforehand go in one message; read-modify-writes and long scans are interactive transactions.
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "integration/bench/backend.h"
#include "integration/product/cli/target.h"
#include "integration/ycsb/json.h"
#include "protocol/limits.h"
#include "protocol/record_batch.h"
#include "protocol/transaction_service.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"
#include "tc/client/scanner.h"
#include "tc/client/transaction.h"

namespace deut::bench {
namespace {

// A scan expected to return at most this many records goes in one message.
constexpr uint32_t kOneMessageRecords = 4000;
constexpr char kTable[] = "usertable";
constexpr Duration kStart = seconds(60);

// Calls of one transaction. Writes travel with the next read, or at the end.
class DeutInteractive final : public InteractiveTransaction {
 public:
  DeutInteractive(Transaction& transaction, TableId table) : transaction_(transaction), table_(table) {}

  Status Get(absl::Span<const std::string> keys, std::vector<std::optional<std::string>>* values) override {
    const size_t first = operations_.size();
    for (const std::string& key : keys)
      operations_.push_back({.kind = OperationKind::kGet, .table = table_, .key = key});
    DEUT_RETURN_IF_ERROR(Flush());
    values->assign(keys.size(), std::nullopt);
    for (size_t i = 0; i < keys.size(); ++i) {
      const RecordBatch::Iterator it(answers_[first + i].records);
      if (it.Valid()) (*values)[i] = std::string(it.record().value);
    }
    return Status();
  }

  Status Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
              absl::FunctionRef<void(std::string_view, std::string_view)> record) override;

  Status Put(std::string_view key, std::string_view value) override {
    written_.emplace_back(key);
    const std::string& kept_key = written_.back();
    written_.emplace_back(value);
    operations_.push_back({.kind = OperationKind::kPut, .table = table_, .key = kept_key, .value = written_.back()});
    return Status();
  }

  Status Remove(std::string_view key) override {
    written_.emplace_back(key);
    operations_.push_back({.kind = OperationKind::kRemove, .table = table_, .key = written_.back()});
    return Status();
  }

  // Sends all delayed operations in one message.
  Status Flush() {
    if (operations_.empty()) return Status();
    DEUT_RETURN_IF_ERROR(transaction_.Execute(operations_, &answers_));
    operations_.clear();
    written_.clear();
    for (const OperationResult& answer : answers_) DEUT_RETURN_IF_ERROR(answer.status);
    return Status();
  }

 private:
  Transaction& transaction_;
  const TableId table_;
  std::vector<Operation> operations_;
  std::deque<std::string> written_;  // keys and values that operations_ refers to
  std::vector<OperationResult> answers_;
};

Status DeutInteractive::Scan(std::string_view low, std::string_view high, Order order, uint32_t limit,
                             absl::FunctionRef<void(std::string_view, std::string_view)> record) {
  const bool up = order == Order::kAscending;
  std::string from(low), to(high);
  uint32_t sequence = 0;
  while (limit > 0) {
    operations_.push_back({.kind = OperationKind::kScan,
                           .table = table_,
                           .low = from,
                           .high = to,
                           .direction = up ? Direction::kAscending : Direction::kDescending,
                           .limit_records = limit,
                           .limit_bytes = kMaxScanBytes,
                           .scan_sequence = sequence});
    DEUT_RETURN_IF_ERROR(Flush());
    const OperationResult& answer = answers_.back();
    for (RecordBatch::Iterator it(answer.records); it.Valid(); it.Next(), --limit)
      record(it.record().key, it.record().value);
    if (answer.complete) break;
    sequence = answer.scan_sequence;
    (up ? from : to) = answer.resume;
  }
  return Status();
}

class DeutSession final : public Session {
 public:
  DeutSession(Client& client, TableId table, Durability durability) : client_(client), table_(table) {
    retrying_.transaction.durability = durability;
  }

  Status Run(absl::Span<const Step> steps, ReadCheck* check) override;
  Status RunPipelined(absl::Span<const Step> steps, size_t steps_per_transaction, ReadCheck* check) override;
  Status RunInteractive(bool /*writes*/, Body body) override {
    return Counted([&] {
      return RunTransaction(
          client_, retrying_,
          [&](Transaction& transaction) {
            DeutInteractive interactive(transaction, table_);
            DEUT_RETURN_IF_ERROR(body(interactive));
            return interactive.Flush();
          },
          &report_);
    });
  }

 private:
  // Runs `transaction`, and counts its retries.
  Status Counted(absl::FunctionRef<Status()> transaction) {
    const uint64_t attempts = report_.attempts;
    const Status status = transaction();
    const uint64_t tried = report_.attempts - attempts;
    retries_ += tried > 1 ? tried - 1 : 0;
    return status;
  }
  static bool Interactive(const Step& step) {
    return step.kind == StepKind::kReadModifyWrite || (step.kind == StepKind::kScan && step.limit > kOneMessageRecords);
  }
  Status RunInOneMessage(absl::Span<const Step> steps, ReadCheck* check);
  Status RunInteractively(absl::Span<const Step> steps, ReadCheck* check);
  Status RunStep(const Step& step, Transaction& transaction, ReadCheck* check);
  // Makes an operation that does not depend on the results of others.
  Operation MakeOperation(const Step& step) const;
  static Status Show(const Step& step, const OperationResult& answer, ReadCheck* check);

  Client& client_;
  const TableId table_;
  RetryOptions retrying_;
  RetryReport report_;
  std::vector<Operation> operations_;
  std::vector<OperationResult> answers_;
  // For RunPipelined: one element for each transaction.
  std::vector<OneShotTransaction> together_;
  std::vector<std::vector<OperationResult>> together_answers_;
};

Operation DeutSession::MakeOperation(const Step& step) const {
  switch (step.kind) {
    case StepKind::kUpdate:
    case StepKind::kInsert:
    case StepKind::kReadModifyWrite:
      return {.kind = OperationKind::kPut, .table = table_, .key = step.key, .value = step.value};
    case StepKind::kScan:
      return {.kind = OperationKind::kScan,
              .table = table_,
              .low = step.key,
              .limit_records = step.limit,
              .limit_bytes = kMaxScanBytes};
    case StepKind::kRead:
      break;
  }
  return {.kind = OperationKind::kGet, .table = table_, .key = step.key};
}

Status DeutSession::Show(const Step& step, const OperationResult& answer, ReadCheck* check) {
  if (step.kind == StepKind::kScan) {
    if (!answer.complete && answer.records.size() < step.limit)
      return DEUT_ERROR(kInternal, "a scan of ", step.limit, " did not fit into one message");
    check->BeginScan(step.key, step.limit);
    for (RecordBatch::Iterator it(answer.records); it.Valid(); it.Next())
      check->Record(it.record().key, it.record().value);
    check->EndScan();
  } else if (step.kind == StepKind::kRead) {
    const RecordBatch::Iterator it(answer.records);
    if (it.Valid()) {
      check->Value(step.key, it.record().value);
    } else {
      check->Missing(step.key);
    }
  }
  return Status();
}

Status DeutSession::RunInOneMessage(absl::Span<const Step> steps, ReadCheck* check) {
  operations_.clear();
  for (const Step& step : steps) operations_.push_back(MakeOperation(step));
  const Result<CommitAnswer> committed = RunOneShot(client_, retrying_, operations_, &answers_, &report_);
  if (!committed.ok()) return committed.status();
  check->Restart();
  for (size_t i = 0; i < steps.size(); ++i) DEUT_RETURN_IF_ERROR(Show(steps[i], answers_[i], check));
  return Status();
}

Status DeutSession::RunStep(const Step& step, Transaction& transaction, ReadCheck* check) {
  if (step.kind == StepKind::kScan && Interactive(step)) {
    Scanner scanner = transaction.OpenScanner(table_, {.low = std::string(step.key), .limit_records = step.limit});
    check->BeginScan(step.key, step.limit);
    while (scanner.Next()) check->Record(scanner.key(), scanner.value());
    check->EndScan();
    return scanner.status();
  }
  if (step.kind == StepKind::kReadModifyWrite) {
    DEUT_RETURN_IF_ERROR(RunStep({.kind = StepKind::kRead, .key = step.key}, transaction, check));
  }
  const Operation operation = MakeOperation(step);
  DEUT_RETURN_IF_ERROR(transaction.Execute(absl::MakeConstSpan(&operation, 1), &answers_));
  DEUT_RETURN_IF_ERROR(answers_[0].status);
  return Show(step, answers_[0], check);
}

Status DeutSession::RunInteractively(absl::Span<const Step> steps, ReadCheck* check) {
  const auto body = [&](Transaction& transaction) {
    check->Restart();
    for (const Step& step : steps) DEUT_RETURN_IF_ERROR(RunStep(step, transaction, check));
    return Status();
  };
  return RunTransaction(client_, retrying_, body, &report_);
}

Status DeutSession::Run(absl::Span<const Step> steps, ReadCheck* check) {
  bool interactive = false;
  for (const Step& step : steps) interactive = interactive || Interactive(step);
  return Counted([&] { return interactive ? RunInteractively(steps, check) : RunInOneMessage(steps, check); });
}

Status DeutSession::RunPipelined(absl::Span<const Step> steps, size_t steps_per_transaction, ReadCheck* check) {
  for (const Step& step : steps) {
    if (Interactive(step)) return Session::RunPipelined(steps, steps_per_transaction, check);
  }
  operations_.clear();
  for (const Step& step : steps) operations_.push_back(MakeOperation(step));
  const size_t transactions = steps.size() / steps_per_transaction;
  together_.resize(transactions);
  together_answers_.resize(transactions);
  for (size_t i = 0; i < transactions; ++i) {
    together_[i].options = &retrying_.transaction;
    together_[i].operations =
        absl::MakeConstSpan(operations_).subspan(i * steps_per_transaction, steps_per_transaction);
    together_[i].results = &together_answers_[i];
  }
  client_.ExecuteOneShots(absl::MakeSpan(together_));
  for (size_t i = 0; i < transactions; ++i) {
    const absl::Span<const Step> own = steps.subspan(i * steps_per_transaction, steps_per_transaction);
    if (together_[i].answer.ok()) {
      check->Restart();
      for (size_t k = 0; k < steps_per_transaction; ++k)
        DEUT_RETURN_IF_ERROR(Show(own[k], together_answers_[i][k], check));
    } else {
      ++retries_;
      DEUT_RETURN_IF_ERROR(Run(own, check));
    }
    DEUT_RETURN_IF_ERROR(check->Commit());
  }
  return Status();
}

class DeutBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> Open(const BackendOptions& options);

  BackendFacts Facts() const override {
    return {.name = embedded_ ? "this project" : "this project, tcd and dcd",
            .isolation = "strictly serializable",
            .buffered = "ordered and in the log's memory, written out within moments",
            .durable = "on the disk"};
  }
  Status SetDurable(bool durable) override {
    durability_ = durable ? Durability::kDurable : Durability::kBuffered;
    return Status();
  }
  Result<std::unique_ptr<Session>> NewSession() override {
    return std::unique_ptr<Session>(std::make_unique<DeutSession>(target_->client(), table_, durability_));
  }
  std::string StatisticsJson() override;

 private:
  std::unique_ptr<cli::Target> target_;
  bool embedded_ = false;
  TableId table_;
  Durability durability_ = Durability::kBuffered;
};

// Creates the table, empty. Retries until the store serves, because daemons that have just started need a moment to
// connect to each other.
Result<TableId> MakeTable(Client& client) {
  const RetryOptions retrying{};
  RetryPauses pauses(retrying, client.runtime().RandomSeed());
  const Deadline end = client.runtime().Now() + kStart;
  for (;;) {
    Result<TableId> table = client.CreateTable(kTable);
    if (table.status() == ErrorCode::kAlreadyExists) {
      DEUT_RETURN_IF_ERROR(client.DropTable(kTable));
      continue;
    }
    if (table.status() != ErrorCode::kUnavailable || client.runtime().Now() >= end) return table;
    client.runtime().SleepUntil(client.runtime().Now() + pauses.Next(table.status()));
  }
}

Result<std::unique_ptr<Backend>> DeutBackend::Open(const BackendOptions& options) {
  auto backend = std::make_unique<DeutBackend>();
  cli::TargetOptions target;
  backend->embedded_ = options.target.empty();
  target.target = backend->embedded_ ? "embedded" : options.target;
  target.connect.client.max_idle_sessions = options.max_threads;
  target.connect.insecure = options.insecure;
  if (backend->embedded_) {
    target.embedded.data_dir = options.directory;
    // The budget of the whole process, with this driver.
    target.embedded.memory_bytes = options.cache_bytes;
  }
  DEUT_ASSIGN_OR_RETURN(backend->target_, cli::Target::Open(target));
  DEUT_ASSIGN_OR_RETURN(backend->table_, MakeTable(backend->target_->client()));
  return std::unique_ptr<Backend>(std::move(backend));
}

std::string DeutBackend::StatisticsJson() {
  const Result<ServiceStatus> status = target_->client().GetStatus();
  if (!status.ok()) return "{}";
  ycsb::JsonObject json;
  for (const CounterValue& counter : status.value().tc) json.Number(Concat("tc.", counter.name), counter.value);
  for (const CounterValue& counter : status.value().dc) json.Number(Concat("dc.", counter.name), counter.value);
  return json.Str();
}

}  // namespace

Result<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options) {
  if (!options.variant.empty())
    return DEUT_ERROR(kInvalidArgument, "this project has no variant ", Quoted(options.variant));
  return DeutBackend::Open(options);
}

}  // namespace deut::bench
