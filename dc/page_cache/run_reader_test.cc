#include "dc/page_cache/run_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/io/disk_fault.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store_fixture.h"

namespace deut::dc {
namespace {

class RunReaderTest : public SegmentStoreTest {
 protected:
  // Several segments that are full.
  RunReaderTest() {
    const auto appender = NewAppender();
    while (parts_.empty() || parts_.rbegin()->first.segment() < parts_.begin()->first.segment() + 4) {
      Append(*appender, static_cast<uint32_t>(parts_.size() + 1), 3000);
    }
    EXPECT_TRUE(appender->Write().ok());
    auto reader = RunReader::Create(store(), {.runs_in_flight = 3, .max_gap_bytes = 4096});
    EXPECT_TRUE(reader.ok());
    reader_ = std::move(*reader);
  }

  std::vector<PageAddress> All() const {
    std::vector<PageAddress> all;
    for (const auto& [address, written] : parts_) all.push_back(address);
    return all;
  }
  void ExpectRead(PageAddress address) {
    const Written& written = parts_.at(address);
    const auto part = reader_->Part(address, written.page);
    ASSERT_TRUE(part.ok()) << part.status().ToString();
    EXPECT_TRUE(part->payload == PayloadOf(written.page, written.salt, written.bytes));
  }

  std::unique_ptr<RunReader> reader_;
};

constexpr auto kNeverStops = [] { return false; };

TEST_F(RunReaderTest, NeighboursAreReadTogetherAndEachPartIsThere) {
  std::vector<PageAddress> parts = All();
  std::reverse(parts.begin(), parts.end());
  parts.push_back(parts.front());  // a part that is asked for twice
  for (int round = 0; round < 2; ++round) {
    const uint64_t reads = store().totals().reads;
    reader_->Read(parts, kNeverStops);
    EXPECT_EQ(store().totals().reads - reads, 5u) << "one for each segment";
    EXPECT_GE(reader_->bytes_read(), parts_.size() * 3000);
    EXPECT_FALSE(reader_->met_shortage());
    for (const PageAddress part : parts) {
      EXPECT_TRUE(reader_->WasRead(part));
      ExpectRead(part);
    }
    reader_->Forget();
  }
}

// The fault lies where no wanted part begins: the run fails for all of its parts.
TEST_F(RunReaderTest, ARunThatFailsIsToldAndTheOthersAreRead) {
  std::vector<PageAddress> parts = All();
  const PageAddress gap = parts[1];
  parts.erase(parts.begin() + 1);
  fixture_.disk.AddFault({.kinds = kDiskRead,
                          .path_contains = SegmentName(SegmentKind::kBase, gap.segment()),
                          .offset_from = gap.offset(),
                          .offset_to = gap.offset() + 1});
  reader_->Read(parts, kNeverStops);
  size_t failed = 0;
  for (const PageAddress part : parts) {
    EXPECT_EQ(reader_->WasRead(part), part.segment() != gap.segment());
    if (reader_->WasRead(part)) {
      ExpectRead(part);
    } else {
      EXPECT_EQ(reader_->Part(part, parts_.at(part).page).status(), ErrorCode::kIoError);
      ++failed;
    }
  }
  EXPECT_GT(failed, 1u);
}

TEST_F(RunReaderTest, DamageIsOfOnePart) {
  const std::vector<PageAddress> parts = All();
  const PageAddress damaged = parts[2];
  ASSERT_TRUE(
      fixture_.disk
          .FlipBit(kTestPages + "/" + SegmentName(SegmentKind::kBase, damaged.segment()), damaged.offset() + 100, 1)
          .ok());
  reader_->Read(parts, kNeverStops);
  for (const PageAddress part : parts) {
    EXPECT_TRUE(reader_->WasRead(part));
    if (part == damaged) {
      EXPECT_EQ(reader_->Part(part, parts_.at(part).page).status(), ErrorCode::kCorruption);
    } else {
      ExpectRead(part);
    }
  }
}

// A caller that goes on would only fail again and again.
TEST_F(RunReaderTest, AShortageBeginsNoFurtherRun) {
  const int fault = fixture_.disk.AddFault({.action = DiskFault::Action::kShortage, .kinds = kDiskOpen, .count = 1});
  const std::vector<PageAddress> parts = All();
  reader_->Read(parts, kNeverStops);
  EXPECT_EQ(fixture_.disk.hits(fault), 1u);
  EXPECT_TRUE(reader_->met_shortage());
  EXPECT_EQ(reader_->Part(parts.front(), parts_.at(parts.front()).page).status(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(reader_->Part(parts.back(), parts_.at(parts.back()).page).status(), ErrorCode::kCancelled);
  reader_->Read(parts, kNeverStops);
  EXPECT_FALSE(reader_->met_shortage());
  for (const PageAddress part : parts) ExpectRead(part);
}

TEST_F(RunReaderTest, AStopBeginsNoFurtherRun) {
  const uint64_t reads = store().totals().reads;
  int asked = 0;
  reader_->Read(All(), [&] { return ++asked > 2; });
  EXPECT_EQ(store().totals().reads - reads, 2u);
  EXPECT_TRUE(reader_->WasRead(All().front()));
  EXPECT_FALSE(reader_->WasRead(All().back()));
}

}  // namespace
}  // namespace deut::dc
