// A heap of huge pages for the whole process, without anybody's setting up its environment. Looking at random places of a large heap costs a miss of
// the TLB each time, which huge pages spare.
//
// Our programs' heap is jemalloc's, that of programs which embed us may be glibc's; either asks the kernel for transparent huge pages if its
// environment says so when it begins: MALLOC_CONF with thp:always, GLIBC_TUNABLES with glibc.malloc.hugetlb=1 (from glibc 2.35). That is read before
// main begins, so the process executes its own program once more, with the setting in its environment: same process, same arguments.
// Once, because the environment then says that it was done: the variable names the setting, and DEUT_HUGE_PAGES is the process's id, which a
// process that this one starts does not have. A value that somebody else has given the setting is left as it is.
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
