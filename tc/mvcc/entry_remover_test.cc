// Which entries leave at once, which wait, and what remembers their reads afterwards (R5, R6).
#include "tc/mvcc/entry_remover.h"

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tc/mvcc/record_table.h"

namespace deut::tc {
namespace {

constexpr TableId kTable{1};
constexpr size_t kMaxDeferred = 4;
constexpr Timestamp kBefore{10};   // a low-water that has not passed kRead
constexpr Timestamp kRead{50};     // a last_read
constexpr Timestamp kBehind{100};  // a low-water that has

class EntryRemoverTest : public ::testing::Test {
 protected:
  static uint64_t HashOf(std::string_view key) { return RecordTable::Hash(kTable, key); }
  RecordEntry* Find(std::string_view key) {
    ReclamationDomain::Guard guard(domain_);
    return table_.Find(HashOf(key), kTable, key);
  }
  // An entry that was read at `read`.
  RecordEntry* Make(std::string_view key, Timestamp read) {
    ReclamationDomain::Guard guard(domain_);
    RecordEntry* const entry = table_.FindOrCreate(HashOf(key), kTable, key);
    RecordTable::RaiseLastRead(*entry, read);
    return entry;
  }
  RecordEntry* MakeDeferred(std::string_view key, Timestamp read) {
    ReclamationDomain::Guard guard(domain_);
    bool made = false;
    RecordEntry* const entry = table_.FindOrCreateDeferred(HashOf(key), kTable, key, &made);
    EXPECT_TRUE(made);
    RecordTable::RaiseLastRead(*entry, read);
    return entry;
  }
  void Remove(RecordEntry* entry, Timestamp low_water) {
    ReclamationDomain::Guard guard(domain_);
    remover_.Remove(entry, low_water);
  }

  ReclamationDomain domain_;
  RecordTable table_{domain_, 10};
  EntryRemover remover_{domain_, table_, kMaxDeferred};
};

TEST_F(EntryRemoverTest, EntryBelowLowWaterLeavesAtOnce) {
  Remove(Make("k", kRead), kBehind);
  EXPECT_EQ(Find("k"), nullptr);
  EXPECT_TRUE(remover_.empty());
}

TEST_F(EntryRemoverTest, EntryThatWasReadWaitsForLowWater) {
  RecordEntry* const entry = Make("k", kRead);
  Remove(entry, kBefore);
  Remove(entry, kBefore);  // it is in the list once
  EXPECT_EQ(remover_.deferred_entries(), 1u);
  EXPECT_EQ(remover_.LatestRead(), kRead);
  EXPECT_TRUE(remover_.HoldsReadThrough(kRead));
  EXPECT_FALSE(remover_.HoldsReadThrough(Timestamp{kRead.value - 1}));
  remover_.Retry(kBefore);
  EXPECT_EQ(Find("k"), entry);
  remover_.Retry(kBehind);
  EXPECT_EQ(Find("k"), nullptr);
  EXPECT_EQ(remover_.deferred_entries(), 0u);
}

TEST_F(EntryRemoverTest, BeyondTheLimitFloorsTakeTheReadsOver) {
  const std::vector<std::string> keys = {"a", "b", "c", "d", "e", "f"};
  for (const std::string& key : keys) Remove(Make(key, kRead), kBefore);
  EXPECT_EQ(remover_.deferred_entries(), keys.size());
  EXPECT_FALSE(remover_.MayDefer());
  remover_.Retry(kBefore);
  EXPECT_LE(remover_.deferred_entries(), kMaxDeferred);
  // R6: a writer earlier than the read finds it, in the entry or in the floor.
  for (const std::string& key : keys) {
    if (Find(key) == nullptr) EXPECT_GE(table_.Floor(HashOf(key), kBefore), kRead) << key;
  }
}

TEST_F(EntryRemoverTest, SpilledEntryLeavesItsReadInTheFloor) {
  {
    RecordEntry* const entry = Make("k", kRead);
    ReclamationDomain::Guard guard(domain_);
    remover_.RemoveSpilled(entry, kBefore);
  }
  EXPECT_EQ(Find("k"), nullptr);
  EXPECT_EQ(table_.Floor(HashOf("k"), kBefore), kRead);
  EXPECT_EQ(remover_.shared_floors(), 0u);
}

TEST_F(EntryRemoverTest, ArrivalCountsBeforeItIsTaken) {
  for (const char* key : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(remover_.MayDefer());
    remover_.Defer(MakeDeferred(key, kRead));
  }
  EXPECT_FALSE(remover_.MayDefer());
  EXPECT_TRUE(remover_.has_arrivals());
  EXPECT_TRUE(remover_.empty());
  remover_.TakeArrivals();
  EXPECT_FALSE(remover_.has_arrivals());
  EXPECT_FALSE(remover_.MayDefer());
  EXPECT_EQ(remover_.deferred_entries(), 4u);
  remover_.RetryAll(kMaxTimestamp);
  EXPECT_TRUE(remover_.empty());
  EXPECT_EQ(table_.entries(), 0u);
}

TEST_F(EntryRemoverTest, EveryEntryArrivesOnceWhileOthersAreTaken) {
  constexpr int kThreads = 4, kEach = 500;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) remover_.Defer(MakeDeferred(std::to_string(t) + "-" + std::to_string(i), kRead));
      running.fetch_sub(1);
    });
  }
  while (running.load() != 0) {
    remover_.TakeArrivals();
    remover_.Retry(kBefore);
  }
  for (std::thread& thread : threads) thread.join();
  remover_.TakeArrivals();
  // Each entry is in the list, or has left its read in a floor.
  EXPECT_EQ(remover_.deferred_entries(), table_.entries());
  remover_.RetryAll(kMaxTimestamp);
  EXPECT_EQ(table_.entries(), 0u);
}

}  // namespace
}  // namespace deut::tc
