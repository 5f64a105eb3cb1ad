#include "dc/bwtree/node.h"

#include <string>
#include <string_view>
#include <vector>

#include "dc/bwtree/base_page.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// Builds a chain of record deltas with marks between them; the newest is last.
std::vector<const Node*> Chain(const Node* base, int deltas, std::vector<Owned<RecordDelta>>* records,
                               std::vector<Owned<FlushMark>>* marks) {
  std::vector<const Node*> chain = {base};
  for (int i = 0; i < deltas; ++i) {
    records->push_back(RecordDelta::New(NodeKind::kPut, std::to_string(i), "value", Version{Timestamp(1), 1}));
    records->back()->LinkTo(chain.back());
    chain.push_back(records->back().get());
    if (i % 5 != 0) continue;
    marks->push_back(FlushMark::New(static_cast<uint64_t>(i)));
    marks->back()->LinkTo(chain.back());
    chain.push_back(marks->back().get());
  }
  return chain;
}

TEST(NodeTest, JumpsLeadDownTheChainInFewSteps) {
  const Owned<BasePage> base = BasePage::Build(/*level=*/0, {}, Timestamp(), {});
  for (const int deltas : {1, 3, 4, 20, 80}) {
    std::vector<Owned<RecordDelta>> records;
    std::vector<Owned<FlushMark>> marks;
    const std::vector<const Node*> chain = Chain(base.get(), deltas, &records, &marks);
    int steps = 0;
    size_t at = chain.size() - 1;
    while (chain[at] != base.get()) {
      const Node* const jump = static_cast<const Delta*>(chain[at])->jump;
      size_t below = at;
      while (below > 0 && chain[below] != jump) --below;
      ASSERT_EQ(chain[below], jump);
      ASSERT_LT(below, at);
      at = below;
      ++steps;
    }
    // One step for each section, one up to the first section, and one for each mark that stands where a section ends.
    EXPECT_LE(steps, deltas / Delta::kJumpLength + 2 + deltas / 5);
    PrefetchChain(chain.back());
  }
  PrefetchChain(base.get());
}

constexpr Version kVersion{Timestamp(1), 1};

Owned<RecordDelta> NewOn(const Node* head, std::string_view key, std::string_view value, size_t more = 0) {
  Owned<RecordDelta> delta = RecordDelta::NewOn(head, NodeKind::kPut, key, value, kVersion, more);
  delta->LinkTo(head);
  return delta;
}

TEST(NodeTest, RoomBehindADeltaIsTakenOnce) {
  const Owned<BasePage> base = BasePage::Build(/*level=*/0, {}, Timestamp(), {});
  const Owned<RecordDelta> host = NewOn(base.get(), "host", "value", /*more=*/2);
  ASSERT_FALSE(host->tenant);
  EXPECT_EQ(host->room, 2 * host->bytes());
  const Owned<RecordDelta> first = NewOn(host.get(), "1st.", "first");
  const Owned<RecordDelta> second = NewOn(host.get(), "2nd.", "other");
  ASSERT_TRUE(first->tenant);
  ASSERT_FALSE(second->tenant);
  EXPECT_EQ(first->key(), "1st.");
  EXPECT_EQ(first->value(), "first");
  EXPECT_EQ(second->key(), "2nd.");
  EXPECT_EQ(host->key(), "host");
  EXPECT_EQ(host->value(), "value");
}

TEST(NodeTest, TenantsTakeTheRoomThatTheirHostWasAllocatedWith) {
  const Owned<BasePage> base = BasePage::Build(/*level=*/0, {}, Timestamp(), {});
  const Owned<RecordDelta> host = NewOn(base.get(), "host", "value", /*more=*/2);
  const Owned<RecordDelta> first = NewOn(host.get(), "1st.", "first");
  const Owned<RecordDelta> second = NewOn(first.get(), "2nd.", "other");
  ASSERT_TRUE(first->tenant && second->tenant);
  EXPECT_EQ(first->room, host->bytes());
  EXPECT_EQ(second->room, 0u);
  EXPECT_EQ(host->allocated_bytes(), 3 * host->bytes());
  EXPECT_EQ(second->delta_bytes, host->allocated_bytes());
  EXPECT_EQ(second->chain_length, 3);
  const Owned<RecordDelta> third = NewOn(second.get(), "3rd.", "third");
  EXPECT_FALSE(third->tenant);
  EXPECT_EQ(third->delta_bytes, host->allocated_bytes() + third->bytes());
}

TEST(NodeTest, BytesOfAChainAreThoseOfTheBlocksOfAllNodes) {
  const Owned<BasePage> base = BasePage::Build(/*level=*/0, {}, Timestamp(), {});
  const Owned<RecordDelta> host = NewOn(base.get(), "host", "value", /*more=*/1);
  const Owned<RecordDelta> tenant = NewOn(host.get(), "1st.", "first");
  const Owned<FlushMark> mark = FlushMark::New(1);
  mark->LinkTo(tenant.get());
  const Owned<RemoveDelta> removed = RemoveDelta::New(mark.get());
  EXPECT_EQ(ChainBytes(removed.get()), base->block_bytes() + PageMemory::BytesOf(2 * host->bytes()) +
                                           FlushMark::block_bytes() + RemoveDelta::block_bytes());
  const Owned<BasePage> inner = BasePage::Build(/*level=*/1, {}, Timestamp(), {});
  const Owned<IndexTermDelta> term = IndexTermDelta::New("separator", PageId(5));
  term->LinkTo(inner.get());
  const Owned<SplitDelta> split = SplitDelta::New(term.get(), "m", PageId(6));
  EXPECT_EQ(ChainBytes(split.get()), inner->block_bytes() + term->block_bytes() + split->block_bytes());
}

TEST(NodeTest, ADeltaThatDoesNotFitIntoTheRoomHasItsOwnAllocation) {
  const Owned<BasePage> base = BasePage::Build(/*level=*/0, {}, Timestamp(), {});
  const Owned<RecordDelta> host = NewOn(base.get(), "host", "value", /*more=*/1);
  const Owned<RecordDelta> large = NewOn(host.get(), "large", std::string(host->room, 'v'));
  EXPECT_FALSE(large->tenant);
  // The room is still free.
  EXPECT_TRUE(NewOn(host.get(), "k", "v")->tenant);
  // A mark has no room.
  const Owned<FlushMark> mark = FlushMark::New(1);
  mark->LinkTo(host.get());
  EXPECT_FALSE(NewOn(mark.get(), "k", "v")->tenant);
}

// ASan detects a double free and a leak.
TEST(NodeTest, AChainIsFreedWithItsTenants) {
  const Node* head = BasePage::Build(/*level=*/0, {}, Timestamp(), {}).release();
  for (int i = 0; i < 20; ++i) head = NewOn(head, std::to_string(i), "value", static_cast<size_t>(i % 4)).release();
  FreeChain(const_cast<Node*>(head));
}

}  // namespace
}  // namespace deut::dc
