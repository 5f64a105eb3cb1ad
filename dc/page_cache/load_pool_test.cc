#include "dc/page_cache/load_pool.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/io/disk_fault.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_cache/page_loader.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class LoadPoolTest : public ::testing::Test {
 protected:
  LoadPoolTest() {
    t_.FillSettled(400);
    for (uint64_t i = 0; i < 400; i += 20) keys_.push_back(KeyOf(i));
    SwapOut();
  }
  void SwapOut() {
    for (const PageId leaf : t_.Pages(0)) {
      if (t_.HeadOf(leaf) != nullptr) EXPECT_TRUE(t_.Evict(leaf));
    }
  }
  size_t NotInMemory() {
    size_t count = 0;
    for (const std::string& key : keys_) count += t_.tree().FindUnloadedLeaves(Target(key, Side::kAt), true, 0).size();
    return count;
  }
  void WaitForHeld(size_t count) {
    while (t_.disk().held_operations() < count) RealRuntime().Yield();
  }

  StoredTree t_;
  DamagedPages damaged_{RealRuntime()};
  PageLoader loader_{t_, t_.domain(), t_.store(), &damaged_};
  std::vector<std::string> keys_;
};

TEST_F(LoadPoolTest, AllAreThereWhenItComesBack) {
  LoadPool pool(RealRuntime(), loader_, 3);
  EXPECT_EQ(NotInMemory(), keys_.size());
  pool.LoadAll(StoredTree::kTable, {}, Side::kAt);
  pool.LoadAll(StoredTree::kTable, std::span(keys_).first(1), Side::kAt);
  EXPECT_EQ(NotInMemory(), keys_.size() - 1);
  pool.LoadAll(StoredTree::kTable, keys_, Side::kAt);
  EXPECT_EQ(NotInMemory(), 0u);
  t_.ExpectRight();
}

TEST_F(LoadPoolTest, AsManyAtOnceAsThereAreThreadsAndTheCaller) {
  LoadPool pool(RealRuntime(), loader_, 3);
  t_.disk().HoldOperations(kDiskRead);
  const auto caller = RealRuntime().StartThread("caller", [&] { pool.LoadAll(StoredTree::kTable, keys_, Side::kAt); });
  WaitForHeld(4);
  t_.disk().HoldOperations(0);
  caller->Join();
  EXPECT_EQ(NotInMemory(), 0u);
}

TEST_F(LoadPoolTest, SeveralCallersAtOnce) {
  LoadPool pool(RealRuntime(), loader_, 3);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Thread>> callers;
    for (int i = 0; i < 3; ++i) {
      callers.push_back(RealRuntime().StartThread("caller", [&, i] {
        pool.LoadAll(StoredTree::kTable, std::span(keys_).subspan(static_cast<size_t>(i) * 5), Side::kAt);
      }));
    }
    callers.clear();
    EXPECT_EQ(NotInMemory(), 0u);
    SwapOut();
  }
  t_.ExpectRight();
}

TEST_F(LoadPoolTest, AnUnreadablePageIsRecordedAndBlocksNoCaller) {
  LoadPool pool(RealRuntime(), loader_, 3);
  t_.disk().AddFault({.kinds = kDiskRead, .count = 2});
  pool.LoadAll(StoredTree::kTable, keys_, Side::kAt);
  EXPECT_EQ(damaged_.count(), 2u);
  EXPECT_EQ(NotInMemory(), 2u);
}

}  // namespace
}  // namespace deut::dc
