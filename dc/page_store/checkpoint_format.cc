#include "dc/page_store/checkpoint_format.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/coding/fixed.h"
#include "dc/page_store/frame.h"

namespace deut::dc {
namespace {

constexpr Frame kFrame{.magic = 0x504B4344, .version = 4};  // "DCKP"
constexpr uint16_t kOldestVersion = 1;

constexpr size_t kLastAt = kFrameBytes;
constexpr size_t kPayloadBytesAt = 12;
constexpr size_t kCheckpointAt = 16;
constexpr size_t kDcAt = 24;
constexpr size_t kOffsetAt = 32;
constexpr size_t kPredecessorAt = 40;
constexpr size_t kZeroAt = 44;
static_assert(kZeroAt + sizeof(uint32_t) == kCheckpointBlockHeaderBytes);

bool IsKnown(uint16_t version) { return version >= kOldestVersion && version <= kCheckpointVersionWithOptions; }

Status OtherVersion(uint16_t version, uint64_t block, std::string_view path) {
  return DEUT_ERROR(kVersionMismatch, path, ": offset ", block + kFrameVersionAt, ": format version ", version,
                    ", this program knows ", kOldestVersion, " to ", kCheckpointVersionWithOptions);
}

}  // namespace

uint32_t SealCheckpointBlock(const CheckpointBlock& block, char* bytes) {
  DEUT_CHECK(block.payload_bytes <= kCheckpointBlockRoom);
  DEUT_CHECK(block.version == 0 || block.version == kCheckpointVersionWithOptions);
  StoreU16(bytes + kLastAt, block.last ? 1 : 0);
  StoreU32(bytes + kPayloadBytesAt, block.payload_bytes);
  StoreU64(bytes + kCheckpointAt, block.checkpoint.value);
  StoreU64(bytes + kDcAt, block.dc.value);
  StoreU64(bytes + kOffsetAt, block.offset);
  StoreU32(bytes + kPredecessorAt, block.predecessor);
  StoreU32(bytes + kZeroAt, 0);
  const size_t used = kCheckpointBlockHeaderBytes + block.payload_bytes;
  std::memset(bytes + used, 0, kCheckpointBlockBytes - used);
  Frame frame = kFrame;
  if (block.version != 0) frame.version = block.version;
  return SealFrame(frame, bytes, kCheckpointBlockBytes);
}

Result<uint32_t> OpenCheckpointBlock(std::string_view bytes, CheckpointBlock* expected, std::string_view path) {
  const uint64_t at = expected->offset;
  if (bytes.size() < kCheckpointBlockBytes || FrameMagic(bytes) != kFrame.magic) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at, ": no block of a checkpoint (", bytes.size(), " bytes)");
  }
  const char* in = bytes.data();
  // Verifies the checksum before the version, because damage may look like another version.
  if (!FrameChecksumFits(bytes.substr(0, kCheckpointBlockBytes))) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kFrameChecksumAt,
                      ": the checksum does not fit the block at ", at);
  }
  if (!IsKnown(FrameVersion(bytes))) return OtherVersion(FrameVersion(bytes), at, path);
  const uint64_t checkpoint = LoadU64(in + kCheckpointAt), dc = LoadU64(in + kDcAt), offset = LoadU64(in + kOffsetAt);
  if (checkpoint != expected->checkpoint.value || dc != expected->dc.value || offset != at) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kCheckpointAt, ": a block of checkpoint ", checkpoint,
                      " of data component ", dc, " for offset ", offset, ", not of ", expected->checkpoint.value,
                      " of ", expected->dc.value);
  }
  if (LoadU32(in + kPredecessorAt) != expected->predecessor) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kPredecessorAt,
                      ": the block does not continue the one before");
  }
  const uint16_t last = LoadU16(in + kLastAt);
  expected->payload_bytes = LoadU32(in + kPayloadBytesAt);
  if (last > 1 || expected->payload_bytes > kCheckpointBlockRoom || LoadU32(in + kZeroAt) != 0) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kLastAt, ": the block's header does not fit");
  }
  expected->last = last == 1;
  expected->version = FrameVersion(bytes);
  const std::string_view behind =
      bytes.substr(0, kCheckpointBlockBytes).substr(kCheckpointBlockHeaderBytes + expected->payload_bytes);
  if (std::ranges::any_of(behind, [](char c) { return c != 0; })) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kCheckpointBlockHeaderBytes + expected->payload_bytes,
                      ": not zeros behind the block's records");
  }
  return FrameChecksum(bytes);
}

Result<CheckpointStart> ClassifyCheckpointStart(std::string_view bytes, std::string_view path) {
  // Classifies only by fields that every version has at the same offset, so that a newer version is refused and never
  // removed as damage.
  if (std::ranges::all_of(bytes, [](char c) { return c == 0; })) return CheckpointStart::kTorn;
  if (bytes.size() < kFrameBytes || FrameMagic(bytes) != kFrame.magic) return CheckpointStart::kUnknown;
  const bool known = IsKnown(FrameVersion(bytes));
  if (bytes.size() >= kCheckpointBlockBytes && FrameChecksumFits(bytes.substr(0, kCheckpointBlockBytes))) {
    if (known) return CheckpointStart::kWhole;
    return OtherVersion(FrameVersion(bytes), 0, path);
  }
  return known ? CheckpointStart::kTorn : CheckpointStart::kUnknown;
}

uint32_t PredecessorOfCheckpointBlock(std::string_view bytes) {
  return bytes.size() < kCheckpointBlockHeaderBytes ? 0 : LoadU32(bytes.data() + kPredecessorAt);
}

CheckpointOwner OwnerOfCheckpointBlock(std::string_view bytes) {
  return {.dc = DcId(LoadU64(bytes.data() + kDcAt)),
          .checkpoint = CheckpointNumber(LoadU64(bytes.data() + kCheckpointAt))};
}

}  // namespace deut::dc
