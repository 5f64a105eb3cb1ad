// The bytes of a page part: one contiguous piece of a page's image on storage. A base part holds a page as of some
// moment. A delta part holds the changes of a leaf since the part that it names as `previous`. The meaning of the
// payload is up to the writer.
// Format with grammar: dc/docs/page_store.md. [LLAMA, PVLDB 6(10), 2013, section 3.2: incremental flushing]
// This program writes version 3 for parts that are packed (part_compression.h), and version 2 for all others. It also
// reads version 1, whose addresses have the earlier layout (page_address.h). A PartView has today's addresses, whatever
// the version. The checksum covers the bytes on storage, so a packed part is verified before it is decompressed.
//
// Thread-safety: pure functions. Ownership: a PartView points into the bytes it was decoded from.
// Errors: CORRUPTION naming file and offset if the bytes are not exactly this part at this place: magic, version, own
//   address, page id, lengths, checksum, padding, content. Never a failed check, never a read outside the given bytes.
#ifndef DC_PAGE_STORE_PART_FORMAT_H_
#define DC_PAGE_STORE_PART_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/compression.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

enum class PartKind : uint8_t { kBase = 1, kDelta = 2 };

struct PartHeader {
  PartKind kind = PartKind::kBase;
  uint8_t level = 0;
  PageId page = {};
  TableId table = {};
  PageAddress previous = {};   // delta part: the next older part; base part: none
  uint32_t payload_bytes = 0;  // on storage; set by the encoder
  bool packed = false;         // the payload is that of a packed part (part_compression.h)
  friend bool operator==(const PartHeader&, const PartHeader&) = default;
};

struct PartView {
  PartHeader header;
  PageAddress address;
  std::string_view payload;
  // How it is compressed on storage. Unpacking leaves this as it is.
  Compression compression = Compression::kNone;
};

constexpr size_t kPartHeaderBytes = 40;
constexpr size_t kMaxPayloadBytes = PageAddress::kMaxPartBytes - kPartHeaderBytes;
// The most bytes that a packed part has unpacked.
constexpr size_t kMaxContentBytes = kMaxPayloadBytes;

// Header and payload, without the zeros that fill the last unit.
constexpr uint64_t PartBytes(uint64_t payload_bytes) { return kPartHeaderBytes + payload_bytes; }
// With those zeros: the bytes that the part takes in its segment.
constexpr uint64_t PartBytesInUnits(uint64_t payload_bytes) {
  return (PartBytes(payload_bytes) + PageAddress::kUnitBytes - 1) / PageAddress::kUnitBytes * PageAddress::kUnitBytes;
}

// Fills PartBytesInUnits(payload.size()) bytes at `out`. REQUIRES: `address` was made with PartBytes; a base part has
// no `previous`, a delta part has one; payload.size() <= kMaxPayloadBytes; a packed payload was made by PackContent, or
// lies in a PartView.
void EncodePart(PartHeader header, PageAddress address, std::string_view payload, char* out);

// Returns the bytes in its segment that the part with this header of kPartHeaderBytes bytes claims; not yet verified.
uint64_t ClaimedBytesInUnits(std::string_view header);

// True if a part may begin at these bytes (it reads 8 of them), false if they are filling.
bool PartBeginsAt(std::string_view bytes);

// True if this header of kPartHeaderBytes bytes claims to be a part at `offset` of segment `segment`; not yet
// verified.
bool ClaimsPlace(std::string_view header, uint64_t segment, uint64_t offset);

// Decodes the part at the start of `bytes`, which may be longer. No `expected_page` allows any page. `path` is for
// messages.
Result<PartView> DecodePart(std::string_view bytes, PageAddress address, std::optional<PageId> expected_page,
                            std::string_view path);

// Decodes the part that should begin at `offset` of segment `segment`, and whose header must state that place. For
// reading a segment from its start.
Result<PartView> DecodePartAt(std::string_view bytes, uint64_t segment, uint64_t offset, std::string_view path);

// Returns the part with its content as payload: a packed one is unpacked into `room`, any other is returned as it is.
Result<PartView> UnpackPart(const PartView& part, AlignedBuffer* room, std::string_view path);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_FORMAT_H_
