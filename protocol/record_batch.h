// RecordBatch: records of one answer in one contiguous buffer. The DC fills it, the wire carries it as it is, and readers get
// views into it. Records stand in the order of the scan (ascending or descending keys).
//
// Grammar (little-endian):
//   batch  := record*
//   record := key_bytes:u16 value_bytes:u32 timestamp:u64 sequence:u32 key value
// Bytes from a peer are checked once, by Parse; iteration afterwards trusts them.
// Thread-safety: none of its own. Ownership: owns the buffer; views live until the next change of the batch.
#ifndef PROTOCOL_RECORD_BATCH_H_
#define PROTOCOL_RECORD_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"

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

  // CORRUPTION if `bytes` is not a batch (lengths beyond the end, key of 0 or over kMaxKeyBytes, value over kMaxValueBytes).
  static Result<RecordBatch> Parse(std::string bytes);

  void Append(std::string_view key, std::string_view value, Version version);
  // Appends `count` records that are already in the format. REQUIRES: they are.
  void AppendRun(std::string_view records, size_t count);
  void Clear();

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const std::string& bytes() const { return bytes_; }

  class Iterator {
   public:
    // `from`: bytes before the first record to be shown.
    explicit Iterator(const RecordBatch& batch, size_t from = 0) : rest_(std::string_view(batch.bytes_).substr(from)) {
      Read();
    }
    bool Valid() const { return valid_; }
    const RecordView& record() const { return record_; }
    void Next() { Read(); }

   private:
    void Read();
    std::string_view rest_;
    RecordView record_;
    bool valid_ = false;
  };

 private:
  std::string bytes_;
  size_t count_ = 0;
};

}  // namespace deut

#endif  // PROTOCOL_RECORD_BATCH_H_
