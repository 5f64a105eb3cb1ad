#include "common/runtime/huge_pages.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "common/base/concat.h"
#include "common/runtime/jemalloc.h"

namespace deut {
namespace {

constexpr char kDone[] = "DEUT_HUGE_PAGES";
constexpr char kThisProgram[] = "/proc/self/exe";

#if defined(__GLIBC__) && !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
constexpr bool kHeapOfGlibc = true;
#else
constexpr bool kHeapOfGlibc = false;
#endif

// The environment setting that makes a heap use huge pages.
struct Setting {
  const char* variable;
  std::string_view name;
  std::string_view text;
  const char* separator;
};
constexpr Setting kGlibc{"GLIBC_TUNABLES", "glibc.malloc.hugetlb", "glibc.malloc.hugetlb=1", ":"};
constexpr Setting kJemalloc{"MALLOC_CONF", "thp:", "thp:always", ","};
constexpr Setting kArenas{"MALLOC_CONF", "narenas:", "narenas:", ","};  // the number follows the text

// True if `text` contains the setting as an element of its own; a name may be the end of another name.
bool Has(std::string_view text, const Setting& setting) {
  while (!text.empty()) {
    if (text.starts_with(setting.name)) return true;
    const size_t end = text.find(setting.separator);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

std::string_view Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Returns "", or the reason why glibc's heap does not know the setting.
std::string OldGlibc() {
#if defined(__GLIBC__)
  constexpr unsigned long kMajor = 2;
  constexpr unsigned long kMinor = 35;
  char* rest = nullptr;
  const char* const version = gnu_get_libc_version();
  const unsigned long major = std::strtoul(version, &rest, 10);
  const unsigned long minor = *rest == '.' ? std::strtoul(rest + 1, nullptr, 10) : 0;
  if (major < kMajor || (major == kMajor && minor < kMinor)) {
    return Concat("glibc ", version, " has no huge pages for its heap; from ", kMajor, ".", kMinor, " on it does");
  }
#endif
  return {};
}

// Returns the reason why the setting would have no effect; "" if it would have one.
std::string Useless(const HugePagesSystem& system) {
  if (!HeapOfJemalloc()) {
    if (!kHeapOfGlibc) return "the heap is not glibc's";
    if (std::string old = OldGlibc(); !old.empty()) return old;
  }
  // Valgrind replaces the heap, and would no longer watch the program after the execution.
  if (Environment("LD_PRELOAD").find("vgpreload") != std::string_view::npos) return "valgrind is at work";
  // The system does not pass glibc's setting to such a program.
  if (getauxval(AT_SECURE) != 0) return "the program runs with rights of its own";
  const int file = open(system.switches, O_RDONLY | O_CLOEXEC);
  if (file < 0) return Concat("the kernel has no transparent huge pages (no ", system.switches, ")");
  std::array<char, 128> text{};
  const ssize_t bytes = read(file, text.data(), text.size());
  close(file);
  if (bytes <= 0 || std::string_view(text.data(), static_cast<size_t>(bytes)).find("[never]") != std::string_view::npos)
    return Concat("transparent huge pages are switched off; write madvise to ", system.switches);
  return {};
}

// The part of jemalloc's setting that states the number of arenas; "" for glibc's heap, or if `before` states it.
std::string ArenasBeside(std::string_view before) {
  if (!HeapOfJemalloc() || Has(before, kArenas)) return {};
  return Concat(kArenas.separator, kArenas.text, std::max(1U, std::thread::hardware_concurrency()));
}

// Returns the program's path, so that the process keeps its name. If that path is another file by now, returns
// /proc/self/exe.
std::string ThisProgram() {
  std::array<char, 4096> path{};
  const ssize_t bytes = readlink(kThisProgram, path.data(), path.size() - 1);
  struct stat named;
  struct stat own;
  const bool same = bytes > 0 && stat(path.data(), &named) == 0 && stat(kThisProgram, &own) == 0 &&
                    named.st_dev == own.st_dev && named.st_ino == own.st_ino;
  return same ? path.data() : kThisProgram;
}

}  // namespace

std::string UseHugePages(char** argv, const HugePagesSystem& system) {
  const Setting& setting = HeapOfJemalloc() ? kJemalloc : kGlibc;
  const std::string own_id = Concat(getpid());
  const std::string before(Environment(setting.variable));
  if (Has(before, setting)) return {};
  if (Environment(kDone) == own_id) return Concat(setting.variable, " did not last");
  if (std::string why = Useless(system); !why.empty()) return why;
  // With "ld-linux-x86-64.so.2 PROGRAM" the loader would take the program's arguments for its own.
  if (ThisProgram().find("/ld-") != std::string::npos) return "the program was started through the dynamic loader";
  const std::string wanted =
      Concat(before, before.empty() ? "" : setting.separator, setting.text, ArenasBeside(before));
  if (setenv(setting.variable, wanted.c_str(), 1) != 0 || setenv(kDone, own_id.c_str(), 1) != 0) return "no memory";
  const std::string program = ThisProgram();
  execv(program.c_str(), argv);
  const int error = errno;
  unsetenv(kDone);
  (void)(before.empty() ? unsetenv(setting.variable) : setenv(setting.variable, before.c_str(), 1));
  return Concat("the program cannot be executed anew: ", std::generic_category().message(error));
}

bool HugePagesWanted() {
  if (const std::string_view mode = JemallocHugePages(); !mode.empty()) return mode == "always";
  return Environment(kGlibc.variable).find(kGlibc.text) != std::string_view::npos;
}

}  // namespace deut
