// Frame: the beginning of page parts and of a checkpoint's blocks: magic:u32 checksum:u32 version:u16. The checksum
// is CRC-32C of everything behind it.
// Format with grammar: dc/docs/page_store.md. Internal to the page store. Each format states the meaning of a wrong
// frame, and the fields that must fit besides.
// Thread-safety: pure functions. All of them REQUIRE kFrameBytes bytes.
#ifndef DC_PAGE_STORE_FRAME_H_
#define DC_PAGE_STORE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut::dc {

constexpr size_t kFrameChecksumAt = 4;
constexpr size_t kFrameVersionAt = 8;
constexpr size_t kFrameBytes = 10;

struct Frame {
  uint32_t magic;
  uint16_t version;
};

inline uint32_t FrameChecksumOf(std::string_view framed) { return Crc32c(framed.substr(kFrameVersionAt)); }

// Frames the `size` bytes at `bytes`; all bytes behind the frame are in place. Returns the checksum.
inline uint32_t SealFrame(const Frame& frame, char* bytes, size_t size) {
  StoreU32(bytes, frame.magic);
  StoreU16(bytes + kFrameVersionAt, frame.version);
  const uint32_t checksum = FrameChecksumOf(std::string_view(bytes, size));
  StoreU32(bytes + kFrameChecksumAt, checksum);
  return checksum;
}

inline uint32_t FrameMagic(std::string_view framed) { return LoadU32(framed.data()); }
inline uint16_t FrameVersion(std::string_view framed) { return LoadU16(framed.data() + kFrameVersionAt); }
// Returns the checksum that the frame states; FrameChecksumFits tells whether it is right.
inline uint32_t FrameChecksum(std::string_view framed) { return LoadU32(framed.data() + kFrameChecksumAt); }
inline bool FrameChecksumFits(std::string_view framed) { return FrameChecksumOf(framed) == FrameChecksum(framed); }

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_FRAME_H_
