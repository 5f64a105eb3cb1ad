#include "common/runtime/thread_budget.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/testing/temp_dir.h"

namespace deut {
namespace {

class ThreadsLeftTest : public ::testing::Test {
 protected:
  void Groups(const std::string& text) { Write("proc/self/cgroup", text); }
  void Limit(const std::string& folder, const std::string& limit, const std::string& current) {
    Write("sys/fs/cgroup/" + folder + "pids.max", limit + "\n");
    Write("sys/fs/cgroup/" + folder + "pids.current", current + "\n");
  }
  std::optional<uint64_t> Left() { return ThreadsLeft(directory_.path() + "/"); }

 private:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(directory_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  testing::TempDir directory_;
};

TEST_F(ThreadsLeftTest, WithoutControlGroupsOrLimitsThereIsNone) {
  EXPECT_EQ(Left(), std::nullopt);
  Groups("0::/a/b\n");
  EXPECT_EQ(Left(), std::nullopt);
  Limit("a/b/", "max", "7");
  EXPECT_EQ(Left(), std::nullopt);
}

TEST_F(ThreadsLeftTest, OfAllGroupsAboveTheLeastCounts) {
  Groups("0::/a/b\n");
  Limit("a/b/", "100", "30");
  EXPECT_EQ(Left(), 70u);
  Limit("a/", "50", "31");
  EXPECT_EQ(Left(), 19u);
  Limit("", "31", "40");
  EXPECT_EQ(Left(), 0u);
}

TEST_F(ThreadsLeftTest, BothVersionsAreRead) {
  Groups("9:memory:/elsewhere\n8:pids:/a\n0::/\n");
  Limit("pids/a/", "150", "1");
  Limit("pids/", "max", "400");
  EXPECT_EQ(Left(), 149u);
}

TEST(PlanRequestThreadsTest, NeverMoreThanThereAreBesideTheOthers) {
  EXPECT_EQ(*PlanRequestThreads(std::nullopt, 1024), 1024);
  EXPECT_EQ(*PlanRequestThreads(100'000, 1024), 1024);
  EXPECT_EQ(*PlanRequestThreads(150, 1024), 86);
  EXPECT_EQ(*PlanRequestThreads(80, 1024), 16);
  const Status refused = PlanRequestThreads(79, 1024).status();
  EXPECT_EQ(refused, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("the control group leaves 79; raise its limit (pids.max"), std::string_view::npos)
      << refused.ToString();
}

}  // namespace
}  // namespace deut
