// The merge of a scan without a TC and without a DC: answers and gathered keys are made here.
#include "tc/scan/scan_merge.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"
#include "tc/scan/batch_room.h"
#include "tc/scan/gathered_keys.h"
#include "tc/scan/scan_cursor.h"

namespace deut::tc {
namespace {

using Kind = GatheredKey::Kind;

struct OfTc {
  Kind kind = Kind::kValue;
  std::string value;
  uint64_t timestamp = 0;
};
struct OfDc {
  std::string value;
  uint64_t timestamp = 0;
};

std::string Text(const RecordBatch& batch) {
  std::string text;
  for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) {
    if (!text.empty()) text += ' ';
    text.append(it.record().key).append("=").append(it.record().value);
  }
  return text;
}

// A scan whose gathered keys and DC's answer are given, in scan order.
class ScanMergeTest : public ::testing::TestWithParam<Direction> {
 protected:
  void SetUp() override { cursor_.direction = GetParam(); }

  void Make(const std::map<std::string, OfDc>& dc, const std::map<std::string, OfTc>& tc) {
    cursor_.gathered = true;
    std::vector<std::string> dc_keys, tc_keys;
    for (const auto& [key, record] : dc) dc_keys.push_back(key);
    for (const auto& [key, update] : tc) tc_keys.push_back(key);
    if (!cursor_.ascending()) {
      std::ranges::reverse(dc_keys);
      std::ranges::reverse(tc_keys);
    }
    for (const std::string& key : dc_keys) {
      const OfDc& record = dc.at(key);
      answer_.records.Append(key, record.value, Version{.timestamp = Timestamp(record.timestamp)});
    }
    answer_.to_the_bound = true;
    for (const std::string& key : tc_keys) {
      const OfTc& update = tc.at(key);
      GatheredKey& gathered = gathered_.keys.emplace_back();
      gathered.key = gathered_.texts.Copy(key);
      gathered.kind = update.kind;
      gathered.version = Version{.timestamp = Timestamp(update.timestamp)};
      gathered.value = gathered_.values.Copy(update.value);
    }
  }
  // Merges all of it into one batch.
  std::string MergeAll() {
    RecordBatch batch;
    const BatchRoom room(batch, 0, 1 << 20);
    EXPECT_FALSE(ScanMerge(room, cursor_, gathered_, answer_).Run(gathered_.keys.size(), true));
    return Text(batch);
  }
  // The text, which has the keys in ascending order, in scan order.
  std::string InScanOrder(const std::string& text) const {
    if (cursor_.ascending()) return text;
    std::vector<std::string> records;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      records.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    std::string reversed;
    for (auto it = records.rbegin(); it != records.rend(); ++it) reversed += (reversed.empty() ? "" : " ") + *it;
    return reversed;
  }

  ScanCursor cursor_;
  GatheredKeys gathered_;
  DcAnswer answer_;
};

INSTANTIATE_TEST_SUITE_P(All, ScanMergeTest, ::testing::Values(Direction::kAscending, Direction::kDescending));

TEST_P(ScanMergeTest, TheLargerVersionWinsAndTheDcOnTies) {
  Make({{"a", {"1", 10}}, {"b", {"1", 10}}, {"c", {"1", 10}}},
       {{"a", {Kind::kValue, "2", 11}}, {"b", {Kind::kValue, "2", 9}}, {"c", {Kind::kValue, "2", 10}}});
  EXPECT_EQ(MergeAll(), InScanOrder("a=2 b=1 c=1"));
}

TEST_P(ScanMergeTest, ATombstoneRemovesOnlyAnOlderRecord) {
  Make({{"a", {"1", 10}}, {"b", {"1", 10}}, {"c", {"1", 10}}},
       {{"a", {Kind::kTombstone, "", 11}}, {"b", {Kind::kTombstone, "", 9}}, {"d", {Kind::kTombstone, "", 9}}});
  EXPECT_EQ(MergeAll(), InScanOrder("b=1 c=1"));
}

TEST_P(ScanMergeTest, KeysOfTheTcAloneStandBetweenTheRecords) {
  Make({{"b", {"1", 10}}, {"d", {"1", 10}}},
       {{"a", {Kind::kValue, "2", 5}}, {"c", {Kind::kValue, "2", 5}}, {"e", {Kind::kValue, "2", 5}}});
  EXPECT_EQ(MergeAll(), InScanOrder("a=2 b=1 c=2 d=1 e=2"));
}

TEST_P(ScanMergeTest, AKeyOfWhichNothingIsKnownShowsTheRecord) {
  Make({{"a", {"1", 10}}}, {{"a", {Kind::kAskDc, "", 0}}, {"b", {Kind::kAskDc, "", 0}}});
  EXPECT_EQ(MergeAll(), "a=1");
}

TEST_P(ScanMergeTest, StopsBeforeAKeyThatIsNotResolved) {
  const bool ascending = cursor_.ascending();
  Make({{"a", {"1", 10}}, {"b", {"1", 10}}, {"c", {"1", 10}}},
       {{"a", {Kind::kValue, "2", 11}}, {"b", {Kind::kValue, "2", 11}}, {"c", {Kind::kValue, "2", 11}}});
  RecordBatch batch;
  const BatchRoom room(batch, 0, 1 << 20);
  EXPECT_FALSE(ScanMerge(room, cursor_, gathered_, answer_).Run(1, false));
  EXPECT_EQ(Text(batch), ascending ? "a=2" : "c=2");
  EXPECT_EQ(gathered_.next, 1u);
  EXPECT_EQ(answer_.merged_records, 1u);
  EXPECT_FALSE(ScanMerge(room, cursor_, gathered_, answer_).Run(3, true));
  EXPECT_EQ(Text(batch), InScanOrder("a=2 b=2 c=2"));
}

TEST_P(ScanMergeTest, AFullBatchLeavesTheCursorBehindItsLastRecord) {
  Make({{"a", {"1", 10}}, {"b", {"1", 10}}, {"c", {"1", 10}}}, {{"b", {Kind::kValue, "2", 11}}});
  RecordBatch batch;
  EXPECT_TRUE(ScanMerge(BatchRoom(batch, 2, 1 << 20), cursor_, gathered_, answer_).Run(1, true));
  EXPECT_EQ(Text(batch), cursor_.ascending() ? "a=1 b=2" : "c=1 b=2");
  EXPECT_EQ(cursor_.position(), cursor_.ascending() ? KeyBehind("b") : "b");
}

TEST_P(ScanMergeTest, AnAnswerThatIsHandedOnAsItIsIsMoved) {
  Make({{"a", {"1", 10}}, {"b", {"1", 10}}}, {});
  const char* const bytes = answer_.records.bytes().data();
  RecordBatch batch;
  EXPECT_FALSE(AppendRest(answer_, BatchRoom(batch, 1, 1 << 20))) << "over the limit of records";
  EXPECT_FALSE(AppendRest(answer_, BatchRoom(batch, 0, 4))) << "over the limit of bytes";
  ASSERT_TRUE(AppendRest(answer_, BatchRoom(batch, 0, 1 << 20)));
  EXPECT_EQ(batch.bytes().data(), bytes);
}

// Any batches, merged piece by piece, have together what one batch would have.
TEST_P(ScanMergeTest, BatchesOfAnySizeDeliverTheSameRecords) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::map<std::string, OfDc> dc;
    std::map<std::string, OfTc> tc;
    std::string expected;
    for (int i = 0; i < 40; ++i) {
      const std::string key = "k" + std::to_string(100 + i);
      std::optional<std::string> shown;
      if (random.OneIn(2)) {
        shown = dc[key].value = std::string(random.Below(30), 'd');
        dc[key].timestamp = random.Between(1, 20);
      }
      if (random.OneIn(2)) {
        OfTc& update = tc[key];
        update.kind = random.OneIn(3) ? Kind::kTombstone : random.OneIn(4) ? Kind::kAskDc : Kind::kValue;
        if (update.kind == Kind::kValue) update.value = std::string(random.Below(30), 't');
        update.timestamp = random.Between(1, 20);
        const bool larger = !dc.contains(key) || update.timestamp > dc[key].timestamp;
        if (larger && update.kind == Kind::kValue) shown = update.value;
        if (larger && update.kind == Kind::kTombstone) shown.reset();
      }
      if (shown) expected.append(expected.empty() ? "" : " ").append(key).append("=").append(*shown);
    }
    cursor_ = ScanCursor{.direction = GetParam()};
    gathered_ = GatheredKeys();
    answer_ = DcAnswer();
    Make(dc, tc);
    std::string all;
    for (bool more = true; more;) {
      RecordBatch batch;
      const auto limit_records = static_cast<uint32_t>(random.OneIn(2) ? 0 : random.Between(1, 6));
      const BatchRoom room(batch, limit_records, static_cast<uint32_t>(random.Between(1, 400)));
      bool last = false, full = false;
      while (!last && !full) {
        const size_t size = gathered_.keys.size();
        const size_t piece = std::min<size_t>(size, gathered_.next + random.Between(0, 5));
        last = piece == size;
        full = ScanMerge(room, cursor_, gathered_, answer_).Run(piece, last);
      }
      if (limit_records != 0) EXPECT_LE(batch.size(), limit_records);
      const std::string text = Text(batch);
      all.append(all.empty() || text.empty() ? "" : " ").append(text);
      more = full;
    }
    ASSERT_EQ(all, InScanOrder(expected));
  }
}

}  // namespace
}  // namespace deut::tc
