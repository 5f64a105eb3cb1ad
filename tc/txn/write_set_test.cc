#include "tc/txn/write_set.h"

#include <algorithm>
#include <set>
#include <string>

#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

std::string KeyOf(uint32_t i) {
  // Keys of every length, up to the longest key.
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
    items.push_back(set.Publish(TableId{i % 3}, key, uint64_t{i} * 7));
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

std::vector<std::string> KeysIn(const WriteSet& set, uint32_t table, std::string_view low, std::string_view high,
                                bool ascending = true, size_t most = SIZE_MAX) {
  std::vector<std::string> keys;
  set.ForEachIn(TableId{table}, low, high, ascending, most, [&](const WriteSet::Key& key) {
    EXPECT_EQ(key.table.value, table);
    keys.emplace_back(key.key);
  });
  std::sort(keys.begin(), keys.end());
  return keys;
}

// In sets of any size, however many of their keys are in the index.
TEST(WriteSetTest, KeysWithinBounds) {
  ReclamationDomain domain;
  WriteSet set;
  std::set<std::string> keys[3];
  for (uint32_t i = 0; i < 3000; ++i) {
    const std::string key = std::to_string(i * 7919 % 3000);
    keys[i % 3].insert(key);
    {
      ReclamationDomain::Guard guard(domain);
      set.Publish(TableId{i % 3}, key, i, &domain);
    }
    if (i % 37 != 0 && i != 2999) continue;
    const std::string low = std::to_string(i * 31 % 3000), high = i % 2 == 0 ? "" : std::to_string(i * 17 % 3000);
    ReclamationDomain::Guard guard(domain);
    for (uint32_t table = 0; table < 3; ++table) {
      std::vector<std::string> expected;
      for (const std::string& k : keys[table]) {
        if (k >= low && (high.empty() || k < high)) expected.push_back(k);
      }
      ASSERT_EQ(KeysIn(set, table, low, high), expected) << i;
      // A reader that takes at most one key per run still gets the first in scan order.
      if (expected.empty()) continue;
      const std::vector<std::string> first = KeysIn(set, table, low, high, true, 1);
      const std::vector<std::string> last = KeysIn(set, table, low, high, false, 1);
      ASSERT_EQ(first.front(), expected.front());
      ASSERT_EQ(last.back(), expected.back());
      ASSERT_LE(first.size(), WriteSet::kTail + 8);
    }
  }
  EXPECT_GE(set.bytes(), 2000 * sizeof(WriteSet::Key));
}

// A key that is published repeatedly hides no later key from a reader that takes only a few.
TEST(WriteSetTest, KeysOfARunAreGivenOnce) {
  ReclamationDomain domain;
  ReclamationDomain::Guard guard(domain);
  WriteSet set;
  for (uint32_t i = 0; i < 3 * WriteSet::kTail; ++i)
    set.Publish(TableId{1}, i % WriteSet::kTail == 7 ? "c" : "b", i, &domain);
  EXPECT_EQ(KeysIn(set, 1, "a", "", true, 2), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(KeysIn(set, 1, "a", "", false, 2), (std::vector<std::string>{"b", "c"}));
}

// An item published before the walk is in the loaded index or in the tail behind it, even if it has moved into a newer index meanwhile.
TEST(WriteSetTest, ItemsThatMoveIntoTheIndexMeanwhileAreFound) {
  ReclamationDomain domain;
  ReclamationDomain::Guard guard(domain);
  WriteSet set;
  const auto publish = [&](uint32_t i) { set.Publish(TableId{1}, std::to_string(1000 + i), i, &domain); };
  for (uint32_t i = 0; i < WriteSet::kTail - 1; ++i) publish(i);
  uint32_t next = WriteSet::kTail - 1;
  bool nested = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "write_set.index_loaded" || nested) return;
    nested = true;
    for (uint32_t i = 0; i < 2 * WriteSet::kTail; ++i) publish(next++);
  });
  const std::vector<std::string> keys = KeysIn(set, 1, "", "");
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(keys.size(), next);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
}

// Readers look for keys while the owner appends and sorts.
TEST(WriteSetTest, LookedThroughWhileItGrows) {
  constexpr uint32_t kItems = 20000;
  const auto own = [](uint32_t i) { return KeyOf(i) + "." + std::to_string(i); };  // all different
  ReclamationDomain domain;
  WriteSet set;
  std::atomic<uint32_t> published{0};
  std::vector<std::unique_ptr<Thread>> readers;
  for (uint32_t r = 0; r < 2; ++r) {
    readers.push_back(RealRuntime().StartThread("reader", [&, r] {
      while (published.load() < kItems) {
        const uint32_t before = published.load();
        ReclamationDomain::Guard guard(domain);
        uint32_t found = 0;
        set.ForEachIn(TableId{1}, "", "", r == 0, SIZE_MAX, [&](const WriteSet::Key& key) {
          found += key.hash < before;
          ASSERT_EQ(key.key, own(static_cast<uint32_t>(key.hash)));
        });
        ASSERT_EQ(found, before);
      }
    }));
  }
  for (uint32_t i = 0; i < kItems; ++i) {
    {
      ReclamationDomain::Guard guard(domain);
      set.Publish(TableId{1}, own(i), i, &domain);
    }
    published.store(i + 1);
  }
}

}  // namespace
}  // namespace deut::tc
