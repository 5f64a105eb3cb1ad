#include "dc/cleaner/victim_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/runtime/random.h"

namespace deut::dc {
namespace {

SegmentUsage Usage(uint64_t number, uint64_t live, uint64_t written = 1 << 20) {
  return {.number = number, .written_bytes = written, .live_bytes = live, .closed = true};
}

std::vector<uint64_t> PopAll(VictimQueue* queue) {
  std::vector<uint64_t> numbers;
  while (const auto victim = queue->Pop()) numbers.push_back(victim->number);
  return numbers;
}

TEST(VictimQueue, AnEmptyQueueHasNoVictim) {
  VictimQueue queue;
  EXPECT_FALSE(queue.Pop().has_value());
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(VictimQueue, TheSmallestLiveFractionComesFirst) {
  VictimQueue queue;
  queue.Add(Usage(1, 500));
  queue.Add(Usage(2, 100, 1 << 10));
  queue.Add(Usage(3, 100));
  queue.Add(Usage(4, 1 << 29, 1 << 30));  // a long segment: half live, but most dead bytes
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{3, 1, 2, 4}));
}

TEST(VictimQueue, AmongEqualsTheOldestComesFirst) {
  VictimQueue queue;
  for (const uint64_t number : {7, 3, 9, 5}) queue.Add(Usage(number, 100 * number, 1000 * number));
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{3, 5, 7, 9}));
}

TEST(VictimQueue, OfManySegmentsTheEmptiestAreKept) {
  constexpr uint64_t kSegments = 100'000;
  Random random(1);
  VictimQueue queue;
  std::vector<SegmentUsage> all;
  for (uint64_t number = 1; number <= kSegments; ++number) {
    all.push_back(Usage(number, 1 + random.Below(1 << 20)));
    queue.Add(all.back());
  }
  std::ranges::sort(all, IsBetterVictim);
  std::vector<uint64_t> expected;
  for (size_t i = 0; i < VictimQueue::kMaxVictims; ++i) expected.push_back(all[i].number);
  EXPECT_EQ(PopAll(&queue), expected);
}

}  // namespace
}  // namespace deut::dc
