#include "tc/server/range_loads.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/reclamation.h"
#include "gtest/gtest.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {
namespace {

class RangeLoadsTest : public ::testing::Test {
 protected:
  // Makes ranges that begin at the empty key and at these cuts.
  void Cut(const std::vector<std::string>& cuts) {
    map_.reset();
    ranges_.clear();
    std::vector<Range*> all;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      ranges_.push_back(
          std::make_unique<Range>(i == 0 ? "" : cuts[i - 1], i < cuts.size() ? cuts[i] : "", Timestamp{0}));
      all.push_back(ranges_.back().get());
    }
    map_ = std::make_unique<RangeMap>(std::move(all));
    loads_.Follow(*map_, now_);
  }
  void Post(size_t range, int times) {
    ReclamationDomain::Guard guard(domain_);
    for (int i = 0; i < times; ++i) {
      auto* record = new TransactionRecord(Timestamp{1});
      EXPECT_TRUE(ranges_[range]->Post(record));
      record->DropReference(domain_);
    }
    map_->RemoveAllPostings(domain_);
  }
  void Measure(Duration passed) {
    now_ += passed;
    loads_.Measure(*map_, now_);
  }
  std::vector<double> Records() const {
    std::vector<double> records;
    for (const RangeLoad& load : loads_.loads()) records.push_back(load.records);
    return records;
  }
  double updates(size_t range) const { return loads_.loads()[range].updates; }

  ReclamationDomain domain_;
  MonotonicTime now_{};
  std::vector<std::unique_ptr<Range>> ranges_;
  std::unique_ptr<RangeMap> map_;
  RangeLoads loads_;
};

TEST_F(RangeLoadsTest, RecordsComeFromThePiecesThatARangeOverlaps) {
  Cut({"d", "m"});
  EXPECT_EQ(Records(), (std::vector<double>{0, 0, 0}));
  loads_.SetPieces(600, {});
  EXPECT_EQ(Records(), (std::vector<double>{200, 200, 200}));
  loads_.SetPieces(600, {"b", "d", "e", "p", "r"});
  EXPECT_EQ(Records(), (std::vector<double>{200, 150, 250}));
  EXPECT_EQ(loads_.CutsBetween("", "d"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(loads_.CutsBetween("d", "m"), (std::vector<std::string>{"e"}));
  EXPECT_EQ(loads_.CutsBetween("m", ""), (std::vector<std::string>{"p", "r"}));
}

TEST_F(RangeLoadsTest, NewRangesInheritWhatIsKnown) {
  Cut({"d", "m"});
  loads_.SetPieces(600, {"d", "m"});
  Post(1, 100);
  Measure(seconds(1000));
  EXPECT_NEAR(updates(1), 0.1, 1e-9);
  Cut({"d", "f", "h", "k", "m"});
  EXPECT_EQ(Records(), (std::vector<double>{200, 50, 50, 50, 50, 200}));
  EXPECT_NEAR(updates(2), 0.025, 1e-9);
  Cut({"h", "k"});
  EXPECT_EQ(Records(), (std::vector<double>{300, 50, 250}));
  EXPECT_NEAR(updates(0), 0.05, 1e-9);
  Cut({});
  EXPECT_EQ(Records(), (std::vector<double>{600}));
  EXPECT_NEAR(updates(0), 0.1, 1e-9);
}

TEST_F(RangeLoadsTest, UpdatesRiseQuicklyAndFallSlowly) {
  Cut({"m"});
  Post(0, 5);  // a new range begins with no updates
  EXPECT_EQ(updates(0), 0);
  loads_.Follow(*map_, now_);
  for (int i = 0; i < 4; ++i) {
    Post(0, 1000);
    Measure(milliseconds(500));
  }
  EXPECT_GT(updates(0), 1800);
  EXPECT_LE(updates(0), 2000);
  EXPECT_EQ(updates(1), 0);
  EXPECT_EQ(loads_.posted(), 4000u);
  Measure(milliseconds(500));
  EXPECT_GT(updates(0), 1500);
  Measure(seconds(50));
  EXPECT_LT(updates(0), 1);
  loads_.SetPieces(1, {});
  EXPECT_EQ(loads_.posted(), 0u);
}

TEST_F(RangeLoadsTest, AConflictCountsAsManyUpdates) {
  Cut({"m"});
  ranges_[1]->CountConflict();
  Measure(seconds(1000));
  EXPECT_NEAR(updates(1), static_cast<double>(RangeLoads::kUpdatesPerConflict) / 1000, 1e-9);
  EXPECT_EQ(loads_.posted(), 0u);
}

}  // namespace
}  // namespace deut::tc
