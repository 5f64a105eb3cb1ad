#include "dc/page_cache/load_queue.h"

#include <array>
#include <cstddef>
#include <vector>

#include "common/base/status.h"
#include "dc/page_cache/leaf_load.h"
#include "dc/page_cache/load_waiter.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class Waiter final : public LoadWaiter {
 public:
  void OnLoaded(const Status& /*status*/) override {}
};

constexpr auto kAlways = [](LoadAdmission /*admission*/) { return true; };
constexpr auto kNever = [](LoadAdmission /*admission*/) { return false; };

class LoadQueueTest : public ::testing::Test {
 protected:
  LoadQueueTest() {
    patient_.urgency = LoadUrgency::kWhenMemory;
    patient_.waiters.Push(&waiter_);
    ahead_.urgency = LoadUrgency::kWhenMemory;
  }

  Waiter waiter_;
  LeafLoad urgent_;
  LeafLoad patient_;
  LeafLoad ahead_;
  LoadQueue queue_;
};

TEST_F(LoadQueueTest, UrgentOnesComeFirstAndThoseThatNobodyWaitsForLast) {
  for (LeafLoad* const load : {&ahead_, &patient_, &urgent_}) queue_.Push(load);
  for (LeafLoad* const load : {&urgent_, &patient_, &ahead_}) EXPECT_EQ(queue_.Next(kAlways), load);
  EXPECT_EQ(queue_.Next(kAlways), nullptr);
}

TEST_F(LoadQueueTest, OnlyUrgentOnesDoNotWaitForMemory) {
  for (LeafLoad* const load : {&ahead_, &patient_, &urgent_}) queue_.Push(load);
  EXPECT_EQ(queue_.Next(kNever), &urgent_);
  EXPECT_EQ(queue_.Next(kNever), nullptr);
  EXPECT_EQ(queue_.TakeAhead(), &ahead_);
  EXPECT_EQ(queue_.TakeAhead(), nullptr);
  EXPECT_EQ(queue_.Next(kAlways), &patient_);
}

TEST_F(LoadQueueTest, ALoadThatGetsAWaiterOrBecomesUrgentChangesItsLane) {
  for (LeafLoad* const load : {&ahead_, &patient_}) queue_.Push(load);
  Waiter another;
  ahead_.waiters.Push(&another);
  queue_.Move(&ahead_, LoadQueue::Lane::kAhead);
  EXPECT_EQ(queue_.TakeAhead(), nullptr);
  ahead_.urgency = LoadUrgency::kNow;
  queue_.Move(&ahead_, LoadQueue::Lane::kPatient);
  EXPECT_EQ(queue_.Next(kNever), &ahead_);
  EXPECT_EQ(queue_.Next(kAlways), &patient_);
}

TEST_F(LoadQueueTest, ALoadThatCannotBeginYetStaysTheFirst) {
  std::array<LeafLoad, 2> urgent;
  for (LeafLoad& load : urgent) queue_.Push(&load);
  ASSERT_EQ(queue_.Next(kAlways), &urgent[0]);
  queue_.PutBack(&urgent[0]);
  EXPECT_EQ(queue_.Next(kAlways), &urgent[0]);
  EXPECT_EQ(queue_.Next(kAlways), &urgent[1]);
}

// The urgent ones take all memory, and there are always some.
TEST_F(LoadQueueTest, UrgentLoadsDoNotPassAPatientOneForEver) {
  const auto only_overdue = [](LoadAdmission admission) { return admission == LoadAdmission::kOverdue; };
  std::vector<LeafLoad> urgent(2 * LoadQueue::kUrgentPerPatient + 1);
  for (LeafLoad& load : urgent) queue_.Push(&load);
  queue_.Push(&patient_);
  for (size_t i = 0; i < LoadQueue::kUrgentPerPatient; ++i) EXPECT_EQ(queue_.Next(only_overdue), &urgent[i]);
  EXPECT_EQ(queue_.Next(only_overdue), &patient_);
  EXPECT_EQ(queue_.Next(only_overdue), &urgent[LoadQueue::kUrgentPerPatient]);
}

TEST_F(LoadQueueTest, WithoutMemoryAPatientOneLetsAsManyPassAgain) {
  std::vector<LeafLoad> urgent(2 * LoadQueue::kUrgentPerPatient + 1);
  for (LeafLoad& load : urgent) queue_.Push(&load);
  queue_.Push(&patient_);
  for (size_t i = 0; i < 2 * LoadQueue::kUrgentPerPatient; ++i) EXPECT_EQ(queue_.Next(kNever), &urgent[i]);
  EXPECT_EQ(queue_.Next(kAlways), &patient_);
}

}  // namespace
}  // namespace deut::dc
