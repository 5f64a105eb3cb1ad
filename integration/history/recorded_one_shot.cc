// The one-shot transactions of RecordedClient.
#include <utility>

#include "integration/history/recorder.h"
#include "integration/history/stored_scan.h"
#include "tc/client/one_shot.h"

namespace deut::history {
namespace {

void Add(OneShot* one_shot, const Step& step, const std::string& text) {
  switch (step.kind) {
    case OperationKind::kWrite:
      one_shot->Put(step.table, step.key, text);
      return;
    case OperationKind::kInsert:
      one_shot->Insert(step.table, step.key, text);
      return;
    case OperationKind::kUpdate:
      one_shot->Update(step.table, step.key, text);
      return;
    case OperationKind::kDelete:
      one_shot->Remove(step.table, step.key);
      return;
    case OperationKind::kScan:
      one_shot->Scan(step.table, step.scan);
      return;
    default:
      one_shot->Get(step.table, step.key);
  }
}

// Copies a step's answer into the record's operation and into the caller's result.
void Show(const OperationResult& answer, OperationRecord* operation, TransactionRecord* record, const Step& step,
          StepResult* result) {
  if (step.kind == OperationKind::kScan) {
    Scan scan = RequestedScan(step.scan);
    if (!answer.complete) SetReached(&scan, answer.resume);
    result->records = AddBatchToScan(answer.records, &scan);
    operation->scan = static_cast<uint32_t>(record->scans.size());
    record->scans.push_back(std::move(scan));
  } else if (step.kind == OperationKind::kRead) {
    const RecordBatch::Iterator found(answer.records);
    if (!found.Valid()) return;
    result->value = ParseStored(found.record().value);
    operation->value = result->value->value;
  }
}

}  // namespace

Result<CommitAnswer> RecordedClient::TryOneShot(const RetryOptions& options, absl::Span<const Step> steps,
                                                Deadline limit, std::vector<StepResult>* results) {
  Runtime& runtime = client_.runtime();
  TransactionRecord record = NewRecord(options, runtime.Now().time_since_epoch().count());
  OneShot one_shot(client_, options.transaction);
  std::vector<OperationRecord> operations;
  uint32_t sequence = 0;
  for (const Step& step : steps) {
    OperationRecord operation;
    operation.kind = step.kind;
    operation.table = step.table.value;
    operation.key = step.key;
    if (MakesValue(step.kind))
      operation.value = Value{.id = {.writer = record.id, .sequence = ++sequence}, .before = {}};
    Add(&one_shot, step, operation.value ? StoredText(*operation.value, step.payload, padding_) : std::string());
    operations.push_back(std::move(operation));
  }
  const Result<CommitAnswer> answer =
      client_.ExecuteOneShotUntil(options.transaction, one_shot.operations(), one_shot.mutable_results(), limit);
  record.complete = runtime.Now().time_since_epoch().count();
  record.outcome = answer.ok()                                     ? Outcome::kCommitted
                   : answer.status() == ErrorCode::kOutcomeUnknown ? Outcome::kUnknown
                                                                   : Outcome::kAborted;
  if (answer.ok()) record.timestamp = answer->timestamp.value;
  results->assign(steps.size(), {});
  for (size_t i = 0; i < steps.size(); ++i) {
    if (answer.ok()) Show(one_shot.result(i), &operations[i], &record, steps[i], &(*results)[i]);
    if (answer.ok() || IsWrite(steps[i].kind)) record.operations.push_back(std::move(operations[i]));
  }
  records_.push_back(std::move(record));
  return answer;
}

Result<CommitAnswer> RecordedClient::RunOneShot(const RetryOptions& options, absl::Span<const Step> steps,
                                                std::vector<StepResult>* results) {
  Runtime& runtime = client_.runtime();
  const Deadline limit = client_.DeadlineFor({.timeout = options.timeout});
  RetryPauses pauses(options, runtime.RandomSeed());
  std::vector<StepResult> unwanted;
  for (;;) {
    Result<CommitAnswer> answer = TryOneShot(options, steps, limit, results != nullptr ? results : &unwanted);
    if (answer.ok() || !IsRetryable(answer.status())) return answer;
    const Duration pause = pauses.Next(answer.status());
    if (pause >= limit - runtime.Now()) return answer;
    runtime.SleepUntil(runtime.Now() + pause);
  }
}

}  // namespace deut::history
