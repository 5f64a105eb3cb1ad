// A heap of huge pages for the whole process, without anybody's setting up its environment. Looking at random places of a large heap costs a miss of
// the TLB each time, which huge pages spare.
//
// glibc (from 2.35) asks the kernel for transparent huge pages for all of its heap if the tunable glibc.malloc.hugetlb is 1. It reads tunables before
// main begins, so the process executes its own program once more, with the tunable in its environment: same process, same arguments.
// Once, because the environment then says that it was done: GLIBC_TUNABLES names the tunable, and DEUT_HUGE_PAGES is the process's id, which a
// process that this one starts does not have. A value that somebody else has given the tunable is left as it is.
// Errors: none. What stands in the way is told, and the process goes on as it is.
#ifndef COMMON_RUNTIME_HUGE_PAGES_H_
#define COMMON_RUNTIME_HUGE_PAGES_H_

#include <string>

namespace deut {

struct HugePagesSystem {
  // Where the kernel says whether it has transparent huge pages for those who ask.
  const char* switches = "/sys/kernel/mm/transparent_hugepage/enabled";
};

// Does not return if the program is executed anew. Otherwise: empty, the heap is as it is wanted, or as somebody has decided; else why it is
// not. REQUIRES: called from main with its arguments; nothing was begun yet that an execution of the program would break off: no threads, files
// that are not closed on exec, output that was not flushed.
std::string UseHugePages(char** argv, const HugePagesSystem& system = {});

}  // namespace deut

#endif  // COMMON_RUNTIME_HUGE_PAGES_H_
