#include "dc/verify/segment_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_format.h"
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

TEST_F(SegmentCheckTest, APackedPartInASegmentWhoseHeaderSaysThereIsNoneIsDamage) {
  // 500 times 'a', compressed with LZ4, in place of the first part.
  const std::string payload("\x02\x00\x00\x00\xF4\x01\x00\x00\x1F\x61\x01\x00\xFF\xDC\x50\x61\x61\x61\x61\x61", 20);
  StoreOnDisk::Part packed = first_;
  packed.header.packed = true;
  packed.payload = payload;
  packed.address = PageAddress::Make(first_.address.segment(), first_.address.offset(), PartBytes(payload.size()));
  // The rest of the former part becomes zeros, up to a whole block.
  std::string rest(kIoAlignment, '\0');
  store_.Write(first_.path, first_.address.offset(), rest);
  store_.Put(packed);
  const uint64_t named = kSegmentHeaderBytes + kIoAlignment;
  const auto says_none = [&] {
    return std::ranges::any_of(damages_, [](const std::string& text) {
      return text.find("the segment's header says that there is none") != std::string::npos;
    });
  };
  (void)Check(named);
  EXPECT_TRUE(says_none());
  std::string header(kSegmentHeaderBytes, '\0');
  EncodeSegmentHeader({.kind = segment_.kind,
                       .number = segment_.number,
                       .dc = StoreOnDisk::kDc,
                       .capacity_bytes = 4 << 20,
                       .packed_parts = true},
                      header.data());
  store_.Write(first_.path, 0, header);
  EXPECT_EQ(Check(named).damages, 0u);
}

}  // namespace
}  // namespace deut::dc
