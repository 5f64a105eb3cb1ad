#include "dc/page_store/store_fixture.h"

#include <algorithm>
#include <cstring>

#include "common/runtime/random.h"

namespace deut::dc {

std::string PayloadOf(PageId page, uint64_t salt, size_t bytes) {
  Random random(uint64_t{page.value} * 1'000'003 + salt);
  std::string payload(bytes, '\0');
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(payload.data() + at, &word, std::min(sizeof(word), bytes - at));
  }
  return payload;
}

}  // namespace deut::dc
