#include "dc/bwtree/base_page.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

// Returns keys that share long prefixes, are prefixes of each other, and contain zero bytes.
std::set<std::string> AwkwardKeys(uint64_t seed, size_t count) {
  Random random(seed);
  std::set<std::string> keys;
  const std::string prefix(random.Below(20), 'p');
  while (keys.size() < count) {
    std::string key = prefix;
    const size_t bytes = random.Between(prefix.empty() ? 1 : 0, 14);
    for (size_t i = 0; i < bytes; ++i)
      key += static_cast<char>(random.OneIn(3) ? 0 : random.OneIn(2) ? 0xff : 'a' + random.Below(3));
    if (random.OneIn(5)) key += std::string(random.Below(30), '\0');
    if (!key.empty()) keys.insert(key);
  }
  return keys;
}

PageEntry EntryOf(const std::string& key) {
  PageEntry entry;
  entry.data = key.data();
  entry.key_bytes = static_cast<uint16_t>(key.size());
  return entry;
}

TEST(KeyPrefix64Test, SortsLikeTheBytes) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string a(random.Below(12), '\0');
    std::string b(random.Below(12), '\0');
    for (char& c : a) c = static_cast<char>(random.Below(3) * 127);
    for (char& c : b) c = static_cast<char>(random.Below(3) * 127);
    if (KeyPrefix64(a, 0) < KeyPrefix64(b, 0)) EXPECT_LT(a, b);
    if (KeyPrefix64(a, 0) == KeyPrefix64(b, 0))
      EXPECT_EQ((a + std::string(8, '\0')).substr(0, 8), (b + std::string(8, '\0')).substr(0, 8));
  }
  EXPECT_EQ(KeyPrefix64("ab", 5), 0u);
}

TEST(BasePageTest, FindsEveryKeyAndEveryGap) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::set<std::string> keys = AwkwardKeys(seed, seed < 3 ? seed : 5 + seed);
    const std::vector<std::string> sorted(keys.begin(), keys.end());
    // Every third key is a single entry; the others come in runs of another page.
    BasePage::Content some;
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (i % 3 != 1) some.Add(EntryOf(sorted[i]));
    }
    const Owned<BasePage> older = BasePage::Build(0, {}, Timestamp(), some);
    BasePage::Content content;
    for (size_t i = 0, at = 0; i < sorted.size(); i += 3) {
      content.AddRun(*older, at, at + 1);
      ++at;
      if (i + 1 < sorted.size()) content.Add(EntryOf(sorted[i + 1]));
      if (i + 2 < sorted.size()) content.AddRun(*older, at, at + 1);
      ++at;
    }
    const Owned<BasePage> page = BasePage::Build(0, {}, Timestamp(), content);
    ASSERT_EQ(page->count(), sorted.size());
    std::set<std::string> probes = AwkwardKeys(seed + 1000, 100);
    for (const std::string& key : sorted) {
      probes.insert({key, key + '\0', key + "a", key.substr(0, key.size() / 2) + "b"});
      if (key.size() > 1) probes.insert(key.substr(0, key.size() - 1));
    }
    for (const std::string& probe : probes) {
      const auto lower = static_cast<size_t>(std::lower_bound(sorted.begin(), sorted.end(), probe) - sorted.begin());
      const auto upper = static_cast<size_t>(std::upper_bound(sorted.begin(), sorted.end(), probe) - sorted.begin());
      ASSERT_EQ(page->LowerBound(probe), lower) << seed;
      ASSERT_EQ(page->UpperBound(probe), upper) << seed;
      ASSERT_EQ(page->Find(probe), lower != upper ? lower : sorted.size()) << seed;
    }
  }
}

TEST(BasePageTest, KeepsRecordsInTheFormatOfAnswers) {
  const std::string data[] = {"key1value1", "key2", "key3" + std::string(5000, 'v')};
  std::vector<PageEntry> entries(3);
  for (size_t i = 0; i < 3; ++i) {
    entries[i].data = data[i].data();
    entries[i].key_bytes = 4;
    entries[i].value_bytes = static_cast<uint32_t>(data[i].size() - 4);
    entries[i].version = Version{Timestamp(100 + i), static_cast<uint32_t>(i)};
  }
  entries[1].tombstone = true;
  BasePage::Content content;
  for (const PageEntry& entry : entries) content.Add(entry);
  const Owned<BasePage> first = BasePage::Build(0, {}, Timestamp(), content);
  BasePage::Content copy;
  copy.AddRun(*first, 0, 3);
  const Owned<BasePage> page = BasePage::Build(0, {"key0", "key9", PageId(17)}, Timestamp(55), copy);
  EXPECT_EQ(page->low(), "key0");
  EXPECT_EQ(page->fence->high_key(), "key9");
  EXPECT_EQ(page->fence->sibling, PageId(17));
  EXPECT_EQ(page->flat(), Timestamp(55));
  EXPECT_EQ(page->tombstones(), 1u);
  EXPECT_EQ(page->live_records(), 2u);

  RecordBatch expected;
  for (size_t i = 0; i < 3; ++i) {
    const PageEntry record = page->record(i);
    EXPECT_EQ(record.key(), entries[i].key());
    EXPECT_EQ(record.value(), entries[i].value());
    EXPECT_EQ(record.version, entries[i].version);
    EXPECT_EQ(record.tombstone, i == 1);
    expected.Append(record.key(), record.value(), record.version);
  }
  EXPECT_EQ(page->run(0, 3), expected.bytes());
  EXPECT_EQ(page->newest(), std::max({entries[0].version, entries[1].version, entries[2].version}).timestamp);
  RecordBatch copied;
  copied.AppendRun(page->run(1, 2), 1, page->newest());
  EXPECT_EQ(RecordBatch::Iterator(copied).record().version, entries[1].version);
}

TEST(BasePageTest, TheFirstChildOfAnInnerPageIsBelowEveryKey) {
  const std::string keys[] = {"", "prefix-b", "prefix-d"};
  BasePage::Content content;
  for (uint32_t i = 0; i < 3; ++i) {
    PageEntry entry = EntryOf(keys[i]);
    entry.child = PageId(10 + i);
    content.Add(entry);
  }
  const Owned<BasePage> page = BasePage::Build(1, {}, Timestamp(), content);
  EXPECT_EQ(page->UpperBound("a"), 1u);
  EXPECT_EQ(page->UpperBound("prefix-"), 1u);
  EXPECT_EQ(page->UpperBound("prefix-b"), 2u);
  EXPECT_EQ(page->UpperBound("prefix-c"), 2u);
  EXPECT_EQ(page->UpperBound("z"), 3u);
  EXPECT_EQ(page->LowerBound("prefix-b"), 1u);
  EXPECT_EQ(page->child(0), PageId(10));
  EXPECT_EQ(page->child(2), PageId(12));
}

// The first entry of an inner page is not compared. Where two pages are merged, the right page's first entry is.
TEST(BasePageTest, InnerPagesThatBecomeOneFindEveryChild) {
  for (const uint32_t cut : {1u, 3u, 8u, 9u, 20u}) {
    std::vector<std::string> keys;
    for (uint32_t i = 0; i < 24; ++i) keys.push_back(std::string("prefix-") + static_cast<char>('a' + i));
    const auto half = [&](uint32_t begin, uint32_t end) {
      BasePage::Content content;
      for (uint32_t i = begin; i < end; ++i) {
        PageEntry entry = EntryOf(keys[i]);
        entry.child = PageId(10 + i);
        content.Add(entry);
      }
      return BasePage::Build(1, {keys[begin], {}, kNoPage}, Timestamp(), content);
    };
    const Owned<BasePage> left = half(0, cut);
    const Owned<BasePage> right = half(cut, 24);
    BasePage::Content both;
    both.AddRun(*left, 0, left->count());
    both.AddRun(*right, 0, right->count());
    const Owned<BasePage> page = BasePage::Build(1, {keys[0], {}, kNoPage}, Timestamp(), both);
    for (uint32_t i = 1; i < 24; ++i) {
      ASSERT_EQ(page->LowerBound(keys[i]), i) << cut;
      ASSERT_EQ(page->UpperBound(keys[i]), i + 1) << cut;
      ASSERT_EQ(page->UpperBound(keys[i] + "x"), i + 1) << cut;
    }
  }
}

}  // namespace
}  // namespace deut::dc
