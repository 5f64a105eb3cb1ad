#include "tc/mvcc/committed_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace deut::tc {
namespace {

constexpr Position kLast{Lsn{900}, 3};

TEST(CommittedRunTest, OneEntryForAllUpdatesOfAKey) {
  CommittedRun::Builder builder;
  EXPECT_TRUE(builder.empty());
  builder.Append("a", Timestamp{7}, Lsn{70});
  builder.Append("a", Timestamp{5}, Lsn{90});
  builder.Append("a", Timestamp{9}, Lsn{80});
  builder.Append("b", Timestamp{6}, Lsn{60});
  const std::shared_ptr<const CommittedRun> run = builder.Finish(kLast);
  ASSERT_EQ(run->size(), 2u);
  EXPECT_EQ(run->key(0), "a");
  EXPECT_EQ(run->first_timestamp(0), Timestamp{5}) << "the earliest";
  EXPECT_EQ(run->last_commit(0), Lsn{90}) << "the latest";
  EXPECT_EQ(run->key(1), "b");
  EXPECT_EQ(run->last(), kLast);
  EXPECT_EQ(run->key_bytes(), 2u);
}

// Keys with and without a common prefix, keys that are prefixes of other keys, keys with zero bytes; bounds at, before and behind each key.
TEST(CommittedRunTest, LowerBoundIsThatOfTheKeys) {
  for (const std::string& prefix : {std::string(), std::string("user"), std::string(40, 'p')}) {
    std::vector<std::string> keys;
    for (const char* tail : {"", "a", "aa", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b", "\xff"}) {
      keys.push_back(prefix + tail);
      keys.push_back(prefix + tail + std::string(1, '\0'));
    }
    std::erase(keys, std::string());
    std::ranges::sort(keys);
    CommittedRun::Builder builder;
    for (const std::string& key : keys) builder.Append(key, Timestamp{1}, Lsn{8});
    const std::shared_ptr<const CommittedRun> run = builder.Finish(kLast);
    std::vector<std::string> bounds = keys;
    for (const std::string& key : keys) {
      bounds.push_back(key + '\0');
      bounds.push_back(key + "z");
      bounds.push_back(key.substr(0, key.size() - 1));
    }
    for (const char* other : {"", "a", "u", "us", "z", "\xff\xff"}) bounds.push_back(other);
    for (const std::string& bound : bounds) {
      const auto expected = std::ranges::lower_bound(keys, bound) - keys.begin();
      EXPECT_EQ(run->LowerBound(bound), static_cast<size_t>(expected)) << prefix << "|" << bound;
    }
  }
}

// Many entries, some of which have equal heads: every bound, with head groups of several sizes.
TEST(CommittedRunTest, LowerBoundInALargeRun) {
  for (const size_t keys_of_a_head : {1, 3, 40, 2000}) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < 9000; ++i) {
      keys.push_back("k" + std::to_string(10'000'000 + i / keys_of_a_head * 7) + "+" + std::to_string(10'000 + 3 * i));
    }
    CommittedRun::Builder builder;
    for (const std::string& key : keys) builder.Append(key, Timestamp{1}, Lsn{8});
    const std::shared_ptr<const CommittedRun> run = builder.Finish(kLast);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(run->LowerBound(keys[i]), i) << keys_of_a_head;
      ASSERT_EQ(run->LowerBound(keys[i] + "0"), i + 1) << keys_of_a_head;
      ASSERT_EQ(run->LowerBound(keys[i].substr(0, 9) + "~"), (i / keys_of_a_head + 1) * keys_of_a_head < keys.size()
                                                                 ? (i / keys_of_a_head + 1) * keys_of_a_head
                                                                 : keys.size());
    }
  }
}

}  // namespace
}  // namespace deut::tc
