// Changes of ranges (rules P): what new ranges take over, which threads finish a change, and how the old ranges are freed.
#include "tc/mvcc/range_partition.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

using Place = RangePartition::Place;

class RangePartitionTest : public ::testing::Test {
 protected:
  ~RangePartitionTest() override {
    testing::SetPointHandler(nullptr);
    testing::SetCasHandler(nullptr);
    ReclamationDomain::Guard guard(domain_);
    partition_.map().RemoveAllPostings(domain_);
    for (TransactionRecord* record : records_) {
      for (Range* range : record->posted) range->DropReference(domain_);
      record->DropReference(domain_);
    }
  }
  Range& Of(const char* key) {
    const RangeMap& map = partition_.map();  // loaded once: a second load may return another map
    return map.at(map.IndexOf(key));
  }
  TransactionRecord& New(uint64_t timestamp) {
    records_.push_back(new TransactionRecord(Timestamp{timestamp}));
    return *records_.back();
  }
  // Posts in the key's range and publishes the key.
  TransactionRecord& Write(uint64_t timestamp, const char* key) {
    ReclamationDomain::Guard guard(domain_);
    TransactionRecord& record = New(timestamp);
    Range& range = Of(key);
    EXPECT_TRUE(range.Post(&record));
    range.AddReference();  // the record's reference in `posted`: copies of the posting name the range
    record.posted.push_back(&range);
    record.MakeWriteSet().Publish(TableId{1}, key, 0);
    return record;
  }
  void Commit(TransactionRecord& record) {
    ASSERT_TRUE(record.TryStartCommit());
    record.FinishCommit(Lsn{record.timestamp().value});
  }
  // "low:last_read[timestamps]" of every range.
  std::string Ranges() {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    for (const Range* range : partition_.map().ranges()) {
      text += range->low() + ":" + std::to_string(range->last_read().value) + "[";
      std::vector<uint64_t> postings;
      range->ForEachPosting([&](const TransactionRecord& record) {
        postings.push_back(record.timestamp().value);
        return true;
      });
      EXPECT_EQ(range->posting_count(), postings.size());
      std::sort(postings.begin(), postings.end());
      for (const uint64_t timestamp : postings) text += std::to_string(timestamp) + " ";
      text += "] ";
    }
    return text;
  }
  void Replace(const std::vector<Place>& places) { partition_.Replace(RealRuntime(), domain_, places); }
  void Recut(const std::vector<std::string>& cuts) { partition_.Recut(RealRuntime(), domain_, cuts); }
  bool Raise(const char* key, uint64_t timestamp) {
    ReclamationDomain::Guard guard(domain_);
    return Of(key).RaiseLastRead(Timestamp{timestamp});
  }

  ReclamationDomain domain_;
  RangePartition partition_;
  std::vector<TransactionRecord*> records_;
};

TEST_F(RangePartitionTest, SplitsAndMergesTakeOverWhatIsLive) {
  Commit(Write(1, "b"));
  Write(2, "c");
  TransactionRecord& collected = Write(3, "c");
  Commit(collected);
  collected.set_collected();
  Write(4, "p").TryAbort();
  Commit(Write(5, "p"));
  EXPECT_TRUE(Raise("a", 7));
  Replace({{.first = 0, .cuts = {"g", "n"}}});
  EXPECT_EQ(Ranges(), ":7[1 2 ] g:7[2 ] n:7[2 5 ] ");
  EXPECT_TRUE(Raise("h", 9));
  Write(6, "h");
  // Merges two neighbours: each transaction is posted once.
  Replace({{.first = 1, .count = 2}});
  EXPECT_EQ(Ranges(), ":7[1 2 ] g:9[2 5 6 ] ");
  // A posting of an undecided transaction stays within the bounds in which it was posted: 6 in g..n.
  // Three places at once; one of them moves a bound.
  Replace({{.first = 0, .cuts = {"c"}}, {.first = 1, .cuts = {"m"}}});
  EXPECT_EQ(Ranges(), ":7[1 2 ] c:7[2 ] g:9[2 6 ] m:9[2 5 6 ] ");
  Replace({{.first = 1, .count = 2, .cuts = {"d", "e"}}});
  EXPECT_EQ(Ranges(), ":7[1 2 ] c:9[2 ] d:9[2 ] e:9[2 6 ] m:9[2 5 6 ] ");
  Replace({{.first = 0, .count = 5}});
  EXPECT_EQ(Ranges(), ":9[1 2 5 6 ] ");
}

TEST_F(RangePartitionTest, RecutChangesOnlyWhatDiffers) {
  Recut({"c", "m"});
  ReclamationDomain::Guard guard(domain_);
  const Range* const first = &Of("a");
  const Range* const last = &Of("z");
  Recut({"c", "f", "g", "m"});
  EXPECT_EQ(Ranges(), ":0[] c:0[] f:0[] g:0[] m:0[] ");
  EXPECT_EQ(&Of("a"), first);
  EXPECT_EQ(&Of("z"), last);
  Recut({"c", "e", "m"});
  EXPECT_EQ(Ranges(), ":0[] c:0[] e:0[] m:0[] ");
  EXPECT_EQ(&Of("a"), first);
  Recut({});
  EXPECT_EQ(Ranges(), ":0[] ");
}

TEST_F(RangePartitionTest, ManyRangesInManyChanges) {
  std::vector<std::string> cuts;
  for (size_t i = 0; i < 10 * RangePartition::kMaxPlacesPerChange; ++i) cuts.push_back("k" + std::to_string(10000 + i));
  Write(1, "k10001");
  Recut(cuts);
  EXPECT_EQ(partition_.map().size(), cuts.size() + 1);
  Recut({cuts[1], cuts[2]});
  EXPECT_EQ(Ranges(), ":0[1 ] k10001:0[1 ] k10002:0[1 ] ");
}

// All cuts lie in one range that is full of postings, each of which is copied into every part: the range is halved repeatedly.
TEST_F(RangePartitionTest, ManyPostingsInShortChanges) {
  constexpr uint64_t kWriters = 2 * RangePartition::kMaxCopiesPerChange;
  constexpr int kCuts = 60;
  for (uint64_t i = 0; i < kWriters; ++i) Write(i + 1, ("k" + std::to_string(10000 + i % kCuts)).c_str());
  std::vector<std::string> cuts;
  for (int i = 0; i < kCuts; ++i) cuts.push_back("k" + std::to_string(10000 + i));
  int changes = 0, fills = 0, most = 0;
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "range.fill.before_cas") most = std::max(most, ++fills);
    if (name != "partition.published") return;
    ++changes;
    fills = 0;
  });
  Recut(cuts);
  testing::SetPointHandler(nullptr);
  ReclamationDomain::Guard guard(domain_);
  ASSERT_EQ(partition_.map().size(), cuts.size() + 1);
  EXPECT_EQ(most, 2) << "ranges filled in one change";
  EXPECT_EQ(changes, kCuts);
}

TEST_F(RangePartitionTest, SealedRangesTakeNothing) {
  ReclamationDomain::Guard guard(domain_);
  Range& old = Of("a");
  TransactionRecord& record = New(5);
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "partition.sealed") {
      EXPECT_FALSE(old.RaiseLastRead(Timestamp{9}));
      EXPECT_FALSE(old.RaiseLastRead(Timestamp{0}));
    }
    if (name == "partition.marked") EXPECT_FALSE(old.Post(&record));
  });
  Replace({{.cuts = {"m"}}});
  EXPECT_FALSE(old.Post(&record));
  EXPECT_FALSE(old.RaiseLastRead(Timestamp{9}));
  EXPECT_EQ(old.last_read(), Timestamp{0});
  EXPECT_FALSE(partition_.Holds(old));
  EXPECT_TRUE(partition_.Holds(Of("a")));
}

// A thread that finds a sealed range finishes the change, wherever the thread that began it has stopped. It may then meet the next change's seal.
TEST_F(RangePartitionTest, AnybodyFinishes) {
  for (const char* point : {"partition.published", "partition.sealed", "partition.marked", "range.fill.before_cas",
                            "partition.before_swing"}) {
    SCOPED_TRACE(point);
    bool helped = false;
    testing::SetPointHandler([&](std::string_view name) {
      if (name != point || std::exchange(helped, true)) return;
      ReclamationDomain::Guard guard(domain_);
      EXPECT_EQ(partition_.map().size(), 1u);
      partition_.FinishChange();
      EXPECT_EQ(partition_.map().size(), 2u);
      partition_.FinishChange();
      EXPECT_TRUE(Of("a").RaiseLastRead(Timestamp{9}));
      Write(11, "a");
    });
    Write(3, "a");
    Replace({{.cuts = {"m"}}});
    EXPECT_TRUE(helped);
    testing::SetPointHandler(nullptr);
    Replace({{.first = 0, .count = 2}});
    partition_.FinishChange();
  }
  EXPECT_EQ(Ranges(), ":9[3 3 3 3 3 11 11 11 11 11 ] ");
}

TEST_F(RangePartitionTest, LostCompareAndSwaps) {
  Write(1, "a");
  for (const char* cas : {"range.fill.cas", "partition.swing.cas"}) {
    int lost = 0;
    testing::SetCasHandler([&](std::string_view name) { return name == cas && lost++ == 0; });
    Replace({{.cuts = {"m"}}});
    EXPECT_GE(lost, 2) << cas;
    EXPECT_EQ(Ranges(), ":0[1 ] m:0[1 ] ");
    Replace({{.first = 0, .count = 2}});
  }
  EXPECT_EQ(Ranges(), ":0[1 ] ");
}

// A range is replaced while the sweeper is in it.
TEST_F(RangePartitionTest, PostingsOfAReplacedRangeAreDroppedByTheLastUser) {
  Write(1, "a");
  Write(2, "a");
  Range* old;
  {
    ReclamationDomain::Guard guard(domain_);
    old = &Of("a");
    old->AddReference();
  }
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "range.end_sweep.before_cas") return;
    testing::SetPointHandler(nullptr);
    Replace({{.cuts = {"m"}}});
    old->DropPostings(domain_);
    EXPECT_EQ(old->posting_count(), 2u) << "the sweeper's";
  });
  {
    ReclamationDomain::Guard guard(domain_);
    old->RemovePostings(domain_, [](const TransactionRecord&) { return false; });
    EXPECT_EQ(old->posting_count(), 0u);
    old->RemovePostings(domain_, [](const TransactionRecord&) { return true; });
  }
  EXPECT_EQ(Ranges(), ":0[1 2 ] m:0[1 2 ] ");
  domain_.Collect();  // again, because freeing the old map has retired more
  ReclamationDomain::Guard guard(domain_);
  old->DropReference(domain_);
}

// Nothing is lost and nothing is left: writers post, publish and check; readers raise and look; one thread changes the ranges without pause, another
// sweeps. One of a writer and a later reader must find the other.
TEST_F(RangePartitionTest, WritersAndReadersWhileRangesChange) {
  constexpr int kRounds = 3000;
  const std::vector<std::string> keys = {"a", "d", "h", "m", "q"};
  std::atomic<int> working{2};
  std::atomic<uint64_t> clock{1};
  std::atomic<uint64_t> reads[5] = {};  // by key: the latest reader that found no writer
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 2; ++t) {
    threads.push_back(RealRuntime().StartThread("client", [&, t] {
      Random random(static_cast<uint64_t>(t) + 1);
      for (int i = 0; i < kRounds; ++i) {
        const size_t k = random.Below(keys.size());
        const Timestamp now{clock.fetch_add(1)};
        ReclamationDomain::Guard guard(domain_);
        const auto in_range = [&](auto what) {
          for (;;) {
            Range& range = Of(keys[k].c_str());
            if (what(range)) return &range;
            partition_.FinishChange();
          }
        };
        if (random.OneIn(2)) {
          auto* record = new TransactionRecord(now);
          in_range([&](Range& range) { return range.Post(record); });
          record->MakeWriteSet().Publish(TableId{1}, keys[k], 0);
          const bool passed = Of(keys[k].c_str()).last_read() <= now;
          // A later reader that passed before this point has raised last_read, and the check sees it.
          if (passed) EXPECT_LE(reads[k].load(), now.value) << keys[k];
          record->TryAbort();
          record->set_collected();
          record->DropReference(domain_);
        } else {
          Range* const range = in_range([&](Range& r) { return r.RaiseLastRead(now); });
          bool writer = false;
          range->ForEachPosting([&](const TransactionRecord& record) {
            if (record.timestamp() < now && record.status() == TransactionStatus::kActive) {
              record.ForEachWrite([&](const WriteItem& item) { writer = writer || item.key == keys[k]; });
            }
            return !writer;
          });
          if (writer) continue;
          uint64_t seen = reads[k].load();
          while (seen < now.value && !reads[k].compare_exchange_weak(seen, now.value)) {
          }
        }
      }
      working.fetch_sub(1);
    }));
  }
  threads.push_back(RealRuntime().StartThread("sweeper", [&] {
    while (working.load() != 0) {
      ReclamationDomain::Guard guard(domain_);
      for (Range* range : partition_.map().ranges()) {
        range->RemovePostings(domain_, [](const TransactionRecord& record) { return record.collected(); });
      }
    }
  }));
  Random random(7);
  while (working.load() != 0) {
    std::vector<std::string> cuts;
    for (const char* cut : {"b", "c", "g", "k", "p", "r"}) {
      if (random.OneIn(2)) cuts.push_back(cut);
    }
    Recut(cuts);
  }
  threads.clear();
}

}  // namespace
}  // namespace deut::tc
