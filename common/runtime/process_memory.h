// What the process holds of the machine's memory, and giving back what the allocator keeps of what was freed.
// Thread-safety: all functions from any thread. Errors: none; where the system cannot tell, 0 is answered and nothing done.
#ifndef COMMON_RUNTIME_PROCESS_MEMORY_H_
#define COMMON_RUNTIME_PROCESS_MEMORY_H_

#include <cstdint>

namespace deut {

// Resident bytes of this process. A system call or three.
uint64_t ResidentBytes();

// Hands whole pages of freed memory back to the system. Takes some milliseconds for each 100 MiB, in which allocations may wait.
void ReturnFreedMemory();

}  // namespace deut

#endif  // COMMON_RUNTIME_PROCESS_MEMORY_H_
