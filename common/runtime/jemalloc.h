// Whether this program's heap is jemalloc's, which our programs are linked with (//bazel:malloc) and others may be, and what it is asked for then.
// Thread-safety: all functions from any thread.
#ifndef COMMON_RUNTIME_JEMALLOC_H_
#define COMMON_RUNTIME_JEMALLOC_H_

#include <cstddef>

// Null in a program without it.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value, size_t new_bytes)
    __attribute__((weak));

namespace deut {

inline bool HeapOfJemalloc() { return &mallctl != nullptr; }

// Hands what was freed, of all arenas, back to the system. False: it is not its heap.
inline bool PurgeJemalloc() {
  return HeapOfJemalloc() &&
         mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0) == 0;  // 4096: MALLCTL_ARENAS_ALL
}

}  // namespace deut

#endif  // COMMON_RUNTIME_JEMALLOC_H_
