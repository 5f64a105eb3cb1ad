#include "protocol/wire/convert_data_component.h"

#include <utility>

#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "protocol/limits.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

wire::Direction DirectionToWire(Direction direction) {
  return direction == Direction::kAscending ? wire::ASCENDING : wire::DESCENDING;
}

std::string PositionText(Position position) { return Concat(position.commit.value, "/", position.sequence); }

// An answer's covered key must lie inside the requested range. Any other key would make the next request start outside
// the range.
Status CheckCovered(std::string_view covered, std::string_view low, std::string_view high) {
  DEUT_RETURN_IF_ERROR(CheckBound("covered", covered));
  if (covered < low || (!high.empty() && covered > high)) {
    return DEUT_ERROR(kCorruption, "covered: lies outside of the range asked for");
  }
  return Status::Ok();
}

// The code that merges an answer trusts its records. So none may lie beyond the covered part, or outside the requested
// range.
Status CheckRecords(const RecordBatch& records, bool complete, std::string_view covered, std::string_view low,
                    std::string_view high, Direction direction) {
  if (complete) return CheckRecordOrder(records, low, high, direction);
  DEUT_RETURN_IF_ERROR(CheckCovered(covered, low, high));
  const bool ascending = direction == Direction::kAscending;
  return CheckRecordOrder(records, ascending ? low : covered, ascending && !covered.empty() ? covered : high,
                          direction);
}

// Checks the records and the covered key of a scan's answer, bulk or short.
Status ScanAnswerFromWire(std::string records, bool complete, std::string* covered_bytes, std::string_view low,
                          std::string_view high, Direction direction, RecordBatch* answer, std::string* covered) {
  DEUT_ASSIGN_OR_RETURN(*answer, RecordBatch::Parse(std::move(records)));
  DEUT_RETURN_IF_ERROR(CheckRecords(*answer, complete, *covered_bytes, low, high, direction));
  if (!complete) {
    // Otherwise the sender would repeat the same request for ever.
    if (*covered_bytes == (direction == Direction::kAscending ? low : high)) {
      return DEUT_ERROR(kCorruption, "covered: the answer is not complete and covers nothing");
    }
  }
  covered->swap(*covered_bytes);
  return Status::Ok();
}

Status FillAnswer(wire::DataAnswer* answer, DataRequest* request) {
  if (answer->status().code() != 0) return FromWire(answer->status());
  if (request->kind == DataRequest::Kind::kScan) {
    request->complete = answer->complete();
    return ScanAnswerFromWire(std::move(*answer->mutable_records()), answer->complete(), answer->mutable_covered(),
                              request->low, request->high, request->direction, &request->answer, &request->covered);
  }
  DEUT_ASSIGN_OR_RETURN(request->answer, RecordBatch::Parse(std::move(*answer->mutable_records())));
  if (request->answer.size() > 1) {
    return DEUT_ERROR(kCorruption, "records: ", request->answer.size(), " records in answer to a point read");
  }
  RecordBatch::Iterator it(request->answer);
  if (it.Valid() && it.record().key != request->key) {
    return DEUT_ERROR(kCorruption, "records: another key than the one asked for");
  }
  return Status::Ok();
}

void BasisToWire(const HelloBasis& basis, wire::HelloBasis* out) {
  out->set_incarnation(basis.incarnation.value);
  out->set_obeyed_tc(basis.obeyed.tc.value);
  out->set_obeyed_epoch(basis.obeyed.epoch.value);
  out->set_obeyed_nonce(basis.obeyed.nonce);
  ToWire(basis.applied, out->mutable_applied());
  out->set_log_durable(basis.log_durable.value);
}

HelloBasis BasisFromWire(const wire::HelloBasis& basis) {
  return HelloBasis{.incarnation = DcIncarnation(basis.incarnation()),
                    .obeyed = ObeyedTc{.tc = TcId(basis.obeyed_tc()),
                                       .epoch = TcEpoch(basis.obeyed_epoch()),
                                       .nonce = basis.obeyed_nonce()},
                    .applied = FromWire(basis.applied()),
                    .log_durable = Lsn(basis.log_durable())};
}

}  // namespace

void ToWire(const Sender& sender, wire::Sender* out) {
  out->set_tc(sender.tc.value);
  out->set_epoch(sender.epoch.value);
  out->set_nonce(sender.nonce);
  out->set_incarnation(sender.incarnation.value);
}

Sender FromWire(const wire::Sender& sender) {
  return Sender{.tc = TcId(sender.tc()),
                .epoch = TcEpoch(sender.epoch()),
                .nonce = sender.nonce(),
                .incarnation = DcIncarnation(sender.incarnation())};
}

void ToWire(const HelloRequest& request, wire::HelloRequest* out) {
  out->set_protocol_version(request.protocol_version);
  out->set_tc(request.tc.value);
  out->set_epoch(request.epoch.value);
  out->set_nonce(request.nonce);
  out->set_expected_dc(request.expected_dc.value);
  out->set_inquiry(request.inquiry);
  out->set_log_durable(request.log_durable.value);
  if (request.decided_on) BasisToWire(*request.decided_on, out->mutable_decided_on());
}

Status FromWire(const wire::HelloRequest& request, HelloRequest* out) {
  DEUT_RETURN_IF_ERROR(CheckProtocolVersion("the transaction component", request.protocol_version()));
  *out = HelloRequest{.protocol_version = request.protocol_version(),
                      .tc = TcId(request.tc()),
                      .epoch = TcEpoch(request.epoch()),
                      .nonce = request.nonce(),
                      .expected_dc = DcId(request.expected_dc()),
                      .inquiry = request.inquiry(),
                      .log_durable = Lsn(request.log_durable())};
  if (request.has_decided_on()) out->decided_on = BasisFromWire(request.decided_on());
  return Status::Ok();
}

void ToWire(const Result<HelloAnswer>& answer, wire::HelloAnswer* out) {
  out->set_protocol_version(kProtocolVersion);
  if (!answer.ok()) {
    ToWire(answer.status(), out->mutable_status());
    return;
  }
  out->set_dc(answer->dc.value);
  out->set_incarnation(answer->incarnation.value);
  out->set_incarnation_number(answer->number.value);
  out->set_obeyed_tc(answer->obeyed.tc.value);
  out->set_obeyed_epoch(answer->obeyed.epoch.value);
  out->set_obeyed_nonce(answer->obeyed.nonce);
  out->set_log_durable(answer->log_durable.value);
  ToWire(answer->applied, out->mutable_applied());
  ToWire(answer->stable, out->mutable_stable());
  out->set_free_bytes(answer->free_bytes);
  ToWire(answer->tables, out->mutable_tables());
  out->set_knows_table_options(answer->knows_table_options);
}

Result<HelloAnswer> FromWire(const wire::HelloAnswer& answer) {
  DEUT_RETURN_IF_ERROR(CheckProtocolVersion("the data component", answer.protocol_version()));
  DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
  HelloAnswer out{.dc = DcId(answer.dc()),
                  .incarnation = DcIncarnation(answer.incarnation()),
                  .number = IncarnationNumber(answer.incarnation_number()),
                  .obeyed = ObeyedTc{.tc = TcId(answer.obeyed_tc()),
                                     .epoch = TcEpoch(answer.obeyed_epoch()),
                                     .nonce = answer.obeyed_nonce()},
                  .log_durable = Lsn(answer.log_durable()),
                  .applied = FromWire(answer.applied()),
                  .stable = FromWire(answer.stable()),
                  .free_bytes = answer.free_bytes(),
                  .tables = {},
                  .knows_table_options = answer.knows_table_options()};
  DEUT_RETURN_IF_ERROR(FromWire(answer.tables(), &out.tables));
  return out;
}

void ToWire(const DataRequest& request, uint64_t id, wire::DataItem* out) {
  out->set_id(id);
  out->set_table(request.table.value);
  if (request.kind == DataRequest::Kind::kRead) {
    out->set_kind(wire::DATA_READ);
    out->set_key(request.key.data(), request.key.size());
    return;
  }
  out->set_kind(wire::DATA_SCAN);
  out->set_low(request.low.data(), request.low.size());
  out->set_high(request.high.data(), request.high.size());
  out->set_direction(DirectionToWire(request.direction));
  out->set_limit_records(request.limit_records);
  out->set_limit_bytes(request.limit_bytes);
}

size_t WireBytes(const DataRequest& request) {
  constexpr size_t kFixedBytes = 40;
  return kFixedBytes +
         (request.kind == DataRequest::Kind::kRead ? request.key.size() : request.low.size() + request.high.size());
}

Status FromWire(const wire::DataItem& item, const Sender& sender, DataRequest* out) {
  out->sender = sender;
  out->table = TableId(item.table());
  switch (item.kind()) {
    case wire::DATA_READ:
      out->kind = DataRequest::Kind::kRead;
      out->key = item.key();
      return CheckKey("key", out->key);
    case wire::DATA_SCAN:
      out->kind = DataRequest::Kind::kScan;
      out->low = item.low();
      out->high = item.high();
      out->limit_records = item.limit_records();
      out->limit_bytes = item.limit_bytes();
      DEUT_RETURN_IF_ERROR(CheckBound("low", out->low));
      DEUT_RETURN_IF_ERROR(CheckBound("high", out->high));
      DEUT_RETURN_IF_ERROR(CheckFigure("limit_bytes", out->limit_bytes, 1, kMaxScanBytes));
      return FromWire(item.direction(), &out->direction);
    default:
      return DEUT_ERROR(kInvalidArgument, "kind: ", static_cast<int>(item.kind()), " is none (1 read, 2 scan)");
  }
}

void ToWire(const DataRequest& request, uint64_t id, wire::DataAnswer* out) {
  out->set_id(id);
  if (!request.status.ok()) {
    ToWire(request.status, out->mutable_status());
    return;
  }
  out->set_records(request.answer.bytes());
  if (request.kind == DataRequest::Kind::kScan) {
    out->set_complete(request.complete);
    out->set_covered(request.covered);
  }
}

void FromWire(wire::DataAnswer* answer, DcIncarnation answered_by, DataRequest* request) {
  request->answered_by = answered_by;
  request->answer.Clear();
  request->complete = false;
  request->covered.clear();
  request->status = FillAnswer(answer, request);
}

void ToWire(const Sender& sender, const ScanSpec& spec, wire::ScanOpen* out) {
  ToWire(sender, out->mutable_sender());
  out->set_table(spec.table.value);
  out->set_low(spec.range.low);
  out->set_high(spec.range.high);
  out->set_direction(DirectionToWire(spec.direction));
  out->set_batch_bytes(spec.batch_bytes);
}

Status FromWire(const wire::ScanOpen& open, Sender* sender, ScanSpec* out) {
  *sender = FromWire(open.sender());
  out->table = TableId(open.table());
  DEUT_RETURN_IF_ERROR(CheckBound("low", open.low()));
  DEUT_RETURN_IF_ERROR(CheckBound("high", open.high()));
  DEUT_RETURN_IF_ERROR(CheckFigure("batch_bytes", open.batch_bytes(), 1, kMaxScanBytes));
  out->range = KeyRange{.low = open.low(), .high = open.high()};
  out->batch_bytes = open.batch_bytes();
  return FromWire(open.direction(), &out->direction);
}

void ToWire(const ScanBatch& batch, wire::ScanAnswer* out) {
  out->set_records(batch.records.bytes());
  out->set_complete(batch.complete);
  out->set_covered(batch.covered);
}

Status FromWire(wire::ScanAnswer* answer, const ScanSpec& spec, ScanBatch* out) {
  DEUT_RETURN_IF_ERROR(FromWire(answer->status()));
  out->complete = answer->complete();
  out->covered.clear();
  DEUT_ASSIGN_OR_RETURN(out->records, RecordBatch::Parse(std::move(*answer->mutable_records())));
  // Unlike a short scan's answer, a batch may cover nothing new, because the grant may have allowed no more.
  DEUT_RETURN_IF_ERROR(
      CheckRecords(out->records, out->complete, answer->covered(), spec.range.low, spec.range.high, spec.direction));
  out->covered.swap(*answer->mutable_covered());
  return Status::Ok();
}

Status CheckSendable(const LogBatch& batch) {
  if (batch.entries.size() > kMaxLogBatchBytes) {
    return DEUT_ERROR(kInvalidArgument, "entries: a log batch of ", batch.entries.size(), " bytes; at most ",
                      kMaxLogBatchBytes, " bytes travel in one batch");
  }
  return Status::Ok();
}

void ToWire(const LogBatch& batch, wire::ApplyLogBatch* out) {
  ToWire(batch.from, out->mutable_from());
  ToWire(batch.to, out->mutable_to());
  out->set_entries(batch.entries);
  out->set_durable(batch.durable.value);
  out->set_crc32c(batch.Checksum());
}

Status FromWire(wire::ApplyLogBatch* batch, LogBatch* out) {
  out->from = FromWire(batch->from());
  out->to = FromWire(batch->to());
  out->entries.swap(*batch->mutable_entries());
  out->durable = Lsn(batch->durable());
  DEUT_RETURN_IF_ERROR(CheckSendable(*out));
  const uint32_t checksum = out->Checksum();
  if (checksum != batch->crc32c() && DEUT_STEP("wire.checksum")) {
    return DEUT_ERROR(kCorruption, "crc32c: ", batch->crc32c(), " came with the log batch (", PositionText(out->from),
                      ", ", PositionText(out->to), "] of ", out->entries.size(), " bytes, its bytes have ", checksum);
  }
  Status valid = out->Validate();
  if (!valid.ok()) {
    return Status(valid.code(),
                  Concat("log batch (", PositionText(out->from), ", ", PositionText(out->to), "]: ", valid.message()));
  }
  return Status::Ok();
}

void ToWire(const ApplyAck& ack, wire::ApplyLogAck* out) {
  out->set_incarnation(ack.incarnation.value);
  ToWire(ack.applied, out->mutable_applied());
  ToWire(ack.stable, out->mutable_stable());
  out->set_free_bytes(ack.free_bytes);
}

ApplyAck FromWire(const wire::ApplyLogAck& ack) {
  return ApplyAck{.incarnation = DcIncarnation(ack.incarnation()),
                  .applied = FromWire(ack.applied()),
                  .stable = FromWire(ack.stable()),
                  .free_bytes = ack.free_bytes()};
}

Status FromWire(const wire::PartitionRequest& request, Sender* sender, TableId* table, uint32_t* pieces) {
  *sender = FromWire(request.sender());
  *table = TableId(request.table());
  *pieces = request.pieces();
  return CheckFigure("pieces", request.pieces(), 1, kMaxPartitions);
}

void ToWire(const Result<std::vector<std::string>>& keys, wire::PartitionAnswer* out) {
  if (!keys.ok()) {
    ToWire(keys.status(), out->mutable_status());
    return;
  }
  for (const std::string& key : *keys) out->add_keys(key);
}

Result<std::vector<std::string>> FromWire(const wire::PartitionAnswer& answer, uint32_t pieces) {
  DEUT_RETURN_IF_ERROR(FromWire(answer.status()));
  if (static_cast<uint32_t>(answer.keys_size()) >= pieces) {
    return DEUT_ERROR(kCorruption, "keys: ", answer.keys_size(), " keys in answer to ", pieces, " pieces");
  }
  std::vector<std::string> keys;
  keys.reserve(answer.keys_size());
  for (const std::string& key : answer.keys()) {
    if (key.empty() || key.size() > kMaxBoundBytes || (!keys.empty() && key <= keys.back())) {
      return DEUT_ERROR(kCorruption, "keys[", keys.size(), "]: ", key.size(),
                        " bytes, or not behind the key before it");
    }
    keys.push_back(key);
  }
  return keys;
}

}  // namespace deut
