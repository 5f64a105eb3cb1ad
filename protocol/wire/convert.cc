#include "protocol/wire/convert.h"

#include <algorithm>
#include <limits>

#include "common/base/concat.h"
#include "protocol/limits.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

std::string Shown(std::string_view bytes) {
  constexpr size_t kMaxShownBytes = 64;
  return Concat(Quoted(bytes.substr(0, kMaxShownBytes)), bytes.size() > kMaxShownBytes ? "..." : "");
}

}  // namespace

void ToWire(const Status& status, wire::Status* out) {
  if (status.ok()) return;
  out->set_code(static_cast<uint32_t>(status.code()));
  out->set_message(std::string(status.message().substr(0, kMaxStatusMessageBytes)));
  out->set_retry_after_ms(status.retry_after_ms());
  if (const AbortInfo* abort = status.abort()) {
    wire::AbortInfo* info = out->mutable_abort();
    info->set_reason(static_cast<uint32_t>(abort->reason));
    info->set_table(abort->table);
    info->set_key(abort->key);
    info->set_other_timestamp(abort->other_timestamp);
  }
}

Status FromWire(const wire::Status& status) {
  if (status.code() == 0) return Status::Ok();
  const ErrorCode code = ErrorCodeFromNumber(status.code());
  std::string message = status.message().substr(0, kMaxStatusMessageBytes);
  if (code != ErrorCode::kAborted) {
    if (code == ErrorCode::kInternal && status.code() != static_cast<uint32_t>(code)) {
      message = Concat("the peer's error ", status.code(), ", unknown to this version: ", message);
    }
    return Status(code, std::move(message)).WithRetryAfter(status.retry_after_ms());
  }
  AbortInfo info;
  // A reason that this program does not know is shown as "unknown".
  info.reason =
      static_cast<AbortReason>(std::min<uint32_t>(status.abort().reason(), std::numeric_limits<uint8_t>::max()));
  info.table = status.abort().table();
  info.key = status.abort().key();
  info.other_timestamp = status.abort().other_timestamp();
  return Status::Aborted(std::move(info), std::move(message)).WithRetryAfter(status.retry_after_ms());
}

void ToWire(Position position, wire::Position* out) {
  out->set_commit_lsn(position.commit.value);
  out->set_sequence(position.sequence);
}

Position FromWire(const wire::Position& position) { return Position{Lsn(position.commit_lsn()), position.sequence()}; }

void ToWire(const std::vector<TableInfo>& tables, google::protobuf::RepeatedPtrField<wire::TableInfo>* out) {
  for (const TableInfo& table : tables) {
    wire::TableInfo* item = out->Add();
    item->set_id(table.id.value);
    item->set_name(table.name);
    item->set_records(table.records);
    item->set_bytes(table.bytes);
    item->set_dropped(table.dropped);
  }
}

Status FromWire(const google::protobuf::RepeatedPtrField<wire::TableInfo>& tables, std::vector<TableInfo>* out) {
  out->clear();
  out->reserve(tables.size());
  for (const wire::TableInfo& item : tables) {
    const bool nameless = item.dropped() && item.name().empty();
    const Status name = nameless ? Status::Ok() : CheckTableName("name", item.name());
    if (!name.ok()) return At("tables", out->size(), name);
    out->push_back(TableInfo{.id = TableId(item.id()),
                             .name = item.name(),
                             .dropped = item.dropped(),
                             .records = item.records(),
                             .bytes = item.bytes()});
  }
  return Status::Ok();
}

void ToWire(const std::vector<CounterValue>& counters, google::protobuf::RepeatedPtrField<wire::Counter>* out) {
  for (const CounterValue& counter : counters) {
    wire::Counter* item = out->Add();
    item->set_name(counter.name);
    item->set_value(counter.value);
  }
}

void FromWire(const google::protobuf::RepeatedPtrField<wire::Counter>& counters, std::vector<CounterValue>* out) {
  out->clear();
  out->reserve(counters.size());
  for (const wire::Counter& item : counters) out->push_back(CounterValue{.name = item.name(), .value = item.value()});
}

Status FromWire(wire::Direction direction, Direction* out) {
  switch (direction) {
    case wire::ASCENDING:
      *out = Direction::kAscending;
      return Status::Ok();
    case wire::DESCENDING:
      *out = Direction::kDescending;
      return Status::Ok();
    default:
      return DEUT_ERROR(kInvalidArgument, "direction: ", static_cast<int>(direction),
                        " is none (0 ascending, 1 descending)");
  }
}

uint64_t TimeoutToWire(Runtime& runtime, Deadline deadline) {
  if (deadline == kNoDeadline) return 0;
  const MonotonicTime now = runtime.Now();
  if (deadline <= now) return 1;
  return std::max<int64_t>(1, duration_cast<microseconds>(deadline - now).count());
}

Deadline DeadlineFromWire(Runtime& runtime, uint64_t timeout_us) {
  // More than ten years count as no limit, because they would overflow the clock.
  constexpr uint64_t kForeverUs = uint64_t{10} * 365 * 24 * 3600 * 1'000'000;
  if (timeout_us == 0 || timeout_us > kForeverUs) return kNoDeadline;
  return runtime.Now() + microseconds(timeout_us);
}

Status CheckKey(std::string_view field, std::string_view key) {
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return DEUT_ERROR(kInvalidArgument, field, ": a key of ", key.size(), " bytes; keys have 1 to ", kMaxKeyBytes,
                      " bytes");
  }
  return Status::Ok();
}

Status CheckBound(std::string_view field, std::string_view bound) {
  if (bound.size() > kMaxBoundBytes) {
    return DEUT_ERROR(kInvalidArgument, field, ": a bound of ", bound.size(), " bytes; at most ", kMaxBoundBytes,
                      " bytes");
  }
  return Status::Ok();
}

Status CheckTableName(std::string_view field, std::string_view name) {
  if (name.empty() || name.size() > kMaxTableNameBytes) {
    return DEUT_ERROR(kInvalidArgument, field, ": a table name of ", name.size(), " bytes; names have 1 to ",
                      kMaxTableNameBytes, " bytes");
  }
  return Status::Ok();
}

Status CheckFigure(std::string_view field, uint64_t figure, uint64_t least, uint64_t most) {
  if (figure < least || figure > most) {
    return DEUT_ERROR(kInvalidArgument, field, ": ", figure, " is not within ", least, " to ", most);
  }
  return Status::Ok();
}

Status CheckProtocolVersion(std::string_view peer, uint32_t theirs) {
  if (theirs != kProtocolVersion) {
    return DEUT_ERROR(kVersionMismatch, peer, " speaks protocol version ", theirs, ", this program version ",
                      kProtocolVersion, "; upgrade the older one");
  }
  return Status::Ok();
}

Status At(std::string_view list, size_t index, const Status& status) {
  return Status(status.code(), Concat(list, "[", index, "].", status.message()));
}

Status CheckRecordOrder(const RecordBatch& records, std::string_view low, std::string_view high, Direction direction) {
  std::string_view last;
  size_t index = 0;
  for (RecordBatch::Iterator it(records); it.Valid(); it.Next(), ++index) {
    const std::string_view key = it.record().key;
    if (key < low || (!high.empty() && key >= high)) {
      return DEUT_ERROR(kCorruption, "records[", index, "]: key ", Shown(key), " lies outside of the range asked for");
    }
    if (index != 0 && (direction == Direction::kAscending ? key <= last : key >= last)) {
      return DEUT_ERROR(kCorruption, "records[", index, "]: key ", Shown(key), " is not in order behind ", Shown(last));
    }
    last = key;
  }
  return Status::Ok();
}

}  // namespace deut
