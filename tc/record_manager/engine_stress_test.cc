// The whole engine under load: few keys, few buckets, the collector and the DC at full rate, and ranges that are cut
// anew meanwhile. It checks:
// - Transfers between accounts keep the sum in every committed scan, forwards and backwards, and in every snapshot.
// - In timestamp order every committed transaction saw exactly the state that its predecessors left (point reads and
//   scans, so phantoms too).
// - Afterwards everything is collected, and the DC alone has the state.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/sync/mutex.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

constexpr Duration kTime = seconds(4);
constexpr int kThreads = 3;

// Until destroyed it pumps the DC, trims the log and changes the ranges.
class Background {
 public:
  explicit Background(EngineFixture& f) : f_(f) {
    threads_.push_back(RealRuntime().StartThread("pump", [this] {
      for (int i = 0; !done_.load(); ++i) {
        f_.dc->Pump();
        if (i % 64 == 0) f_.dc->TrimLog();
        RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(200));
      }
    }));
    threads_.push_back(RealRuntime().StartThread("ranges", [this] {
      const std::vector<std::vector<std::string>> cuts = {{"k2"}, {}, {"k1", "k3", "k5"}, {"k4"}};
      for (size_t i = 0; !done_.load(); ++i) {
        f_.SetRanges(cuts[i % cuts.size()]);
        changes_.fetch_add(1);
        if (i % 8 == 0) RealRuntime().Yield();
      }
    }));
  }
  ~Background() {
    done_.store(true);
    threads_.clear();
  }
  uint64_t changes() const { return changes_.load(); }

 private:
  EngineFixture& f_;
  std::atomic<bool> done_{false};
  std::atomic<uint64_t> changes_{0};
  std::vector<std::unique_ptr<Thread>> threads_;
};

EngineFixtureOptions Tiny() {
  return {.log2_buckets = 2,
          .max_deferred_entries = 4,
          .collector_period = microseconds(100),
          .fold_after = microseconds(300),
          .conflict_wait = microseconds(200)};
}

void ExpectAllCollected(EngineFixture& f) {
  // Versions that are collected leave copies of themselves in the read cache (S7), also those that were not collected
  // yet when the load ended. So the cache is emptied after everything is collected. The entries that the copies leave
  // are collected, too.
  EXPECT_TRUE(f.Settle());
  f.ClearReadCache();
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.records->entries(), 0u);
  EXPECT_EQ(f.records->entry_bytes(), 0u);
  EXPECT_EQ(f.collector->uncollected(), 0u);
  EXPECT_EQ(f.engine->counters.pinned_bytes.load(), 0u);
  EXPECT_EQ(f.active->open_transactions(), 0u);
  EXPECT_EQ(f.collector->folded(), 0u);
  EXPECT_EQ(f.collector->folded_bytes(), 0u);
  EXPECT_EQ(f.catalogue->Find(EngineFixture::kTable)->runs().bytes(), 0u);
  ReclamationDomain::Guard guard(f.domain);
  const RangeMap& map = f.catalogue->Find(EngineFixture::kTable)->map();
  for (size_t i = 0; i < map.size(); ++i) EXPECT_EQ(map.at(i).posting_count(), 0u);
}

std::vector<std::pair<std::string, int>> Parse(const std::string& scan) {
  std::vector<std::pair<std::string, int>> records;
  for (size_t at = 0; at < scan.size();) {
    const size_t end = std::min(scan.find(' ', at), scan.size());
    const size_t equals = scan.find('=', at);
    records.emplace_back(scan.substr(at, equals - at), std::stoi(scan.substr(equals + 1, end - equals - 1)));
    at = end + 1;
  }
  return records;
}

TEST(EngineStressTest, TransfersKeepTheSum) {
  constexpr int kAccounts = 8;
  constexpr int kSum = kAccounts * 100;
  constexpr uint64_t kMinTransfers = 100, kMinScans = 20, kMinSnapshots = 20;
  EngineFixture f(Tiny());
  std::vector<std::pair<std::string, std::string>> accounts;
  for (int i = 0; i < kAccounts; ++i) accounts.push_back({"k" + std::to_string(i), "100"});
  f.Load(accounts);
  std::atomic<uint64_t> transfers{0}, scans{0}, snapshots{0};
  uint64_t changes = 0;
  {
    Background background(f);
    std::vector<std::unique_ptr<Thread>> threads;
    const MonotonicTime end = RealRuntime().Now() + kTime;
    // How much is done in a time depends on the machine.
    const auto too_few = [&] {
      return transfers.load() <= kMinTransfers || scans.load() <= kMinScans || snapshots.load() <= kMinSnapshots;
    };
    for (int t = 0; t < kThreads; ++t) {
      threads.push_back(RealRuntime().StartThread("client", [&, t] {
        Random random(static_cast<uint64_t>(t) + 1);
        while (RealRuntime().Now() < end || too_few()) {
          const uint64_t what = random.Below(8);
          if (what < 5) {
            // An account whose balance becomes 0 is removed, and one that receives an amount is made. So inserts and
            // deletes take part.
            const std::string from = "k" + std::to_string(random.Below(kAccounts));
            const std::string to = "k" + std::to_string(random.Below(kAccounts));
            if (from == to) continue;
            TestTransaction txn = f.Begin();
            const std::string a = txn.Get(from), b = txn.open() ? txn.Get(to) : "";
            if (!txn.open()) continue;
            const int has = a == "-" ? 0 : std::stoi(a), gets = b == "-" ? 0 : std::stoi(b);
            const int amount = has > 20 && random.OneIn(2) ? static_cast<int>(random.Below(20)) : has;
            const std::string left = std::to_string(has - amount), sum = std::to_string(gets + amount);
            std::string wrote = has == amount ? txn.Remove(from) : txn.Update(from, left);
            if (wrote == "ok") wrote = b == "-" ? txn.Insert(to, sum) : txn.Put(to, sum);
            if (wrote == "ok" && txn.Commit() == "ok") transfers.fetch_add(1);
          } else if (what < 7) {
            TestTransaction txn = f.Begin();
            const std::string all =
                what == 5 ? txn.Scan()
                          : txn.Scan("", "", random.OneIn(2) ? Direction::kDescending : Direction::kAscending);
            if (!txn.open() || txn.Commit() != "ok") continue;
            int sum = 0;
            for (const auto& [key, value] : Parse(all)) sum += value;
            ASSERT_EQ(sum, kSum) << all;
            scans.fetch_add(1);
          } else {
            TestTransaction txn = f.BeginSnapshot();
            const std::string all = txn.Scan();
            ASSERT_TRUE(txn.open()) << all;
            int sum = 0;
            for (const auto& [key, value] : Parse(all)) sum += value;
            ASSERT_EQ(sum, kSum) << all;
            snapshots.fetch_add(1);
          }
        }
      }));
    }
    threads.clear();
    changes = background.changes();
  }
  EXPECT_GT(transfers.load(), kMinTransfers);
  EXPECT_GT(scans.load(), kMinScans);
  EXPECT_GT(snapshots.load(), kMinSnapshots);
  ExpectAllCollected(f);
  int sum = 0;
  for (const auto& [key, value] : Parse(f.Contents())) sum += value;
  EXPECT_EQ(sum, kSum);
  RecordProperty("transfers", static_cast<int>(transfers.load()));
  RecordProperty("scans", static_cast<int>(scans.load()));
  RecordProperty("changes", static_cast<int>(changes));
}

// One step of a committed transaction.
struct Step {
  enum class Kind { kGet, kPresent, kScan, kPut, kRemove } kind;
  std::string key;    // kScan: low
  std::string value;  // the value that was read or written; "-": absent
  std::string high = {};
};
struct History {
  uint64_t number;  // the values it writes begin with it
  uint64_t timestamp;
  std::vector<Step> steps;
};

std::string Name(const History& history) {
  return Concat("transaction ", history.number, " of timestamp ", history.timestamp);
}

std::string Text(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kGet:
      return Concat(" read ", step.key, "=", step.value);
    case Step::Kind::kPresent:
      return Concat(" found ", step.key);
    case Step::Kind::kScan:
      return Concat(" scanned [", step.key, ", ", step.high, ") ", step.value, ";");
    case Step::Kind::kPut:
      return Concat(" put ", step.key, "=", step.value);
    case Step::Kind::kRemove:
      return Concat(" removed ", step.key);
  }
}

// Lists the steps of the transactions that committed with a timestamp near this one.
std::string Around(const std::vector<History>& histories, uint64_t timestamp) {
  constexpr uint64_t kNear = 25;
  std::string text;
  for (const History& history : histories) {
    if (history.timestamp + kNear < timestamp || history.timestamp > timestamp + kNear) continue;
    text += Concat("\n  ", Name(history), ":");
    for (const Step& step : history.steps) text += Text(step);
  }
  return text;
}

// Plays the committed transactions one after the other in timestamp order. Each must have seen what a single thread
// would have seen.
void ExpectSerializable(std::vector<History> histories) {
  std::sort(histories.begin(), histories.end(),
            [](const History& a, const History& b) { return a.timestamp < b.timestamp; });
  std::map<std::string, std::string> state;
  for (const History& history : histories) {
    for (const Step& step : history.steps) {
      switch (step.kind) {
        case Step::Kind::kPut:
          state[step.key] = step.value;
          break;
        case Step::Kind::kRemove:
          state.erase(step.key);
          break;
        case Step::Kind::kGet: {
          const auto found = state.find(step.key);
          ASSERT_EQ(found == state.end() ? "-" : found->second, step.value)
              << Name(history) << " read " << step.key << Around(histories, history.timestamp);
          break;
        }
        case Step::Kind::kPresent:
          ASSERT_TRUE(state.contains(step.key))
              << Name(history) << " found " << step.key << Around(histories, history.timestamp);
          break;
        case Step::Kind::kScan: {
          std::string all;
          for (auto it = state.lower_bound(step.key); it != state.end() && (step.high.empty() || it->first < step.high);
               ++it) {
            all += (all.empty() ? "" : " ") + it->first + "=" + it->second;
          }
          ASSERT_EQ(all, step.value) << Name(history) << " scanned [" << step.key << ", " << step.high << ")"
                                     << Around(histories, history.timestamp);
          break;
        }
      }
    }
  }
}

// Runs one random transaction. Returns whether it committed.
bool RunRandom(EngineFixture& f, Random& random, uint64_t number, History* history) {
  constexpr uint64_t kKeys = 7;
  const auto key = [&] { return "k" + std::to_string(random.Below(kKeys)); };
  TransactionOptions options = EngineFixture::Buffered();
  if (random.OneIn(6)) options = EngineFixture::Declaring({key()});
  Result<std::unique_ptr<Transaction>> begun = f.manager->Begin(options, EngineFixture::Soon());
  if (!begun.ok()) return false;
  TestTransaction txn(*f.manager, *std::move(begun));
  history->number = number;
  history->timestamp = txn.timestamp();
  const uint64_t operations = 1 + random.Below(5);
  for (uint64_t i = 0; i < operations && txn.open(); ++i) {
    const std::string k = key();
    const std::string value = std::to_string(number) + "." + std::to_string(i);
    switch (random.Below(8)) {
      case 0:
      case 1:
        history->steps.push_back({Step::Kind::kGet, k, txn.Get(k)});
        break;
      case 2: {
        std::string high = random.OneIn(2) ? "" : key();
        if (random.OneIn(2)) {
          // The scan never reached the keys behind the last one delivered (R8).
          Operation scan{.low = k, .high = high, .limit_records = static_cast<uint32_t>(1 + random.Below(3))};
          bool more = false;
          const std::string text = txn.ScanBatch(&scan, &more);
          if (more) high = scan.low;
          history->steps.push_back({Step::Kind::kScan, k, text, high});
          break;
        }
        history->steps.push_back(
            {Step::Kind::kScan, k, random.OneIn(4) ? txn.ScanForUpdate(k, high) : txn.Scan(k, high), high});
        break;
      }
      case 3:
        txn.Put(k, value);
        history->steps.push_back({Step::Kind::kPut, k, value});
        break;
      case 4:
        txn.Remove(k);
        history->steps.push_back({Step::Kind::kRemove, k, ""});
        break;
      default: {
        const bool insert = random.OneIn(2);
        const std::string outcome = insert ? txn.Insert(k, value) : txn.Update(k, value);
        // Whether the key was there is a read of its own; the operation does not tell its value.
        if (outcome == "ok") {
          history->steps.push_back({insert ? Step::Kind::kGet : Step::Kind::kPresent, k, "-"});
          history->steps.push_back({Step::Kind::kPut, k, value});
        } else if (txn.open()) {
          history->steps.push_back({insert ? Step::Kind::kPresent : Step::Kind::kGet, k, "-"});
        }
      }
    }
    if (random.OneIn(8)) RealRuntime().Yield();
    // Makes an old reader or writer, so that commits meanwhile are folded.
    if (random.OneIn(400)) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(15));
  }
  if (!txn.open() || random.OneIn(12)) return false;
  return txn.Commit() == "ok";
}

// Runs random transactions for `time`, and beyond it until more than `at_least` have committed: how many commit in a
// time depends on the machine.
void RunHistories(Duration time, uint64_t at_least, EngineFixtureOptions options = Tiny()) {
  EngineFixture f(options);
  Mutex mutex(RealRuntime());
  std::vector<History> histories;
  {
    Background background(f);
    std::vector<std::unique_ptr<Thread>> threads;
    const MonotonicTime end = RealRuntime().Now() + time;
    std::atomic<uint64_t> numbers{1};
    std::atomic<uint64_t> committed{0};
    for (int t = 0; t < kThreads; ++t) {
      threads.push_back(RealRuntime().StartThread("client", [&, t] {
        Random random(100 + static_cast<uint64_t>(t));
        std::vector<History> mine;
        while (RealRuntime().Now() < end || committed.load() <= at_least) {
          History history;
          if (!RunRandom(f, random, numbers.fetch_add(1), &history)) continue;
          committed.fetch_add(1);
          mine.push_back(std::move(history));
        }
        MutexLock lock(mutex);
        histories.insert(histories.end(), mine.begin(), mine.end());
      }));
    }
    threads.clear();
  }
  EXPECT_GT(histories.size(), at_least);
  ExpectSerializable(histories);
  const std::string before = f.Contents();
  ExpectAllCollected(f);
  EXPECT_EQ(f.Contents(), before);
}

TEST(EngineStressTest, HistoriesAreSerializableInTimestampOrder) { RunHistories(kTime, 100); }

// The other setting of R8, and no waits (R9).
TEST(EngineStressTest, HistoriesAreSerializableByRange) {
  EngineFixtureOptions options = Tiny();
  options.range_precision = RangePrecision::kRanges;
  options.conflict_wait = Duration{0};
  RunHistories(kTime / 2, 50, options);
}

// S7, with room for some of the keys.
TEST(EngineStressTest, HistoriesAreSerializableWithAReadCache) {
  EngineFixtureOptions options = Tiny();
  options.read_cache_bytes = 640;
  for (const bool written : {false, true}) {
    options.cache_written = written;
    RunHistories(kTime / 4, 50, options);
  }
}

// The same with threads that pause now and then between two steps, as a preemption at the worst moment would make
// them.
TEST(EngineStressTest, HistoriesAreSerializableWithPausesBetweenSteps) {
  std::atomic<uint64_t> passes{0};
  std::atomic<uint64_t> pauses{0};
  testing::SetPointHandler([&](std::string_view) {
    const uint64_t draw = Mix64(passes.fetch_add(1));
    if (draw % 32 == 0) {
      RealRuntime().Yield();
    } else if (draw % 1024 == 1) {
      pauses.fetch_add(1);
      RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(static_cast<int64_t>(draw >> 32) % 500));
    }
  });
  EngineFixtureOptions options = Tiny();
  options.read_cache_bytes = 640;
  // Keeps unlinked versions in memory for a while.
  options.collector_period = milliseconds(2);
  RunHistories(kTime, 50, options);
  testing::SetPointHandler(nullptr);
  EXPECT_GT(pauses.load(), 100u);
}

// The same with compare-and-swaps that lose: one in eight, and each of these names at least once.
TEST(EngineStressTest, WithLostCompareAndSwaps) {
  std::atomic<uint64_t> number{0};
  const std::vector<std::string> names = {"active.claim.cas",       "range.raise.cas",        "range.post.cas",
                                          "range.unlink.cas",       "record_table.raise.cas", "record_table.insert.cas",
                                          "record_table.floor.cas", "record_table.seal.cas",  "record_table.unlink.cas",
                                          "chain.install.cas",      "chain.remove.cas",       "range.fill.cas",
                                          "partition.swing.cas",    "chain.copy.cas",         "chain.copy_out.cas"};
  std::vector<std::atomic<uint64_t>> lost(names.size());
  testing::SetCasHandler([&](std::string_view name) {
    if (Mix64(number.fetch_add(1)) % 8 != 0) return false;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return false;
    lost[static_cast<size_t>(found - names.begin())].fetch_add(1);
    return true;
  });
  EngineFixtureOptions options = Tiny();
  options.read_cache_bytes = 640;
  options.cache_written = true;
  // Some names occur seldom: a floor is raised only if nothing is known of a key.
  const auto missing = [&] { return std::ranges::any_of(lost, [](const auto& times) { return times.load() == 0; }); };
  for (int round = 0; round < 20 && (round == 0 || missing()); ++round) RunHistories(kTime / 2, 50, options);
  testing::SetCasHandler(nullptr);
  for (size_t i = 0; i < names.size(); ++i) EXPECT_GT(lost[i].load(), 0u) << names[i];
}

}  // namespace
}  // namespace deut::tc
