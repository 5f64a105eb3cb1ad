// Reads any bytes as a page part, as a segment's header, and as a segment's file behind a valid header. Either they
// are refused, or the encoder makes exactly these bytes of the result. Bytes of an earlier version are an exception:
// the encoder makes bytes of today's version, which decode to the same. The bytes are used as they are, and sealed
// (with the right magic, version, place and checksum), so that the code behind those checks is reached. They are also
// packed and unpacked.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/part_compression.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {
namespace {

constexpr uint16_t kNarrowVersion = 1;
constexpr uint16_t kPresentVersion = 2;
constexpr uint16_t kPackedVersion = 3;

// Returns the version that the sealed bytes have: the one that they state, if it is known.
uint16_t SealedVersion(uint16_t stated) {
  return stated == kNarrowVersion || stated == kPackedVersion ? stated : kPresentVersion;
}

// Returns the bits of an address in the layout of a part's version. REQUIRES: the offset fits that layout.
uint64_t RawOf(PageAddress address, uint16_t version) {
  if (version != kNarrowVersion) return address.raw();
  return (address.segment() << 23) | (address.offset() / PageAddress::kUnitBytes << 8) | (address.raw() & 0xFF);
}

void PlayPart(std::string_view bytes, PageAddress address) {
  const auto part = DecodePart(bytes, address, std::nullopt, "fuzz");
  if (!part.ok()) {
    DEUT_CHECK(part.status() == ErrorCode::kCorruption);
    return;
  }
  std::string again(PartBytesInUnits(part->payload.size()), '\0');
  EncodePart(part->header, address, part->payload, again.data());
  if (LoadU16(bytes.data() + 8) != kNarrowVersion) {
    DEUT_CHECK(bytes.substr(0, again.size()) == again);
  } else {
    const auto second = DecodePart(again, address, std::nullopt, "fuzz");
    DEUT_CHECK(second.ok() && second->header == part->header && second->payload == part->payload);
  }
  DEUT_CHECK(!DecodePart(bytes, address, PageId(part->header.page.value + 1), "fuzz").ok());
  AlignedBuffer room;
  const auto unpacked = UnpackPart(*part, &room, "fuzz");
  DEUT_CHECK(unpacked.ok() || (part->header.packed && unpacked.status() == ErrorCode::kCorruption));
  DEUT_CHECK(!unpacked.ok() || (!unpacked->header.packed && unpacked->payload.size() <= kMaxContentBytes));
}

// Takes the bytes as content, and as a packed payload.
void PlayContent(std::string_view bytes) {
  AlignedBuffer packed_room, room;
  for (const Compression algorithm : {Compression::kLz4, Compression::kZstd}) {
    const auto packed = PackContent(algorithm, bytes, &packed_room);
    if (!packed) continue;
    DEUT_CHECK(packed->size() < bytes.size());
    const auto content = UnpackContent(*packed, &room);
    DEUT_CHECK(content.ok() && *content == bytes);
  }
  if (bytes.size() < kPackedHeaderBytes) return;
  std::string payload(bytes);
  StoreU32(payload.data(), bytes[0] % 2 == 0 ? 2 : 3);
  // Longer contents are possible, but slow.
  StoreU32(payload.data() + 4, LoadU32(bytes.data() + 4) % (1 << 20));
  for (const std::string_view each : {bytes, std::string_view(payload)}) {
    const auto content = UnpackContent(each, &room);
    DEUT_CHECK(content.ok() ? content->size() <= kMaxContentBytes : content.status() == ErrorCode::kCorruption);
  }
}

// Encodes the fields kind, level, length, previous part, page, table, at the place of `address`. The version is the
// one that the bytes state if it is known, or else the present one.
std::string SealedPart(std::string_view bytes, PageAddress address) {
  std::string part(std::max<size_t>(bytes.size(), PageAddress::kUnitBytes), '\0');
  std::memcpy(part.data(), bytes.data(), bytes.size());
  StoreU32(part.data(), 0x54525044);
  const uint16_t version = SealedVersion(LoadU16(part.data() + 8));
  StoreU16(part.data() + 8, version);
  StoreU64(part.data() + 16, RawOf(address, version));
  const uint64_t claimed = ClaimedBytesInUnits(part);
  if (claimed <= part.size()) StoreU32(part.data() + 4, Crc32c(part.data() + 8, claimed - 8));
  return part;
}

void PlayParts(std::string_view bytes) {
  const PageAddress address =
      PageAddress::Make(3, 4096, PartBytes(bytes.size() > 15 ? LoadU32(bytes.data() + 12) % 4000 : 0));
  PlayPart(bytes, address);
  std::string lengthened(bytes.substr(0, 16));
  if (lengthened.size() == 16) StoreU32(lengthened.data() + 12, LoadU32(bytes.data() + 12) % 4000);
  lengthened += bytes.substr(std::min<size_t>(bytes.size(), 16));
  lengthened.resize(std::max<size_t>(lengthened.size(), 4096), '\0');
  PlayPart(SealedPart(lengthened, address), address);
}

void PlaySegmentHeader(std::string_view bytes) {
  std::string block(kSegmentHeaderBytes, '\0');
  std::memcpy(block.data(), bytes.data(), std::min(bytes.size(), block.size()));
  for (const bool sealed : {false, true}) {
    if (sealed) {
      std::memcpy(block.data(), "DEUTPSEG", 8);
      StoreU16(block.data() + 8, SealedVersion(LoadU16(block.data() + 8)));
      StoreU32(block.data() + 12, 0);
      StoreU32(block.data() + 12, Crc32c(block));
    }
    const auto header = DecodeSegmentHeader(block, "fuzz");
    if (!header.ok()) {
      DEUT_CHECK(header.status() == ErrorCode::kCorruption || header.status() == ErrorCode::kVersionMismatch);
      continue;
    }
    std::string again(kSegmentHeaderBytes, '\0');
    EncodeSegmentHeader(*header, again.data());
    if (LoadU16(block.data() + 8) != kNarrowVersion) {
      DEUT_CHECK(again == block);
    } else {
      DEUT_CHECK(DecodeSegmentHeader(again, "fuzz").value() == *header);
    }
  }
  SegmentKind kind;
  uint64_t number;
  const std::string_view name = bytes.substr(0, 30);
  if (ParseSegmentName(name, &kind, &number)) DEUT_CHECK(SegmentName(kind, number) == name);
}

// Makes a file that a checkpoint names: parts of `bytes` at multiples of the unit, sealed if the first byte says so.
void PlaySegmentFile(std::string_view bytes) {
  const bool sealed = !bytes.empty() && bytes[0] % 2 == 1;
  std::string file(kSegmentHeaderBytes + RoundUpToIo(std::max<size_t>(bytes.size(), 1)), '\0');
  EncodeSegmentHeader({.kind = SegmentKind::kBase, .number = 1, .dc = DcId(5), .capacity_bytes = 4 << 20}, file.data());
  std::memcpy(file.data() + kSegmentHeaderBytes, bytes.data(), bytes.size());
  for (size_t at = kSegmentHeaderBytes;
       sealed && at < file.size() && PartBeginsAt(std::string_view(file).substr(at));) {
    StoreU32(file.data() + at + 12, LoadU32(file.data() + at + 12) % 300);
    const uint64_t claimed = ClaimedBytesInUnits(std::string_view(file).substr(at));
    if (claimed > file.size() - at) break;
    const PageAddress address = PageAddress::Make(1, at, PartBytes(LoadU32(file.data() + at + 12)));
    const std::string part = SealedPart(std::string_view(file).substr(at, claimed), address);
    std::memcpy(file.data() + at, part.data(), claimed);
    at += claimed;
  }
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  DEUT_CHECK(storage->CreateDirectory("/p").ok());
  const auto written = storage->Open("/p/" + SegmentName(SegmentKind::kBase, 1), {.create = true, .writable = true});
  DEUT_CHECK(written.ok() && (*written)->Write(0, file.data(), file.size()).ok());
  const std::vector<SegmentExtent> extents = {{.number = 1, .kind = SegmentKind::kBase, .written_bytes = file.size()}};
  const auto store = SegmentStore::Open(*storage, RealRuntime(), "/p", DcId(5), {}, CheckpointNumber(1), extents, 2);
  DEUT_CHECK(store.ok());
  uint64_t end = kSegmentHeaderBytes;
  std::vector<PageAddress> found;
  const auto take = [&](const PartView& part) {
    DEUT_CHECK(part.address.offset() >= end);
    end = part.address.offset() + PartBytesInUnits(part.payload.size());
    found.push_back(part.address);
    return Status::Ok();
  };
  const Status scanned = (*store)->ForEachPart(1, take);
  DEUT_CHECK(scanned.ok() || scanned == ErrorCode::kCorruption);
  // A scan that skips damage finds the same parts as before, and perhaps more.
  const size_t before = found.size();
  end = kSegmentHeaderBytes;
  found.clear();
  const Status whole = (*store)->ForEachPart(1, take, [&](const DamagedParts& damage) {
    DEUT_CHECK(damage.begin >= end && damage.end > damage.begin && damage.end <= file.size());
    DEUT_CHECK(damage.status == ErrorCode::kCorruption);
    end = damage.end;
    return Status::Ok();
  });
  DEUT_CHECK(whole.ok() && found.size() >= before);
  for (const PageAddress address : found) {
    PartBuffer buffer;
    (void)(*store)->Read(address, PageId(1), &buffer);  // usually a part of another page
    DEUT_CHECK((*store)->AddLive(address.segment(), address.length_bound()).ok());
    (*store)->MarkDead(address);
  }
}

}  // namespace
}  // namespace deut::dc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0:
      deut::dc::PlayParts(bytes);
      break;
    case 1:
      deut::dc::PlaySegmentHeader(bytes);
      break;
    case 2:
      deut::dc::PlaySegmentFile(bytes);
      break;
    default:
      deut::dc::PlayContent(bytes);
  }
  return 0;
}
