// Ranges, postings and maps (rules R1 - R3); lost compare-and-swaps; unlinking while others post.
#include "tc/mvcc/range_table.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

class RangeTableTest : public ::testing::Test {
 protected:
  ~RangeTableTest() override {
    testing::SetPointHandler(nullptr);
    testing::SetCasHandler(nullptr);
    ReclamationDomain::Guard guard(domain_);
    range_.RemovePostings(domain_, [](const TransactionRecord&) { return true; });
    for (TransactionRecord* record : records_) record->DropReference(domain_);
  }
  TransactionRecord* Post(uint64_t timestamp) {
    records_.push_back(new TransactionRecord(Timestamp{timestamp}));
    EXPECT_TRUE(range_.Post(records_.back()));
    return records_.back();
  }
  std::string Postings() {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    range_.ForEachPosting([&](TransactionRecord& record) {
      text += std::to_string(record.timestamp().value) + " ";
      return true;
    });
    return text;
  }
  void Remove(std::vector<uint64_t> timestamps) {
    ReclamationDomain::Guard guard(domain_);
    range_.RemovePostings(domain_, [&](const TransactionRecord& record) {
      return std::find(timestamps.begin(), timestamps.end(), record.timestamp().value) != timestamps.end();
    });
  }

  ReclamationDomain domain_;
  Range range_{"", "", Timestamp{5}};
  std::vector<TransactionRecord*> records_;
};

TEST_F(RangeTableTest, OnlyACurrentRangeSpeaksForItsKeys) {
  EXPECT_TRUE(range_.RaiseLastRead(Timestamp{9}));
  EXPECT_EQ(range_.last_read_unless_sealed(), Timestamp{9});
  range_.Seal();
  EXPECT_EQ(range_.last_read_unless_sealed(), std::nullopt);
  EXPECT_EQ(range_.last_read(), Timestamp{9});
}

TEST_F(RangeTableTest, LastReadOnlyRises) {
  EXPECT_EQ(range_.last_read(), Timestamp{5});
  EXPECT_TRUE(range_.RaiseLastRead(Timestamp{3}));
  EXPECT_EQ(range_.last_read(), Timestamp{5});
  EXPECT_TRUE(range_.RaiseLastRead(Timestamp{9}));
  EXPECT_EQ(range_.last_read(), Timestamp{9});
  int lost = 0;
  testing::SetCasHandler([&](std::string_view name) { return name == "range.raise.cas" && lost++ == 0; });
  EXPECT_TRUE(range_.RaiseLastRead(Timestamp{11}));
  EXPECT_EQ(lost, 2);
  EXPECT_EQ(range_.last_read(), Timestamp{11});
}

TEST_F(RangeTableTest, TheFirstPostingIsThatOfTheRecordOnce) {
  const auto all = [](const TransactionRecord&) { return true; };
  TransactionRecord* const record = Post(7);
  EXPECT_TRUE(record->Owns(range_.first_posting()));
  EXPECT_EQ(range_.first_posting()->origin, &range_);
  Range other("", "", Timestamp{5});
  EXPECT_TRUE(other.Post(record));
  EXPECT_FALSE(record->Owns(other.first_posting()));
  EXPECT_EQ(other.first_posting()->origin, &other);
  Remove({7});
  // A reader that stands on the record's own posting may still go on from it, so that posting is not linked again.
  EXPECT_TRUE(range_.Post(record));
  EXPECT_FALSE(record->Owns(range_.first_posting()));
  ReclamationDomain::Guard guard(domain_);
  other.RemovePostings(domain_, all);
}

TEST_F(RangeTableTest, AClosedRangeLeavesTheRecordItsPosting) {
  Range marked("", "", Timestamp{5});
  marked.CloseToPosts();
  auto* const record = new TransactionRecord(Timestamp{7});
  records_.push_back(record);
  EXPECT_FALSE(marked.Post(record));
  Range marked_late("", "", Timestamp{5});
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "range.post.before_cas") marked_late.CloseToPosts();
  });
  EXPECT_FALSE(marked_late.Post(record));
  testing::SetPointHandler(nullptr);
  EXPECT_TRUE(range_.Post(record));
  EXPECT_TRUE(record->Owns(range_.first_posting()));
}

// During a walk by another thread: the posting on which it stands stays valid when its record has lost the last reference.
TEST_F(RangeTableTest, AWalkGoesOnFromAPostingWhoseRecordIsGone) {
  for (uint64_t t = 1; t <= 3; ++t) Post(t);
  std::string seen;
  {
    ReclamationDomain::Guard guard(domain_);
    range_.ForEachPosting([&](TransactionRecord& record) {
      seen += std::to_string(record.timestamp().value) + " ";
      if (record.timestamp().value == 3) {
        Remove({3, 2});
        for (TransactionRecord*& of : records_) {
          if (of != nullptr && of->timestamp().value > 1) std::exchange(of, nullptr)->DropReference(domain_);
        }
        domain_.Collect();
      }
      return true;
    });
  }
  std::erase(records_, nullptr);
  EXPECT_EQ(seen.substr(0, 2), "3 ");
  EXPECT_EQ(seen.substr(seen.size() - 2), "1 ");
  EXPECT_EQ(Postings(), "1 ");
}

TEST_F(RangeTableTest, RemovalFromEveryPlace) {
  for (uint64_t t = 1; t <= 6; ++t) Post(t);
  EXPECT_EQ(Postings(), "6 5 4 3 2 1 ");
  Remove({4, 3});
  EXPECT_EQ(Postings(), "6 5 2 1 ");
  Remove({6, 1});
  EXPECT_EQ(Postings(), "5 2 ");
  Remove({9});
  EXPECT_EQ(range_.posting_count(), 2u);
  Remove({5, 2});
  EXPECT_EQ(Postings(), "");
  EXPECT_EQ(range_.posting_count(), 0u);
}

TEST_F(RangeTableTest, PostingWhileTheFirstIsUnlinked) {
  Post(1);
  Post(2);
  bool done = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "range.unlink.before_cas" || done) return;
    done = true;
    Post(3);
  });
  Remove({1, 2});
  EXPECT_TRUE(done);
  EXPECT_EQ(Postings(), "3 ");
}

TEST_F(RangeTableTest, LostCompareAndSwaps) {
  int lost = 0;
  testing::SetCasHandler([&](std::string_view name) { return name == "range.post.cas" && lost++ == 0; });
  Post(1);
  EXPECT_EQ(lost, 2);
  lost = 0;
  testing::SetCasHandler([&](std::string_view name) { return name == "range.unlink.cas" && lost++ == 0; });
  Remove({1});
  EXPECT_GE(lost, 2);
  EXPECT_EQ(Postings(), "");
}

TEST_F(RangeTableTest, PostersAndReadersWhileOneUnlinks) {
  constexpr int kPosts = 20000;
  std::atomic<int> working{2};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 2; ++t) {
    threads.push_back(RealRuntime().StartThread("poster", [&] {
      for (uint64_t i = 1; i <= kPosts; ++i) {
        ReclamationDomain::Guard guard(domain_);
        auto* record = new TransactionRecord(Timestamp{i});
        record->MakeWriteSet().Publish(TableId{1}, std::to_string(i), i);
        EXPECT_TRUE(range_.Post(record));
        record->TryAbort();
        record->DropReference(domain_);
        if (i % 8 == 0) {
          range_.ForEachPosting([](TransactionRecord& r) {
            EXPECT_EQ(r.write_set()->size(), 1u);
            return true;
          });
        }
      }
      working.fetch_sub(1);
    }));
  }
  while (working.load() != 0 || range_.posting_count() != 0) {
    ReclamationDomain::Guard guard(domain_);
    range_.RemovePostings(domain_,
                          [](const TransactionRecord& r) { return r.status() == TransactionStatus::kAborted; });
  }
  threads.clear();
  EXPECT_EQ(Postings(), "");
}

TEST(RangeMapTest, FindsRangesByKeyAndBelowBounds) {
  Range first("", "g", Timestamp{7}), second("g", "n", Timestamp{7}), third("n", "", Timestamp{7});
  const RangeMap map({&first, &second, &third});
  ASSERT_EQ(map.size(), 3u);
  const std::vector<std::pair<std::string, size_t>> of = {{"", 0},   {"a", 0},  {"fz", 0}, {"g", 1},
                                                          {"g0", 1}, {"mz", 1}, {"n", 2},  {"z", 2}};
  for (const auto& [key, index] : of) EXPECT_EQ(map.IndexOf(key), index) << key;
  const std::vector<std::pair<std::string, size_t>> below = {{"a", 0}, {"g", 0},  {std::string("g\0", 2), 1},
                                                             {"n", 1}, {"n0", 2}, {"", 2}};
  for (const auto& [bound, index] : below) EXPECT_EQ(map.IndexBelow(bound), index) << bound;
}

// Bounds with long and short common prefixes, with zero bytes, and bounds that are prefixes of others.
TEST(RangeMapTest, FindsWhatASearchByTheBoundsFinds) {
  Random random(7);
  const auto key = [&](size_t most) {
    std::string made;
    for (size_t left = random.Below(most + 1); left != 0; --left) made.push_back("\0\1b\xff"[random.Below(4)]);
    return made;
  };
  for (const std::string& prefix : {std::string(), std::string("b"), std::string("bb\0b\xff\1\0\0bb", 10)}) {
    for (const size_t most : {size_t{2}, size_t{5}, size_t{12}}) {
      std::set<std::string> lows;
      for (int i = 0; i < 60; ++i) lows.insert(prefix + key(most));
      lows.erase("");
      std::vector<std::string> bounds = {""};
      bounds.insert(bounds.end(), lows.begin(), lows.end());
      std::vector<std::unique_ptr<Range>> owned;
      std::vector<Range*> ranges;
      for (size_t i = 0; i < bounds.size(); ++i) {
        owned.push_back(std::make_unique<Range>(bounds[i], i + 1 == bounds.size() ? "" : bounds[i + 1], Timestamp{0}));
        ranges.push_back(owned.back().get());
      }
      const RangeMap map(ranges);
      for (int i = 0; i < 2000; ++i) {
        std::string looked = random.Below(2) == 0 ? prefix + key(most + 1) : key(prefix.size() + most);
        if (random.Below(8) == 0) looked = bounds[random.Below(bounds.size())];
        const auto at = std::upper_bound(bounds.begin(), bounds.end(), looked) - bounds.begin() - 1;
        ASSERT_EQ(map.IndexOf(looked), static_cast<size_t>(at)) << ::testing::PrintToString(looked);
        if (looked.empty()) continue;
        const auto below = std::lower_bound(bounds.begin(), bounds.end(), looked) - bounds.begin() - 1;
        ASSERT_EQ(map.IndexBelow(looked), static_cast<size_t>(below)) << ::testing::PrintToString(looked);
      }
    }
  }
}

TEST(RangeMapTest, OneRangeHoldsAll) {
  Range all("", "", Timestamp{0});
  const RangeMap whole({&all});
  EXPECT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole.IndexOf("x"), 0u);
  EXPECT_EQ(whole.IndexBelow(""), 0u);
}

}  // namespace
}  // namespace deut::tc
