// BlockWindow: reads blocks out of segment files, with one large read for many small blocks. A reader of whole files
// can pass `ahead`, which keeps several such reads in flight; otherwise `ahead` is null.
// Thread-safety: one thread at a time. Ownership: owns its buffers; a block's bytes live until the next call. With
// `ahead`, a file outlives the next call for another file, Clear, or the window.
// Errors: IO_ERROR when a read fails; CORRUPTION, with file and offset, when no valid block is there.
#ifndef TC_REDO_LOG_BLOCK_WINDOW_H_
#define TC_REDO_LOG_BLOCK_WINDOW_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/file_read_ahead.h"

namespace deut::tc {

// Grows `buffer`, without keeping its contents, to at least `bytes`.
inline void EnsureSize(size_t bytes, AlignedBuffer* buffer) {
  if (buffer->size() < bytes) *buffer = AlignedBuffer(std::bit_ceil(std::max(bytes, kIoAlignment)));
}

class BlockWindow {
 public:
  struct Block {
    BlockHeader header;
    uint32_t checksum = 0;
    const char* bytes = nullptr;
    std::string_view payload() const { return {bytes + kBlockHeaderBytes, header.payload_bytes}; }
  };

  explicit BlockWindow(size_t window_bytes = size_t{1} << 20, std::unique_ptr<FileReadAhead> ahead = nullptr)
      : window_bytes_(window_bytes), ahead_(std::move(ahead)) {}

  // Returns the verified block at `offset` of the segment `number`, which has `segment_bytes` (or was cut shorter).
  // `key`, unless null, is the key of the log; the block must have its seal. The seal is checked before the checksum,
  // so that client bytes that are shaped like blocks cost no more than zeros.
  Result<Block> Read(File& file, uint64_t number, uint64_t segment_bytes, uint64_t offset,
                     const SipHashKey* key = nullptr);

  // True if the 4 KiB at `offset` of a file of `file_bytes` are zeros. Invalidates the last Block.
  Result<bool> IsZero(File& file, uint64_t file_bytes, uint64_t offset);

  // True if these bytes of the file that was read last are buffered.
  bool Holds(uint64_t offset, uint64_t bytes) const { return offset >= begin_ && offset + bytes <= end_; }

  // Drops the buffered bytes: the file may have changed.
  void Clear() {
    file_ = nullptr;
    if (ahead_ != nullptr) ahead_->Clear();
  }

 private:
  // Makes [offset, offset + bytes) readable. Bytes beyond the end of the file read as zeros.
  Result<const char*> Load(File& file, uint64_t offset, size_t bytes, uint64_t limit);

  const size_t window_bytes_;
  std::unique_ptr<FileReadAhead> ahead_;
  AlignedBuffer buffer_;
  const File* file_ = nullptr;
  uint64_t begin_ = 0, end_ = 0;  // the range of file_ that buffer_ holds
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_BLOCK_WINDOW_H_
