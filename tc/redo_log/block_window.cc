#include "tc/redo_log/block_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace deut::tc {

Result<const char*> BlockWindow::Load(File& file, uint64_t offset, size_t bytes, uint64_t limit) {
  if (file_ != &file || offset < begin_ || offset + bytes > end_) {
    const size_t wanted = std::min<uint64_t>(std::max(bytes, window_bytes_), RoundUpToIo(limit - offset));
    DEUT_DCHECK(bytes <= wanted);  // the block ends within the file
    EnsureSize(wanted, &buffer_);
    file_ = nullptr;
    Result<size_t> got = ahead_ == nullptr ? file.Read(offset, buffer_.data(), wanted)
                                           : ahead_->Read(file, offset, buffer_.data(), wanted, RoundUpToIo(limit));
    DEUT_ASSIGN_OR_RETURN(const size_t read, std::move(got));
    std::memset(buffer_.data() + read, 0, wanted - read);
    file_ = &file;
    begin_ = offset;
    end_ = offset + wanted;
  }
  return buffer_.data() + (offset - begin_);
}

Result<bool> BlockWindow::IsZero(File& file, uint64_t file_bytes, uint64_t offset) {
  DEUT_ASSIGN_OR_RETURN(const char* const bytes, Load(file, offset, kBlockAlignment, file_bytes));
  return std::all_of(bytes, bytes + kBlockAlignment, [](char byte) { return byte == 0; });
}

Result<BlockWindow::Block> BlockWindow::Read(File& file, uint64_t number, uint64_t segment_bytes, uint64_t offset,
                                             const SipHashKey* key) {
  const auto damaged = [&](const Status& why) {
    return DEUT_ERROR(kCorruption, file.path(), " at offset ", offset, ": ", why.message());
  };
  if (offset % kBlockAlignment != 0 || offset + kBlockAlignment > segment_bytes) {
    return damaged(DEUT_ERROR(kCorruption, "the segment ends"));
  }
  Block block;
  DEUT_ASSIGN_OR_RETURN(block.bytes, Load(file, offset, kBlockAlignment, segment_bytes));
  const Status header = ReadBlockHeader(block.bytes, number, offset, segment_bytes - offset, &block.header);
  if (!header.ok()) return damaged(header);
  if (key != nullptr && !IsSealed(block.bytes, *key))
    return damaged(DEUT_ERROR(kCorruption, "the block header does not have the seal of this log"));
  DEUT_ASSIGN_OR_RETURN(block.bytes, Load(file, offset, block.header.block_bytes, segment_bytes));
  Result<uint32_t> checksum = VerifyBlock(block.bytes, block.header);
  if (!checksum.ok()) return damaged(checksum.status());
  block.checksum = *checksum;
  return block;
}

}  // namespace deut::tc
