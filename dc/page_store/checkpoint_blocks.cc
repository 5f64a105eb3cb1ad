#include "dc/page_store/checkpoint_blocks.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "dc/page_store/checkpoint_format.h"

namespace deut::dc {

Result<CheckpointBlocks> CheckpointBlocks::Open(Storage& storage, std::string path, CheckpointNumber number, DcId dc) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, storage.Open(path, {.direct = true}));
  DEUT_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  return CheckpointBlocks(std::move(file), std::move(path), number, dc, bytes);
}

uint64_t CheckpointBlocks::count() const {
  return std::max<uint64_t>((bytes_ + kCheckpointBlockBytes - 1) / kCheckpointBlockBytes, 1);
}

Status CheckpointBlocks::Refuse(uint64_t offset, std::string_view reason) const {
  return DEUT_ERROR(kCorruption, path_, ": offset ", offset, ": ", reason);
}

Result<CheckpointBlocks::Links> CheckpointBlocks::Read(uint64_t first, uint64_t count, Use use) const {
  DEUT_CHECK(count > 0);
  AlignedBuffer buffer(count * kCheckpointBlockBytes);
  DEUT_ASSIGN_OR_RETURN(const size_t read, file_->Read(first * kCheckpointBlockBytes, buffer.data(), buffer.size()));
  std::string_view rest(buffer.data(), read);
  Links links;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view bytes = rest.substr(0, kCheckpointBlockBytes);
    rest.remove_prefix(bytes.size());
    if (i == 0 && first != 0) links.before = PredecessorOfCheckpointBlock(bytes);
    CheckpointBlock block{.checkpoint = number_,
                          .dc = dc_,
                          .offset = (first + i) * kCheckpointBlockBytes,
                          .predecessor = i == 0 ? links.before : links.last};
    DEUT_ASSIGN_OR_RETURN(links.last, OpenCheckpointBlock(bytes, &block, path_));
    const uint64_t end = block.offset + kCheckpointBlockBytes;
    if (block.last && end != bytes_) {
      return Refuse(end, Concat("the checkpoint ends, the file has ", bytes_, " bytes"));
    }
    if (!block.last && end >= bytes_) return Refuse(end, "the file ends, the checkpoint does not");
    DEUT_RETURN_IF_ERROR(
        use(bytes.substr(kCheckpointBlockHeaderBytes, block.payload_bytes), block.offset, block.version));
  }
  return links;
}

Status CheckpointBlocks::ExpectBlocks(uint64_t expected) const {
  if (bytes_ == expected * kCheckpointBlockBytes) return Status::Ok();
  return Refuse(bytes_, Concat("the file ends, a later checkpoint names ", expected, " blocks of it"));
}

Status CheckpointBlocks::ExpectChecksum(uint32_t last, uint32_t expected) const {
  if (last == expected) return Status::Ok();
  return Refuse(bytes_ - kCheckpointBlockBytes, "a later checkpoint names another file of this number");
}

}  // namespace deut::dc
