#include "integration/bench/applications.h"

#include <gtest/gtest.h>

namespace deut::bench {
namespace {

TEST(ApplicationsTest, ByName) {
  EXPECT_EQ((*ApplicationByName("tpcc", 3))->parts(), 1u + 3 * 11);
  EXPECT_EQ((*ApplicationByName("tpcc-np", 3))->prefix(), "C");
  EXPECT_EQ((*ApplicationByName("tatp", 20))->parts(), 4u);
}

TEST(ApplicationsTest, UnknownNamesAndSizesAreRefused) {
  const Status unknown = ApplicationByName("tpch", 1).status();
  EXPECT_EQ(unknown.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(unknown.ToString().find("tatp"), std::string::npos);
  EXPECT_EQ(ApplicationByName("tpcc", 0).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ApplicationByName("tatp", 1'000'000).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace deut::bench
