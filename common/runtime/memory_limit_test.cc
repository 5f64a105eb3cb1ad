#include "common/runtime/memory_limit.h"

#include <string>

#include "common/base/concat.h"
#include "common/runtime/control_groups_fixture.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class MemoryLimitTest : public testing::ControlGroupsFixture {
 protected:
  MemoryLimit Read() const { return ReadMemoryLimit(dir_.path()); }
};

TEST_F(MemoryLimitTest, TheMachineLimitsWhereNoGroupDoes) {
  Write("/proc/meminfo", "MemTotal:       16384 kB\nMemFree:          12 kB\n");
  EXPECT_EQ(Read().bytes, 16384u << 10);
  EXPECT_EQ(Read().name, "the machine's memory");
  // Version 1 writes a number near the largest one where there is no limit.
  Write("/proc/self/cgroup", "5:memory:/a\n0::/\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read().bytes, 16384u << 10);
}

TEST_F(MemoryLimitTest, TheLowestGroupOnTheWayUpLimits) {
  Write("/proc/meminfo", "MemTotal:       16384 kB\n");
  Write("/proc/self/cgroup", "0::/system.slice/dcd.service\n");
  Write("/sys/fs/cgroup/system.slice/dcd.service/memory.max", "max\n");
  Write("/sys/fs/cgroup/system.slice/memory.max", "1048576\n");
  EXPECT_EQ(Read().bytes, 1048576u);
  EXPECT_EQ(Read().name, Concat("the control group's memory.max (", dir_.path(), "/sys/fs/cgroup/system.slice)"));
  Write("/sys/fs/cgroup/system.slice/dcd.service/memory.max", "4096\n");
  EXPECT_EQ(Read().bytes, 4096u);
}

TEST_F(MemoryLimitTest, TheMemoryControllerLimitsVersion1) {
  Write("/proc/self/cgroup", "8:pids:/other\n7:cpu,memory:/daemons\n");
  Write("/sys/fs/cgroup/memory/daemons/memory.limit_in_bytes", "65536\n");
  Write("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(Read().bytes, 65536u);
}

TEST_F(MemoryLimitTest, FilesThatMakeNoSenseLimitNothing) {
  EXPECT_EQ(Read().bytes, UINT64_MAX);
  EXPECT_EQ(Read().name, "");
  Write("/proc/meminfo", "Memory: much\n");
  Write("/proc/self/cgroup", "0::/a\n");
  Write("/sys/fs/cgroup/a/memory.max", "little\n");
  EXPECT_EQ(Read().bytes, UINT64_MAX);
}

// The real files.
TEST(MemoryLimitOfThisMachineTest, IsKnown) {
  const MemoryLimit limit = ReadMemoryLimit();
  EXPECT_GT(limit.bytes, 64u << 20);
  EXPECT_LT(limit.bytes, UINT64_MAX);
  EXPECT_NE(limit.name, "");
}

}  // namespace
}  // namespace deut
