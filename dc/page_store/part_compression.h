// The payload of a packed part, that is, of one that is compressed on storage:
//
//   packed := algorithm:u8 zero:u8{3} content_bytes:u32 compressed      algorithm 2: LZ4 block, 3: one Zstandard frame
//
// A part is packed only if that saves an eighth of its bytes on storage. It has at most kMaxContentBytes of content,
// as many bytes as the largest part that is not packed. So the memory for its content has a bound, whatever it says.
// Format with grammar: dc/docs/page_store.md. Internal to the page store.
// Thread-safety: any thread; each thread keeps the working memory of Zstandard for its next call.
// Ownership: results point into the given room, and live until its next use.
// Errors: the functions trust no byte, and write and allocate only within the bounds above. They return CORRUPTION that
//   states the fault; the caller adds the place.
#ifndef DC_PAGE_STORE_PART_COMPRESSION_H_
#define DC_PAGE_STORE_PART_COMPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/compression.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"

namespace deut::dc {

constexpr size_t kPackedHeaderBytes = 8;

// The header of a packed part's payload.
struct PackedHeader {
  Compression algorithm = Compression::kLz4;
  uint32_t content_bytes = 0;  // 1 to kMaxContentBytes
};

// Returns the packed payload, in `room`. No value: the part would not become an eighth smaller, or it has more than
// kMaxContentBytes. REQUIRES: the algorithm is not kNone.
std::optional<std::string_view> PackContent(Compression algorithm, std::string_view content, AlignedBuffer* room);

Result<PackedHeader> ReadPackedHeader(std::string_view packed);
// Returns the content, in `room`.
Result<std::string_view> UnpackContent(std::string_view packed, AlignedBuffer* room);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_COMPRESSION_H_
