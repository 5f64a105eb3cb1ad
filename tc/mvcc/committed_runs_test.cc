// CommittedRuns compared with a map, key by key, and the keys that a gather finds while runs are added, merged and dropped.
#include "tc/mvcc/committed_runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr Timestamp kLater{1000000};

class CommittedRunsTest : public ::testing::Test {
 protected:
  // One update of each key.
  void Add(const std::vector<std::string>& keys, uint64_t timestamp, uint64_t commit) {
    std::vector<CommittedRun::Update> updates;
    for (const std::string& key : keys) updates.push_back({key, Timestamp{timestamp}, Lsn{commit}});
    ReclamationDomain::Guard guard(domain_);
    runs_.Add(std::move(updates), Position{Lsn{commit}, 1}, domain_);
  }
  void DropAppliedAndMerge(uint64_t applied, size_t entries = SIZE_MAX) {
    ReclamationDomain::Guard guard(domain_);
    runs_.DropAppliedAndMerge(Position{Lsn{applied}, UINT32_MAX}, entries, domain_);
  }
  std::string Gather(CommittedRuns::Bounds bounds) {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    runs_.Gather(bounds, [&](std::string_view key, bool) { text.append(text.empty() ? "" : " ").append(key); });
    return text;
  }
  std::string All(uint64_t reader = kLater.value) { return Gather({.reader = Timestamp{reader}}); }

  ReclamationDomain domain_;
  CommittedRuns runs_;
};

TEST_F(CommittedRunsTest, GatherReturnsTheKeysVisibleToItsReader) {
  EXPECT_EQ(All(), "");
  Add({"c", "a", "b"}, 10, 100);
  Add({"bb"}, 20, 200);
  DropAppliedAndMerge(0);
  EXPECT_EQ(runs_.runs(), 1u);
  EXPECT_EQ(All(), "a b bb c");
  EXPECT_EQ(All(20), "a b c");  // the reader sees updates below 20
  EXPECT_EQ(All(10), "");
  EXPECT_EQ(Gather({.low = "b", .high = "c", .reader = kLater}), "b bb");
  EXPECT_EQ(Gather({.low = "b", .high = "c", .ascending = false, .reader = kLater}), "bb b");
  EXPECT_EQ(Gather({.low = "aa", .reader = kLater, .most = 2}), "b bb");
  EXPECT_EQ(Gather({.ascending = false, .reader = kLater, .most = 2}), "c bb");
  EXPECT_EQ(Gather({.reader = kLater, .applied = Lsn{101}}), "bb");  // keys that the DC has are not gathered
  EXPECT_EQ(Gather({.reader = kLater, .applied = Lsn{100}}), "a b bb c");
  EXPECT_EQ(runs_.latest(), Timestamp{20});
}

// A key has one entry per run: it keeps the earliest timestamp and the latest commit.
TEST_F(CommittedRunsTest, UpdatesOfOneKeyAreOneEntry) {
  Add({"a", "b"}, 10, 100);
  Add({"a"}, 20, 200);
  EXPECT_EQ(runs_.entries(), 3u);
  EXPECT_EQ(All(), "a b");
  DropAppliedAndMerge(0);
  EXPECT_EQ(runs_.entries(), 2u);
  EXPECT_EQ(All(11), "a b");
  EXPECT_EQ(Gather({.reader = kLater, .applied = Lsn{200}}), "a");
}

TEST_F(CommittedRunsTest, AppliedUpdatesAreDropped) {
  Add({"a", "b"}, 10, 100);
  DropAppliedAndMerge(99);
  EXPECT_EQ(All(), "a b");
  Add({"c"}, 20, 200);
  DropAppliedAndMerge(150);  // drops the first run as a whole
  EXPECT_EQ(All(), "c");
  Add({"a", "d"}, 30, 300);
  DropAppliedAndMerge(100);
  EXPECT_EQ(runs_.runs(), 1u);
  EXPECT_EQ(All(), "a c d");
  Add({"e", "f", "g"}, 40, 400);
  DropAppliedAndMerge(250);  // the merge drops c
  EXPECT_EQ(All(), "a d e f g");
  DropAppliedAndMerge(400);
  EXPECT_EQ(All(), "");
  EXPECT_EQ(runs_.bytes(), 0u);
  EXPECT_EQ(runs_.entries(), 0u);
  EXPECT_EQ(runs_.runs(), 0u);
}

// A large merge proceeds in pieces. Its input runs stay in the list all the time, and may be applied before it is finished.
TEST_F(CommittedRunsTest, ALargeMergeInPieces) {
  std::vector<std::string> even, odd;
  for (int i = 10000; i < 30000; ++i) (i % 2 == 0 ? even : odd).push_back(std::to_string(i));
  Add(even, 10, 100);
  Add(odd, 20, 200);
  const auto count = [&] {
    const std::string text = All();
    return text.empty() ? 0 : 1 + std::count(text.begin(), text.end(), ' ');
  };
  DropAppliedAndMerge(0, 5000);
  EXPECT_EQ(runs_.runs(), 2u);
  EXPECT_EQ(count(), 20000);
  Add({"1"}, 30, 300);
  Add({"2"}, 30, 301);
  DropAppliedAndMerge(0, 5000);
  EXPECT_EQ(runs_.runs(), 3u);  // the small merges did not wait
  EXPECT_EQ(count(), 20002);
  DropAppliedAndMerge(0);
  EXPECT_EQ(count(), 20002);
  Add(even, 40, 400);
  DropAppliedAndMerge(0, 100);  // a merge has begun
  DropAppliedAndMerge(400);     // and its input runs are applied
  EXPECT_EQ(count(), 0);
  EXPECT_EQ(runs_.bytes(), 0u);
}

TEST_F(CommittedRunsTest, BoundsAndKeysOfAllKinds) {
  Random random(7);
  const auto any = [&] {
    // Few different bytes, zeros among them, long common prefixes.
    std::string key(random.Below(3) * 5, 'p');
    for (uint64_t n = random.Below(12); n > 0; --n) key.push_back(std::string("\0\1ab\xff", 5)[random.Below(5)]);
    return key;
  };
  for (int round = 0; round < 300; ++round) {
    CommittedRun::Builder builder;
    std::set<std::string> keys;
    const std::string prefix = any();
    for (uint64_t n = random.Below(40); n > 0; --n) keys.insert(random.OneIn(3) ? prefix + any() : any());
    for (const std::string& key : keys) builder.Append(key, Timestamp{1}, Lsn{1});
    const std::shared_ptr<const CommittedRun> run = builder.Finish(Position{Lsn{1}, 1});
    ASSERT_EQ(run->size(), keys.size());
    for (int i = 0; i < 60; ++i) {
      const std::string bound =
          random.OneIn(2) || keys.empty() ? any() : *std::next(keys.begin(), random.Below(keys.size()));
      EXPECT_EQ(run->LowerBound(bound), static_cast<size_t>(std::distance(keys.begin(), keys.lower_bound(bound))));
    }
  }
}

// Two readers gather while another thread adds, merges and drops. A gather finds each key that was added before it began and is unapplied when it
// ends.
TEST_F(CommittedRunsTest, GatherersFindWhatIsNotApplied) {
  constexpr uint64_t kAdds = 4000;
  std::atomic<uint64_t> added{0}, applied{0}, gathers{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.push_back(RealRuntime().StartThread("gatherer", [&, t] {
      Random random(t);
      while (added.load() < kAdds) {
        const uint64_t before = added.load();
        const bool ascending = random.OneIn(2);
        std::set<std::string> found;
        {
          ReclamationDomain::Guard guard(domain_);
          runs_.Gather({.ascending = ascending, .reader = kLater},
                       [&](std::string_view key, bool) { found.emplace(key); });
        }
        const uint64_t gone = applied.load();
        for (uint64_t i = gone + 1; i <= before; ++i) EXPECT_TRUE(found.contains(std::to_string(i % 512))) << i;
        gathers.fetch_add(1);
      }
    }));
  }
  for (uint64_t i = 1; i <= kAdds; ++i) {
    Add({std::to_string(i % 512)}, i, i);
    added.store(i);
    if (i % 7 == 0 && i > 300) applied.store(i - 300);
    DropAppliedAndMerge(applied.load(), 64);
  }
  threads.clear();
  EXPECT_GT(gathers.load(), 0u);
  DropAppliedAndMerge(kAdds);
  EXPECT_EQ(runs_.bytes(), 0u);
}

}  // namespace
}  // namespace deut::tc
