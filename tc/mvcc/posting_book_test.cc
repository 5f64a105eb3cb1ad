#include "tc/mvcc/posting_book.h"

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/mvcc/range_partition.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {
namespace {

class PostingBookTest : public ::testing::Test {
 protected:
  ~PostingBookTest() override {
    testing::SetPointHandler(nullptr);
    book_.Sweep(true);
    ReclamationDomain::Guard guard(domain_);
    partition_.map().RemoveAllPostings(domain_);
  }

  // Posts transactions in the key's range and collects them at once.
  void PostAndCollect(std::string_view key, int times = 1) {
    ReclamationDomain::Guard guard(domain_);
    for (int i = 0; i < times; ++i) {
      Range& range = RangeOf(key);
      auto* record = new TransactionRecord(Timestamp{1});
      EXPECT_TRUE(range.Post(record));
      range.AddReference();
      record->TryAbort();
      record->set_collected();
      book_.Count(&range);
      record->DropReference(domain_);
    }
  }
  Range& RangeOf(std::string_view key) {
    const RangeMap& map = partition_.map();
    return map.at(map.IndexOf(key));
  }
  uint64_t Postings() {
    ReclamationDomain::Guard guard(domain_);
    uint64_t postings = 0;
    for (const Range* range : partition_.map().ranges()) postings += range->posting_count();
    return postings;
  }
  void Recut(const std::vector<std::string>& cuts) { partition_.Recut(RealRuntime(), domain_, cuts); }
  static std::string Key(int i) { return std::to_string(10000 + i); }

  ReclamationDomain domain_;
  RangePartition partition_;
  PostingBook book_{domain_};
};

TEST_F(PostingBookTest, UnlinksManyAtOnce) {
  PostAndCollect("a", PostingBook::kSweepPostings - 1);
  book_.Sweep(false);
  EXPECT_EQ(Postings(), PostingBook::kSweepPostings - 1);
  PostAndCollect("a");
  book_.Sweep(false);
  EXPECT_EQ(Postings(), 0u);
  PostAndCollect("a", 3);
  book_.Sweep(true);
  EXPECT_EQ(Postings(), 0u);
  EXPECT_EQ(book_.ranges(), 0u);
}

// A range with postings of open transactions waits until dead postings are a large part of its list, and stays in the book.
TEST_F(PostingBookTest, WaitsWhileMostOfARangeIsInUse) {
  std::vector<TransactionRecord*> open;
  {
    ReclamationDomain::Guard guard(domain_);
    for (int i = 0; i < 100; ++i)
      EXPECT_TRUE(RangeOf("a").Post(open.emplace_back(new TransactionRecord(Timestamp{1}))));
  }
  PostAndCollect("a", 40);
  book_.Sweep(false);
  EXPECT_EQ(Postings(), 140u);
  for (int i = 0; i < 60; ++i) {
    PostAndCollect("a");
    book_.Sweep(false);
  }
  EXPECT_LT(Postings(), 100u + PostingBook::kSweepPostings);
  ReclamationDomain::Guard guard(domain_);
  for (TransactionRecord* record : open) record->DropReference(domain_);
}

// With a few postings in each of many ranges a sweep examines only a few of the ranges.
TEST_F(PostingBookTest, ASweepCostsWhatIsDue) {
  constexpr int kRanges = 4096;
  std::vector<std::string> cuts;
  for (int i = 1; i < kRanges; ++i) cuts.push_back(Key(i));
  Recut(cuts);
  for (int i = 0; i < kRanges; ++i) PostAndCollect(Key(i), PostingBook::kSweepPostings - 1);
  EXPECT_EQ(book_.ranges(), size_t{kRanges});
  std::atomic<int> looks{0};
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "posting_book.look") looks.fetch_add(1);
  });
  constexpr int kSweeps = 100;
  for (int i = 0; i < kSweeps; ++i) {
    PostAndCollect(Key(i));
    book_.Sweep(false);
  }
  EXPECT_LE(looks.load(), kSweeps * (static_cast<int>(PostingBook::kCheckedPerSweep) + 1));
  EXPECT_EQ(Postings(), uint64_t{kRanges - kSweeps} * (PostingBook::kSweepPostings - 1));
}

// When the turn of a replaced range comes, its count moves to its successors, where the postings are unlinked.
TEST_F(PostingBookTest, CountsGoOnInSuccessors) {
  std::vector<TransactionRecord*> open;
  {
    ReclamationDomain::Guard guard(domain_);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(RangeOf("a").Post(open.emplace_back(new TransactionRecord(Timestamp{1}))));
      RangeOf("a").AddReference();
    }
  }
  Range& posted_in = partition_.map().at(0);
  Recut({"c", "m"});
  EXPECT_EQ(Postings(), 60u);
  {
    ReclamationDomain::Guard guard(domain_);
    for (TransactionRecord* record : open) {
      record->TryAbort();
      record->set_collected();
      book_.Count(&posted_in);
      record->DropReference(domain_);
    }
  }
  EXPECT_EQ(book_.ranges(), 1u);
  book_.Sweep(false);
  book_.Sweep(false);
  EXPECT_EQ(Postings(), 0u);
  book_.Sweep(false);
  EXPECT_EQ(book_.ranges(), 0u);
}

}  // namespace
}  // namespace deut::tc
