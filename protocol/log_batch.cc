#include "protocol/log_batch.h"

#include <optional>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "protocol/table_options.h"

namespace deut {
namespace {

// Offsets of an entry's fields: kind, commit LSN, sequence; then for an update: timestamp, table, key bytes, value
// bytes; for a low-water: timestamp.
constexpr size_t kLsnAt = 1;
constexpr size_t kSequenceAt = 9;
constexpr size_t kTimestampAt = 13;
constexpr size_t kLowWaterBytes = 21;
constexpr size_t kTableAt = 21;
constexpr size_t kKeyBytesAt = 25;
constexpr size_t kValueBytesAt = 27;
constexpr size_t kUpdateHeaderBytes = 31;

bool IsUpdate(LogEntryKind kind) { return kind != LogEntryKind::kLowWater; }

std::string Text(Position position) { return Concat("(", position.commit.value, ", ", position.sequence, ")"); }

// Reads the entry at the front of `bytes`, and sets `*entry_bytes` to its length. Returns nullopt if the entry does not
// fit into `bytes`, or its kind is unknown.
std::optional<LogEntryView> ReadEntry(std::string_view bytes, size_t* entry_bytes) {
  if (bytes.size() < kLowWaterBytes) return std::nullopt;
  const uint8_t kind = static_cast<uint8_t>(bytes[0]);
  if (kind < static_cast<uint8_t>(LogEntryKind::kPut) || kind > static_cast<uint8_t>(LogEntryKind::kLowWater))
    return std::nullopt;
  LogEntryView entry;
  entry.kind = static_cast<LogEntryKind>(kind);
  entry.position = Position{Lsn(LoadU64(bytes.data() + kLsnAt)), LoadU32(bytes.data() + kSequenceAt)};
  entry.timestamp = Timestamp(LoadU64(bytes.data() + kTimestampAt));
  *entry_bytes = kLowWaterBytes;
  if (!IsUpdate(entry.kind)) return entry;
  if (bytes.size() < kUpdateHeaderBytes) return std::nullopt;
  entry.table = TableId(LoadU32(bytes.data() + kTableAt));
  const size_t key_bytes = LoadU16(bytes.data() + kKeyBytesAt);
  const size_t value_bytes = LoadU32(bytes.data() + kValueBytesAt);
  if (key_bytes + value_bytes > bytes.size() - kUpdateHeaderBytes) return std::nullopt;
  entry.key = bytes.substr(kUpdateHeaderBytes, key_bytes);
  entry.value = bytes.substr(kUpdateHeaderBytes + key_bytes, value_bytes);
  *entry_bytes = kUpdateHeaderBytes + key_bytes + value_bytes;
  return entry;
}

// Describes the error in an entry alone; empty if there is none.
std::string Fault(const LogEntryView& entry) {
  if (!IsUpdate(entry.kind)) return "";
  if (entry.timestamp.value == 0) return "timestamp 0 of an update";
  if (entry.position.sequence == 0 || entry.position.sequence == UINT32_MAX)
    return "sequence of an update is not 1 to 2^32 - 2";
  const bool of_table = entry.kind == LogEntryKind::kCreateTable || entry.kind == LogEntryKind::kDropTable;
  const size_t limit = of_table ? kMaxTableNameBytes : kMaxKeyBytes;
  if (entry.key.empty() || entry.key.size() > limit) {
    return Concat(of_table ? "table name" : "key", " of ", entry.key.size(), " bytes, allowed are 1 to ", limit);
  }
  if (entry.kind == LogEntryKind::kCreateTable) {
    return DecodeTableOptions(entry.value) ? "" : "unknown options of a table";
  }
  if (entry.kind != LogEntryKind::kPut && !entry.value.empty()) return "a value where there is none";
  if (entry.value.size() > kMaxValueBytes) {
    return Concat("value of ", entry.value.size(), " bytes, the limit is ", kMaxValueBytes);
  }
  return "";
}

}  // namespace

void LogBatch::Append(const LogEntryView& entry) {
  char header[kUpdateHeaderBytes];
  header[0] = static_cast<char>(entry.kind);
  StoreU64(header + kLsnAt, entry.position.commit.value);
  StoreU32(header + kSequenceAt, entry.position.sequence);
  StoreU64(header + kTimestampAt, entry.timestamp.value);
  if (!IsUpdate(entry.kind)) {
    entries.append(header, kLowWaterBytes);
    return;
  }
  StoreU32(header + kTableAt, entry.table.value);
  StoreU16(header + kKeyBytesAt, static_cast<uint16_t>(entry.key.size()));
  StoreU32(header + kValueBytesAt, static_cast<uint32_t>(entry.value.size()));
  entries.append(header, kUpdateHeaderBytes);
  entries.append(entry.key);
  entries.append(entry.value);
}

uint32_t LogBatch::Checksum() const {
  char bounds[32];
  StoreU64(bounds, from.commit.value);
  StoreU32(bounds + 8, from.sequence);
  StoreU64(bounds + 12, to.commit.value);
  StoreU32(bounds + 20, to.sequence);
  StoreU64(bounds + 24, durable.value);
  return ExtendCrc32c(Crc32c(bounds, sizeof(bounds)), entries.data(), entries.size());
}

Status LogBatch::Validate() const {
  if (to < from)
    return DEUT_ERROR(kCorruption, "log batch: it ends at ", Text(to), " before it starts at ", Text(from));
  const std::string_view all = entries;
  Position last = from;
  Position last_update = from;
  for (size_t at = 0; at < all.size();) {
    const auto fault = [at](const auto&... what) {
      return DEUT_ERROR(kCorruption, "log batch: offset ", at, ": ", what...);
    };
    size_t entry_bytes = 0;
    const std::optional<LogEntryView> entry = ReadEntry(all.substr(at), &entry_bytes);
    if (!entry) return fault("not an entry, or cut short");
    const std::string wrong = Fault(*entry);
    if (!wrong.empty()) return fault(wrong);
    const Position position = entry->position;
    if (position <= from || to < position) {
      return fault("position ", Text(position), " is not in (", Text(from), ", ", Text(to), "]");
    }
    if (position < last) return fault("position ", Text(position), " goes down from ", Text(last));
    last = position;
    if (IsUpdate(entry->kind)) {
      if (position <= last_update) return fault("two updates at position ", Text(position));
      last_update = position;
    }
    at += entry_bytes;
  }
  return Status::Ok();
}

void LogBatch::Iterator::Read() {
  valid_ = !rest_.empty();
  if (!valid_) return;
  size_t entry_bytes = 0;
  const std::optional<LogEntryView> entry = ReadEntry(rest_, &entry_bytes);
  DEUT_CHECK(entry.has_value());
  entry_ = *entry;
  rest_.remove_prefix(entry_bytes);
}

}  // namespace deut
