#include "protocol/wire/convert_transaction_service.h"

#include <utility>

#include "common/coding/fixed.h"
#include "protocol/limits.h"
#include "protocol/number.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

constexpr size_t kIdBytes = 16;

wire::OperationKind KindToWire(OperationKind kind, Stamp stamp) {
  if (stamp != Stamp::kNone) return kind == OperationKind::kInsert ? wire::STAMPED_INSERT : wire::STAMPED_PUT;
  switch (kind) {
    case OperationKind::kGet:
      return wire::GET;
    case OperationKind::kPut:
      return wire::PUT;
    case OperationKind::kInsert:
      return wire::INSERT;
    case OperationKind::kUpdate:
      return wire::UPDATE;
    case OperationKind::kRemove:
      return wire::REMOVE;
    case OperationKind::kScan:
      return wire::SCAN;
    case OperationKind::kAdd:
      return wire::ATOMIC_ADD;
    case OperationKind::kMin:
      return wire::ATOMIC_MIN;
    case OperationKind::kMax:
      return wire::ATOMIC_MAX;
    case OperationKind::kCompareAndSet:
      return wire::COMPARE_AND_SET;
    case OperationKind::kRemoveRange:
      return wire::REMOVE_RANGE;
  }
  return wire::OPERATION_KIND_UNSPECIFIED;
}

Status KindFromWire(wire::OperationKind kind, OperationKind* out) {
  switch (kind) {
    case wire::GET:
      *out = OperationKind::kGet;
      return Status::Ok();
    case wire::STAMPED_PUT:
    case wire::PUT:
      *out = OperationKind::kPut;
      return Status::Ok();
    case wire::STAMPED_INSERT:
    case wire::INSERT:
      *out = OperationKind::kInsert;
      return Status::Ok();
    case wire::UPDATE:
      *out = OperationKind::kUpdate;
      return Status::Ok();
    case wire::REMOVE:
      *out = OperationKind::kRemove;
      return Status::Ok();
    case wire::SCAN:
      *out = OperationKind::kScan;
      return Status::Ok();
    case wire::ATOMIC_ADD:
      *out = OperationKind::kAdd;
      return Status::Ok();
    case wire::ATOMIC_MIN:
      *out = OperationKind::kMin;
      return Status::Ok();
    case wire::ATOMIC_MAX:
      *out = OperationKind::kMax;
      return Status::Ok();
    case wire::COMPARE_AND_SET:
      *out = OperationKind::kCompareAndSet;
      return Status::Ok();
    case wire::REMOVE_RANGE:
      *out = OperationKind::kRemoveRange;
      return Status::Ok();
    default:
      return DEUT_ERROR(kInvalidArgument, "kind: ", static_cast<int>(kind), " is no operation");
  }
}

bool HasRange(OperationKind kind) { return kind == OperationKind::kScan || kind == OperationKind::kRemoveRange; }

bool IsNumeric(OperationKind kind) {
  return kind == OperationKind::kAdd || kind == OperationKind::kMin || kind == OperationKind::kMax;
}

bool HasValue(OperationKind kind) {
  return kind != OperationKind::kGet && kind != OperationKind::kRemove && !HasRange(kind);
}

Status CheckStamp(const Operation& operation) {
  if (operation.stamp == Stamp::kNone) return Status::Ok();
  if (operation.kind != OperationKind::kPut && operation.kind != OperationKind::kInsert)
    return DEUT_ERROR(kInvalidArgument, "stamp: only a put or an insert writes a timestamp");
  const size_t bytes = operation.stamp == Stamp::kKey ? operation.key.size() : operation.value.size();
  if (uint64_t{operation.stamp_offset} + kStampBytes > bytes) {
    return DEUT_ERROR(kInvalidArgument, "stamp_offset: ", operation.stamp_offset, " and ", kStampBytes,
                      " bytes go beyond the ", bytes, " bytes of the ",
                      operation.stamp == Stamp::kKey ? "key" : "value");
  }
  return Status::Ok();
}

// An id has sixteen bytes or none.
Status IdFromWire(const std::string& bytes, TransactionId* out) {
  *out = TransactionId{};
  if (bytes.empty()) return Status::Ok();
  if (bytes.size() == kIdBytes) *out = {.high = LoadU64(bytes.data()), .low = LoadU64(bytes.data() + 8)};
  if (out->given()) return Status::Ok();
  return DEUT_ERROR(kInvalidArgument, "id: ", bytes.size(), " bytes are no id: it has ", kIdBytes, ", not all zero");
}

void IdToWire(const TransactionId& id, std::string* out) {
  out->clear();
  if (!id.given()) return;
  AppendU64(out, id.high);
  AppendU64(out, id.low);
}

Status OperationFromWire(const wire::Operation& operation, Operation* out) {
  DEUT_RETURN_IF_ERROR(KindFromWire(operation.kind(), &out->kind));
  DEUT_RETURN_IF_ERROR(FromWire(operation.direction(), &out->direction));
  out->table = TableId(operation.table());
  out->key = operation.key();
  out->value = operation.value();
  out->low = operation.low();
  out->high = operation.high();
  out->limit_records = operation.limit_records();
  out->limit_bytes = operation.limit_bytes();
  out->for_update = operation.for_update();
  out->scan_sequence = operation.scan_sequence();
  out->prefetch = operation.ahead();
  out->expected = operation.expected();
  out->expect_absent = operation.expect_absent();
  const bool stamped = operation.kind() == wire::STAMPED_PUT || operation.kind() == wire::STAMPED_INSERT;
  if (operation.stamp() < wire::NO_STAMP || operation.stamp() > wire::STAMP_VALUE ||
      (operation.stamp() != wire::NO_STAMP) != stamped) {
    return DEUT_ERROR(kInvalidArgument, "stamp: ", static_cast<int>(operation.stamp()), " is none of this kind's");
  }
  out->stamp = static_cast<Stamp>(operation.stamp());
  out->stamp_offset = operation.stamp_offset();
  return CheckOperation(*out);
}

Status ResumeFromWire(wire::OperationResult* result, const Operation& operation, OperationResult* out) {
  DEUT_RETURN_IF_ERROR(CheckRecordOrder(out->records, operation.low, operation.high, operation.direction));
  out->complete = result->complete();
  out->scan_sequence = result->scan_sequence();
  if (out->complete) return Status::Ok();
  const std::string& resume = result->resume();
  DEUT_RETURN_IF_ERROR(CheckBound("resume", resume));
  if (resume < operation.low || (!operation.high.empty() && resume > operation.high) || resume.empty()) {
    return DEUT_ERROR(kCorruption, "resume: lies outside of the range asked for");
  }
  // Otherwise the caller would repeat the same scan for ever.
  if (resume == (operation.direction == Direction::kAscending ? operation.low : operation.high)) {
    return DEUT_ERROR(kCorruption, "resume: the scan is not complete and covers nothing");
  }
  out->resume.swap(*result->mutable_resume());
  return Status::Ok();
}

}  // namespace

void ToWire(const TransactionName& name, wire::OutcomeRequest* out) {
  IdToWire(name.id, out->mutable_id());
  out->set_not_before(name.not_before.value);
}

Status FromWire(const wire::OutcomeRequest& request, TransactionName* out) {
  DEUT_RETURN_IF_ERROR(IdFromWire(request.id(), &out->id));
  if (!out->id.given()) return DEUT_ERROR(kInvalidArgument, "id: none is given");
  out->not_before = Timestamp(request.not_before());
  return Status::Ok();
}

void ToWire(const Result<OutcomeAnswer>& answer, wire::OutcomeAnswer* out) {
  if (!answer.ok()) {
    ToWire(answer.status(), out->mutable_status());
    return;
  }
  out->set_outcome(static_cast<wire::TransactionOutcome>(static_cast<int>(answer->outcome) + 1));
  out->set_timestamp(answer->commit.timestamp.value);
  out->set_commit_lsn(answer->commit.commit_lsn.value);
}

Result<OutcomeAnswer> FromWire(const wire::OutcomeAnswer& answer) {
  DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
  if (answer.outcome() < wire::COMMITTED || answer.outcome() > wire::TOO_OLD) {
    return DEUT_ERROR(kCorruption, "outcome: ", static_cast<int>(answer.outcome()), " is none");
  }
  return OutcomeAnswer{.outcome = static_cast<TransactionOutcome>(static_cast<int>(answer.outcome()) - 1),
                       .commit = {.timestamp = Timestamp(answer.timestamp()), .commit_lsn = Lsn(answer.commit_lsn())}};
}

bool Writes(OperationKind kind) { return kind != OperationKind::kGet && kind != OperationKind::kScan; }

Status CheckOperation(const Operation& operation) {
  if (HasRange(operation.kind)) {
    DEUT_RETURN_IF_ERROR(CheckBound("low", operation.low));
    DEUT_RETURN_IF_ERROR(CheckBound("high", operation.high));
    return CheckFigure("limit_bytes", operation.limit_bytes, 1, kMaxScanBytes);
  }
  DEUT_RETURN_IF_ERROR(CheckKey("key", operation.key));
  if (HasValue(operation.kind) && operation.value.size() > kMaxValueBytes) {
    return DEUT_ERROR(kInvalidArgument, "value: a value of ", operation.value.size(), " bytes; values have at most ",
                      kMaxValueBytes, " bytes");
  }
  if (IsNumeric(operation.kind) && operation.value.size() != kNumberBytes) {
    return DEUT_ERROR(kInvalidArgument, "value: a number has ", kNumberBytes, " bytes, not ", operation.value.size());
  }
  if (operation.expected.size() > kMaxValueBytes) {
    return DEUT_ERROR(kInvalidArgument, "expected: ", operation.expected.size(), " bytes; values have at most ",
                      kMaxValueBytes);
  }
  return CheckStamp(operation);
}

Status CheckOperations(absl::Span<const Operation> operations) {
  DEUT_RETURN_IF_ERROR(CheckFigure("operations", operations.size(), 0, kMaxOperationsPerCall));
  for (size_t i = 0; i < operations.size(); ++i) {
    const Status status = CheckOperation(operations[i]);
    if (!status.ok()) return At("operations", i, status);
  }
  return Status::Ok();
}

Status CheckOptions(const TransactionOptions& options) {
  DEUT_RETURN_IF_ERROR(CheckFigure("declared", options.declared.size(), 0, kMaxDeclaredKeys));
  for (size_t i = 0; i < options.declared.size(); ++i) {
    const Status status = CheckKey("key", options.declared[i].key);
    if (!status.ok()) return At("declared", i, status);
  }
  return Status::Ok();
}

void ToWire(const TransactionOptions& options, wire::Begin* out) {
  out->set_isolation(options.isolation == Isolation::kSnapshot ? wire::SNAPSHOT : wire::SERIALIZABLE);
  out->set_durability(options.durability == Durability::kBuffered ? wire::BUFFERED : wire::DURABLE);
  out->set_min_timestamp(options.min_timestamp.value);
  IdToWire(options.name.id, out->mutable_id());
  out->set_not_before(options.name.not_before.value);
  for (const DeclaredKey& declared : options.declared) {
    wire::DeclaredKey* item = out->add_declared();
    item->set_table(declared.table.value);
    item->set_key(declared.key);
  }
}

Status FromWire(const wire::Begin& begin, TransactionOptions* out) {
  switch (begin.isolation()) {
    case wire::SERIALIZABLE:
      out->isolation = Isolation::kSerializable;
      break;
    case wire::SNAPSHOT:
      out->isolation = Isolation::kSnapshot;
      break;
    default:
      return DEUT_ERROR(kInvalidArgument, "isolation: ", static_cast<int>(begin.isolation()),
                        " is none (0 serializable, 1 snapshot)");
  }
  switch (begin.durability()) {
    case wire::DURABLE:
      out->durability = Durability::kDurable;
      break;
    case wire::BUFFERED:
      out->durability = Durability::kBuffered;
      break;
    default:
      return DEUT_ERROR(kInvalidArgument, "durability: ", static_cast<int>(begin.durability()),
                        " is none (0 durable, 1 buffered)");
  }
  out->min_timestamp = Timestamp(begin.min_timestamp());
  DEUT_RETURN_IF_ERROR(IdFromWire(begin.id(), &out->name.id));
  out->name.not_before = Timestamp(begin.not_before());
  DEUT_RETURN_IF_ERROR(CheckFigure("declared", begin.declared_size(), 0, kMaxDeclaredKeys));
  out->declared.clear();
  for (const wire::DeclaredKey& item : begin.declared()) {
    out->declared.push_back(DeclaredKey{.table = TableId(item.table()), .key = item.key()});
  }
  return CheckOptions(*out);
}

void ToWire(const Operation& operation, wire::Operation* out) {
  out->set_kind(KindToWire(operation.kind, operation.stamp));
  out->set_table(operation.table.value);
  if (!HasRange(operation.kind)) {
    out->set_key(operation.key.data(), operation.key.size());
    if (HasValue(operation.kind)) out->set_value(operation.value.data(), operation.value.size());
    out->set_expected(operation.expected.data(), operation.expected.size());
    out->set_expect_absent(operation.expect_absent);
    out->set_stamp(static_cast<wire::Stamp>(operation.stamp));
    out->set_stamp_offset(operation.stamp_offset);
    return;
  }
  out->set_low(operation.low.data(), operation.low.size());
  out->set_high(operation.high.data(), operation.high.size());
  out->set_direction(operation.direction == Direction::kAscending ? wire::ASCENDING : wire::DESCENDING);
  out->set_limit_records(operation.limit_records);
  out->set_limit_bytes(operation.limit_bytes);
  out->set_for_update(operation.for_update);
  out->set_scan_sequence(operation.scan_sequence);
  out->set_ahead(operation.prefetch);
}

Status FromWire(const google::protobuf::RepeatedPtrField<wire::Operation>& operations, std::vector<Operation>* out) {
  DEUT_RETURN_IF_ERROR(CheckFigure("operations", operations.size(), 0, kMaxOperationsPerCall));
  out->clear();
  out->reserve(operations.size());
  for (const wire::Operation& operation : operations) {
    out->emplace_back();
    const Status status = OperationFromWire(operation, &out->back());
    if (!status.ok()) return At("operations", out->size() - 1, status);
  }
  return Status::Ok();
}

size_t WireBytes(const Operation& operation) {
  constexpr size_t kFixedBytes = 64;
  return kFixedBytes + operation.key.size() + operation.value.size() + operation.expected.size() +
         operation.low.size() + operation.high.size();
}

size_t WireBytes(const OperationResult& result) {
  constexpr size_t kFixedBytes = 40;
  const AbortInfo* abort = result.status.abort();
  return kFixedBytes + result.records.bytes().size() + result.resume.size() + result.status.message().size() +
         (abort == nullptr ? 0 : abort->key.size());
}

void ToWire(const OperationResult& result, wire::OperationResult* out) {
  if (!result.status.ok()) {
    ToWire(result.status, out->mutable_status());
    // A compare-and-set that failed shows the value that it found.
    if (result.status == ErrorCode::kConditionFailed) out->set_records(result.records.bytes());
    return;
  }
  out->set_removed(result.removed);
  out->set_records(result.records.bytes());
  out->set_complete(result.complete);
  out->set_scan_sequence(result.scan_sequence);
  out->set_resume(result.resume);
}

Status FromWire(wire::OperationResult* result, const Operation& operation, OperationResult* out) {
  out->status = FromWire(result->status());
  out->complete = false;
  out->resume.clear();
  DEUT_ASSIGN_OR_RETURN(out->records, RecordBatch::Parse(std::move(*result->mutable_records())));
  out->removed = result->removed();
  if (!out->status.ok() && out->status.code() != ErrorCode::kConditionFailed) return Status::Ok();
  if (out->status.ok() && HasRange(operation.kind)) return ResumeFromWire(result, operation, out);
  const bool shows = operation.kind == OperationKind::kGet || IsNumeric(operation.kind) ||
                     operation.kind == OperationKind::kCompareAndSet || operation.stamp != Stamp::kNone;
  const size_t most = shows ? 1 : 0;
  if (out->records.size() > most) {
    return DEUT_ERROR(kCorruption, "records: ", out->records.size(), " records in answer to an operation on one key");
  }
  RecordBatch::Iterator it(out->records);
  if (it.Valid() && it.record().key != operation.key && operation.stamp != Stamp::kKey) {
    return DEUT_ERROR(kCorruption, "records: another key than the one asked for");
  }
  return Status::Ok();
}

void ToWire(const Result<ServiceStatus>& status, wire::GetStatusAnswer* out) {
  if (!status.ok()) {
    ToWire(status.status(), out->mutable_status());
    return;
  }
  ToWire(status->tc, out->mutable_tc());
  ToWire(status->dc, out->mutable_dc());
}

Result<ServiceStatus> FromWire(const wire::GetStatusAnswer& answer) {
  DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
  ServiceStatus status;
  FromWire(answer.tc(), &status.tc);
  FromWire(answer.dc(), &status.dc);
  return status;
}

}  // namespace deut
