// RecordBatch: the records of one answer in one contiguous buffer. The DC fills it, a message carries the bytes
// unchanged, and readers get views into it. The records are in the order of the scan (ascending or descending keys).
//
// Grammar (little-endian):
//   batch  := record*
//   record := key_bytes:u16 value_bytes:u32 timestamp:u64 sequence:u32 key value
// Parse checks bytes from a peer once. Iteration afterwards trusts them.
// Thread-safety: none of its own. Ownership: owns the buffer; views live until the next change of the batch.
#ifndef PROTOCOL_RECORD_BATCH_H_
#define PROTOCOL_RECORD_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/fixed.h"

namespace deut {

struct RecordView {
  std::string_view key;
  std::string_view value;
  // The record's version, or an upper bound of it (the page's flat timestamp, rule X1).
  Version version;
};

class RecordBatch {
 public:
  static constexpr size_t kHeaderBytes = 18;

  // CORRUPTION if `bytes` is no batch (a length beyond the end, a key of 0 or over kMaxKeyBytes bytes, a value over
  // kMaxValueBytes).
  static Result<RecordBatch> Parse(std::string bytes);

  void Append(std::string_view key, std::string_view value, Version version);
  // Appends `count` records. REQUIRES: `records` has the format above, and no record has a timestamp above `newest`.
  void AppendRun(std::string_view records, size_t count, Timestamp newest);
  void Clear();
  // Makes room for `bytes` in total, so that appending up to there does not allocate.
  void Reserve(size_t bytes) { bytes_.reserve(bytes); }

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const std::string& bytes() const { return bytes_; }
  // An upper bound of the records' timestamps. Perhaps no record has it.
  Timestamp newest() const { return newest_; }

  // HOT PATH: a reader of millions of records spends its time here.
  class Iterator {
   public:
    // `from`: offset of the first record to show. REQUIRES: a record begins there, or the batch ends there.
    explicit Iterator(const RecordBatch& batch, size_t from = 0)
        : next_(batch.bytes_.data() + from), end_(batch.bytes_.data() + batch.bytes_.size()) {
      Read();
    }
    bool Valid() const { return valid_; }
    const RecordView& record() const { return record_; }
    void Next() { Read(); }

   private:
    void Read();
    const char* next_;
    const char* end_;
    RecordView record_;
    bool valid_ = false;
  };

 private:
  static constexpr size_t kValueBytesAt = 2;
  static constexpr size_t kTimestampAt = 6;
  static constexpr size_t kSequenceAt = 14;
  static_assert(kSequenceAt + sizeof(uint32_t) == kHeaderBytes);

  std::string bytes_;
  size_t count_ = 0;
  Timestamp newest_;
};

inline void RecordBatch::Iterator::Read() {
  valid_ = next_ != end_;
  if (!valid_) return;
  const char* const record = next_;
  const size_t key_bytes = LoadU16(record);
  const size_t value_bytes = LoadU32(record + kValueBytesAt);
  const char* const key = record + kHeaderBytes;
  record_.key = std::string_view(key, key_bytes);
  record_.value = std::string_view(key + key_bytes, value_bytes);
  record_.version = Version{Timestamp(LoadU64(record + kTimestampAt)), LoadU32(record + kSequenceAt)};
  next_ = key + key_bytes + value_bytes;
}

}  // namespace deut

#endif  // PROTOCOL_RECORD_BATCH_H_
