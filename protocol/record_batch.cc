#include "protocol/record_batch.h"

#include <utility>

namespace deut {

Result<RecordBatch> RecordBatch::Parse(std::string bytes) {
  RecordBatch batch;
  for (size_t at = 0; at < bytes.size();) {
    const size_t left = bytes.size() - at;
    if (left < kHeaderBytes) {
      return DEUT_ERROR(kCorruption, "record batch: ", left, " bytes at offset ", at, ", a record's header needs ",
                        kHeaderBytes);
    }
    const char* record = bytes.data() + at;
    const size_t key_bytes = LoadU16(record);
    const size_t value_bytes = LoadU32(record + kValueBytesAt);
    if (key_bytes == 0 || key_bytes > kMaxKeyBytes) {
      return DEUT_ERROR(kCorruption, "record batch: key of ", key_bytes, " bytes at offset ", at, ", allowed are 1 to ",
                        kMaxKeyBytes);
    }
    if (value_bytes > kMaxValueBytes) {
      return DEUT_ERROR(kCorruption, "record batch: value of ", value_bytes, " bytes at offset ", at, ", the limit is ",
                        kMaxValueBytes);
    }
    const size_t record_bytes = kHeaderBytes + key_bytes + value_bytes;
    if (record_bytes > left) {
      return DEUT_ERROR(kCorruption, "record batch: record of ", record_bytes, " bytes at offset ", at, ", only ", left,
                        " are there");
    }
    batch.newest_ = std::max(batch.newest_, Timestamp(LoadU64(record + kTimestampAt)));
    at += record_bytes;
    ++batch.count_;
  }
  batch.bytes_ = std::move(bytes);
  return batch;
}

void RecordBatch::Append(std::string_view key, std::string_view value, Version version) {
  char header[kHeaderBytes];
  StoreU16(header, static_cast<uint16_t>(key.size()));
  StoreU32(header + kValueBytesAt, static_cast<uint32_t>(value.size()));
  StoreU64(header + kTimestampAt, version.timestamp.value);
  StoreU32(header + kSequenceAt, version.sequence);
  bytes_.append(header, kHeaderBytes);
  bytes_.append(key);
  bytes_.append(value);
  ++count_;
  newest_ = std::max(newest_, version.timestamp);
}

void RecordBatch::AppendRun(std::string_view records, size_t count, Timestamp newest) {
  bytes_.append(records);
  count_ += count;
  newest_ = std::max(newest_, newest);
}

void RecordBatch::Clear() {
  bytes_.clear();
  count_ = 0;
  newest_ = Timestamp();
}

}  // namespace deut
