#include "dc/page_store/fatal_error.h"

#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(FatalErrorTest, TheFirstErrorStays) {
  FatalError error(RealRuntime());
  EXPECT_FALSE(error.is_set());
  EXPECT_TRUE(error.status().ok());
  EXPECT_EQ(error.Set(DEUT_ERROR(kIoError, "a sync failed")).message(), "a sync failed");
  EXPECT_TRUE(error.is_set());
  EXPECT_EQ(error.Set(DEUT_ERROR(kUnavailable, "a write failed")).message(), "a sync failed");
  EXPECT_EQ(error.status(), ErrorCode::kIoError);
}

TEST(FatalErrorTest, ThreadsThatFailTogetherAgreeOnOneError) {
  FatalError error(RealRuntime());
  std::vector<Status> reported(8);
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (size_t i = 0; i < reported.size(); ++i) {
      threads.push_back(RealRuntime().StartThread("fails", [&, i] {
        const Status own = i % 2 == 0 ? DEUT_ERROR(kIoError, "thread ", i) : DEUT_ERROR(kUnavailable, "thread ", i);
        reported[i] = error.Set(own);
      }));
    }
  }
  for (const Status& status : reported) EXPECT_EQ(status.ToString(), error.status().ToString());
}

}  // namespace
}  // namespace deut::dc
