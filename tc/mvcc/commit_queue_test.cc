#include "tc/mvcc/commit_queue.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/runtime/random.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

// The queue does not dereference records: any addresses will do.
TransactionRecord* RecordOf(uint64_t commit) { return reinterpret_cast<TransactionRecord*>(commit << 4); }

void Add(CommitQueue* queue, uint64_t commit) { queue->Add(Lsn{commit}, RecordOf(commit)); }

std::vector<uint64_t> PopAll(CommitQueue* queue) {
  std::vector<uint64_t> commits;
  while (!queue->empty()) {
    commits.push_back(queue->front().commit.value);
    EXPECT_EQ(queue->Pop(), RecordOf(commits.back()));
  }
  return commits;
}

TEST(CommitQueueTest, CommitsAddedNewestFirstPopInOrder) {
  CommitQueue queue;
  for (uint64_t commit : {5, 4, 2, 1}) Add(&queue, commit);
  EXPECT_TRUE(queue.empty());  // nothing is visible before Settle
  queue.Settle();
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(queue[2].commit, Lsn{4});
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{1, 2, 4, 5}));
}

TEST(CommitQueueTest, LateCommitPopsBeforeLaterOnes) {
  CommitQueue queue;
  for (uint64_t commit : {1, 3, 7, 9}) Add(&queue, commit);
  queue.Settle();
  for (uint64_t commit : {10, 4, 8}) Add(&queue, commit);
  queue.Settle();
  queue.Settle();  // nothing was added
  EXPECT_EQ(PopAll(&queue), (std::vector<uint64_t>{1, 3, 4, 7, 8, 9, 10}));
}

TEST(CommitQueueTest, AsIfEachHadItsPlaceAtOnce) {
  Random random(7);
  CommitQueue queue;
  std::vector<uint64_t> model, held_up;
  uint64_t next = 1;
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> come;
    if (random.OneIn(3)) come.swap(held_up);
    for (uint64_t n = random.Below(20); n > 0; --n) (random.OneIn(4) ? held_up : come).push_back(next++);
    std::reverse(come.begin(), come.end());
    for (uint64_t commit : come) Add(&queue, commit);
    queue.Settle();
    model.insert(model.end(), come.begin(), come.end());
    std::sort(model.begin(), model.end());
    for (uint64_t n = random.Below(20); n > 0 && !model.empty(); --n) {
      ASSERT_EQ(queue.Pop(), RecordOf(model.front()));
      model.erase(model.begin());
    }
    ASSERT_EQ(queue.size(), model.size());
  }
  EXPECT_EQ(PopAll(&queue), model);
}

}  // namespace
}  // namespace deut::tc
