#include "common/runtime/process_memory.h"

#include <fcntl.h>
#include <jemalloc/jemalloc.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

// A program with another allocator, as a sanitizer brings it, or one that links this library into something else, has none of it.
extern "C" __attribute__((weak)) decltype(mallctl) mallctl;

#define DEUT_TEXT_OF(number) #number
#define DEUT_TEXT(macro) DEUT_TEXT_OF(macro)
#define DEUT_ALL_ARENAS DEUT_TEXT(MALLCTL_ARENAS_ALL)

namespace deut {

uint64_t ResidentBytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t bytes = read(file, text.data(), text.size() - 1);
  close(file);
  if (bytes <= 0) return 0;
  char* end = nullptr;
  (void)std::strtoull(text.data(), &end, 10);  // the address space
  return std::strtoull(end, nullptr, 10) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void ReturnFreedMemory() {
  if (mallctl == nullptr) return;
  // What this thread keeps for itself; other threads' caches are small, and empty themselves as they allocate.
  (void)mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
  (void)mallctl("arena." DEUT_ALL_ARENAS ".purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace deut
