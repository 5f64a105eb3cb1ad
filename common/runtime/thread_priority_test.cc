#include "common/runtime/thread_priority.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

int Nice() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(ThreadPriorityTest, OneThreadGivesWayAndTheOthersStayAsTheyAre) {
  const int before = Nice();
  int once = 0;
  int often = 0;
  RealRuntime()
      .StartThread("lowered",
                   [&] {
                     LowerThreadPriority();
                     once = Nice();
                     for (int i = 0; i < 5; ++i) LowerThreadPriority();
                     often = Nice();
                   })
      ->Join();
  EXPECT_EQ(once, before < 10 ? before + 10 : 19);
  EXPECT_EQ(often, 19);
  EXPECT_EQ(Nice(), before);
}

}  // namespace
}  // namespace deut
