// Tells whether this program's heap is jemalloc, and calls it then. Our programs are linked with jemalloc
// (//bazel:malloc); others may be.
// Thread-safety: all functions from any thread.
#ifndef COMMON_RUNTIME_JEMALLOC_H_
#define COMMON_RUNTIME_JEMALLOC_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

// Null in a program without jemalloc.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value, size_t new_bytes)
    __attribute__((weak));

namespace deut {

inline bool HeapOfJemalloc() { return &mallctl != nullptr; }

// Returns freed memory of all arenas to the system. False: the heap is not jemalloc.
inline bool PurgeJemalloc() {
  return HeapOfJemalloc() &&
         mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0) == 0;  // 4096: MALLCTL_ARENAS_ALL, here and below
}

// Returns memory to the system that has been free for longer than dirty_decay_ms, in all arenas. jemalloc itself does
// that only in arenas in which threads allocate or free. False: the heap is not jemalloc.
inline bool DecayJemalloc() {
  return HeapOfJemalloc() && mallctl("arena.4096.decay", nullptr, nullptr, nullptr, 0) == 0;
}

// Returns one of jemalloc's figures of bytes, as of the last call of RefreshJemallocFigures. 0: it has none.
inline size_t JemallocFigure(const char* name) {
  size_t value = 0;
  size_t bytes = sizeof(value);
  return HeapOfJemalloc() && mallctl(name, &value, &bytes, nullptr, 0) == 0 ? value : 0;
}

inline void RefreshJemallocFigures() {
  uint64_t epoch = 1;
  if (HeapOfJemalloc()) (void)mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch));
}

// Returns whether jemalloc asks for transparent huge pages: "always", "default" or "never". Empty: the heap is not
// jemalloc.
inline std::string_view JemallocHugePages() {
  const char* mode = nullptr;
  size_t bytes = sizeof(mode);
  if (!HeapOfJemalloc() || mallctl("opt.thp", static_cast<void*>(&mode), &bytes, nullptr, 0) != 0) return {};
  return mode == nullptr ? std::string_view() : std::string_view(mode);
}

}  // namespace deut

#endif  // COMMON_RUNTIME_JEMALLOC_H_
