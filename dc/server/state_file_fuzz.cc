// Any bytes as the state of a DC: refused, or exactly what encodes to them.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "dc/server/state_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto state = deut::dc::DecodeDcState(bytes, "fuzz");
  if (state.ok()) DEUT_CHECK(deut::dc::EncodeDcState(*state) == bytes);
  return 0;
}
