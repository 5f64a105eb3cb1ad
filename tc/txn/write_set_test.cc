#include "tc/txn/write_set.h"

#include <string>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

std::string KeyOf(uint32_t i) {
  // Of every length, up to the longest key.
  std::string key = std::to_string(i) + "-";
  key.resize(1 + (i * 37) % (i % 50 == 7 ? 4096 : 60), static_cast<char>('a' + i % 26));
  return key;
}

TEST(WriteSetTest, KeepsOrderKeysAndPlaces) {
  WriteSet set;
  std::vector<WriteItem*> items;
  constexpr uint32_t kItems = 1000;
  for (uint32_t i = 0; i < kItems; ++i) {
    std::string key = KeyOf(i);
    items.push_back(set.Publish(TableId{i % 3}, key, i * 7));
    key.assign(key.size(), '!');  // the set has its own copy
    ASSERT_EQ(set.size(), i + 1);
  }
  uint32_t i = 0;
  set.ForEach([&](const WriteItem& item) {
    ASSERT_EQ(&item, items[i]);
    ASSERT_EQ(item.table, TableId{i % 3});
    ASSERT_EQ(item.key, KeyOf(i));
    ASSERT_EQ(item.hash, i * 7);
    ASSERT_EQ(item.version, nullptr);
    ++i;
  });
  EXPECT_EQ(i, kItems);
  EXPECT_GT(set.bytes(), 1000u * 30);
}

TEST(WriteSetTest, SmallSetsAllocateNothing) {
  WriteSet set;
  for (int i = 0; i < 4; ++i) set.Publish(TableId{1}, "a key of 20 bytes...", 0);
  EXPECT_EQ(set.bytes(), 0u);
  EXPECT_EQ(set.size(), 4u);
}

// Readers see complete items, in order, while the owner appends.
TEST(WriteSetTest, ReadersWhileTheOwnerAppends) {
  constexpr uint32_t kItems = 20000;
  WriteSet set;
  std::atomic<bool> done{false};
  std::vector<std::unique_ptr<Thread>> readers;
  for (int r = 0; r < 2; ++r) {
    readers.push_back(RealRuntime().StartThread("reader", [&] {
      uint32_t before = 0;
      while (!done.load()) {
        uint32_t i = 0;
        set.ForEach([&](const WriteItem& item) {
          ASSERT_EQ(item.hash, i);
          ASSERT_EQ(item.key.size(), 1 + i % 40);
          ++i;
        });
        ASSERT_GE(i, before);
        before = i;
      }
    }));
  }
  for (uint32_t i = 0; i < kItems; ++i) {
    set.Publish(TableId{1}, std::string(1 + i % 40, 'k'), i);
    if (i % 100 == 0) RealRuntime().Yield();
  }
  done.store(true);
}

TEST(WriteSetTest, IsSortedOnceByWhoeverComesFirst) {
  WriteSet set;
  constexpr uint32_t kItems = 500;
  for (uint32_t i = 0; i < kItems; ++i) set.Publish(TableId{i % 3}, std::to_string(i * 7919 % kItems), i);
  EXPECT_EQ(set.sorted(), nullptr);
  const size_t bytes = set.bytes();
  std::vector<const std::vector<WriteSet::Key>*> seen(4);
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (auto& mine : seen) threads.push_back(RealRuntime().StartThread("sorter", [&] { mine = &set.Sort(); }));
  }
  for (const auto* one : seen) EXPECT_EQ(one, set.sorted());
  EXPECT_GE(set.bytes(), bytes + kItems * sizeof(WriteSet::Key));
  const std::vector<WriteSet::Key>& keys = *set.sorted();
  ASSERT_EQ(keys.size(), kItems);
  for (uint32_t i = 1; i < kItems; ++i) {
    EXPECT_TRUE(keys[i - 1].table < keys[i].table ||
                (keys[i - 1].table == keys[i].table && keys[i - 1].key < keys[i].key));
  }
  for (const WriteSet::Key& key : keys) {
    EXPECT_EQ(key.key, std::to_string(key.hash * 7919 % kItems));
    EXPECT_EQ(key.table.value, key.hash % 3);
  }
}

}  // namespace
}  // namespace deut::tc
