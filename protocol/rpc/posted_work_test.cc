#include "protocol/rpc/posted_work.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using ::testing::ElementsAre;

class PostedWorkTest : public ::testing::Test {
 protected:
  PostedWork::Work Note(int n) {
    return [this, n] { ran_.push_back(n); };
  }
  // Runs all work that may begin, one after another.
  static void RunAll(PostedWork* posted) {
    while (posted->Waits()) posted->Take()();
  }

  std::vector<int> ran_;
};

TEST_F(PostedWorkTest, SingleCallsGoFirstAndEachKindKeepsItsOrder) {
  PostedWork posted(/*threads=*/4, /*threads_for_single_calls=*/1);
  EXPECT_FALSE(posted.Waits());
  posted.Add(Note(1));
  posted.Add(Note(2));
  posted.AddSingle(Note(11));
  posted.AddSingle(Note(12));
  RunAll(&posted);
  EXPECT_THAT(ran_, ElementsAre(11, 12, 1, 2));
}

TEST_F(PostedWorkTest, ThreadsForSingleCallsRunNothingElse) {
  PostedWork posted(/*threads=*/4, /*threads_for_single_calls=*/1);
  posted.Add(Note(1));
  posted.Begin();
  EXPECT_TRUE(posted.Waits());
  posted.Begin();
  EXPECT_EQ(posted.may_block(), 2);
  EXPECT_FALSE(posted.MayBegin());
  EXPECT_TRUE(posted.MayBeginSingle());
  EXPECT_FALSE(posted.Waits()) << "two of three threads that may block are busy, and the third is for single calls";
  posted.AddSingle(Note(11));
  RunAll(&posted);
  EXPECT_THAT(ran_, ElementsAre(11));
  posted.Begin();
  posted.AddSingle(Note(12));
  EXPECT_FALSE(posted.Waits());
  posted.End();
  posted.End();
  RunAll(&posted);
  EXPECT_THAT(ran_, ElementsAre(11, 12, 1));
}

TEST_F(PostedWorkTest, WithFewThreadsOneAtATimeMayBlock) {
  for (const int threads : {1, 2}) {
    PostedWork posted(threads, /*threads_for_single_calls=*/threads);
    EXPECT_TRUE(posted.MayBegin());
    EXPECT_TRUE(posted.MayBeginSingle());
    posted.Begin();
    EXPECT_FALSE(posted.MayBegin());
    EXPECT_FALSE(posted.MayBeginSingle());
  }
}

}  // namespace
}  // namespace deut
