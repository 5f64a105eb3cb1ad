#include "common/runtime/control_groups.h"

#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/control_groups_fixture.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class ControlGroupsTest : public testing::ControlGroupsFixture {
 protected:
  // "VERSION FOLDER" of each visit, the folder without the root.
  std::vector<std::string> Visited(std::string_view controller) const {
    std::vector<std::string> visited;
    VisitControlGroups(dir_.path(), controller, [&](ControlGroupVersion version, const std::string& folder) {
      EXPECT_TRUE(folder.starts_with(dir_.path())) << folder;
      visited.push_back(
          Concat(version == ControlGroupVersion::k1 ? "1 " : "2 ", folder.substr(std::string(dir_.path()).size())));
    });
    return visited;
  }
};

TEST_F(ControlGroupsTest, AllGroupsFromTheProcessesOwnUpToTheTopAreVisited) {
  Write("/proc/self/cgroup", "0::/system.slice/dcd.service\n");
  EXPECT_EQ(Visited("memory"), (std::vector<std::string>{"2 /sys/fs/cgroup/system.slice/dcd.service",
                                                         "2 /sys/fs/cgroup/system.slice", "2 /sys/fs/cgroup"}));
  Write("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(Visited("memory"), (std::vector<std::string>{"2 /sys/fs/cgroup"}));
}

TEST_F(ControlGroupsTest, OfVersion1OnlyTheHierarchyOfTheControllerIsVisited) {
  Write("/proc/self/cgroup", "9:cpu,memory:/a\n8:pids:/b\n7:memory2,xmemory:/c\n1:name=systemd:/d\n");
  EXPECT_EQ(Visited("memory"), (std::vector<std::string>{"1 /sys/fs/cgroup/memory/a", "1 /sys/fs/cgroup/memory"}));
  EXPECT_EQ(Visited("pids"), (std::vector<std::string>{"1 /sys/fs/cgroup/pids/b", "1 /sys/fs/cgroup/pids"}));
  EXPECT_EQ(Visited("io"), (std::vector<std::string>{}));
}

TEST_F(ControlGroupsTest, LinesThatMakeNoSenseAreNoGroups) {
  EXPECT_EQ(Visited("pids"), (std::vector<std::string>{}));
  Write("/proc/self/cgroup", "nonsense\n0:\n::\n8:pids\n8:pids:\n8:pids:relative\n\n");
  EXPECT_EQ(Visited("pids"), (std::vector<std::string>{}));
}

TEST_F(ControlGroupsTest, AFileHoldsANumberOrNone) {
  Write("/number", "4096\n");
  Write("/max", "max\n");
  EXPECT_EQ(ReadControlGroupNumber(dir_.path() + "/number"), 4096u);
  EXPECT_FALSE(ReadControlGroupNumber(dir_.path() + "/max").has_value());
  EXPECT_FALSE(ReadControlGroupNumber(dir_.path() + "/absent").has_value());
}

}  // namespace
}  // namespace deut
