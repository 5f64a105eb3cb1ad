#include "tc/dc_link/dc_gate.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tc/dc_link/change_word.h"

namespace deut::tc {
namespace {

using ::testing::HasSubstr;

constexpr Position EndOf(uint64_t commit) { return Position{Lsn{commit}, UINT32_MAX}; }

class DcGateTest : public ::testing::Test {
 protected:
  uint64_t Meet(uint64_t life, Position applied, Position stable = {}) {
    HelloAnswer hello;
    hello.dc = DcId{3};
    hello.incarnation = DcIncarnation{life};
    hello.number = IncarnationNumber{life};
    hello.applied = applied;
    hello.stable = stable;
    return gate_.StartSession(hello);
  }
  void Ack(uint64_t life, Position applied) {
    ApplyAck ack;
    ack.incarnation = DcIncarnation{life};
    ack.applied = applied;
    gate_.OnAck(ack);
  }
  bool open() const { return gate_.pass().open(); }
  Deadline Soon() { return RealRuntime().Now() + milliseconds(5); }

  ChangeWord changes_{RealRuntime()};
  std::vector<std::string> fatal_;
  DcGate gate_{RealRuntime(), changes_, "dc-under-test", [this](const Status& s) { fatal_.push_back(s.ToString()); }};
};

TEST_F(DcGateTest, TheLastHelloSaysWhetherTheDcKnowsOptionsOfTables) {
  EXPECT_FALSE(gate_.knows_table_options());
  HelloAnswer hello;
  hello.dc = DcId{3};
  hello.incarnation = DcIncarnation{1};
  gate_.StartSession(hello);
  EXPECT_TRUE(gate_.knows_table_options());
  hello.incarnation = DcIncarnation{2};
  hello.knows_table_options = false;
  gate_.StartSession(hello);
  EXPECT_FALSE(gate_.knows_table_options());
}

TEST_F(DcGateTest, X4OpensOnlyWhenTheRecoveredLogIsApplied) {
  Meet(1, EndOf(10));
  EXPECT_FALSE(open()) << "the end of the recovered log is not known yet";
  gate_.SetStartTarget(EndOf(50));
  EXPECT_FALSE(open());
  const Status status = gate_.WaitCaughtUp(Soon());
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.ToString(), HasSubstr("dc-under-test (id 3, incarnation 1) has applied 10/end of 50/end"));
  Ack(1, Position{Lsn{50}, 3});
  EXPECT_FALSE(open()) << "not its last update";
  Ack(1, EndOf(50));
  EXPECT_TRUE(open());
  EXPECT_TRUE(gate_.WaitCaughtUp(Soon()).ok());
}

// X3: the TC sent up to 100, and an acknowledgement of 40 arrived. The DC may have applied all of it, and a reader
// may have seen it there.
TEST_F(DcGateTest, X3ANewIncarnationMustHaveAllThatWasEverSent) {
  Meet(1, Position{});
  gate_.SetStartTarget(Position{});
  EXPECT_TRUE(open());
  gate_.RaiseEverSent(EndOf(100));
  Ack(1, EndOf(40));
  Meet(2, EndOf(20));
  EXPECT_EQ(gate_.applied(), EndOf(20));
  EXPECT_FALSE(open());
  Ack(2, EndOf(40));
  EXPECT_FALSE(open()) << "what was acknowledged is not enough";
  DcGate::Pass pass;
  const Status status = gate_.WaitOpen(Soon(), &pass);
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.ToString(), HasSubstr("40/end of 100/end"));
  Ack(2, EndOf(100));
  EXPECT_TRUE(open());
  EXPECT_EQ(gate_.pass().incarnation, DcIncarnation{2});
}

// A folder was put back from a copy. Its next incarnation has less than the one before had acknowledged to this TC.
TEST_F(DcGateTest, X3PositionsOfAnEarlierIncarnationDoNotCountForTheNext) {
  Meet(77, Position{});
  gate_.SetStartTarget(Position{});
  gate_.RaiseEverSent(EndOf(100));
  ApplyAck ack;
  ack.incarnation = DcIncarnation{77};
  ack.applied = EndOf(100);
  ack.stable = EndOf(60);
  gate_.OnAck(ack);
  EXPECT_TRUE(open());
  Meet(12, EndOf(20), EndOf(10));
  EXPECT_FALSE(open());
  EXPECT_EQ(gate_.applied(), EndOf(20));
  EXPECT_EQ(gate_.stable(), EndOf(10));
  gate_.OnAck(ack);  // late
  EXPECT_EQ(gate_.applied(), EndOf(20));
  Meet(77, EndOf(100), EndOf(60));  // two processes of one folder: the first is back, with its own positions
  EXPECT_TRUE(open());
}

class NoReads final : public DirectReads {
 public:
  Answered TryAnswer(absl::Span<DataRequest* const> /*requests*/) override { return Answered::kNone; }
};

// X3: the direct reads of an incarnation are there while the gate is open to it, and no others.
TEST_F(DcGateTest, X3DirectReadsAreThoseOfTheIncarnationThatTheGateIsOpenTo) {
  const auto first = std::make_shared<NoReads>(), second = std::make_shared<NoReads>();
  const auto meet = [&](uint64_t life, Position applied, const std::shared_ptr<DirectReads>& reads) {
    HelloAnswer hello;
    hello.dc = DcId{3};
    hello.incarnation = DcIncarnation{life};
    hello.applied = applied;
    return gate_.StartSession(hello, reads);
  };
  uint64_t session = meet(1, Position{}, first);
  EXPECT_EQ(gate_.reads(), nullptr);
  gate_.SetStartTarget(Position{});
  EXPECT_EQ(gate_.reads(), first.get());
  gate_.RaiseEverSent(EndOf(100));
  gate_.Lost(session, DEUT_ERROR(kUnavailable, "gone"));
  EXPECT_EQ(gate_.reads(), nullptr);
  meet(1, EndOf(40), nullptr);
  EXPECT_EQ(gate_.reads(), first.get()) << "the same life";
  session = meet(2, EndOf(20), second);
  EXPECT_EQ(gate_.reads(), nullptr) << "it has not applied all that was ever sent";
  Ack(2, EndOf(100));
  EXPECT_EQ(gate_.reads(), second.get());
  meet(3, EndOf(100), nullptr);
  EXPECT_TRUE(open());
  EXPECT_EQ(gate_.reads(), nullptr) << "it has none";
  gate_.Stop();
  EXPECT_EQ(gate_.reads(), nullptr);
}

// Two incarnations, and a late acknowledgement of the first.
TEST_F(DcGateTest, X3ALateAcknowledgementOfAnEarlierIncarnationIsDropped) {
  Meet(1, Position{});
  gate_.SetStartTarget(Position{});
  gate_.RaiseEverSent(EndOf(100));
  Meet(2, Position{});
  Ack(1, EndOf(100));
  EXPECT_EQ(gate_.applied(), Position{});
  EXPECT_FALSE(open());
  EXPECT_EQ(gate_.state().dropped_acks, 1u);
  Ack(2, EndOf(100));
  EXPECT_TRUE(open());
}

TEST_F(DcGateTest, PositionSentToTheSameIncarnationDoesNotCloseIt) {
  const uint64_t first = Meet(1, Position{});
  gate_.SetStartTarget(Position{});
  gate_.RaiseEverSent(EndOf(100));
  gate_.Lost(first, DEUT_ERROR(kUnavailable, "a cable"));
  EXPECT_FALSE(open());
  EXPECT_THAT(gate_.state().text, HasSubstr("a cable"));
  Meet(1, EndOf(60));
  EXPECT_TRUE(open()) << "its answers hold what it has applied, and the rest is still in the TC";
  EXPECT_EQ(gate_.applied(), EndOf(60));
}

TEST_F(DcGateTest, AReportOfAnEarlierSessionChangesNothing) {
  const uint64_t first = Meet(1, Position{});
  gate_.SetStartTarget(Position{});
  gate_.Lost(first, DEUT_ERROR(kUnavailable, "gone"));
  const uint64_t second = Meet(1, Position{});
  EXPECT_TRUE(gate_.ReportIfLost(DEUT_ERROR(kUnavailable, "late"), first));
  EXPECT_TRUE(open());
  EXPECT_TRUE(gate_.Live(second));
  EXPECT_TRUE(gate_.ReportIfLost(DEUT_ERROR(kWrongIncarnation, "now"), second));
  EXPECT_FALSE(open());
  EXPECT_FALSE(gate_.ReportIfLost(DEUT_ERROR(kNotFound, "no table"), second));
}

// Only the stream ends: reads go on, nothing is shipped, and a later report that the connection is lost counts.
TEST_F(DcGateTest, AStreamThatEndsClosesTheGateToNobody) {
  const uint64_t first = Meet(1, Position{});
  gate_.SetStartTarget(Position{});
  ASSERT_TRUE(open());
  gate_.StreamEnded(first, DEUT_ERROR(kResourceExhausted, "no room"));
  EXPECT_TRUE(open());
  EXPECT_FALSE(gate_.Live(first));
  EXPECT_FALSE(gate_.state().shipping);
  const uint64_t second = Meet(1, Position{});
  EXPECT_TRUE(open());
  EXPECT_TRUE(gate_.Live(second));
  gate_.StreamEnded(first, DEUT_ERROR(kResourceExhausted, "late"));
  EXPECT_TRUE(gate_.Live(second)) << "an earlier one's";
  gate_.StreamEnded(second, DEUT_ERROR(kResourceExhausted, "no room"));
  gate_.Lost(first, DEUT_ERROR(kUnavailable, "late"));
  EXPECT_TRUE(open());
  gate_.Lost(second, DEUT_ERROR(kUnavailable, "gone"));
  EXPECT_FALSE(open());
  gate_.StreamEnded(second, DEUT_ERROR(kResourceExhausted, "late"));
  EXPECT_FALSE(open());
  Meet(1, Position{});
  EXPECT_TRUE(open());
}

TEST_F(DcGateTest, X5FencedIsFinal) {
  const uint64_t session = Meet(1, Position{});
  gate_.SetStartTarget(Position{});
  EXPECT_TRUE(gate_.ReportIfLost(DEUT_ERROR(kFenced, "another TC"), session));
  EXPECT_TRUE(gate_.finished());
  EXPECT_FALSE(open());
  gate_.Fail(DEUT_ERROR(kFenced, "again"));
  ASSERT_EQ(fatal_.size(), 1u);
  EXPECT_THAT(fatal_[0], HasSubstr("another TC"));
  Meet(2, Position{});
  EXPECT_FALSE(open());
  DcGate::Pass pass;
  EXPECT_EQ(gate_.WaitOpen(kNoDeadline, &pass).code(), ErrorCode::kFenced);
  EXPECT_EQ(gate_.WaitCaughtUp(kNoDeadline).code(), ErrorCode::kFenced);
}

TEST_F(DcGateTest, AnAcknowledgementOfWhatWasNeverSentEndsTheSession) {
  const uint64_t session = Meet(1, Position{});
  gate_.SetStartTarget(Position{});
  gate_.RaiseEverSent(EndOf(100));
  Ack(1, EndOf(101));
  EXPECT_FALSE(gate_.Live(session));
  EXPECT_EQ(gate_.applied(), Position{});
  EXPECT_EQ(gate_.last_error().code(), ErrorCode::kCorruption);
}

TEST_F(DcGateTest, WaitersAreWoken) {
  std::atomic<int> through{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 3; ++i) {
    threads.push_back(RealRuntime().StartThread("gate-reader", [&] {
      DcGate::Pass pass;
      if (gate_.WaitOpen(kNoDeadline, &pass).ok() && pass.incarnation == DcIncarnation{1}) ++through;
    }));
    threads.push_back(RealRuntime().StartThread("gate-start", [&] {
      if (gate_.WaitCaughtUp(kNoDeadline).ok()) ++through;
    }));
  }
  Meet(1, Position{});
  gate_.SetStartTarget(EndOf(50));
  gate_.RaiseEverSent(EndOf(70));
  Ack(1, EndOf(50));
  Ack(1, EndOf(70));
  threads.clear();
  EXPECT_EQ(through, 6);
}

TEST_F(DcGateTest, StopReleasesWaiters) {
  auto thread = RealRuntime().StartThread("gate-stop", [&] {
    DcGate::Pass pass;
    EXPECT_EQ(gate_.WaitOpen(kNoDeadline, &pass).code(), ErrorCode::kUnavailable);
  });
  gate_.Stop();
  thread.reset();
  EXPECT_TRUE(fatal_.empty()) << "stopping is not a failure";
}

}  // namespace
}  // namespace deut::tc
