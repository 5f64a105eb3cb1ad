#include "dc/page_store/part_format.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/coding/fixed.h"
#include "dc/page_store/frame.h"
#include "dc/page_store/part_compression.h"

namespace deut::dc {
namespace {

constexpr Frame kFrame{.magic = 0x54525044, .version = 2};  // "DPRT"
// As version 2, but with addresses of the earlier layout (PageAddress::FromNarrow).
constexpr uint16_t kNarrowVersion = 1;
// As version 2, but with a packed payload.
constexpr Frame kPackedFrame{.magic = kFrame.magic, .version = 3};

constexpr size_t kKindAt = kFrameBytes;
constexpr size_t kLevelAt = 11;
constexpr size_t kPayloadBytesAt = 12;
constexpr size_t kAddressAt = 16;
constexpr size_t kPreviousAt = 24;
constexpr size_t kPageAt = 32;
constexpr size_t kTableAt = 36;
static_assert(kTableAt + sizeof(uint32_t) == kPartHeaderBytes);

bool IsKnown(uint16_t version) { return version >= kNarrowVersion && version <= kPackedFrame.version; }

// Returns the address at `at` of a part's header, in the layout of the part's version.
PageAddress AddressAt(std::string_view header, size_t at) {
  const uint64_t raw = LoadU64(header.data() + at);
  return FrameVersion(header) == kNarrowVersion ? PageAddress::FromNarrow(raw) : PageAddress::FromRaw(raw);
}

// Checks that a header is there, and that its layout is known.
Status CheckFrame(std::string_view bytes, uint64_t at, std::string_view path) {
  if (bytes.size() < kPartHeaderBytes) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at, ": ", bytes.size(), " bytes are too few for a page part");
  }
  if (FrameMagic(bytes) != kFrame.magic) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at, ": no page part begins here");
  }
  if (const uint16_t version = FrameVersion(bytes); !IsKnown(version)) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kFrameVersionAt, ": page part of format version ", version,
                      ", this program knows ", kNarrowVersion, " to ", kPackedFrame.version);
  }
  return Status::Ok();
}

bool KindFits(PartKind kind, PageAddress previous) {
  return kind == PartKind::kBase ? previous.is_none() : kind == PartKind::kDelta && previous.valid();
}

// Adds the place to the error of a packed payload.
Status At(const Status& error, uint64_t at, std::string_view path) {
  return Status(error.code(), Concat(path, ": offset ", at, ": ", error.message()));
}

}  // namespace

void EncodePart(PartHeader header, PageAddress address, std::string_view payload, char* out) {
  DEUT_CHECK(payload.size() <= kMaxPayloadBytes && KindFits(header.kind, header.previous));
  const uint64_t bytes = PartBytesInUnits(payload.size());
  DEUT_DCHECK(address == PageAddress::Make(address.segment(), address.offset(), PartBytes(payload.size())));
  out[kKindAt] = static_cast<char>(header.kind);
  out[kLevelAt] = static_cast<char>(header.level);
  StoreU32(out + kPayloadBytesAt, static_cast<uint32_t>(payload.size()));
  StoreU64(out + kAddressAt, address.raw());
  StoreU64(out + kPreviousAt, header.previous.raw());
  StoreU32(out + kPageAt, header.page.value);
  StoreU32(out + kTableAt, header.table.value);
  std::memcpy(out + kPartHeaderBytes, payload.data(), payload.size());
  const uint64_t used = PartBytes(payload.size());
  std::memset(out + used, 0, bytes - used);
  SealFrame(header.packed ? kPackedFrame : kFrame, out, bytes);
}

uint64_t ClaimedBytesInUnits(std::string_view header) {
  return PartBytesInUnits(LoadU32(header.data() + kPayloadBytesAt));
}

bool PartBeginsAt(std::string_view bytes) { return LoadU64(bytes.data()) != 0; }

bool ClaimsPlace(std::string_view header, uint64_t segment, uint64_t offset) {
  if (FrameMagic(header) != kFrame.magic || !IsKnown(FrameVersion(header))) return false;
  const PageAddress address = AddressAt(header, kAddressAt);
  return address.valid() && address.segment() == segment && address.offset() == offset;
}

Result<PartView> DecodePart(std::string_view bytes, PageAddress address, std::optional<PageId> expected_page,
                            std::string_view path) {
  const uint64_t at = address.offset();
  DEUT_RETURN_IF_ERROR(CheckFrame(bytes, at, path));
  const char* in = bytes.data();
  PartView part{.header = {}, .address = AddressAt(bytes, kAddressAt), .payload = {}};
  PartHeader& header = part.header;
  header.kind = static_cast<PartKind>(in[kKindAt]);
  header.level = static_cast<uint8_t>(in[kLevelAt]);
  header.payload_bytes = LoadU32(in + kPayloadBytesAt);
  header.previous = AddressAt(bytes, kPreviousAt);
  header.page = PageId(LoadU32(in + kPageAt));
  header.table = TableId(LoadU32(in + kTableAt));
  header.packed = FrameVersion(bytes) == kPackedFrame.version;
  // The own address is checked before the checksum, so that a misdirected write is reported as such.
  if (part.address != address) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kAddressAt, ": the page part says it is at segment ",
                      part.address.segment(), " offset ", part.address.offset(), ", not at segment ", address.segment(),
                      " offset ", at, ", or has another length");
  }
  const uint64_t length = PartBytesInUnits(header.payload_bytes);
  if (header.payload_bytes > kMaxPayloadBytes || length > bytes.size() ||
      PageAddress::Make(address.segment(), at, PartBytes(header.payload_bytes)) != address) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kPayloadBytesAt, ": a payload of ", header.payload_bytes,
                      " bytes does not fit the ", bytes.size(), " bytes there are, or the part's address");
  }
  // From here on the part lies within `bytes`, so the checksum may be computed.
  if (!FrameChecksumFits(bytes.substr(0, length))) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kFrameChecksumAt,
                      ": the checksum does not fit the page part, ", length, " bytes from offset ", at);
  }
  if (!KindFits(header.kind, header.previous)) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kKindAt, ": a page part of kind ", int{in[kKindAt]},
                      " with previous part ", header.previous.raw());
  }
  if (expected_page && header.page != *expected_page) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + kPageAt, ": a part of page ", header.page.value,
                      ", not of page ", expected_page->value);
  }
  const std::string_view filling =
      bytes.substr(PartBytes(header.payload_bytes), length - PartBytes(header.payload_bytes));
  if (std::ranges::any_of(filling, [](char c) { return c != 0; })) {
    return DEUT_ERROR(kCorruption, path, ": offset ", at + PartBytes(header.payload_bytes),
                      ": not zeros behind the page part");
  }
  part.payload = bytes.substr(kPartHeaderBytes, header.payload_bytes);
  if (!header.packed) return part;
  const Result<PackedHeader> packed = ReadPackedHeader(part.payload);
  if (!packed.ok()) return At(packed.status(), at + kPartHeaderBytes, path);
  part.compression = packed->algorithm;
  return part;
}

Result<PartView> DecodePartAt(std::string_view bytes, uint64_t segment, uint64_t offset, std::string_view path) {
  DEUT_RETURN_IF_ERROR(CheckFrame(bytes, offset, path));
  const PageAddress address = AddressAt(bytes, kAddressAt);
  if (!address.valid() || address.segment() != segment || address.offset() != offset) {
    return DEUT_ERROR(kCorruption, path, ": offset ", offset + kAddressAt, ": the page part says it is at segment ",
                      address.segment(), " offset ", address.offset(), ", not at segment ", segment, " offset ",
                      offset);
  }
  return DecodePart(bytes, address, std::nullopt, path);
}

Result<PartView> UnpackPart(const PartView& part, AlignedBuffer* room, std::string_view path) {
  if (!part.header.packed) return part;
  const Result<std::string_view> content = UnpackContent(part.payload, room);
  if (!content.ok()) return At(content.status(), part.address.offset() + kPartHeaderBytes, path);
  PartView unpacked = part;
  unpacked.header.packed = false;
  unpacked.payload = *content;
  return unpacked;
}

}  // namespace deut::dc
