#include "common/runtime/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "common/runtime/jemalloc.h"

namespace deut {

uint64_t ResidentBytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t bytes = read(file, text.data(), text.size() - 1);
  close(file);
  if (bytes <= 0) return 0;
  char* end = nullptr;
  (void)std::strtoull(text.data(), &end, 10);  // size of the address space
  return std::strtoull(end, nullptr, 10) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

HeapFigures FiguresOfHeap() {
  RefreshJemallocFigures();
  const uint64_t used = JemallocFigure("stats.allocated");
  const uint64_t active = JemallocFigure("stats.active");
  const uint64_t own = JemallocFigure("stats.metadata");
  const uint64_t resident = JemallocFigure("stats.resident");
  return {.used = used,
          .room = active - std::min(active, used),
          .kept = resident - std::min(resident, active + own),
          .own = own};
}

void ReturnFreedMemory() {
  if (PurgeJemalloc()) return;
#if defined(__GLIBC__)
  (void)malloc_trim(0);
#endif
}

void ReturnMemoryFreedLongAgo() { (void)DecayJemalloc(); }

}  // namespace deut
