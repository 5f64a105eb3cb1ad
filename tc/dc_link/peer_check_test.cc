#include "tc/dc_link/peer_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

using ::testing::HasSubstr;

constexpr Position EndOf(uint64_t commit) { return Position{Lsn{commit}, UINT32_MAX}; }

HelloAnswer Answer(uint64_t dc, Position applied, Position stable) {
  HelloAnswer answer;
  answer.dc = DcId{dc};
  answer.incarnation = DcIncarnation{5};
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

// S2: the log below the redo start may be gone, because the DC had said that it needs it no more.
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

}  // namespace
}  // namespace deut::tc
