#include "tc/server/one_shot_queue.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_messages.h"

namespace deut::tc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Calls final : public OneShotBatch {
 public:
  explicit Calls(int size) : size_(size) {}
  int size() const override { return size_; }
  bool IsSnapshot(int) const override { return false; }
  Status GetOptions(int, TransactionOptions*) const override { return Status::Ok(); }
  Status GetOperations(int, std::vector<Operation>*) const override { return Status::Ok(); }
  void SetDeadlines(Runtime&) override {}

 private:
  const int size_;
};

class OneShotQueueTest : public ::testing::Test {
 protected:
  // Counts itself while its transaction is open.
  class Begun final : public BegunOneShot {
   public:
    explicit Begun(int* open) : open_(open) { ++*open_; }
    ~Begun() override { --*open_; }

   private:
    int* const open_;
  };

  // The indices of the calls, which are taken out.
  std::vector<int> TakeAll() {
    std::vector<int> indices;
    while (!queue_.empty()) indices.push_back(queue_.TakeFirst().index);
    return indices;
  }
  // Takes all calls, begins those with an odd index, and puts all of them back.
  void BeginOddOnes() {
    std::vector<QueuedOneShot> taken = queue_.TakeUnexamined(100);
    for (QueuedOneShot& call : taken) {
      if (call.index % 2 == 1) call.begun = std::make_unique<Begun>(&open_);
    }
    queue_.PutFirst(absl::MakeSpan(taken));
  }

  int open_ = 0;
  Calls batch_{6};
  OneShotQueue queue_;
};

TEST_F(OneShotQueueTest, CallsAreExaminedOnceAndTakenInOrder) {
  queue_.Add(&batch_);
  EXPECT_EQ(batch_.left, 6);
  EXPECT_FALSE(queue_.FirstIsExamined());
  std::vector<QueuedOneShot> taken = queue_.TakeUnexamined(4);
  ASSERT_EQ(taken.size(), 4u);
  EXPECT_TRUE(taken.front().examined);
  queue_.PutFirst(absl::MakeSpan(taken));
  EXPECT_TRUE(queue_.FirstIsExamined());
  EXPECT_FALSE(queue_.HasBegun());
  EXPECT_THAT(queue_.TakeUnexamined(4), IsEmpty());
  EXPECT_THAT(TakeAll(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_FALSE(queue_.FirstIsExamined());
}

TEST_F(OneShotQueueTest, BegunCallsAreFirstAlsoWhenOthersArePutInFront) {
  queue_.Add(&batch_);
  BeginOddOnes();
  EXPECT_TRUE(queue_.HasBegun());
  // Other calls are put back later: one that is begun, and one that is not.
  Calls other(12);
  std::vector<QueuedOneShot> late(2);
  late[0] = {.batch = &other, .index = 10, .examined = true};
  late[1] = {.batch = &other, .index = 11, .examined = true, .begun = std::make_unique<Begun>(&open_)};
  queue_.PutFirst(absl::MakeSpan(late));
  EXPECT_THAT(TakeAll(), ElementsAre(11, 1, 3, 5, 10, 0, 2, 4));
}

TEST_F(OneShotQueueTest, EndBegunEndsTheTransactionsAndKeepsTheirCalls) {
  queue_.Add(&batch_);
  BeginOddOnes();
  EXPECT_EQ(open_, 3);
  queue_.EndBegun();
  EXPECT_EQ(open_, 0);
  EXPECT_FALSE(queue_.HasBegun());
  EXPECT_THAT(TakeAll(), ElementsAre(1, 3, 5, 0, 2, 4));
}

TEST_F(OneShotQueueTest, CallsThatAreDroppedAreNotLeft) {
  queue_.Add(&batch_);
  BeginOddOnes();
  {
    const QueuedOneShot first = queue_.TakeFirst();
    EXPECT_EQ(open_, 3);
    OneShotQueue::Drop(absl::MakeConstSpan(&first, 1));
    EXPECT_EQ(batch_.left, 5);
  }
  EXPECT_EQ(open_, 2);
  queue_.DropAll();
  EXPECT_EQ(batch_.left, 0);
  EXPECT_EQ(open_, 0);
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace deut::tc
