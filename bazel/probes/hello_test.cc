#include "bazel/probes/hello.h"

#include <gtest/gtest.h>

namespace deut::probes {
namespace {

TEST(HelloTest, SaysHello) { EXPECT_EQ(Hello(), "Hello"); }

}  // namespace
}  // namespace deut::probes
