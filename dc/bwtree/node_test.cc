#include "dc/bwtree/node.h"

#include <string>
#include <vector>

#include "dc/bwtree/base_page.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

// A chain of record deltas with marks between them; newest last.
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
    // One for each stretch, one up to the first, and one for each mark that stands where a stretch ends.
    EXPECT_LE(steps, deltas / Delta::kJumpLength + 2 + deltas / 5);
    PrefetchChain(chain.back());
  }
  PrefetchChain(base.get());
}

}  // namespace
}  // namespace deut::dc
