#include "tc/dc_link/peer_check.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

using ::testing::HasSubstr;

constexpr Position EndOf(uint64_t commit) { return Position{Lsn{commit}, UINT32_MAX}; }

HelloAnswer Answer(uint64_t dc, Position applied, Position stable) {
  HelloAnswer answer;
  answer.dc = DcId{dc};
  answer.incarnation = DcIncarnation{0x123456789};
  answer.number = IncarnationNumber{5};
  answer.applied = applied;
  answer.stable = stable;
  return answer;
}

PeerExpectation Knows(uint64_t dc, Position limit) {
  PeerExpectation expected;
  expected.known_dcs = {DcId{dc}};
  expected.limit = limit;
  return expected;
}

Status Check(const HelloAnswer& answer, const PeerExpectation& expected) {
  return CheckPeer(answer, expected, "dc at 10.0.0.7:7002");
}

TEST(PeerCheckTest, AcceptsAKnownDcWithinTheLog) {
  EXPECT_TRUE(Check(Answer(3, EndOf(900), EndOf(500)), Knows(3, EndOf(999))).ok());
  EXPECT_TRUE(Check(Answer(3, EndOf(999), EndOf(999)), Knows(3, EndOf(999))).ok());
  EXPECT_TRUE(Check(Answer(3, Position{}, Position{}), Knows(3, EndOf(999))).ok()) << "a restarted volatile DC";
}

TEST(PeerCheckTest, ANewLogTakesAnEmptyDc) { EXPECT_TRUE(Check(Answer(3, {}, {}), PeerExpectation{}).ok()); }

TEST(PeerCheckTest, RefusesAnUnknownDc) {
  const Status status = Check(Answer(4, {}, {}), Knows(3, EndOf(999)));
  EXPECT_EQ(status.code(), ErrorCode::kWrongState);
  EXPECT_THAT(status.ToString(), HasSubstr("dc at 10.0.0.7:7002 (id 4, incarnation 5)"));
  EXPECT_THAT(status.ToString(), HasSubstr("first id 3"));
  EXPECT_THAT(status.ToString(), HasSubstr("nothing was deleted"));
}

TEST(PeerCheckTest, ANewLogRefusesADcThatHoldsData) {
  PeerExpectation expected;
  expected.limit = EndOf(999);
  EXPECT_EQ(Check(Answer(3, EndOf(50), {}), expected).code(), ErrorCode::kWrongState);
  HelloAnswer with_tables = Answer(3, {}, {});
  with_tables.tables.push_back(TableInfo{TableId{1}, "t"});
  EXPECT_EQ(Check(with_tables, expected).code(), ErrorCode::kWrongState);
}

TEST(PeerCheckTest, RefusesADcAheadOfTheLog) {
  const Status status = Check(Answer(3, Position{Lsn{1000}, 1}, EndOf(500)), Knows(3, EndOf(999)));
  EXPECT_EQ(status.code(), ErrorCode::kCorruption);
  EXPECT_THAT(status.ToString(), HasSubstr("1000/1"));
}

// S2: the log below the redo start may be gone, because the DC had reported that it does not need it.
TEST(PeerCheckTest, RefusesADcThatLostWhatItHadReportedStable) {
  PeerExpectation expected = Knows(3, EndOf(999));
  expected.redo_start = RedoStart{Lsn{400}, {DcPosition{DcId{9}, EndOf(900)}, DcPosition{DcId{3}, EndOf(390)}}};
  EXPECT_TRUE(Check(Answer(3, EndOf(390), EndOf(390)), expected).ok());
  EXPECT_TRUE(Check(Answer(3, EndOf(700), EndOf(600)), expected).ok());
  const Status status = Check(Answer(3, EndOf(700), EndOf(389)), expected);
  EXPECT_EQ(status.code(), ErrorCode::kCorruption);
  EXPECT_THAT(status.ToString(), HasSubstr("389/end"));
  EXPECT_THAT(status.ToString(), HasSubstr("390/end"));
}

TEST(PeerCheckTest, RefusesNonsense) {
  EXPECT_EQ(Check(Answer(0, {}, {}), PeerExpectation{}).code(), ErrorCode::kCorruption);
  EXPECT_EQ(Check(Answer(3, EndOf(5), EndOf(6)), Knows(3, EndOf(999))).code(), ErrorCode::kCorruption);
  HelloAnswer nobody = Answer(3, {}, {});
  nobody.incarnation = DcIncarnation{0};
  EXPECT_EQ(Check(nobody, Knows(3, EndOf(999))).code(), ErrorCode::kCorruption);
}

// A log of three TC epochs, of which the first began before the remaining log: [100, 200) of epoch 4, [200, 300) of
// epoch 6, [300, 400) of epoch 7.
LogHistory ThreeLives() {
  return {.epoch = TcEpoch(8),
          .nonce = 80,
          .starts = {{TcEpoch(4), 40, Lsn{100}}, {TcEpoch(6), 60, Lsn{200}}, {TcEpoch(7), 70, Lsn{300}}},
          .first_lsn = Lsn{100},
          .end_lsn = Lsn{400}};
}

Status History(uint64_t epoch, uint64_t nonce, uint64_t applied, uint64_t log_durable = 0) {
  HelloAnswer answer = Answer(3, EndOf(applied), {});
  answer.log_durable = Lsn{log_durable};
  answer.obeyed = {.tc = TcId{1}, .epoch = TcEpoch(epoch), .nonce = nonce};
  return CheckHistory(answer, ThreeLives(), "dc");
}

TEST(PeerCheckTest, X4APositionCountsWithTheStartThatSentIt) {
  EXPECT_TRUE(History(7, 70, 399).ok());
  EXPECT_TRUE(History(7, 70, 50).ok());
  EXPECT_TRUE(History(6, 60, 299).ok());
  EXPECT_TRUE(History(3, 30, 99).ok()) << "its records are gone";
  EXPECT_TRUE(History(8, 80, 50).ok()) << "this life's own Hello";
  EXPECT_TRUE(History(0, 0, 0).ok()) << "a new DC";
  struct {
    uint64_t epoch, nonce, applied;
    const char* text;
  } const refused[] = {{7, 70, 400, "that epoch ends before LSN 400"},
                       {6, 60, 300, "that epoch ends before LSN 300"},
                       {3, 30, 100, "that epoch ended before LSN 100"},
                       {7, 71, 50, "has no such start"},
                       {5, 50, 50, "has no such start"},
                       {8, 81, 50, "has no such start"},
                       {9, 90, 50, "has no such start"}};
  for (const auto& each : refused) {
    const Status status = History(each.epoch, each.nonce, each.applied);
    EXPECT_EQ(status.code(), ErrorCode::kCorruption);
    EXPECT_THAT(status.ToString(), HasSubstr(each.text));
    EXPECT_THAT(status.ToString(), HasSubstr("the log has lost its end"));
  }
}

// The DC lags behind the lost part of the log, so its position proves nothing. Only the LSN up to which that log was
// durable does.
TEST(PeerCheckTest, X4ALogThatWasDurableFurtherHasLostItsEnd) {
  EXPECT_TRUE(History(7, 70, 50, 400).ok());
  EXPECT_TRUE(History(6, 60, 50, 300).ok());
  EXPECT_TRUE(History(3, 30, 50, 100).ok()) << "its records are gone";
  EXPECT_TRUE(History(8, 80, 50, 4000).ok()) << "this life's own";
  struct {
    uint64_t epoch, nonce, log_durable;
  } const refused[] = {{7, 70, 401}, {6, 60, 301}, {3, 30, 101}};
  for (const auto& each : refused) {
    const Status status = History(each.epoch, each.nonce, 50, each.log_durable);
    EXPECT_EQ(status.code(), ErrorCode::kCorruption);
    EXPECT_THAT(status.ToString(), HasSubstr(absl::StrCat("durable up to LSN ", each.log_durable, ",")));
    EXPECT_THAT(status.ToString(), HasSubstr(absl::StrCat("before LSN ", each.log_durable - 1)));
  }
}

}  // namespace
}  // namespace deut::tc
