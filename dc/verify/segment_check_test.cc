#include "dc/verify/segment_check.h"

#include <string>
#include <vector>

#include "common/base/status.h"
#include "dc/verify/store_on_disk.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class SegmentCheckTest : public ::testing::Test {
 protected:
  SegmentCheckTest() {
    store_.Start();
    store_.Fill(500);
    first_ = store_.Parts().front();
    const auto directory = DataDirectory::Open(store_.storage(), std::string(StoreOnDisk::kDirectory));
    for (const SegmentFile& segment : (*directory)->segments()) {
      if (segment.path == first_.path) segment_ = segment;
    }
    bytes_ = store_.Read(first_.path).size();
  }
  SegmentReport Check(uint64_t named) {
    damages_.clear();
    const auto report = CheckSegment(store_.storage(), segment_, named, StoreOnDisk::kDc,
                                     [&](const Status& damage) { damages_.push_back(damage.ToString()); });
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_EQ(report->damages, damages_.size());
    return *report;
  }

  StoreOnDisk store_;
  StoreOnDisk::Part first_;
  SegmentFile segment_;
  uint64_t bytes_ = 0;
  std::vector<std::string> damages_;
};

TEST_F(SegmentCheckTest, AWholeSegmentHasNoDamage) {
  const SegmentReport report = Check(bytes_);
  EXPECT_EQ(report.damages, 0u);
  EXPECT_TRUE(report.header_intact);
  EXPECT_GT(report.parts, 0u);
  EXPECT_EQ(report.usable_bytes(), bytes_);
}

TEST_F(SegmentCheckTest, AFlippedBitIsDamageInWhatIsNamedOnly) {
  const uint64_t good = Check(bytes_).parts;
  store_.Flip(first_.path, first_.address.offset() + 8, 0);
  EXPECT_LT(Check(bytes_).parts, good);
  ASSERT_FALSE(damages_.empty());
  EXPECT_NE(damages_[0].find(first_.path), std::string::npos) << damages_[0];
  // No checkpoint needs parts that were appended after the last one.
  EXPECT_EQ(Check(/*named=*/0).damages, 0u);
}

TEST_F(SegmentCheckTest, AFileThatIsTooShortOrNotThereIsDamage) {
  store_.Replace(first_.path, store_.Read(first_.path).substr(0, bytes_ - 4096));
  const SegmentReport report = Check(bytes_);
  EXPECT_GT(report.damages, 0u);
  EXPECT_EQ(report.file_bytes, bytes_ - 4096);
  EXPECT_NE(damages_.front().find("the file ends"), std::string::npos) << damages_.front();
  ASSERT_TRUE(store_.storage().Remove(first_.path).ok());
  const SegmentReport gone = Check(bytes_);
  EXPECT_EQ(gone.damages, 1u);
  EXPECT_EQ(gone.usable_bytes(), 0u);
}

TEST_F(SegmentCheckTest, AHeaderThatIsNotRightMakesNothingUsable) {
  store_.Flip(first_.path, 16, 5);
  const SegmentReport report = Check(bytes_);
  EXPECT_FALSE(report.header_intact);
  EXPECT_EQ(report.usable_bytes(), 0u);
  EXPECT_GT(report.damages, 0u);
}

}  // namespace
}  // namespace deut::dc
