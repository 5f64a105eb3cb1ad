// A signed overflow, which is undefined: must fail under --config=asan, which includes UBSan.
#include <gtest/gtest.h>

#include <limits>

namespace deut::probes {
namespace {

TEST(UndefinedTest, OverflowsASignedInteger) {
  volatile int value = std::numeric_limits<int>::max();
  value = value + 1;
  EXPECT_NE(value, 0);
}

}  // namespace
}  // namespace deut::probes
