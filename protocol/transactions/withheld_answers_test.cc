// Answers that wait for the disk: when they are given, and their status if the disk fails.
#include "protocol/transactions/withheld_answers.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/wire/convert.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr MonotonicTime kStart = MonotonicTime(seconds(1000));

class WithheldAnswersTest : public ::testing::Test {
 protected:
  void Add(uint64_t id, uint64_t at, Duration left = seconds(10), bool wrote = true) {
    WithheldAnswers::Answer answer{.durable_at = Lsn(at), .deadline = kStart + left, .wrote = wrote, .bytes = 100};
    answer.message.set_id(id);
    answer.message.mutable_answer()->set_timestamp(7);
    if (wrote) answer.message.mutable_answer()->set_commit_lsn(at);
    waiting_.Add(std::move(answer));
  }
  std::vector<uint64_t> Release(const Result<Lsn>& durable, Duration passed = Duration(0)) {
    released_.clear();
    waiting_.Release(durable, kStart + passed, [this](wire::OneShotAnswer* answer, size_t bytes) {
      released_.emplace_back().Swap(answer);
      bytes_ += bytes;
    });
    std::vector<uint64_t> ids;
    for (const wire::OneShotAnswer& answer : released_) ids.push_back(answer.id());
    return ids;
  }

  WithheldAnswers waiting_;
  std::vector<wire::OneShotAnswer> released_;
  size_t bytes_ = 0;
};

TEST_F(WithheldAnswersTest, AreReleasedInPositionOrderBelowTheDurablePosition) {
  for (const uint64_t at : {30, 10, 20, 40, 20}) Add(at, at);
  EXPECT_EQ(waiting_.bytes(), 500u);
  EXPECT_EQ(waiting_.first(), Lsn(10));
  EXPECT_THAT(Release(Lsn(10)), IsEmpty());  // everything below the position is durable
  EXPECT_THAT(Release(Lsn(21)), ElementsAre(10, 20, 20));
  EXPECT_TRUE(FromWire(released_[0].answer().status()).ok());
  EXPECT_EQ(released_[0].answer().commit_lsn(), 10u);
  EXPECT_EQ(bytes_, 300u);
  EXPECT_EQ(waiting_.bytes(), 200u);
  EXPECT_EQ(waiting_.first(), Lsn(30));
  EXPECT_THAT(Release(Lsn(1000)), ElementsAre(30, 40));
  EXPECT_TRUE(waiting_.empty());
  EXPECT_EQ(waiting_.bytes(), 0u);
}

TEST_F(WithheldAnswersTest, AnswersWhoseDeadlineHasPassedAreReleased) {
  Add(1, 10, seconds(3));
  Add(2, 20, seconds(1));
  Add(3, 30, seconds(2), /*wrote=*/false);
  EXPECT_EQ(waiting_.EarliestDeadline(), kStart + seconds(1));
  const Status late(ErrorCode::kDeadlineExceeded, "late");
  EXPECT_THAT(Release(late), IsEmpty());
  EXPECT_THAT(Release(late, seconds(1)), ElementsAre(2));
  const Status unknown = FromWire(released_[0].answer().status());
  EXPECT_EQ(unknown.code(), ErrorCode::kOutcomeUnknown);
  EXPECT_THAT(unknown.ToString(), HasSubstr("late"));
  EXPECT_EQ(released_[0].answer().commit_lsn(), 0u);
  EXPECT_THAT(Release(late, seconds(2)), ElementsAre(3));
  EXPECT_EQ(FromWire(released_[0].answer().status()).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(waiting_.first(), Lsn(10));
}

TEST_F(WithheldAnswersTest, AfterAFailureOfTheLogNoAnswerIsLeft) {
  Add(1, 10);
  Add(2, 20);
  EXPECT_THAT(Release(Status(ErrorCode::kIoError, "gone")), UnorderedElementsAre(1, 2));
  EXPECT_EQ(FromWire(released_[0].answer().status()).code(), ErrorCode::kOutcomeUnknown);
  EXPECT_TRUE(waiting_.empty());
  EXPECT_EQ(waiting_.bytes(), 0u);
}

}  // namespace
}  // namespace deut
