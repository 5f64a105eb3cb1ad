// UseHugePages: huge pages for the heap of the whole process, without any setup of its environment. Random accesses
// to a large heap cost a TLB miss each, which huge pages avoid.
//
// Our programs' heap is jemalloc; the heap of programs that embed us may be glibc's. Either asks the kernel for
// transparent huge pages if its environment says so when it starts: MALLOC_CONF with thp:always, or GLIBC_TUNABLES
// with glibc.malloc.hugetlb=1 (from glibc 2.35). The heap reads that before main begins. So the process executes its
// own program once more, with the setting in its environment: same process, same arguments.
// jemalloc gets one arena for each processor with that, in place of four. Each arena that a thread uses takes at least
// two huge pages, and room that freed objects leave in one arena does not serve threads of another: 32 threads that
// keep a few objects take 42 MB with eight arenas, and 18 MB with two. narenas in MALLOC_CONF sets another number.
// It does so only once, because the environment then shows that it was done. The heap's variable names the setting,
// and DEUT_HUGE_PAGES holds the process's id, which a child process does not share. A value that somebody else has
// set stays as it is.
// Thread-safety: none; see UseHugePages. Errors: none. An obstacle is returned as text, and the process goes on as it
// is.
#ifndef COMMON_RUNTIME_HUGE_PAGES_H_
#define COMMON_RUNTIME_HUGE_PAGES_H_

#include <string>

namespace deut {

struct HugePagesSystem {
  // The file in which the kernel states whether programs may ask for transparent huge pages.
  const char* switches = "/sys/kernel/mm/transparent_hugepage/enabled";
};

// Does not return if the program is executed anew. Otherwise it returns "" if the heap is as wanted, or as somebody
// has set it; else the reason why it is not.
// REQUIRES: main calls it with its arguments, before the process has anything that a new execution would lose:
// threads, files that are not closed on exec, output that was not flushed.
std::string UseHugePages(char** argv, const HugePagesSystem& system = {});

// True if the program's heap asks the system for huge pages: because of UseHugePages, or because it was set so.
// Other memory of the program that wants to be as its heap asks for them, too. Thread-safety: from any thread.
bool HugePagesWanted();

}  // namespace deut

#endif  // COMMON_RUNTIME_HUGE_PAGES_H_
