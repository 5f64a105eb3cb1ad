// Encoding and decoding of redo log records (grammar in FORMAT.md). Encoders write into any sink with Put(const
// void*, size_t), so the ring takes records without an intermediate copy.
// Thread-safety: pure functions. Ownership: decoded views point into the caller's bytes. Errors: decoding returns
// CORRUPTION that names LSN and field; no input makes it read beyond its end.
#ifndef TC_LOG_FORMAT_RECORD_CODEC_H_
#define TC_LOG_FORMAT_RECORD_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/transaction_id.h"
#include "common/coding/fixed.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {

constexpr size_t kRecordAlignment = 8;
constexpr size_t kRecordWordBytes = 8;
constexpr size_t kTransactionHeaderBytes = 24;
constexpr size_t kUpdateHeaderBytes = 16;
constexpr size_t kTransactionIdBytes = 16;
constexpr size_t kMaxKnownDcs = 64;

// A record's first word. It is written last: a nonzero word means that the record is complete. It is never 0.
struct RecordWord {
  uint32_t bytes = 0;  // bytes of the whole record with word and padding; a multiple of 8
  RecordType type = RecordType::kCommit;
  uint8_t padding = 0;  // zero bytes at the end, 0 to 7
  size_t body_bytes() const { return bytes - kRecordWordBytes - padding; }
};

uint64_t EncodeRecordWord(Lsn lsn, RecordWord word);
// Returns false if `encoded` is not the first word of a record at `lsn`.
bool DecodeRecordWord(Lsn lsn, uint64_t encoded, RecordWord* word);
// Returns the length of a record whose body has `body_bytes`, with word and padding. It may be more than a RecordWord
// can state. A caller compares it with its limit before it makes the word.
size_t RecordBytesFor(size_t body_bytes);
// Returns the word for a record whose body has `body_bytes`. REQUIRES: RecordBytesFor(body_bytes) <= UINT32_MAX.
RecordWord MakeRecordWord(RecordType type, size_t body_bytes);

// Body of COMMIT, NAMED COMMIT (with an id) and CHUNK.
struct TransactionBody {
  Timestamp timestamp;
  TcEpoch epoch;
  absl::Span<const Update> updates;
  absl::Span<const Lsn> chunks;
  TransactionId id = {};

  size_t BytesBeforeUpdates() const {
    return kTransactionHeaderBytes + (id.given() ? kTransactionIdBytes : 0) + chunks.size() * sizeof(uint64_t);
  }
  RecordType commit_type() const { return id.given() ? RecordType::kNamedCommit : RecordType::kCommit; }
  size_t Bytes() const;
  template <typename Sink>
  void Write(Sink& sink) const {
    char header[kTransactionHeaderBytes];
    StoreU64(header, timestamp.value);
    StoreU64(header + 8, epoch.value);
    StoreU32(header + 16, static_cast<uint32_t>(chunks.size()));
    StoreU32(header + 20, static_cast<uint32_t>(updates.size()));
    sink.Put(header, sizeof(header));
    if (id.given()) {
      char named[kTransactionIdBytes];
      StoreU64(named, id.high);
      StoreU64(named + 8, id.low);
      sink.Put(named, sizeof(named));
    }
    if (!chunks.empty()) sink.Put(chunks.data(), chunks.size() * sizeof(uint64_t));
    for (const Update& update : updates) WriteUpdate(update, sink);
  }

 private:
  static_assert(sizeof(Lsn) == sizeof(uint64_t));
  template <typename Sink>
  static void WriteUpdate(const Update& update, Sink& sink) {
    char header[kUpdateHeaderBytes];
    header[0] = static_cast<char>(update.kind);
    header[1] = 0;
    StoreU16(header + 2, static_cast<uint16_t>(update.key.size()));
    StoreU32(header + 4, static_cast<uint32_t>(update.value.size()));
    StoreU32(header + 8, update.table.value);
    StoreU32(header + 12, update.sequence);
    sink.Put(header, sizeof(header));
    sink.Put(update.key.data(), update.key.size());
    if (!update.value.empty()) sink.Put(update.value.data(), update.value.size());
  }
};

inline size_t UpdateBytes(const Update& update) { return kUpdateHeaderBytes + update.key.size() + update.value.size(); }

// A body that is already encoded.
struct BytesBody {
  std::string bytes;
  size_t Bytes() const { return bytes.size(); }
  template <typename Sink>
  void Write(Sink& sink) const {
    sink.Put(bytes.data(), bytes.size());
  }
};

// Bodies of the other record types.
std::string EncodeTimestampBody(Timestamp timestamp);  // kLowWater, kReserveTimestamps, kOutcomeHorizon
std::string EncodeEpochStartBody(TcId tc, TcEpoch epoch, uint64_t nonce);
std::string EncodeCutBody(const Cut& cut);
std::string EncodeRedoStartBody(const RedoStart& redo_start);
std::string EncodeKnownDcBody(DcId dc);
std::string EncodeTrimmedBody(Lsn lsn);

// Returns the value of the put at bytes[0]. CORRUPTION, with its place, if it is not the put that `put` describes, or
// is not whole.
Status DecodePut(const LoggedPut& put, std::string_view bytes, std::string_view* value);

// Decodes the record that starts at `lsn` and at bytes[0]; `bytes` may extend beyond it. `record`'s views point into
// `bytes`. OK with *bytes_needed > bytes.size(): `bytes` does not hold a whole record, and *bytes_needed are needed.
// CORRUPTION as above.
Status DecodeRecord(Lsn lsn, std::string_view bytes, LogRecord* record, size_t* bytes_needed);

}  // namespace deut::tc

#endif  // TC_LOG_FORMAT_RECORD_CODEC_H_
