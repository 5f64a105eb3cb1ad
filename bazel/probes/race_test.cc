// Two threads write one variable without order: must fail under --config=tsan.
#include <gtest/gtest.h>

#include <thread>

namespace deut::probes {
namespace {

TEST(RaceTest, WritesFromTwoThreads) {
  int value = 0;
  std::thread other([&value] { value = 1; });
  value = 2;
  other.join();
  EXPECT_NE(value, 0);
}

}  // namespace
}  // namespace deut::probes
