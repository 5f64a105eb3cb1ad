#include "common/runtime/huge_pages.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/jemalloc.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

// The test executes its own program as a child. The child writes one line when it begins, and one when UseHugePages
// has returned.
namespace deut {
namespace {

constexpr char kChild[] = "child";

// The test is built twice: with glibc's heap (or a sanitizer's), and with jemalloc.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
bool HasHugePages() { return false; }
#else
bool HasHugePages() { return true; }
#endif
const char* Variable() { return HeapOfJemalloc() ? "MALLOC_CONF" : "GLIBC_TUNABLES"; }
std::string Wanted() { return HeapOfJemalloc() ? "thp:always" : "glibc.malloc.hugetlb=1"; }
// The text that the program adds to its environment.
std::string Added() {
  if (!HeapOfJemalloc()) return Wanted();
  return Concat(Wanted(), ",narenas:", std::max(1U, std::thread::hardware_concurrency()));
}
std::string Unwanted() { return HeapOfJemalloc() ? "thp:never" : "glibc.malloc.hugetlb=0"; }
std::string Other() { return HeapOfJemalloc() ? "metadata_thp:auto" : "glibc.malloc.check=0"; }

int Child(char** argv) {
  const char* const tunables = std::getenv(Variable());
  std::printf("begun %d %s %s\n", getpid(), tunables == nullptr ? "-" : tunables, argv[3]);
  std::fflush(stdout);
  if (std::string_view(argv[3]) == "asked") {
    std::printf("wanted: %d\n", HugePagesWanted() ? 1 : 0);
    return 0;
  }
  if (std::string_view(argv[3]) == "marked") setenv("DEUT_HUGE_PAGES", std::to_string(getpid()).c_str(), 1);
  const std::string why = UseHugePages(argv, HugePagesSystem{.switches = argv[2]});
  std::printf("goes on: %s.\n", why.c_str());
  return 0;
}

class HugePagesTest : public ::testing::Test {
 protected:
  HugePagesTest() { Switch("always [madvise] never\n"); }

  void Switch(const std::string& text) { std::ofstream(switches_) << text; }

  // Returns the lines that a child writes. `tunables` is for the child's environment; "": none.
  std::vector<std::string> Run(const std::string& tunables, std::string word, pid_t* id) {
    std::string program = "/proc/self/exe";
    std::string child = kChild;
    const std::string output = directory_.Sub("output");
    *id = fork();
    if (*id == 0) {
      const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(file, STDOUT_FILENO);
      unsetenv("DEUT_HUGE_PAGES");
      unsetenv(Variable());
      if (!tunables.empty()) setenv(Variable(), tunables.c_str(), 1);
      char* arguments[] = {program.data(), child.data(), switches_.data(), word.data(), nullptr};
      execv(program.c_str(), arguments);
      _exit(127);
    }
    int status = 0;
    EXPECT_EQ(waitpid(*id, &status, 0), *id);
    EXPECT_EQ(status, 0);
    std::vector<std::string> lines;
    std::ifstream file(output);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  static std::string Begun(pid_t id, const std::string& tunables, const std::string& word) {
    return "begun " + std::to_string(id) + " " + tunables + " " + word;
  }

  testing::TempDir directory_;
  std::string switches_ = directory_.Sub("enabled");
  pid_t id_ = 0;
};

TEST_F(HugePagesTest, TheProgramIsExecutedOnceMoreInTheSameProcess) {
  const std::vector<std::string> lines = Run("", "word", &id_);
  if (!HasHugePages()) {
    EXPECT_EQ(lines, (std::vector<std::string>{Begun(id_, "-", "word"), "goes on: the heap is not glibc's."}));
    return;
  }
  EXPECT_EQ(lines, (std::vector<std::string>{Begun(id_, "-", "word"), Begun(id_, Added(), "word"), "goes on: ."}));
}

TEST_F(HugePagesTest, TheyAreWantedIfTheHeapAsksForThem) {
  EXPECT_EQ(Run(Wanted(), "asked", &id_).back(), "wanted: 1");
  EXPECT_EQ(Run(Unwanted(), "asked", &id_).back(), "wanted: 0");
  EXPECT_EQ(Run("", "asked", &id_).back(), "wanted: 0");
}

TEST_F(HugePagesTest, TheHeapIsTheOneThatIsMeant) {
#if defined(DEUT_HEAP_OF_OUR_PROGRAMS)
  EXPECT_EQ(HeapOfJemalloc(), HasHugePages()) << "a sanitizer has its own";
#else
  EXPECT_FALSE(HeapOfJemalloc());
#endif
}

TEST_F(HugePagesTest, OtherTunablesStay) {
  const std::vector<std::string> lines = Run(Other(), "word", &id_);
  if (!HasHugePages()) {
    EXPECT_EQ(lines, (std::vector<std::string>{Begun(id_, Other(), "word"), "goes on: the heap is not glibc's."}));
    return;
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], Begun(id_, Concat(Other(), HeapOfJemalloc() ? "," : ":", Added()), "word"));
}

TEST_F(HugePagesTest, ANumberOfArenasThatSomebodyElseHasSetStays) {
  if (!HeapOfJemalloc()) return;  // glibc's heap has no such setting
  const std::vector<std::string> lines = Run("narenas:3", "word", &id_);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], Begun(id_, Concat("narenas:3,", Wanted()), "word"));
}

TEST_F(HugePagesTest, AnExistingSettingIsNotChanged) {
  const std::vector<std::string> lines = Run(Unwanted(), "word", &id_);
  EXPECT_EQ(lines, (std::vector<std::string>{Begun(id_, Unwanted(), "word"), "goes on: ."}));
  const std::string behind = Concat(Other(), HeapOfJemalloc() ? "," : ":", Unwanted());
  EXPECT_EQ(Run(behind, "word", &id_), (std::vector<std::string>{Begun(id_, behind, "word"), "goes on: ."}));
}

// A system that removes the tunable from the environment.
TEST_F(HugePagesTest, AProcessIsExecutedAnewOnlyOnce) {
  const std::vector<std::string> lines = Run("", "marked", &id_);
  EXPECT_EQ(lines,
            (std::vector<std::string>{Begun(id_, "-", "marked"), Concat("goes on: ", Variable(), " did not last.")}));
}

TEST_F(HugePagesTest, AKernelThatHasThemSwitchedOffIsReported) {
  const std::string other_heap = HasHugePages() ? "" : "goes on: the heap is not glibc's.";
  Switch("always madvise [never]\n");
  std::vector<std::string> lines = Run("", "word", &id_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], HasHugePages()
                          ? "goes on: transparent huge pages are switched off; write madvise to " + switches_ + "."
                          : other_heap);
  ASSERT_EQ(unlink(switches_.c_str()), 0);
  lines = Run("", "word", &id_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1],
            HasHugePages() ? "goes on: the kernel has no transparent huge pages (no " + switches_ + ")." : other_heap);
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == deut::kChild) return deut::Child(argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
