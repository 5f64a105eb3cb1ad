#include "integration/ycsb/worker.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/concat.h"
#include "protocol/limits.h"
#include "tc/client/scanner.h"
#include "tc/client/transaction.h"

namespace deut::ycsb {
namespace {

// A scan whose answer is expected to be smaller than this runs as a one-shot transaction.
constexpr uint64_t kOneMessageBytes = kMaxScanBytes / 2;
// Maximum size of one transaction of the load phase.
constexpr uint64_t kLoadMessageBytes = kMaxMessageBytes / 2;

// The most frequent cause of a missing record.
constexpr char kMissingHint[] = ": was the table loaded with as many records?";

// True if the store promises with this code that the transaction has not committed and never will.
bool NeverCommits(const Status& status) {
  return status == ErrorCode::kAborted || status == ErrorCode::kUnavailable || status == ErrorCode::kDeadlineExceeded ||
         status == ErrorCode::kResourceExhausted || status == ErrorCode::kWrongIncarnation;
}

void Count(std::atomic<uint64_t>& counter, uint64_t by) {
  // There is one writer, so the addition need not be atomic.
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

void WorkerResults::Add(const WorkerResults& other) {
  report.attempts += other.report.attempts;
  report.unavailable += other.report.unavailable;
  report.exhausted += other.report.exhausted;
  for (size_t i = 0; i < report.aborts.size(); ++i) report.aborts[i] += other.report.aborts[i];
  latency_ns.Merge(other.latency_ns);
  if (other.longest.took > longest.took) longest = other.longest;
  for (int i = 0; i < kOperationTypes; ++i) latency_ns_by_type[i].Merge(other.latency_ns_by_type[i]);
  for (const auto& [code, errors] : other.tolerated) {
    tolerated[code].count += errors.count;
    tolerated[code].example = errors.example;
  }
  checksum += other.checksum;
}

Worker::Worker(Client& client, TableId table, const BenchmarkOptions& options, PhaseState& state, uint64_t writer,
               uint64_t seed)
    : client_(client),
      table_(table),
      options_(options),
      state_(state),
      writer_(writer),
      random_(seed),
      chooser_(options.workload.distribution, std::max<uint64_t>(options.records, 1), options.theta),
      reading_(Retrying(true)),
      writing_(Retrying(false)) {}

RetryOptions Worker::Retrying(bool reads_only) const {
  RetryOptions retry;
  retry.timeout = options_.deadline;
  retry.transaction.durability = options_.durability;
  if (reads_only) retry.transaction.isolation = options_.read_isolation;
  return retry;
}

bool Worker::Tolerated(std::string_view what, const Status& status) {
  switch (status.code()) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kWrongIncarnation:
    case ErrorCode::kOutcomeUnknown:
      break;
    default:
      return false;
  }
  if (!options_.tolerate_unavailable) return false;
  WorkerResults::Tolerated& errors = results_.tolerated[status.code()];
  ++errors.count;
  errors.example = Concat(what, ": ", status.message());
  Count(counters_.errors, 1);
  return true;
}

void Worker::CountAborts() {
  const uint64_t aborts = std::accumulate(results_.report.aborts.begin(), results_.report.aborts.end(), uint64_t{0});
  if (aborts == counted_aborts_) return;
  Count(counters_.aborts, aborts - counted_aborts_);
  counted_aborts_ = aborts;
}

void Worker::Begin(TimedOperation* operation, OperationType type) {
  operation->type = type;
  operation->begun = client_.runtime().Now();
  operation->attempts = results_.report.attempts;
  counters_.busy_since.store(operation->begun.time_since_epoch().count(), std::memory_order_relaxed);
}

void Worker::End(TimedOperation* operation, const Status& outcome) {
  counters_.busy_since.store(0, std::memory_order_relaxed);
  operation->took = client_.runtime().Now() - operation->begun;
  operation->attempts = results_.report.attempts - operation->attempts;
  operation->outcome = outcome.code();
  if (operation->took > results_.longest.took) results_.longest = *operation;
  CountAborts();
}

Status Worker::Load() {
  const uint64_t record_bytes = kKeyBytes + options_.value_bytes;
  const uint64_t fitting = std::max<uint64_t>(kLoadMessageBytes / record_bytes, 1);
  const uint64_t batch =
      std::clamp<uint64_t>(options_.load_batch, 1, std::min<uint64_t>(fitting, kMaxOperationsPerCall));
  while (!state_.stop.load(std::memory_order_relaxed)) {
    const uint64_t first = state_.next.fetch_add(batch);
    if (first >= options_.records) return Status();
    const auto count = static_cast<uint32_t>(std::min(batch, options_.records - first));
    TimedOperation operation;
    Begin(&operation, OperationType::kInsert);
    const Status status = Write(first, count);
    End(&operation, status);
    if (!status.ok()) return status;
    results_.latency_ns.Record(static_cast<uint64_t>(operation.took.count()));
    Count(counters_.transactions, 1);
    Count(counters_.records, count);
  }
  return Status();
}

Status Worker::Run() {
  while (!state_.stop.load(std::memory_order_relaxed)) {
    if (options_.operations != 0 && state_.next.fetch_add(1) >= options_.operations) return Status();
    const OperationType type = options_.workload.Choose(random_);
    uint64_t records = 0;
    TimedOperation operation;
    Begin(&operation, type);
    const Status status = RunOperation(type, &records);
    End(&operation, status);
    if (!status.ok()) {
      // The operation itself has counted the error.
      if (options_.tolerate_unavailable && results_.tolerated.contains(status.code())) continue;
      return status;
    }
    const auto elapsed = static_cast<uint64_t>(operation.took.count());
    results_.latency_ns.Record(elapsed);
    results_.latency_ns_by_type[static_cast<size_t>(type)].Record(elapsed);
    Count(counters_.transactions, 1);
    Count(counters_.records, records);
    if (type == OperationType::kScan) Count(counters_.scans, 1);
    if (type != OperationType::kScan && type != OperationType::kRead) Count(counters_.writes, 1);
  }
  return Status();
}

Status Worker::RunOperation(OperationType type, uint64_t* records) {
  *records = 1;
  if (type == OperationType::kInsert) return Insert();
  uint64_t number = chooser_.Next(random_, state_.inserts->visible());
  switch (type) {
    case OperationType::kRead:
      return Read(number);
    case OperationType::kUpdate:
      return Write(number, 1);
    case OperationType::kScan:
      return Scan(number, random_.Between(options_.scan_min, options_.scan_max), records);
    case OperationType::kReadModifyWrite:
      return ReadModifyWrite(number);
    case OperationType::kInteractiveWrite:
      *records = options_.interactive_records;
      number = std::min(number, state_.inserts->visible() - std::min(*records, state_.inserts->visible()));
      return InteractiveWrite(number);
    case OperationType::kInsert:
      break;
  }
  return Status();
}

Status Worker::CheckRecord(std::string_view key, std::string_view value) {
  DEUT_ASSIGN_OR_RETURN(const WriteId id, CheckValue(key, value));
  results_.checksum += id.writer * 31 + id.sequence;
  return Status();
}

Status Worker::Read(uint64_t number) {
  MakeKey(number, &key_);
  const Operation get{.kind = OperationKind::kGet, .table = table_, .key = key_};
  Result<CommitAnswer> answer =
      RunOneShot(client_, reading_, absl::MakeConstSpan(&get, 1), &answers_, &results_.report);
  if (!answer.ok()) {
    (void)Tolerated("a read", answer.status());  // counts the error; the caller decides about it
    return answer.status();
  }
  const RecordBatch::Iterator it(answers_[0].records);
  if (!it.Valid()) return DEUT_ERROR(kCorruption, "record ", number, " (key ", key_, ") is missing", kMissingHint);
  return CheckRecord(key_, it.record().value);
}

Status Worker::Scan(uint64_t number, uint64_t wanted, uint64_t* records) {
  MakeKey(number, &key_);
  Status status;
  bool whole = false;
  if (wanted * (kKeyBytes + options_.value_bytes) <= kOneMessageBytes)
    status = ScanInOneMessage(key_, wanted, &whole, records);
  // The scan is longer, or its answer ended before the limits: it runs again in several batches of one transaction.
  if (status.ok() && !whole) status = ScanInBatches(key_, wanted, records);
  if (!status.ok()) (void)Tolerated(Concat("a scan of ", wanted, " from ", key_), status);
  return status;
}

Status Worker::CheckScanned(std::string_view key, std::string_view value, std::string_view low, std::string* last,
                            uint64_t* records) {
  DEUT_RETURN_IF_ERROR(CheckRecord(key, value));
  const bool first = *records == 0;
  if (first ? key != low : key <= *last) {
    return DEUT_ERROR(kCorruption, "a scan from ", low, " shows ", key,
                      first ? Concat(" first", kMissingHint) : Concat(" after ", *last));
  }
  last->assign(key);
  ++*records;
  return Status();
}

Status Worker::ScanInOneMessage(std::string_view low, uint64_t wanted, bool* whole, uint64_t* records) {
  const Operation scan{.kind = OperationKind::kScan,
                       .table = table_,
                       .low = low,
                       .limit_records = static_cast<uint32_t>(wanted),
                       .limit_bytes = kMaxScanBytes};
  Result<CommitAnswer> answer =
      RunOneShot(client_, reading_, absl::MakeConstSpan(&scan, 1), &answers_, &results_.report);
  if (!answer.ok()) return answer.status();
  *whole = answers_[0].complete || answers_[0].records.size() >= wanted;
  if (!*whole) return Status();
  std::string last;
  *records = 0;
  for (RecordBatch::Iterator it(answers_[0].records); it.Valid(); it.Next()) {
    DEUT_RETURN_IF_ERROR(CheckScanned(it.record().key, it.record().value, low, &last, records));
  }
  if (*records == 0 || *records > wanted)
    return DEUT_ERROR(kCorruption, "a scan of ", wanted, " from ", low, " shows ", *records, " records",
                      *records == 0 ? kMissingHint : "");
  return Status();
}

Status Worker::ScanInBatches(std::string_view low, uint64_t wanted, uint64_t* records) {
  const auto body = [&](Transaction& transaction) {
    std::string last;
    *records = 0;
    Scanner scanner = transaction.OpenScanner(table_, {.low = std::string(low), .limit_records = wanted});
    while (scanner.Next()) {
      // The records are provisional (D1), but never torn and never out of order.
      DEUT_RETURN_IF_ERROR(CheckScanned(scanner.key(), scanner.value(), low, &last, records));
    }
    return scanner.status();
  };
  DEUT_RETURN_IF_ERROR(RunTransaction(client_, reading_, body, &results_.report));
  if (*records == 0 || *records > wanted)
    return DEUT_ERROR(kCorruption, "a scan of ", wanted, " from ", low, " shows ", *records, " records",
                      *records == 0 ? kMissingHint : "");
  return Status();
}

template <typename Attempt>
Status Worker::Journalled(uint64_t number, uint32_t count, Attempt attempt) {
  for (;;) {
    const JournalWrite write{.first = {.writer = writer_, .sequence = sequence_ + 1}, .number = number, .count = count};
    sequence_ += count;
    if (state_.journal != nullptr) DEUT_RETURN_IF_ERROR(state_.journal->Try(write));
    Result<CommitAnswer> answer = attempt(write);
    if (answer.ok())
      return state_.journal != nullptr ? state_.journal->Acknowledge(write, answer->timestamp) : Status();
    if (state_.journal != nullptr && NeverCommits(answer.status())) DEUT_RETURN_IF_ERROR(state_.journal->Fail(write));
    if (!Tolerated("a write", answer.status()) || state_.stop.load()) return answer.status();
  }
}

void Worker::MakePuts(const JournalWrite& write) {
  keys_.resize(std::max<size_t>(keys_.size(), write.count));
  values_.resize(std::max<size_t>(values_.size(), write.count));
  operations_.clear();
  for (uint32_t i = 0; i < write.count; ++i) {
    const uint64_t number = write.number + i;
    MakeKey(number, &keys_[i]);
    const WriteId id{.writer = writer_, .sequence = write.first.sequence + i};
    MakeValue(number, id, keys_[i], options_.value_bytes, &values_[i]);
    operations_.push_back({.kind = OperationKind::kPut, .table = table_, .key = keys_[i], .value = values_[i]});
  }
}

Status Worker::Write(uint64_t number, uint32_t count) {
  return Journalled(number, count, [&](const JournalWrite& write) {
    MakePuts(write);
    return RunOneShot(client_, writing_, operations_, &answers_, &results_.report);
  });
}

Status Worker::InteractiveWrite(uint64_t number) {
  return Journalled(number, options_.interactive_records, [&](const JournalWrite& write) -> Result<CommitAnswer> {
    MakePuts(write);
    const auto body = [&](Transaction& transaction) {
      for (const Operation& put : operations_) {
        if (&put != operations_.data() && options_.think_time > Duration(0)) {
          client_.runtime().SleepUntil(client_.runtime().Now() + options_.think_time);
        }
        DEUT_RETURN_IF_ERROR(transaction.Put(put.table, put.key, put.value));
      }
      return Status();
    };
    DEUT_RETURN_IF_ERROR(RunTransaction(client_, writing_, body, &results_.report));
    return results_.report.commit;
  });
}

Status Worker::Insert() {
  const uint64_t number = state_.inserts->Draw();
  DEUT_RETURN_IF_ERROR(Write(number, 1));
  state_.inserts->Acknowledge(number);
  return Status();
}

Status Worker::ReadModifyWrite(uint64_t number) {
  MakeKey(number, &key_);
  values_.resize(std::max<size_t>(values_.size(), 1));
  return Journalled(number, 1, [&](const JournalWrite& write) -> Result<CommitAnswer> {
    MakeValue(number, write.first, key_, options_.value_bytes, &values_[0]);
    const auto body = [&](Transaction& transaction) {
      DEUT_ASSIGN_OR_RETURN(const std::optional<std::string> value, transaction.Get(table_, key_));
      if (!value.has_value()) return DEUT_ERROR(kCorruption, "record ", number, " (key ", key_, ") is missing");
      DEUT_RETURN_IF_ERROR(CheckRecord(key_, *value));
      return transaction.Put(table_, key_, values_[0]);
    };
    DEUT_RETURN_IF_ERROR(RunTransaction(client_, writing_, body, &results_.report));
    return results_.report.commit;
  });
}

}  // namespace deut::ycsb
