#include "common/runtime/thread_budget.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/control_groups_fixture.h"

namespace deut {
namespace {

// A tree of control groups.
class ThreadLimitTest : public testing::ControlGroupsFixture {
 protected:
  ThreadLimit Read() const { return ReadThreadLimit(dir_.path(), /*user=*/0); }
};

TEST_F(ThreadLimitTest, TheLowestGroupOnTheWayUpLimitsVersion2) {
  Write("/proc/self/cgroup", "0::/system.slice/tcd.service\n");
  Write("/sys/fs/cgroup/system.slice/tcd.service/pids.max", "max\n");
  Write("/sys/fs/cgroup/system.slice/tcd.service/pids.current", "3\n");
  Write("/sys/fs/cgroup/system.slice/pids.max", "200\n");
  Write("/sys/fs/cgroup/system.slice/pids.current", "50\n");
  const ThreadLimit limit = Read();
  EXPECT_EQ(limit.threads, 150u);
  EXPECT_EQ(limit.name, Concat("the control group's pids.max of 200 (", dir_.path(),
                               "/sys/fs/cgroup/system.slice, with 50 at present)"));
  Write("/sys/fs/cgroup/system.slice/tcd.service/pids.max", "100\n");
  EXPECT_EQ(Read().threads, 97u);
}

TEST_F(ThreadLimitTest, ThePidsControllerLimitsVersion1) {
  Write("/proc/self/cgroup", "12:cpu,cpuacct:/other\n8:memory,pids:/daemons\n1:name=systemd:/daemons\n0::/\n");
  Write("/sys/fs/cgroup/pids/daemons/pids.max", "150\n");
  Write("/sys/fs/cgroup/pids/daemons/pids.current", "1\n");
  Write("/sys/fs/cgroup/pids/other/pids.max", "10\n");
  EXPECT_EQ(Read().threads, 149u);
}

// A container sees its own group at the top, while /proc may name the path that the group has outside.
TEST_F(ThreadLimitTest, TheTopLimitsWhereThePathIsNotThere) {
  Write("/proc/self/cgroup", "8:pids:/docker/0123\n");
  Write("/sys/fs/cgroup/pids/pids.max", "80\n");
  Write("/sys/fs/cgroup/pids/pids.current", "100\n");
  EXPECT_EQ(Read().threads, 0u);
}

TEST_F(ThreadLimitTest, FilesThatAreNotThereOrMakeNoSenseLimitNothing) {
  EXPECT_EQ(Read().threads, UINT64_MAX);
  Write("/proc/self/cgroup", "nonsense\n0:\n::\n8:pids\n8:pids:\n8:pids:relative\n8:pids:/a\n");
  Write("/sys/fs/cgroup/pids/a/pids.max", "many\n");
  EXPECT_EQ(Read().threads, UINT64_MAX);
}

TEST_F(ThreadLimitTest, TheLimitOfProcessesBindsUsersButRoot) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NPROC, &before), 0);
  // A soft limit that the process may set, whatever its hard limit is. No thread is started while it holds.
  const rlim_t few = std::min<rlim_t>(500, before.rlim_max);
  const rlimit low{.rlim_cur = few, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NPROC, &low), 0);
  const ThreadLimit of_user = ReadThreadLimit(dir_.path(), 1000), of_root = ReadThreadLimit(dir_.path(), 0);
  ASSERT_EQ(setrlimit(RLIMIT_NPROC, &before), 0);
  EXPECT_EQ(of_user.threads, few);
  EXPECT_EQ(of_user.name, Concat("the user's limit of processes, ", few, " (ulimit -u)"));
  EXPECT_EQ(of_root.threads, UINT64_MAX);
}

TEST(ThreadBudgetTest, RequestsGetWhatIsWantedOrWhatTheReserveLeaves) {
  const auto plan = [](uint64_t threads) { return PlanThreads({.threads = threads, .name = "it"}, 1024, 16); };
  EXPECT_EQ(plan(UINT64_MAX)->requests, 1024);
  EXPECT_EQ(plan(1024 + kThreadReserve)->requests, 1024);
  EXPECT_EQ(plan(1024 + kThreadReserve)->lowered_by, "");
  EXPECT_EQ(plan(1023 + kThreadReserve)->requests, 1023);
  EXPECT_EQ(plan(1023 + kThreadReserve)->lowered_by, "it");
  EXPECT_EQ(plan(16 + kThreadReserve)->requests, 16);
  EXPECT_EQ(PlanThreads({.threads = 20 + kThreadReserve, .name = "it"}, 16, 16)->requests, 16);
  for (const uint64_t threads : {uint64_t{0}, uint64_t{1}, 15 + kThreadReserve}) {
    EXPECT_EQ(plan(threads).status(), ErrorCode::kInvalidArgument);
  }
}

TEST(ThreadBudgetTest, ARefusalSaysWhatIsNeededAndWhatToChange) {
  const ThreadLimit limit{.threads = 49, .name = "the control group's pids.max of 50 (/g, with 1 at present)"};
  EXPECT_EQ(PlanThreads(limit, 1024, 16).status().message(),
            "at least 80 threads are needed (16 for requests, 64 in reserve), and the control group's pids.max of 50 "
            "(/g, with 1 at present) leaves 49; raise it (TasksMax= and LimitNPROC= in a systemd unit, --pids-limit "
            "of a container)");
}

}  // namespace
}  // namespace deut
