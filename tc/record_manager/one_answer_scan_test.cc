// Scans that one answer of the DC decides, alternating with scans that need more. Each shows its part of one state
// (S4), and leaves nothing to the next.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

constexpr uint64_t kKeys = 80;

std::string KeyOf(uint64_t i) { return "k" + std::to_string(1000 + i); }

class OneAnswerScanTest : public ::testing::Test {
 protected:
  // Fills about half of the keys with records, with ranges of about six keys, and some updates that are only in the
  // TC.
  static void Fill(Random& random, EngineFixture* g, std::map<std::string, std::string>* state) {
    std::vector<std::pair<std::string, std::string>> load;
    std::vector<std::string> cuts;
    for (uint64_t i = 0; i < kKeys; ++i) {
      if (random.Below(6) == 0) cuts.push_back(KeyOf(i));
      if (random.Below(2) == 0) continue;
      load.push_back({KeyOf(i), std::string(1 + random.Below(20), 'a')});
      (*state)[load.back().first] = load.back().second;
    }
    g->Load(load);
    g->SetRanges(cuts);
    TestTransaction t = g->Begin();
    for (uint64_t n = random.Below(8); n > 0; --n) {
      const std::string key = KeyOf(random.Below(kKeys));
      if (random.Below(3) == 0) {
        ASSERT_EQ(t.Remove(key), "ok");
        state->erase(key);
      } else {
        ASSERT_EQ(t.Put(key, "b"), "ok");
        (*state)[key] = "b";
      }
    }
    ASSERT_EQ(t.Commit(), "ok");
  }

  // The records of [low, high), in pieces of `limit` records (0: in one piece).
  static std::vector<std::string> Expected(const std::map<std::string, std::string>& state, const std::string& low,
                                           const std::string& high, Direction direction, size_t limit) {
    std::vector<std::string> shown;
    for (const auto& [key, value] : state) {
      if (key >= low && (high.empty() || key < high)) shown.push_back(Concat(key, "=", value));
    }
    if (direction == Direction::kDescending) std::ranges::reverse(shown);
    std::vector<std::string> pieces;
    for (size_t i = 0; i < shown.size(); ++i) {
      if (pieces.empty() || (limit != 0 && i % limit == 0)) pieces.emplace_back();
      if (!pieces.back().empty()) pieces.back() += ' ';
      pieces.back() += shown[i];
    }
    return pieces;
  }
};

TEST_F(OneAnswerScanTest, OneStateInTurnsWithOthers) {
  uint64_t scans = 0, asked = 0, in_pieces = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    EngineFixture g;
    std::map<std::string, std::string> state;
    Fill(random, &g, &state);
    // Makes the DC's answers end early.
    if (seed % 3 == 0) g.dc->set_scan_records(static_cast<uint32_t>(1 + random.Below(5)));
    const uint64_t before = g.dc->requests();
    TestTransaction reader = g.Begin();
    for (int n = 0; n < 30; ++n) {
      const std::string low = random.Below(4) == 0 ? std::string() : KeyOf(random.Below(kKeys));
      const std::string high = random.Below(3) == 0 ? std::string() : KeyOf(random.Below(kKeys + 1));
      const Direction direction = random.Below(2) == 0 ? Direction::kAscending : Direction::kDescending;
      const auto limit = static_cast<uint32_t>(random.Below(3) == 0 ? 0 : 1 + random.Below(6));
      Operation scan{.low = low, .high = high, .direction = direction, .limit_records = limit};
      const std::vector<std::string> expected = Expected(state, low, high, direction, limit);
      std::vector<std::string> shown;
      for (bool more = true; more;) {
        std::string piece = reader.ScanBatch(&scan, &more);
        ASSERT_TRUE(reader.open()) << piece;
        if (!piece.empty()) shown.push_back(std::move(piece));
      }
      EXPECT_EQ(shown, expected) << "scan " << n << ", [" << low << ", " << high << "), limit " << limit;
      in_pieces += shown.size();
      ++scans;
      if (random.Below(6) == 0) g.dc->Pump(2);
    }
    EXPECT_EQ(reader.Commit(), "ok");
    asked += g.dc->requests() - before;
  }
  EXPECT_GT(in_pieces, scans);  // limits cut scans
  EXPECT_GT(asked, scans);      // and so do borders of ranges
}

// A limit that is reached at the very end of a range, and one that the very last record reaches.
TEST_F(OneAnswerScanTest, ALimitAtABorder) {
  EngineFixture g;
  g.Load({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  g.SetRanges({"c"});
  TestTransaction t = g.Begin();
  bool more = true;
  Operation up{.limit_records = 2};
  EXPECT_EQ(t.ScanBatch(&up, &more), "a=1 b=2");
  EXPECT_TRUE(more);
  EXPECT_EQ(t.ScanBatch(&up, &more), "c=3 d=4");
  Operation down{.direction = Direction::kDescending, .limit_records = 2};
  EXPECT_EQ(t.ScanBatch(&down, &more), "d=4 c=3");
  EXPECT_TRUE(more);
  EXPECT_EQ(t.ScanBatch(&down, &more), "b=2 a=1");
  Operation empty{.low = "x", .high = "b"};
  EXPECT_EQ(t.ScanBatch(&empty, &more), "");
  EXPECT_FALSE(more);
  Operation nothing{.low = "d0", .limit_records = 2};
  EXPECT_EQ(t.ScanBatch(&nothing, &more), "");
  EXPECT_FALSE(more);
  EXPECT_EQ(t.Commit(), "ok");
}

// An answer says that it is incomplete, but ends where the scan does. The scan has then ended; otherwise its caller
// would begin again from the other end.
TEST_F(OneAnswerScanTest, AnIncompleteAnswerAtTheFarEnd) {
  EngineFixture g;
  g.Load({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  std::string covered;
  g.dc->AlterScans([&](DataRequest* request) {
    request->complete = false;
    request->covered = covered;
  });
  TestTransaction t = g.Begin();
  bool more = true;
  Operation down{.high = "c", .direction = Direction::kDescending, .limit_records = 2};
  EXPECT_EQ(t.ScanBatch(&down, &more), "b=2 a=1");
  EXPECT_FALSE(more);
  covered = "c";
  Operation up{.low = "a", .high = "c", .limit_records = 2};
  EXPECT_EQ(t.ScanBatch(&up, &more), "a=1 b=2");
  EXPECT_FALSE(more);
  covered = "a";
  Operation low{.low = "a", .direction = Direction::kDescending, .limit_records = 3};
  EXPECT_EQ(t.ScanBatch(&low, &more), "c=3 b=2 a=1");
  EXPECT_FALSE(more);
  EXPECT_EQ(t.Commit(), "ok");
}

// Answers that no correct DC gives: too many records are cut, no progress is an error, and the next scan is not
// affected.
TEST_F(OneAnswerScanTest, AnswersThatAreWrong) {
  EngineFixture g;
  g.Load({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  {
    TestTransaction t = g.Begin();
    bool more = true;
    g.dc->AlterScans([](DataRequest* request) { request->answer.Append("d", "4", Version{Timestamp(1), 1}); });
    Operation two{.limit_records = 2};
    EXPECT_EQ(t.ScanBatch(&two, &more), "a=1 b=2");
    EXPECT_TRUE(more);
    g.dc->AlterScans([](DataRequest* request) {
      request->complete = false;
      request->covered = "a";
    });
    Operation stuck{.low = "a", .limit_records = 3};
    EXPECT_EQ(t.ScanBatch(&stuck, &more), "INTERNAL");
  }
  g.dc->AlterScans(nullptr);
  TestTransaction t = g.Begin();
  g.dc->set_error(DEUT_ERROR(kUnavailable, "gone"));
  bool more = true;
  OperationResult result;
  const Operation scan{.kind = OperationKind::kScan, .table = EngineFixture::kTable, .limit_records = 2};
  EXPECT_EQ(StatusText(g.manager->Scan(t.transaction(), scan, &result, EngineFixture::Soon())), "UNAVAILABLE");
  g.dc->set_error(Status());
  Operation again{.low = "b", .limit_records = 2};
  EXPECT_EQ(t.ScanBatch(&again, &more), "b=2 c=3");
  EXPECT_EQ(t.Commit(), "ok");
}

// Own writes, undecided writes, versions that a snapshot may see: then more than one answer decides.
TEST_F(OneAnswerScanTest, OwnAndPendingWrites) {
  EngineFixture g;
  g.Load({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  TestTransaction writer = g.Begin();
  EXPECT_EQ(writer.Put("c", "pending"), "ok");
  bool more = true;
  TestTransaction reader = g.Begin();
  EXPECT_EQ(reader.Put("a", "own"), "ok");
  Operation two{.limit_records = 2};
  EXPECT_EQ(reader.ScanBatch(&two, &more), "a=own b=2") << "it ends before what is undecided (R8)";
  TestTransaction other = g.Begin();
  Operation behind{.low = "b", .limit_records = 1};
  EXPECT_EQ(other.ScanBatch(&behind, &more), "b=2");
  EXPECT_TRUE(more);
  EXPECT_EQ(other.Commit(), "ok");
  TestTransaction snapshot = g.BeginSnapshot();
  Operation all{.limit_records = 4};
  EXPECT_EQ(snapshot.ScanBatch(&all, &more), "a=1 b=2 c=3 d=4") << "below every open writer";
  Operation bytes{.limit_bytes = 30};
  EXPECT_EQ(snapshot.ScanBatch(&bytes, &more), "a=1 b=2");
  EXPECT_TRUE(more);
  EXPECT_EQ(snapshot.ScanBatch(&bytes, &more), "c=3 d=4");
  EXPECT_EQ(writer.Commit(), "ok");
  EXPECT_EQ(reader.Commit(), "ok");
}

// R2: a later reader of a range refuses an earlier writer there, even if the read was one answer.
TEST_F(OneAnswerScanTest, RaisesWhatItHasRead) {
  EngineFixture g;
  g.Load({{"a", "1"}, {"m", "2"}});
  g.SetRanges({"c", "n"});
  TestTransaction early = g.Begin();
  TestTransaction reader = g.Begin();
  bool more = true;
  Operation scan{.low = "d", .limit_records = 1};
  EXPECT_EQ(reader.ScanBatch(&scan, &more), "m=2");
  EXPECT_EQ(reader.Commit(), "ok");
  EXPECT_NE(early.Put("e", "phantom"), "ok");
  TestTransaction other = g.Begin();
  EXPECT_EQ(other.Put("o", "1"), "ok");  // another range
  EXPECT_EQ(other.Commit(), "ok");
}

}  // namespace
}  // namespace deut::tc
