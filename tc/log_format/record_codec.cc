#include "tc/log_format/record_codec.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/coding/fixed.h"
#include "protocol/table_options.h"

namespace deut::tc {
namespace {

// Ties a first word to its place, so that neither stale bytes nor bytes of a value are taken for a record elsewhere.
uint16_t CheckBits(Lsn lsn, uint64_t low48) {
  uint64_t mixed = (lsn.value ^ (low48 * 0x9E3779B97F4A7C15u)) + 0xD1B54A32D192ED03u;
  mixed ^= mixed >> 32;
  mixed *= 0xBF58476D1CE4E5B9u;
  return static_cast<uint16_t>(mixed >> 48);
}

Status Damaged(Lsn lsn, const std::string& what) {
  return DEUT_ERROR(kCorruption, "redo log record at LSN ", lsn.value, ": ", what);
}

Status CheckUpdate(Lsn lsn, const Update& update) {
  if (update.sequence == 0) return Damaged(lsn, "update with sequence 0");
  switch (update.kind) {
    case LogEntryKind::kPut:
    case LogEntryKind::kDelete:
      if (update.key.empty() || update.key.size() > kMaxKeyBytes) return Damaged(lsn, "key length out of limits");
      if (update.value.size() > kMaxValueBytes) return Damaged(lsn, "value length out of limits");
      if (update.kind == LogEntryKind::kDelete && !update.value.empty()) return Damaged(lsn, "delete with a value");
      return Status::Ok();
    case LogEntryKind::kCreateTable:
    case LogEntryKind::kDropTable:
      if (update.key.empty() || update.key.size() > kMaxTableNameBytes)
        return Damaged(lsn, "table name length out of limits");
      if (update.kind == LogEntryKind::kCreateTable ? !DecodeTableOptions(update.value) : !update.value.empty())
        return Damaged(lsn, "table update with an unknown value");
      return Status::Ok();
    case LogEntryKind::kLowWater:
      break;
  }
  return Damaged(lsn, Concat("unknown update kind ", static_cast<int>(update.kind)));
}

// Reads the update at the front of `rest`, which holds at least its header. Returns its length, which exceeds
// rest.size() if it is cut off.
size_t ReadUpdate(std::string_view rest, Update* update) {
  const size_t key_bytes = LoadU16(rest.data() + 2);
  const size_t value_bytes = LoadU32(rest.data() + 4);
  const size_t bytes = kUpdateHeaderBytes + key_bytes + value_bytes;
  if (bytes > rest.size()) return bytes;
  update->kind = static_cast<LogEntryKind>(rest[0]);
  update->table = TableId(LoadU32(rest.data() + 8));
  update->sequence = LoadU32(rest.data() + 12);
  update->key = rest.substr(kUpdateHeaderBytes, key_bytes);
  update->value = rest.substr(kUpdateHeaderBytes + key_bytes, value_bytes);
  return bytes;
}

Status DecodeTransaction(std::string_view body, LogRecord* record) {
  if (body.size() < kTransactionHeaderBytes) return Damaged(record->lsn, "transaction header cut off");
  record->timestamp = Timestamp(LoadU64(body.data()));
  record->epoch = TcEpoch(LoadU64(body.data() + 8));
  const uint64_t chunk_bytes = uint64_t{LoadU32(body.data() + 16)} * sizeof(uint64_t);
  const uint32_t update_count = LoadU32(body.data() + 20);
  body.remove_prefix(kTransactionHeaderBytes);
  if (record->type == RecordType::kNamedCommit) {
    if (body.size() < kTransactionIdBytes) return Damaged(record->lsn, "transaction id cut off");
    record->id = TransactionId{.high = LoadU64(body.data()), .low = LoadU64(body.data() + 8)};
    if (!record->id.given()) return Damaged(record->lsn, "named commit without an id");
    record->type = RecordType::kCommit;
    body.remove_prefix(kTransactionIdBytes);
  }
  if (record->type == RecordType::kChunk && chunk_bytes != 0) return Damaged(record->lsn, "chunk that lists chunks");
  if (chunk_bytes > body.size()) return Damaged(record->lsn, "list of chunks cut off");
  record->chunks = ChunkList(body.substr(0, chunk_bytes));
  for (size_t i = 0; i < record->chunks.size(); ++i) {
    if (record->chunks[i] >= record->lsn) return Damaged(record->lsn, "commit lists a chunk that does not precede it");
  }
  body.remove_prefix(chunk_bytes);
  // Every update is checked here, because UpdateList iterates without checks. The count bounds the loop, not an allocation.
  record->updates = UpdateList(update_count, body);
  uint32_t last_sequence = 0;
  for (uint32_t i = 0; i < update_count; ++i) {
    Update update;
    if (body.size() < kUpdateHeaderBytes) return Damaged(record->lsn, "update header cut off");
    const size_t bytes = ReadUpdate(body, &update);
    if (bytes > body.size()) return Damaged(record->lsn, "update cut off");
    DEUT_RETURN_IF_ERROR(CheckUpdate(record->lsn, update));
    if (update.sequence <= last_sequence) return Damaged(record->lsn, "sequences do not rise");
    last_sequence = update.sequence;
    body.remove_prefix(bytes);
  }
  return body.empty() ? Status::Ok() : Damaged(record->lsn, "bytes behind the last update");
}

Status DecodeRedoStart(std::string_view body, LogRecord* record) {
  constexpr size_t kHeader = 16, kEntry = 24;
  if (body.size() < kHeader) return Damaged(record->lsn, "redo start cut off");
  const size_t count = LoadU32(body.data() + 8);
  if (count > kMaxKnownDcs || body.size() != kHeader + count * kEntry)
    return Damaged(record->lsn, "wrong number of positions");
  record->redo_start.lsn = Lsn(LoadU64(body.data()));
  for (size_t i = 0; i < count; ++i) {
    const char* entry = body.data() + kHeader + i * kEntry;
    record->redo_start.stable.push_back(
        {.dc = DcId(LoadU64(entry)),
         .stable = Position{.commit = Lsn(LoadU64(entry + 8)), .sequence = LoadU32(entry + 16)}});
  }
  return Status::Ok();
}

Status DecodeBody(std::string_view body, LogRecord* record) {
  const auto sized = [&](size_t bytes) {
    return body.size() == bytes ? Status::Ok() : Damaged(record->lsn, Concat("body of ", body.size(), " bytes"));
  };
  switch (record->type) {
    case RecordType::kCommit:
    case RecordType::kNamedCommit:
    case RecordType::kChunk:
      return DecodeTransaction(body, record);
    case RecordType::kLowWater:
    case RecordType::kReserveTimestamps:
    case RecordType::kOutcomeHorizon:
      DEUT_RETURN_IF_ERROR(sized(8));
      record->timestamp = Timestamp(LoadU64(body.data()));
      return Status::Ok();
    case RecordType::kTrimmed:
      DEUT_RETURN_IF_ERROR(sized(8));
      record->trimmed = Lsn(LoadU64(body.data()));
      return Status::Ok();
    case RecordType::kEpochStart:
      DEUT_RETURN_IF_ERROR(sized(24));
      record->tc = TcId(LoadU64(body.data()));
      record->epoch = TcEpoch(LoadU64(body.data() + 8));
      record->nonce = LoadU64(body.data() + 16);
      return Status::Ok();
    case RecordType::kEndOfEpoch:
      DEUT_RETURN_IF_ERROR(sized(24));
      record->cut = Cut{
          .lsn = Lsn(LoadU64(body.data())), .segment = LoadU64(body.data() + 8), .offset = LoadU64(body.data() + 16)};
      return Status::Ok();
    case RecordType::kRedoStart:
      return DecodeRedoStart(body, record);
    case RecordType::kKnownDc:
      DEUT_RETURN_IF_ERROR(sized(8));
      record->dc = DcId(LoadU64(body.data()));
      return Status::Ok();
  }
  return Damaged(record->lsn, "unknown type");
}

}  // namespace

Lsn ChunkList::operator[](size_t index) const {
  DEUT_DCHECK(index < size());
  return Lsn(LoadU64(bytes_.data() + index * sizeof(uint64_t)));
}

void UpdateList::Iterator::Read() {
  if (left_ != 0) rest_.remove_prefix(ReadUpdate(rest_, &update_));
}

uint64_t EncodeRecordWord(Lsn lsn, RecordWord word) {
  // DecodeRecordWord takes no other words.
  DEUT_DCHECK(word.bytes >= kRecordWordBytes + word.padding && word.bytes % kRecordAlignment == 0);
  const uint64_t low48 = word.bytes | (static_cast<uint64_t>(word.type) << 32) | (uint64_t{word.padding} << 40);
  return low48 | (uint64_t{CheckBits(lsn, low48)} << 48);
}

bool DecodeRecordWord(Lsn lsn, uint64_t encoded, RecordWord* word) {
  word->bytes = static_cast<uint32_t>(encoded);
  word->type = static_cast<RecordType>(encoded >> 32);
  word->padding = static_cast<uint8_t>(encoded >> 40);
  return word->bytes >= kRecordWordBytes + word->padding && word->bytes % kRecordAlignment == 0 &&
         word->padding < kRecordAlignment && word->type >= RecordType::kCommit && word->type <= RecordType::kTrimmed &&
         CheckBits(lsn, encoded & 0xFFFF'FFFF'FFFFu) == encoded >> 48;
}

size_t RecordBytesFor(size_t body_bytes) {
  return (kRecordWordBytes + body_bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

RecordWord MakeRecordWord(RecordType type, size_t body_bytes) {
  const size_t bytes = RecordBytesFor(body_bytes);
  // A shorter length would make a reader take the record's own bytes for the records behind it.
  DEUT_CHECK(bytes <= UINT32_MAX);
  return RecordWord{.bytes = static_cast<uint32_t>(bytes),
                    .type = type,
                    .padding = static_cast<uint8_t>(bytes - kRecordWordBytes - body_bytes)};
}

size_t TransactionBody::Bytes() const {
  size_t bytes = BytesBeforeUpdates();
  for (const Update& update : updates) bytes += UpdateBytes(update);
  return bytes;
}

std::string EncodeTimestampBody(Timestamp timestamp) {
  std::string body;
  AppendU64(&body, timestamp.value);
  return body;
}

std::string EncodeEpochStartBody(TcId tc, TcEpoch epoch, uint64_t nonce) {
  std::string body;
  AppendU64(&body, tc.value);
  AppendU64(&body, epoch.value);
  AppendU64(&body, nonce);
  return body;
}

std::string EncodeCutBody(const Cut& cut) {
  std::string body;
  AppendU64(&body, cut.lsn.value);
  AppendU64(&body, cut.segment);
  AppendU64(&body, cut.offset);
  return body;
}

std::string EncodeRedoStartBody(const RedoStart& redo_start) {
  DEUT_CHECK(redo_start.stable.size() <= kMaxKnownDcs);
  std::string body;
  AppendU64(&body, redo_start.lsn.value);
  AppendU32(&body, static_cast<uint32_t>(redo_start.stable.size()));
  AppendU32(&body, 0);
  for (const DcPosition& position : redo_start.stable) {
    AppendU64(&body, position.dc.value);
    AppendU64(&body, position.stable.commit.value);
    AppendU32(&body, position.stable.sequence);
    AppendU32(&body, 0);
  }
  return body;
}

std::string EncodeKnownDcBody(DcId dc) {
  std::string body;
  AppendU64(&body, dc.value);
  return body;
}

std::string EncodeTrimmedBody(Lsn lsn) {
  std::string body;
  AppendU64(&body, lsn.value);
  return body;
}

Status DecodePut(const LoggedPut& put, std::string_view bytes, std::string_view* value) {
  // The block's checksum does not show that the place is right: it may have come from a damaged spilled run, or the log
  // may have been trimmed there. The update itself says whose value it is.
  Update update;
  if (bytes.size() < kUpdateHeaderBytes || ReadUpdate(bytes, &update) > bytes.size() ||
      update.kind != LogEntryKind::kPut || update.table != put.table || update.sequence != put.sequence ||
      update.key != put.key || update.value.size() != put.value_bytes) {
    return DEUT_ERROR(kCorruption, "at LSN ", put.place.value, " of the redo log there is not update ", put.sequence,
                      " of its transaction, a put of ", put.value_bytes, " bytes to a key of ", put.key.size(),
                      " in table ", put.table.value);
  }
  *value = update.value;
  return Status::Ok();
}

Status DecodeRecord(Lsn lsn, std::string_view bytes, LogRecord* record, size_t* bytes_needed) {
  // The first word is checked before its length is trusted, so that damaged bytes cannot ask for more than a record has.
  *bytes_needed = kRecordWordBytes;
  if (bytes.size() < kRecordWordBytes) return Status::Ok();
  RecordWord word;
  if (!DecodeRecordWord(lsn, LoadU64(bytes.data()), &word)) return Damaged(lsn, "no record begins here");
  *bytes_needed = word.bytes;
  if (bytes.size() < word.bytes) return Status::Ok();
  *record = LogRecord();
  record->lsn = lsn;
  record->end = Lsn(lsn.value + word.bytes);
  record->type = word.type;
  return DecodeBody(bytes.substr(kRecordWordBytes, word.body_bytes()), record);
}

}  // namespace deut::tc
