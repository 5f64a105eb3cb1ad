// The process's resident memory, and the return of freed memory that the allocator keeps.
// Thread-safety: all functions from any thread. Errors: none; where the system gives no answer, the result is 0 and
// nothing is done.
#ifndef COMMON_RUNTIME_PROCESS_MEMORY_H_
#define COMMON_RUNTIME_PROCESS_MEMORY_H_

#include <cstdint>

namespace deut {

// Returns the resident bytes of this process. Costs about three system calls.
uint64_t ResidentBytes();

// Returns whole pages of freed memory to the system. Takes some milliseconds per 100 MiB, during which allocations
// may wait.
void ReturnFreedMemory();

// Returns memory that was freed some seconds ago, also by threads that have had nothing to do since. A process calls
// this every few seconds, otherwise idle threads keep what they freed last: 10,000 closed TLS connections kept 1.1 GB
// of a daemon's memory. Costs microseconds if there is nothing to return.
void ReturnMemoryFreedLongAgo();

}  // namespace deut

#endif  // COMMON_RUNTIME_PROCESS_MEMORY_H_
