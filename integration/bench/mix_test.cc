#include "integration/bench/mix.h"

#include <gtest/gtest.h>

#include <string>

namespace deut::bench {
namespace {

TEST(MixTest, UniformVariantOnlyChangesTheDistribution) {
  for (const char* name : {"a", "b", "c", "f", "t"}) {
    const Result<Mix> zipfian = MixByName(name), uniform = MixByName(std::string(name) + "-uniform");
    ASSERT_TRUE(zipfian.ok() && uniform.ok()) << name;
    EXPECT_EQ(zipfian->distribution, ycsb::Distribution::kZipfian) << name;
    EXPECT_EQ(uniform->distribution, ycsb::Distribution::kUniform) << name;
    EXPECT_EQ(uniform->percent, zipfian->percent) << name;
    EXPECT_EQ(uniform->steps, zipfian->steps) << name;
  }
}

TEST(MixTest, OtherUniformNamesAreRefused) {
  for (const char* name : {"d-uniform", "e-uniform", "l-uniform", "u-uniform", "c-uniform-uniform", "-uniform", ""}) {
    const Status refused = MixByName(name).status();
    EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument) << name;
    EXPECT_NE(refused.ToString().find("-uniform"), std::string::npos) << refused.ToString();
  }
}

}  // namespace
}  // namespace deut::bench
