// The process's resident memory, and the return of freed memory that the allocator keeps.
// Thread-safety: all functions from any thread. Errors: none; where the system gives no answer, the result is 0 and
// nothing is done.
#ifndef COMMON_RUNTIME_PROCESS_MEMORY_H_
#define COMMON_RUNTIME_PROCESS_MEMORY_H_

#include <cstdint>

namespace deut {

// Returns the resident bytes of this process. Costs about three system calls.
uint64_t ResidentBytes();

// The figures of the program's heap. All are zeros where the heap is not jemalloc.
struct HeapFigures {
  uint64_t used = 0;  // bytes of objects, and of blocks in the caches of threads
  uint64_t room = 0;  // bytes between small objects, which only objects of the same size can use
  uint64_t kept = 0;  // whole pages that are free, and were not returned to the system
  uint64_t own = 0;   // the allocator's own tables
};
// Costs some tens of microseconds for each arena.
HeapFigures FiguresOfHeap();

// Returns whole pages of freed memory to the system. Takes some milliseconds per 100 MiB, during which allocations
// may wait.
void ReturnFreedMemory();

// Returns memory to the system that has been free for ten seconds or longer (jemalloc's decay time), also memory of
// threads that have had nothing to do since. A daemon calls this every two seconds, and so does a memory budget
// (common/sync/process_budget.h), which an embedded store has. Without it, idle threads keep the memory that they freed
// last: 1.1 GB after 9,000 connections with TLS were closed. Takes 0.6 us if there is nothing to return, and 16 ms for
// 200 MB (64 threads, two processors). Does nothing where the heap is not jemalloc.
void ReturnMemoryFreedLongAgo();

}  // namespace deut

#endif  // COMMON_RUNTIME_PROCESS_MEMORY_H_
