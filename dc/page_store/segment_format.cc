#include "dc/page_store/segment_format.h"

#include <algorithm>
#include <cstring>

#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "dc/page_store/hex_name.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {
namespace {

constexpr std::string_view kMagic = "DEUTPSEG";
constexpr uint16_t kVersion = 2;
constexpr uint16_t kPackedVersion = 3;  // as version 2, of a segment that may have packed parts
constexpr uint16_t kOldestVersion = 1;

constexpr size_t kVersionAt = 8;
constexpr size_t kKindAt = 10;
constexpr size_t kChecksumAt = 12;
constexpr size_t kNumberAt = 16;
constexpr size_t kDcAt = 24;
constexpr size_t kCapacityAt = 32;
constexpr size_t kEnd = 40;

constexpr std::string_view kBasePrefix = "base-";
constexpr std::string_view kDeltaPrefix = "delta-";
constexpr std::string_view kSuffix = ".seg";

// The checksum of the whole block, with zeros in place of the checksum itself.
uint32_t ChecksumOf(const char* block) {
  const uint32_t before = Crc32c(block, kChecksumAt);
  const char zeros[sizeof(uint32_t)] = {};
  const uint32_t with = ExtendCrc32c(before, zeros, sizeof(zeros));
  return ExtendCrc32c(with, block + kNumberAt, kSegmentHeaderBytes - kNumberAt);
}

}  // namespace

void EncodeSegmentHeader(const SegmentHeader& header, char* out) {
  std::memset(out, 0, kSegmentHeaderBytes);
  std::memcpy(out, kMagic.data(), kMagic.size());
  StoreU16(out + kVersionAt, header.packed_parts ? kPackedVersion : kVersion);
  out[kKindAt] = static_cast<char>(header.kind);
  StoreU64(out + kNumberAt, header.number);
  StoreU64(out + kDcAt, header.dc.value);
  StoreU64(out + kCapacityAt, header.capacity_bytes);
  StoreU32(out + kChecksumAt, ChecksumOf(out));
}

Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes, std::string_view path) {
  if (bytes.size() < kSegmentHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return DEUT_ERROR(kCorruption, path, ": offset 0: not a segment of page parts (", bytes.size(), " bytes)");
  }
  const char* in = bytes.data();
  if (ChecksumOf(in) != LoadU32(in + kChecksumAt)) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kChecksumAt, ": the checksum does not fit the segment's header");
  }
  const uint16_t version = LoadU16(in + kVersionAt);
  if (version < kOldestVersion || version > kPackedVersion) {
    return DEUT_ERROR(kVersionMismatch, path, ": offset ", kVersionAt, ": format version ", version,
                      ", this program knows ", kOldestVersion, " to ", kPackedVersion);
  }
  SegmentHeader header;
  header.kind = static_cast<SegmentKind>(in[kKindAt]);
  header.number = LoadU64(in + kNumberAt);
  header.dc = DcId(LoadU64(in + kDcAt));
  header.capacity_bytes = LoadU64(in + kCapacityAt);
  header.packed_parts = version == kPackedVersion;
  if (header.kind != SegmentKind::kBase && header.kind != SegmentKind::kDelta) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kKindAt, ": a segment of kind ", int{in[kKindAt]});
  }
  if (header.number == 0 || header.number > PageAddress::kMaxSegment) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kNumberAt, ": segment number ", header.number);
  }
  if (header.capacity_bytes <= kSegmentHeaderBytes || header.capacity_bytes % kIoAlignment != 0 ||
      header.capacity_bytes > PageAddress::kMaxOffset) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kCapacityAt, ": a segment of ", header.capacity_bytes, " bytes");
  }
  const std::string_view rest = bytes.substr(kEnd, kSegmentHeaderBytes - kEnd);
  if (in[kKindAt + 1] != 0 || std::ranges::any_of(rest, [](char c) { return c != 0; })) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kEnd, ": not zeros behind the segment's header");
  }
  return header;
}

std::string SegmentName(SegmentKind kind, uint64_t number) {
  return HexName(kind == SegmentKind::kBase ? kBasePrefix : kDeltaPrefix, number, kSuffix);
}

bool ParseSegmentName(std::string_view name, SegmentKind* kind, uint64_t* number) {
  if (ParseHexName(name, kBasePrefix, kSuffix, number)) {
    *kind = SegmentKind::kBase;
  } else if (ParseHexName(name, kDeltaPrefix, kSuffix, number)) {
    *kind = SegmentKind::kDelta;
  } else {
    return false;
  }
  return *number >= 1 && *number <= PageAddress::kMaxSegment;
}

}  // namespace deut::dc
