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

TEST(VictimQueue, OfSegmentsOfOneAgeTheEmptiestComesFirst) {
  // The ages differ by a thousandth.
  VictimQueue queue(/*next_segment=*/4'000);
  queue.Add(Usage(1, 500, 1000));
  queue.Add(Usage(2, 10'000, 100'000));
  queue.Add(Usage(3, 300, 1000));
  queue.Add(Usage(4, 4 << 26, 10 << 26));  // a long segment: most dead bytes
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{2, 3, 4, 1}));
}

TEST(VictimQueue, AmongEquallyFullOnesTheOldestComesFirst) {
  VictimQueue queue(/*next_segment=*/10);
  for (const uint64_t number : {7, 3, 9, 5}) queue.Add(Usage(number, 100 * number, 1000 * number));
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{3, 5, 7, 9}));
}

TEST(VictimQueue, AnOldSegmentComesBeforeAnEmptierYoungOne) {
  VictimQueue queue(/*next_segment=*/101);
  queue.Add(Usage(100, 10, 1000));  // age 1:    0.98 * 1
  queue.Add(Usage(1, 600, 1000));   // age 100:  0.25 * 100
  queue.Add(Usage(21, 200, 1000));  // age 80:   0.67 * 80
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{21, 1, 100}));
}

TEST(VictimQueue, OfManySegmentsTheBestAreKept) {
  constexpr uint64_t kSegments = 100'000;
  Random random(1);
  VictimQueue queue(kSegments + 1);
  std::vector<SegmentUsage> all;
  for (uint64_t number = 1; number <= kSegments; ++number) {
    all.push_back(Usage(number, 1 + random.Below(1 << 20)));
    queue.Add(all.back());
  }
  std::ranges::sort(all, IsBetterVictim(kSegments + 1));
  std::vector<uint64_t> expected;
  for (size_t i = 0; i < VictimQueue::kMaxVictims; ++i) expected.push_back(all[i].number);
  EXPECT_EQ(PopAll(&queue), expected);
}

// A model of a store: pages of one size, one stream of written pages and one of copies, and the cleaner's rule.
class CleaningModel {
 public:
  explicit CleaningModel(bool emptiest_first) : emptiest_first_(emptiest_first) {
    for (size_t page = 0; page < kPages; ++page) Write(page);
  }

  // Writes pages, 9 of 10 times one of a tenth of them, and returns the number of copies.
  uint64_t Run(uint64_t writes) {
    const uint64_t before = copies_;
    for (uint64_t i = 0; i < writes; ++i) {
      const size_t hot = random_.Below(kPages / 10);
      Write(random_.Below(10) != 0 ? hot * 10 : random_.Below(kPages));
      if (i % (4 * kPagesOfSegment) == 0) Clean();
    }
    return copies_ - before;
  }

 private:
  static constexpr size_t kPages = 8192;
  static constexpr size_t kPagesOfSegment = 32;
  static constexpr uint64_t kSlackSegments = 4;

  struct Segment {
    std::vector<size_t> pages;
    uint64_t live = 0;
  };

  void Write(size_t page) { Append(page, &fresh_); }
  void Append(size_t page, size_t* open) {
    if (segments_[*open].pages.size() == kPagesOfSegment) {
      *open = segments_.size();
      segments_.emplace_back();
    }
    if (place_[page] != 0) --segments_[place_[page]].live;
    place_[page] = *open;
    segments_[*open].pages.push_back(page);
    ++segments_[*open].live;
  }
  void Clean() {
    for (;;) {
      uint64_t written = 0, live = 0;
      std::vector<SegmentUsage> victims;
      VictimQueue queue(segments_.size());
      for (size_t i = 1; i < segments_.size(); ++i) {
        const Segment& segment = segments_[i];
        if (segment.pages.size() != kPagesOfSegment || segment.live == 0) continue;
        written += kPagesOfSegment;
        live += segment.live;
        const SegmentUsage usage = Usage(i, segment.live, kPagesOfSegment);
        if (usage.live_bytes * 3 >= usage.written_bytes * 2) continue;
        victims.push_back(usage);
        queue.Add(usage);
      }
      if (written <= live + live / 2 + kSlackSegments * kPagesOfSegment || victims.empty()) return;
      Empty(emptiest_first_ ? std::ranges::min_element(victims, IsEmptier)->number : queue.Pop()->number);
    }
  }
  void Empty(size_t number) {
    const std::vector<size_t> pages = segments_[number].pages;
    for (const size_t page : pages) {
      if (place_[page] != number) continue;
      Append(page, &copied_);
      ++copies_;
    }
  }

  const bool emptiest_first_;
  Random random_{7};
  std::vector<Segment> segments_ = std::vector<Segment>(3);  // number 0 is none; 1 and 2 are open at first
  std::vector<size_t> place_ = std::vector<size_t>(kPages);
  size_t fresh_ = 1, copied_ = 2;
  uint64_t copies_ = 0;
};

TEST(VictimQueue, WhereATenthIsWrittenAgainAndAgainHalfOfTheCopiesAreSaved) {
  CleaningModel emptiest_first(true), by_gain(false);
  constexpr uint64_t kWrites = 60'000;
  (void)emptiest_first.Run(kWrites);
  (void)by_gain.Run(kWrites);
  const uint64_t many = emptiest_first.Run(kWrites), few = by_gain.Run(kWrites);
  EXPECT_GT(few, 0u);
  EXPECT_LT(few * 2, many) << few << " copies and " << many;
}

}  // namespace
}  // namespace deut::dc
