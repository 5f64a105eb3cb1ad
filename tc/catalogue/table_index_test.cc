#include "tc/catalogue/table_index.h"

#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/catalogue/table_state.h"

namespace deut::tc {
namespace {

class TableIndexTest : public ::testing::Test {
 protected:
  TableState* Insert(uint32_t id) {
    auto state = std::make_unique<TableState>(TableId{id}, "t", Position{}, copies_);
    TableState* const inserted = state.get();
    states_[id] = std::move(state);
    if (TableIndex::Replaced replaced = index_.Insert(inserted)) replaced_.push_back(std::move(replaced));
    return inserted;
  }
  void Erase(uint32_t id) { index_.Erase(TableId{id}); }

  const std::shared_ptr<std::atomic<uint64_t>> copies_ = std::make_shared<std::atomic<uint64_t>>(0);
  // States and arrays that look-ups may still see live to the end of the test.
  std::map<uint32_t, std::unique_ptr<TableState>> states_;
  std::vector<TableIndex::Replaced> replaced_;
  TableIndex index_;
};

TEST_F(TableIndexTest, FindsWhatIsInItAndNothingElse) {
  TableState* const one = Insert(1);
  TableState* const last = Insert(UINT32_MAX);
  EXPECT_EQ(index_.Find(TableId{1}), one);
  EXPECT_EQ(index_.Find(TableId{UINT32_MAX}), last);
  EXPECT_EQ(index_.Find(TableId{2}), nullptr);
  Erase(1);
  EXPECT_EQ(index_.Find(TableId{1}), nullptr);
  EXPECT_EQ(index_.Find(TableId{UINT32_MAX}), last);
}

// Ids with the same low bits are placed one behind the other; erasing one leaves a gap over which look-ups continue.
TEST_F(TableIndexTest, AGapHidesNothingBehindIt) {
  const auto capacity = static_cast<uint32_t>(index_.capacity());
  TableState* const first = Insert(5);
  Insert(5 + capacity);
  TableState* const third = Insert(5 + 2 * capacity);
  Erase(5 + capacity);
  EXPECT_EQ(index_.Find(TableId{5}), first);
  EXPECT_EQ(index_.Find(TableId{5 + capacity}), nullptr);
  EXPECT_EQ(index_.Find(TableId{5 + 2 * capacity}), third);
}

TEST_F(TableIndexTest, CapacityFollowsTheEntriesNotTheIdsUsed) {
  const size_t least = index_.capacity();
  for (uint32_t id = 1; id <= 100'000; ++id) {
    Insert(id);
    if (id > 4) Erase(id - 4);
    ASSERT_LE(index_.capacity(), least);
  }
  for (uint32_t id = 100'001; id <= 101'000; ++id) Insert(id);
  EXPECT_GE(index_.capacity(), 2000u);
  EXPECT_LE(index_.capacity(), 8192u);
  for (uint32_t id = 100'001; id <= 101'000; ++id) ASSERT_EQ(index_.Find(TableId{id})->id(), TableId{id});
  EXPECT_GT(replaced_.size(), 0u);
}

TEST_F(TableIndexTest, AgreesWithAMapInAnyOrder) {
  Random random(1);
  std::map<uint32_t, TableState*> model;
  uint32_t next = 1;
  for (int step = 0; step < 20'000; ++step) {
    if (model.empty() || random.Below(100) < 52) {
      model[next] = Insert(next);
      next += 1 + static_cast<uint32_t>(random.Below(70));
    } else {
      auto erased = model.begin();
      std::advance(erased, static_cast<int64_t>(random.Below(model.size())));
      Erase(erased->first);
      model.erase(erased);
    }
    const auto any = static_cast<uint32_t>(random.Below(next + 10));
    const auto found = model.find(any);
    ASSERT_EQ(index_.Find(TableId{any}), found == model.end() ? nullptr : found->second);
  }
  for (const auto& [id, state] : model) ASSERT_EQ(index_.Find(TableId{id}), state);
}

// A state that stays in the index is found at every moment, however other states are inserted, erased and replaced around it.
TEST_F(TableIndexTest, LookUpsMissNothingWhileItChanges) {
  constexpr uint32_t kStays = 7;
  TableState* const stays = Insert(kStays);
  std::atomic<bool> over{false};
  std::atomic<uint64_t> looks{0}, missed{0};
  std::unique_ptr<Thread> reader = RealRuntime().StartThread("reader", [&] {
    while (!over.load()) {
      if (index_.Find(TableId{kStays}) != stays) missed.fetch_add(1);
      looks.fetch_add(1);
    }
  });
  uint32_t id = kStays;
  // At least this many changes, and at least as many look-ups.
  constexpr uint64_t kChanges = 3000;
  for (uint64_t changes = 0; changes < kChanges || (looks.load() < kChanges && changes < 1'000'000); ++changes) {
    Insert(id += 64);
    if (changes % 3 != 0) Erase(id);
  }
  over.store(true);
  reader.reset();
  EXPECT_EQ(missed.load(), 0u);
}

}  // namespace
}  // namespace deut::tc
