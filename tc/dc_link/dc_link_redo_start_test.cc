// Rule S2: the redo start, and DCs that have lost what it was computed from. Tests named after a rule fail when that
// rule's step is left out.
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tc/dc_link/dc_link.h"
#include "tc/dc_link/link_fixture.h"
#include "tc/dc_link/link_harness.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RedoStartTest : public LinkTest {
 protected:
  void SetUp() override {
    h_.link_options.redo_start_bytes = 16 << 10;
    Begin();
  }
  // Commits about `bytes` of log, and waits until it is applied.
  void Fill(size_t bytes) {
    Position last;
    for (size_t done = 0; done < bytes; done += 4096)
      last = h_.Commit({{absl::StrCat("fill", done % 65536), std::string(4000, 'v')}});
    ASSERT_TRUE(h_.WaitApplied(last));
  }
};

TEST_F(RedoStartTest, S2StaysWhileNothingIsStable) {
  const Lsn start = h_.log->redo_start().lsn;
  Fill(1 << 20);
  EXPECT_FALSE(h_.dc.WaitUntil([&] { return h_.log->redo_start().lsn != start; }, milliseconds(50)));
  h_.dc.Restart();  // a volatile DC: everything is sent again
  EXPECT_EQ(Text(h_.Read("fill0")), std::string(4000, 'v'));
}

TEST_F(RedoStartTest, S2FollowsTheStablePositionAndTrimsTheLog) {
  Fill(3 << 20);
  const Lsn first = h_.log->first_lsn();
  h_.dc.MakeStable();
  const Position stable = h_.dc.applied();
  ASSERT_TRUE(Eventually([&] { return h_.log->redo_start().lsn.value + (64 << 10) > stable.commit.value; }))
      << h_.log->redo_start().lsn.value << " of " << stable.commit.value;
  EXPECT_THAT(h_.log->redo_start().stable, ElementsAre(DcPosition{DcId{3}, stable}));
  EXPECT_TRUE(Eventually([&] { return h_.log->first_lsn() > first; }));
  Fill(64 << 10);
  h_.dc.Restart();  // gets the updates that are not stable from a trimmed log
  EXPECT_EQ(Text(h_.Read("fill4096")), std::string(4000, 'v'));
  h_.CrashTc();
  h_.dc.Restart();
  h_.StartTc();
  EXPECT_TRUE(h_.WaitCaughtUp().ok()) << h_.WaitCaughtUp().ToString();
}

TEST_F(RedoStartTest, S2AnActiveTransactionHoldsTheRedoStart) {
  Fill(64 << 10);
  const Lsn held = h_.log->tail();
  h_.transactions.HoldRecordsFrom(held.value);
  Fill(1 << 20);
  h_.dc.MakeStable();
  ASSERT_TRUE(Eventually([&] { return h_.log->redo_start().lsn.value + (32 << 10) > held.value; }));
  EXPECT_FALSE(h_.dc.WaitUntil([&] { return h_.log->redo_start().lsn > held; }, milliseconds(50)));
  h_.transactions.HoldRecordsFrom(UINT64_MAX);
  EXPECT_TRUE(Eventually([&] { return h_.log->redo_start().lsn > held; }));
}

TEST_F(RedoStartTest, S2ADcThatLostItsStableStateIsRefused) {
  Fill(1 << 20);
  h_.dc.MakeStable();
  ASSERT_TRUE(Eventually([&] { return !h_.log->redo_start().stable.empty(); }));
  h_.dc.LoseStable(Position{});
  h_.dc.Restart();
  ExpectRefused(ErrorCode::kCorruption, "had reported");
  const Lsn redo_start = h_.log->redo_start().lsn;
  h_.StopTc();
  h_.StartTc();  // and again at the next start of the TC
  EXPECT_EQ(h_.WaitCaughtUp().code(), ErrorCode::kCorruption);
  // Nothing was deleted except files that the helper still had to trim, below the redo start.
  EXPECT_EQ(h_.log->redo_start().lsn, redo_start);
  EXPECT_LE(h_.log->first_lsn(), redo_start);
}

// A copy of the DC's folder is put back under a running TC. The log still has the missing updates, and brings the
// copy up to date behind the gate.
TEST_F(RedoStartTest, X3AnOlderCopyOfTheDcIsBroughtUpToDateBehindTheGate) {
  h_.CommitAndApply({{"a", "old"}, {"b", "old"}});
  h_.dc.MakeStable();
  h_.dc.CopyFolder();
  h_.dc.Restart();
  h_.CommitAndApply({{"a", "new"}});
  h_.dc.MakeStable();
  h_.dc.Kill();
  h_.dc.PutBackCopy();
  h_.dc.HoldApply(true);
  h_.dc.Start();
  ASSERT_TRUE(Eventually([&] { return h_.link->status().peer.incarnation == h_.dc.incarnation(); }));
  EXPECT_FALSE(h_.link->status().gate_open);
  const auto early = h_.Read("a", LinkHarness::After(milliseconds(30)));
  EXPECT_FALSE(early.ok()) << Text(early);
  h_.dc.HoldApply(false);
  EXPECT_EQ(Text(h_.Read("a")), "new");
  EXPECT_EQ(Text(h_.Read("b")), "old");
  EXPECT_TRUE(h_.fatal().empty());
}

// The log has been trimmed to the stable position of a later incarnation, so the copy cannot be brought up to date.
// The refusal names both positions, and is repeated at every start.
TEST_F(RedoStartTest, X3AnOlderCopyOfTheDcThatTheLogCannotBringUpToDateIsRefusedForEver) {
  h_.CommitAndApply({{"a", "old"}});
  h_.dc.MakeStable();
  h_.dc.CopyFolder();
  const Position copied = h_.dc.applied();
  h_.dc.Restart();
  Fill(1 << 20);
  h_.dc.MakeStable();
  ASSERT_TRUE(Eventually([&] {
    const RedoStart start = h_.log->redo_start();
    return !start.stable.empty() && start.stable.front().stable > copied;
  }));
  h_.dc.Kill();
  h_.dc.PutBackCopy();
  h_.dc.Start();
  const std::string has = absl::StrCat("has ", copied.commit.value);
  ExpectRefused(ErrorCode::kCorruption, has);
  const RedoStart logged = h_.log->redo_start();
  const std::string told = absl::StrCat("had reported ", logged.stable.front().stable.commit.value);
  EXPECT_THAT(h_.fatal().front().ToString(), HasSubstr(told));
  for (int start = 0; start < 12; ++start) {
    h_.StopTc();
    h_.StartTc();
    const Status again = h_.WaitCaughtUp();
    EXPECT_EQ(again.code(), ErrorCode::kCorruption);
    EXPECT_THAT(again.ToString(), HasSubstr(has));
    EXPECT_THAT(again.ToString(), HasSubstr(told));
    EXPECT_EQ(h_.log->redo_start(), logged) << "a refusal leaves what it was founded on";
  }
}

}  // namespace
}  // namespace deut::tc
