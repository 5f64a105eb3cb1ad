#include "tc/dc_link/fake_image.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr TableId kTable{7};

class FakeImageTest : public ::testing::Test {
 protected:
  bool Put(uint64_t timestamp, std::string_view key, std::string_view value) {
    return Apply(LogEntryKind::kPut, timestamp, key, value);
  }
  bool Delete(uint64_t timestamp, std::string_view key) { return Apply(LogEntryKind::kDelete, timestamp, key, ""); }
  void LowWater(uint64_t timestamp) { Apply(LogEntryKind::kLowWater, timestamp, "", ""); }
  bool Apply(LogEntryKind kind, uint64_t timestamp, std::string_view key, std::string_view value) {
    LogEntryView entry;
    entry.kind = kind;
    entry.timestamp = Timestamp{timestamp};
    entry.table = kTable;
    entry.key = key;
    entry.value = value;
    return image_.Apply(entry);
  }
  std::string Get(std::string_view key) {
    const FakeImage::Record* record = image_.Find(kTable, key);
    return record == nullptr ? "(absent)" : record->value;
  }
  // The keys of one answer, and how far it came.
  std::string Scan(std::string_view low, std::string_view high, Direction direction, uint64_t limit_records) {
    RecordBatch answer;
    bool complete;
    std::string covered;
    image_.Scan(kTable, low, high, direction, limit_records, 1 << 20, &answer, &complete, &covered);
    std::string text;
    for (RecordBatch::Iterator it(answer); it.Valid(); it.Next()) text += it.record().key;
    return text + (complete ? " all" : " to " + covered.substr(0, 1));
  }

  FakeImage image_;
};

TEST_F(FakeImageTest, X2TheLargestVersionCountsInWhateverOrderUpdatesArrive) {
  EXPECT_TRUE(Put(20, "a", "new"));
  EXPECT_FALSE(Put(10, "a", "old"));
  EXPECT_FALSE(Put(20, "a", "again"));
  EXPECT_EQ(Get("a"), "new");
  EXPECT_TRUE(Delete(30, "a"));
  EXPECT_FALSE(Put(25, "a", "late"));
  EXPECT_EQ(Get("a"), "(absent)");
}

TEST_F(FakeImageTest, X1ConsolidatesBelowLowWaterAndThenTakesNothingOlder) {
  Put(10, "a", "1");
  Delete(12, "b");
  Put(30, "c", "3");
  LowWater(20);
  EXPECT_EQ(image_.flat.timestamp, Timestamp{12}) << "the highest version that was dropped, not low-water";
  EXPECT_EQ(image_.records.size(), 2u) << "the tombstone is gone";
  EXPECT_FALSE(Put(11, "b", "late"));
  EXPECT_TRUE(Put(13, "b", "later"));
  EXPECT_EQ(image_.VersionOf(*image_.Find(kTable, "a")).timestamp, Timestamp{12});
  EXPECT_EQ(image_.VersionOf(*image_.Find(kTable, "c")).timestamp, Timestamp{30});
}

TEST_F(FakeImageTest, ScansToALimitInBothDirections) {
  for (const char* key : {"a", "b", "c", "d"}) Put(10, key, "v");
  Delete(11, "b");
  EXPECT_EQ(Scan("", "", Direction::kAscending, 0), "acd all");
  EXPECT_EQ(Scan("", "d", Direction::kAscending, 0), "ac all");
  EXPECT_EQ(Scan("", "", Direction::kAscending, 1), "a to b") << "the deleted key is covered";
  EXPECT_EQ(Scan("b", "", Direction::kDescending, 1), "d to d");
  EXPECT_EQ(Scan("b", "d", Direction::kDescending, 0), "c all");
}

}  // namespace
}  // namespace deut::tc
