#include "tc/dc_link/reported_space.h"

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

TEST(ReportedSpaceTest, X7ANewDcHasNoSpaceUntilItReports) {
  ReportedSpace space;
  EXPECT_EQ(space.free_bytes(), 0u);
  space.Report(1000);
  EXPECT_EQ(space.free_bytes(), 1000u);
  space.Report(0);
  EXPECT_EQ(space.free_bytes(), 0u);
}

TEST(ReportedSpaceTest, X7TheFirstRefusedPutAfterEachQuestionIsToldApart) {
  ReportedSpace space;
  EXPECT_FALSE(space.put_refused());
  EXPECT_TRUE(space.NotePutRefused());
  EXPECT_FALSE(space.NotePutRefused());
  EXPECT_TRUE(space.put_refused());
  space.Report(5);
  EXPECT_TRUE(space.put_refused()) << "a report does not clear the note: the answer to the question may be older";
  space.ClearPutRefused();
  EXPECT_FALSE(space.put_refused());
  EXPECT_TRUE(space.NotePutRefused());
}

}  // namespace
}  // namespace deut::tc
