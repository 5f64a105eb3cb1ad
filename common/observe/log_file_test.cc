#include "common/observe/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/descriptor.h"
#include "common/observe/log.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"

namespace deut {
namespace {

// Restores standard error at the end.
class LogFileTest : public ::testing::Test {
 protected:
  ~LogFileTest() override { dup2(before_.get(), STDERR_FILENO); }

  static std::vector<std::string> LinesOf(const std::string& path) {
    std::ifstream in(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  // Returns the text behind the time.
  static std::string TextOf(const std::string& line) { return line.substr(line.find(" I ") + 3); }

  testing::TempDir dir_;
  const Descriptor before_{fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)};
};

TEST_F(LogFileTest, LinesGoToTheFileAndAreAppended) {
  const std::string path = dir_.Sub("log");
  std::ofstream(path) << "of an earlier run\n";
  ASSERT_TRUE(RedirectLogTo(path).ok());
  LogInfo("first");
  LogInfo("second");
  const std::vector<std::string> lines = LinesOf(path);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "of an earlier run");
  EXPECT_EQ(TextOf(lines[1]), "first");
  EXPECT_EQ(TextOf(lines[2]), "second");
}

TEST_F(LogFileTest, ANewFileIsReadableByAll) {
  const mode_t mask = umask(0);
  const Status redirected = RedirectLogTo(dir_.Sub("log"));
  umask(mask);
  ASSERT_TRUE(redirected.ok());
  struct stat about{};
  ASSERT_EQ(stat(dir_.Sub("log").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0644u);
}

TEST_F(LogFileTest, AfterARenameTheNextCallBeginsANewFile) {
  const std::string path = dir_.Sub("log"), rotated = dir_.Sub("log.1");
  ASSERT_TRUE(RedirectLogTo(path).ok());
  LogInfo("before");
  ASSERT_EQ(std::rename(path.c_str(), rotated.c_str()), 0);
  LogInfo("renamed");
  ASSERT_TRUE(RedirectLogTo(path).ok());
  LogInfo("after");
  EXPECT_EQ(LinesOf(rotated).size(), 2u);
  ASSERT_EQ(LinesOf(path).size(), 1u);
  EXPECT_EQ(TextOf(LinesOf(path).front()), "after");
}

TEST_F(LogFileTest, AFileThatCannotBeOpenedLeavesTheLogWhereItIs) {
  const std::string path = dir_.Sub("log"), nowhere = dir_.Sub("absent/log");
  ASSERT_TRUE(RedirectLogTo(path).ok());
  const Status refused = RedirectLogTo(nowhere);
  EXPECT_EQ(refused.code(), ErrorCode::kIoError);
  EXPECT_NE(refused.message().find(nowhere), std::string_view::npos) << refused.ToString();
  LogInfo("still here");
  ASSERT_EQ(LinesOf(path).size(), 1u);
}

TEST_F(LogFileTest, NoLineIsLostOrTornByRotation) {
  constexpr int kRotations = 20;
  const std::string path = dir_.Sub("log");
  ASSERT_TRUE(RedirectLogTo(path).ok());
  std::atomic<int> logged{0};
  std::atomic<bool> over{false};
  std::unique_ptr<Thread> logger = RealRuntime().StartThread("logger", [&] {
    while (!over.load()) LogInfo("line ", logged.fetch_add(1));
  });
  std::vector<std::string> files;
  for (int i = 0; i < kRotations; ++i) {
    const int seen = logged.load();
    while (logged.load() == seen) RealRuntime().Yield();
    files.push_back(dir_.Sub(Concat("log.", i)));
    ASSERT_EQ(std::rename(path.c_str(), files.back().c_str()), 0);
    ASSERT_TRUE(RedirectLogTo(path).ok());
  }
  over.store(true);
  logger.reset();
  files.push_back(path);
  int next = 0;
  for (const std::string& file : files) {
    for (const std::string& line : LinesOf(file)) ASSERT_EQ(TextOf(line), Concat("line ", next++)) << file;
  }
  EXPECT_EQ(next, logged.load());
}

}  // namespace
}  // namespace deut
