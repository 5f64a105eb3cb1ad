#include "tc/dc_link/space_question.h"

#include "common/testing/recorded_log.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

MonotonicTime At(int64_t ms) { return MonotonicTime(seconds(100) + milliseconds(ms)); }

DcLinkOptions Options() {
  DcLinkOptions options;
  options.dc_name = "dc-under-test";
  options.reserve_bytes = 1000;
  return options;
}

TEST(SpaceQuestionTest, X7IsAskedAtMostOnceInEachPeriod) {
  const DcLinkOptions options = Options();
  SpaceQuestion question(RealRuntime(), options);
  EXPECT_TRUE(question.Due(At(0)));
  question.Asked(At(0));
  EXPECT_FALSE(question.Due(At(99)));
  EXPECT_TRUE(question.Due(At(100)));
  EXPECT_EQ(question.next(), At(100));
}

TEST(SpaceQuestionTest, X7ALackEndsWithSpaceAboveTheReserveAndNotWithTheQuestion) {
  const testing::RecordedLog lines;
  const DcLinkOptions options = Options();
  SpaceQuestion question(RealRuntime(), options);
  question.Observe(/*put_refused=*/false, 5000);
  EXPECT_TRUE(lines.lines().empty());
  question.Observe(/*put_refused=*/true, 400);
  EXPECT_TRUE(lines.HasLineWith("disk: puts are refused, dc-under-test has 400 bytes free", "of which 1000 are kept"));
  question.Observe(/*put_refused=*/false, 400);  // asked, and not answered yet
  EXPECT_EQ(lines.lines().size(), 1u);
  question.Observe(/*put_refused=*/false, 1000);
  EXPECT_TRUE(lines.HasLineWith("disk: dc-under-test has 1000 bytes free again", "after "));
}

}  // namespace
}  // namespace deut::tc
