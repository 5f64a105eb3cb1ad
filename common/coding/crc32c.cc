#include "common/coding/crc32c.h"

#include <nmmintrin.h>

#include <cstring>

namespace deut {

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  uint64_t state = crc ^ 0xFFFFFFFFu;
  for (; bytes >= 8; bytes -= 8, next += 8) {
    uint64_t word;
    std::memcpy(&word, next, sizeof(word));
    state = _mm_crc32_u64(state, word);
  }
  auto tail = static_cast<uint32_t>(state);
  for (; bytes > 0; --bytes, ++next) tail = _mm_crc32_u8(tail, static_cast<uint8_t>(*next));
  return tail ^ 0xFFFFFFFFu;
}

}  // namespace deut
