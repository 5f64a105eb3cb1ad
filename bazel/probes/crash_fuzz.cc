// Crashes on inputs that begin with "DEUT", which only a search guided by coverage finds:
// must fail under --config=fuzz within seconds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 4 && data[0] == 'D' && data[1] == 'E' && data[2] == 'U' && data[3] == 'T') std::abort();
  return 0;
}
