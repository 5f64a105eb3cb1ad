// Rule X7: puts while the DC's disk is full. Tests named after the rule fail when its step is left out.
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "tc/dc_link/dc_link.h"
#include "tc/dc_link/link_fixture.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

class DcLinkTest : public LinkTest {};

TEST_F(DcLinkTest, X7PutsAreRefusedWhenTheDcCouldNotHoldThem) {
  h_.link_options.reserve_bytes = 1 << 20;
  h_.dc.set_free_bytes(2 << 20);
  Begin();
  EXPECT_TRUE(h_.link->HasSpace(100));
  EXPECT_TRUE(Eventually([&] { return h_.link->HasSpace((1 << 20) - 4096); }))
      << "once the log's own records are applied";
  EXPECT_FALSE(h_.link->HasSpace((1 << 20) + 1));
  // Updates that are not applied yet will take space, too.
  h_.dc.HoldApply(true);
  for (int i = 0; i < 8; ++i) h_.Commit({{absl::StrCat("k", i), std::string(60 << 10, 'v')}});
  EXPECT_FALSE(h_.link->HasSpace(600 << 10));
  EXPECT_TRUE(h_.link->HasSpace(400 << 10));
  h_.dc.HoldApply(false);
  EXPECT_TRUE(Eventually([&] { return h_.link->HasSpace(600 << 10); }));
  h_.dc.set_free_bytes(1000);
  h_.CommitAndApply({{"a", "1"}});
  EXPECT_FALSE(h_.link->HasSpace(1));
  h_.dc.set_free_bytes(4 << 20);
  h_.CommitAndApply({{"a", "2"}});
  EXPECT_TRUE(h_.link->HasSpace(1000));
}

// A claim in the log stands for a commit that will come.
TEST_F(DcLinkTest, X7ClaimedCommitsCountBeforeTheyAreAppended) {
  h_.link_options.reserve_bytes = 1 << 20;
  h_.dc.set_free_bytes(2 << 20);
  Begin();
  ASSERT_TRUE(Eventually([&] { return h_.link->HasSpace(600 << 10); }));
  const std::string value(60 << 10, 'v');
  std::vector<Update> updates;
  for (uint32_t i = 1; i <= 8; ++i) {
    updates.push_back({.kind = LogEntryKind::kPut, .sequence = i, .table = TableId(1), .key = "key", .value = value});
  }
  {
    Result<SpaceClaim> claim = h_.log->ReserveSpace(updates, {}, kNoDeadline);
    ASSERT_TRUE(claim.ok()) << claim.status().ToString();
    EXPECT_FALSE(h_.link->HasSpace(600 << 10));
    EXPECT_TRUE(h_.link->HasSpace(200 << 10));
  }
  EXPECT_TRUE(Eventually([&] { return h_.link->HasSpace(600 << 10); })) << "it was given back";
}

TEST_F(DcLinkTest, X7AFullDcLeavesALineWithItsBytesAndOneWhenItIsOver) {
  const testing::RecordedLog lines;
  h_.link_options.reserve_bytes = 1 << 20;
  Begin();
  h_.dc.set_free_bytes(1000);
  h_.CommitAndApply({{"a", "1"}});
  EXPECT_FALSE(h_.link->HasSpace(1));
  EXPECT_TRUE(Eventually([&] {
    return lines.HasLineWith("disk: puts are refused, ", " has 1000 bytes free, of which 1048576 are kept");
  })) << ::testing::PrintToString(lines.lines());
  h_.dc.set_free_bytes(4 << 20);
  EXPECT_TRUE(Eventually([&] {
    (void)h_.link->HasSpace(1);  // a client keeps asking
    return lines.HasLineWith("disk: ", " has 4194304 bytes free again, after ");
  })) << ::testing::PrintToString(lines.lines());
}

// A client that is refused commits nothing, so there is nothing to send that the DC would answer.
TEST_F(DcLinkTest, X7ServiceResumesThoughNothingIsWritten) {
  h_.link_options.reserve_bytes = 1 << 20;
  h_.link_options.tell_durable_period = milliseconds(1);
  Begin();
  std::atomic<int>& questions = NewCounter();
  std::atomic<int>& told = NewCounter();
  h_.dc.OnSend([&](const LogBatch& batch) {
    questions += batch.from == batch.to && batch.entries.empty();
    told = static_cast<int>(batch.durable.value);
  });
  h_.dc.set_free_bytes(1000);
  h_.CommitAndApply({{"a", "1"}});
  // An empty batch also tells the DC the durable LSN. So the test waits until there is no newer one to tell.
  ASSERT_TRUE(Eventually(
      [&] { return Covered(h_.transactions.next().value - 1) && told == static_cast<int>(h_.log->durable().value); }));
  questions = 0;
  EXPECT_FALSE(Within(milliseconds(20), [&] { return questions != 0; })) << "nobody was refused";
  EXPECT_FALSE(h_.link->HasSpace(1));
  ASSERT_TRUE(Eventually([&] { return questions >= 1; }));
  const int asked = questions;
  EXPECT_FALSE(h_.link->HasSpace(1));
  EXPECT_TRUE(Eventually([&] { return questions > asked; }));
  h_.dc.set_free_bytes(4 << 20);
  EXPECT_TRUE(Eventually([&] { return h_.link->HasSpace(1000); }));
  EXPECT_EQ(h_.link->status().shipped.resent_batches, 0u);
}

TEST_F(DcLinkTest, X7TheQuestionIsNotAskedWhileBatchesAreUnderWay) {
  h_.link_options.reserve_bytes = 1 << 20;
  h_.link_options.tell_durable_period = milliseconds(1);
  Begin();
  h_.dc.set_free_bytes(1000);
  h_.CommitAndApply({{"a", "1"}});
  std::atomic<int>& questions = NewCounter();
  std::atomic<int>& told = NewCounter();
  h_.dc.OnSend([&](const LogBatch& batch) {
    // An empty batch that carries a new durable LSN is no question.
    const int durable = static_cast<int>(batch.durable.value);
    questions += batch.from == batch.to && durable == told.exchange(durable);
  });
  h_.dc.HoldApply(true);
  const Position committed = h_.Commit({{"a", "2"}});
  ASSERT_TRUE(Eventually([&] { return h_.link->status().positions.ship_position >= committed; }));
  const uint64_t wakeups = h_.link->status().shipped.wakeups;
  EXPECT_FALSE(h_.link->HasSpace(1));
  EXPECT_TRUE(Eventually([&] { return h_.link->status().shipped.wakeups > wakeups; }));
  EXPECT_EQ(questions, 0);
  h_.dc.set_free_bytes(4 << 20);
  h_.dc.HoldApply(false);
  EXPECT_TRUE(Eventually([&] { return h_.link->HasSpace(1000); }));
}

}  // namespace
}  // namespace deut::tc
