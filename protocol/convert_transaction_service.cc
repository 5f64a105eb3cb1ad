#include "protocol/convert_transaction_service.h"

#include <utility>

#include "protocol/limits.h"

namespace deut {
namespace {

wire::OperationKind KindToWire(OperationKind kind) {
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
  }
  return wire::OPERATION_KIND_UNSPECIFIED;
}

Status KindFromWire(wire::OperationKind kind, OperationKind* out) {
  switch (kind) {
    case wire::GET:
      *out = OperationKind::kGet;
      return Status::Ok();
    case wire::PUT:
      *out = OperationKind::kPut;
      return Status::Ok();
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
    default:
      return DEUT_ERROR(kInvalidArgument, "kind: ", static_cast<int>(kind), " is no operation");
  }
}

bool HasValue(OperationKind kind) {
  return kind == OperationKind::kPut || kind == OperationKind::kInsert || kind == OperationKind::kUpdate;
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
  // Otherwise the caller would come back with the same scan for ever.
  if (resume == (operation.direction == Direction::kAscending ? operation.low : operation.high)) {
    return DEUT_ERROR(kCorruption, "resume: the scan is not complete and covers nothing");
  }
  out->resume.swap(*result->mutable_resume());
  return Status::Ok();
}

}  // namespace

bool Writes(OperationKind kind) { return kind != OperationKind::kGet && kind != OperationKind::kScan; }

Status CheckOperation(const Operation& operation) {
  if (operation.kind == OperationKind::kScan) {
    DEUT_RETURN_IF_ERROR(CheckBound("low", operation.low));
    DEUT_RETURN_IF_ERROR(CheckBound("high", operation.high));
    return CheckFigure("limit_bytes", operation.limit_bytes, 1, kMaxScanBytes);
  }
  DEUT_RETURN_IF_ERROR(CheckKey("key", operation.key));
  if (HasValue(operation.kind) && operation.value.size() > kMaxValueBytes) {
    return DEUT_ERROR(kInvalidArgument, "value: a value of ", operation.value.size(), " bytes; values have at most ",
                      kMaxValueBytes, " bytes");
  }
  return Status::Ok();
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
  DEUT_RETURN_IF_ERROR(CheckFigure("declared", begin.declared_size(), 0, kMaxDeclaredKeys));
  out->declared.clear();
  for (const wire::DeclaredKey& item : begin.declared()) {
    out->declared.push_back(DeclaredKey{.table = TableId(item.table()), .key = item.key()});
  }
  return CheckOptions(*out);
}

void ToWire(const Operation& operation, wire::Operation* out) {
  out->set_kind(KindToWire(operation.kind));
  out->set_table(operation.table.value);
  if (operation.kind != OperationKind::kScan) {
    out->set_key(operation.key.data(), operation.key.size());
    if (HasValue(operation.kind)) out->set_value(operation.value.data(), operation.value.size());
    return;
  }
  out->set_low(operation.low.data(), operation.low.size());
  out->set_high(operation.high.data(), operation.high.size());
  out->set_direction(operation.direction == Direction::kAscending ? wire::ASCENDING : wire::DESCENDING);
  out->set_limit_records(operation.limit_records);
  out->set_limit_bytes(operation.limit_bytes);
  out->set_for_update(operation.for_update);
  out->set_scan_sequence(operation.scan_sequence);
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
  return kFixedBytes + operation.key.size() + operation.value.size() + operation.low.size() + operation.high.size();
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
    return;
  }
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
  if (!out->status.ok()) return Status::Ok();
  if (operation.kind == OperationKind::kScan) return ResumeFromWire(result, operation, out);
  const size_t most = operation.kind == OperationKind::kGet ? 1 : 0;
  if (out->records.size() > most) {
    return DEUT_ERROR(kCorruption, "records: ", out->records.size(), " records in answer to an operation on one key");
  }
  RecordBatch::Iterator it(out->records);
  if (it.Valid() && it.record().key != operation.key) {
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
