#include "tc/server/serving_state.h"

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

class ServingStateTest : public ::testing::Test {
 protected:
  bool Decided() { return state_.WaitDecided(RealRuntime().Now()); }

  std::vector<std::string> refusals_;
  ServingState state_{RealRuntime(), [] { return std::string("waiting for the DC"); },
                      [this](const Status& status) { refusals_.emplace_back(status.message()); }};
};

TEST_F(ServingStateTest, AStartIsUnavailableAndSaysWhatItWaitsFor) {
  EXPECT_FALSE(Decided());
  const Status starting = state_.Check();
  EXPECT_EQ(starting, ErrorCode::kUnavailable);
  EXPECT_NE(starting.message().find("waiting for the DC"), std::string_view::npos);
  ASSERT_TRUE(state_.Serve());
  EXPECT_TRUE(Decided());
  EXPECT_TRUE(state_.Check().ok());
}

TEST_F(ServingStateTest, TheFirstRefusalWinsAndIsReportedOnce) {
  state_.Refuse(Status(ErrorCode::kFenced, "fenced"));
  state_.Refuse(Status(ErrorCode::kCorruption, "damaged"));
  EXPECT_TRUE(Decided());
  EXPECT_EQ(state_.Check(), ErrorCode::kFenced);
  EXPECT_EQ(refusals_, std::vector<std::string>{"fenced"});
}

TEST_F(ServingStateTest, ARefusedStartNeverServes) {
  state_.Refuse(Status(ErrorCode::kFenced, "fenced"));
  EXPECT_FALSE(state_.Serve());
  EXPECT_FALSE(state_.serving());
}

TEST_F(ServingStateTest, ARefusalEndsServing) {
  ASSERT_TRUE(state_.Serve());
  state_.Refuse(Status(ErrorCode::kFenced, "fenced"));
  EXPECT_EQ(state_.Check(), ErrorCode::kFenced);
}

TEST_F(ServingStateTest, AStopIsARefusalThatIsNotReported) {
  ASSERT_TRUE(state_.Serve());
  state_.BeginStop();
  state_.BeginStop();
  EXPECT_TRUE(state_.stopping());
  EXPECT_EQ(state_.Check(), ErrorCode::kUnavailable);
  EXPECT_TRUE(refusals_.empty());
}

}  // namespace
}  // namespace deut::tc
