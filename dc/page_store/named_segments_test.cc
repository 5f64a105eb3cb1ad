#include "dc/page_store/named_segments.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/runtime/random.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {
namespace {

NamedSegments With(const std::vector<uint64_t>& numbers) {
  NamedSegments segments;
  for (const uint64_t number : numbers) {
    segments.Add({.number = number, .kind = SegmentKind::kBase, .written_bytes = 4096});
  }
  segments.EndAdding();
  return segments;
}

// Each number is found at its rank, and no number beside it is found.
void ExpectAll(const std::vector<uint64_t>& numbers) {
  const NamedSegments segments = With(numbers);
  ASSERT_EQ(segments.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(segments.Find(numbers[i]), i) << numbers[i];
    EXPECT_EQ(segments[i].number, numbers[i]);
    const bool next_is_there = i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1;
    EXPECT_EQ(segments.Find(numbers[i] + 1), next_is_there ? i + 1 : numbers.size()) << numbers[i] + 1;
    const bool before_is_there = i > 0 && numbers[i - 1] == numbers[i] - 1;
    EXPECT_EQ(segments.Find(numbers[i] - 1), before_is_there ? i - 1 : numbers.size()) << numbers[i] - 1;
  }
  EXPECT_EQ(segments.Find(0), numbers.size());
  EXPECT_EQ(segments.Find(UINT64_MAX), numbers.size());
}

TEST(NamedSegments, EachNumberIsFoundAtItsRankAndNoOther) {
  ExpectAll({});
  ExpectAll({1});
  ExpectAll({PageAddress::kMaxSegment});
  ExpectAll({1, PageAddress::kMaxSegment});
  std::vector<uint64_t> dense, groups, sparse;
  for (uint64_t number = 5; number < 2000; ++number) dense.push_back(number);
  ExpectAll(dense);
  // Groups far apart: all segments of a group lie in one interval.
  for (const uint64_t first : {uint64_t{1}, uint64_t{1} << 20, PageAddress::kMaxSegment - 1000}) {
    for (uint64_t i = 0; i < 500; ++i) groups.push_back(first + 2 * i);
  }
  ExpectAll(groups);
  Random random(1);
  for (uint64_t number = 1; number < 1'000'000; number += 1 + random.Below(3000)) sparse.push_back(number);
  ExpectAll(sparse);
}

}  // namespace
}  // namespace deut::dc
