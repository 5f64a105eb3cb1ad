// Measures scans and updates over tables with few and many logical ranges, and while ranges change (paper, section
// 5.5 and figure 7). README.md.
// It prints one JSON object a line.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/observe/histogram.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/product/embedded/embedded.h"
#include "integration/ycsb/json.h"
#include "tc/client/one_shot.h"

namespace deut {
namespace {

constexpr uint64_t kLoadedAtOnce = 500;
// A scan of more records is an interactive transaction.
constexpr uint64_t kOneShotRecords = 500;

struct BenchOptions {
  uint64_t records = 1'000'000;
  uint32_t value_bytes = 100;
  uint32_t threads = 2;
  uint32_t rounds = 3;
  Duration measured = seconds(5);
  Duration settled = seconds(8);
  std::vector<std::string> ranges, lengths, updates, change_every_ms;
  std::string directory;
};

// One measured case. `ranges` 0: the store chooses their number. `change_every` 0: they stay as they are.
struct Case {
  uint32_t ranges = 0;
  Duration change_every{0};
  uint64_t length = 0;
  uint64_t update_percent = 0;
};

std::string KeyOf(uint64_t i) { return absl::StrFormat("user%012d", i); }

void OrDie(const Status& status, std::string_view what) {
  if (!status.ok()) FailStop(Concat(what, ": ", status.ToString()));
}

// Results of one thread, or of all threads.
struct Done {
  Histogram scan_times, update_times;
  uint64_t records = 0, scans_aborted = 0, updates_aborted = 0;

  void Add(const Done& other) {
    scan_times.Merge(other.scan_times);
    update_times.Merge(other.update_times);
    records += other.records;
    scans_aborted += other.scans_aborted;
    updates_aborted += other.updates_aborted;
  }
};

class Bench {
 public:
  explicit Bench(BenchOptions options) : options_(std::move(options)) {}

  void Load() {
    Open({});
    auto created = store_->client().CreateTable("t");
    OrDie(created.status(), "table");
    table_ = *created;
    for (uint64_t i = 0; i < options_.records;) {
      auto begun = store_->client().Begin(Buffered());
      OrDie(begun.status(), "load");
      for (const uint64_t end = std::min(options_.records, i + kLoadedAtOnce); i < end; ++i) {
        OrDie(begun->Put(table_, KeyOf(i), std::string(options_.value_bytes, 'v')), "load");
      }
      OrDie(begun->Commit().status(), "load");
    }
    OrDie(store_->client().DropCaches({.timeout = seconds(600)}), "settle");
    store_.reset();
  }

  void Run() {
    // Each round runs all cases, so that other load on the machine spreads over all of them.
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      for (const std::string& ranges : options_.ranges) {
        for (const std::string& every : options_.change_every_ms) {
          Case next;
          next.ranges = static_cast<uint32_t>(std::stoul(ranges));
          next.change_every = milliseconds(std::stoll(every));
          Open(next);
          for (const std::string& length : options_.lengths) {
            for (const std::string& updates : options_.updates) {
              next.length = std::min<uint64_t>(std::stoull(length), options_.records);
              next.update_percent = std::min<uint64_t>(std::stoull(updates), 100);
              Measure(next, round);
            }
          }
          store_.reset();
        }
      }
    }
  }

 private:
  static TransactionOptions Buffered() {
    TransactionOptions options;
    options.durability = Durability::kBuffered;
    return options;
  }

  void Open(const Case& of) {
    store_.reset();
    EmbeddedOptions options;
    options.data_dir = options_.directory.empty() ? temporary_.path() : options_.directory;
    if (of.change_every > Duration{0}) {
      options.tc.ranges.random_seed = 1;
      options.tc.ranges.period = of.change_every;
      if (of.ranges != 0) options.tc.ranges.max_ranges = of.ranges;
    } else {
      options.tc.ranges.fixed_ranges = of.ranges;
    }
    auto opened = Embedded::Open(options);
    OrDie(opened.status(), "open");
    store_ = std::move(*opened);
  }

  uint64_t Figure(std::string_view name) {
    const auto status = store_->client().GetStatus();
    OrDie(status.status(), "status");
    const auto value = std::ranges::find(status->tc, name, &CounterValue::name);
    return value == status->tc.end() ? 0 : value->value;
  }

  // One transaction: a scan from a random place, or an update of a random record.
  void Scan(Random& random, uint64_t length, Done* done) {
    const std::string low = KeyOf(random.Below(options_.records - length + 1));
    const MonotonicTime begin = RealRuntime().Now();
    Status status;
    uint64_t records = 0;
    if (length <= kOneShotRecords) {
      OneShot scan(store_->client(), Buffered());
      scan.Scan(table_, {.low = low, .limit_records = length});
      status = scan.Run().status();
      if (status.ok()) records = scan.result(0).records.size();
    } else {
      auto begun = store_->client().Begin(Buffered());
      OrDie(begun.status(), "begin");
      Scanner scanner = begun->OpenScanner(table_, {.low = low, .limit_records = length});
      while (scanner.Next()) ++records;
      status = scanner.status();
      if (status.ok()) status = begun->Commit().status();
    }
    Note(status, begin, &done->scan_times, &done->scans_aborted);
    if (status.ok()) done->records += records;
  }
  void Update(Random& random, Done* done) {
    const MonotonicTime begin = RealRuntime().Now();
    OneShot update(store_->client(), Buffered());
    update.Put(table_, KeyOf(random.Below(options_.records)), std::string(options_.value_bytes, 'w'));
    Note(update.Run().status(), begin, &done->update_times, &done->updates_aborted);
  }
  static void Note(const Status& status, MonotonicTime begin, Histogram* times, uint64_t* aborted) {
    if (status.ok()) {
      times->Record(static_cast<uint64_t>((RealRuntime().Now() - begin).count()));
    } else if (status == ErrorCode::kAborted) {
      ++*aborted;
    } else {
      OrDie(status, "transaction");
    }
  }

  // Runs the threads for `time`, and sums their results in `all`.
  void Work(const Case& of, Duration time, uint64_t seed, Done* all) {
    std::vector<Done> done(options_.threads);
    std::vector<std::unique_ptr<Thread>> threads;
    const MonotonicTime end = RealRuntime().Now() + time;
    for (uint32_t i = 0; i < options_.threads; ++i) {
      threads.push_back(RealRuntime().StartThread("bench", [&, i] {
        Random random(seed * options_.threads + i);
        while (RealRuntime().Now() < end) {
          if (random.Below(100) < of.update_percent) {
            Update(random, &done[i]);
          } else {
            Scan(random, of.length, &done[i]);
          }
        }
      }));
    }
    threads.clear();
    for (const Done& each : done) all->Add(each);
  }

  void Measure(const Case& of, uint32_t round) {
    // Gives the ranges time to adapt to the load.
    Done ignored, all;
    Work(of, of.ranges == 0 ? options_.settled : options_.settled / 4, 1000 + round, &ignored);
    const uint64_t changes = Figure("ranges.changes");
    const MonotonicTime begin = RealRuntime().Now();
    Work(of, options_.measured, round, &all);
    const double passed = std::chrono::duration<double>(RealRuntime().Now() - begin).count();
    ycsb::JsonObject line;
    line.Text("program", "range_bench")
        .Number("records", options_.records)
        .Number("threads", uint64_t{options_.threads})
        .Number("round", uint64_t{round})
        .Number("ranges_wanted", uint64_t{of.ranges})
        .Number("ranges", Figure("ranges.table.t"))
        .Number("postings", Figure("ranges.postings"))
        .Number("change_every_ms", static_cast<uint64_t>(duration_cast<milliseconds>(of.change_every).count()))
        .Number("changes_per_second", static_cast<double>(Figure("ranges.changes") - changes) / passed)
        .Number("scan_length", of.length)
        .Number("update_percent", of.update_percent)
        .Number("scans_per_second", static_cast<double>(all.scan_times.count()) / passed)
        .Number("records_per_second", static_cast<double>(all.records) / passed)
        .Number("updates_per_second", static_cast<double>(all.update_times.count()) / passed)
        .Number("scans_aborted", all.scans_aborted)
        .Number("updates_aborted", all.updates_aborted)
        .Number("scan_p50_us", static_cast<double>(all.scan_times.Percentile(50)) / 1000)
        .Number("scan_p99_us", static_cast<double>(all.scan_times.Percentile(99)) / 1000)
        .Number("update_p50_us", static_cast<double>(all.update_times.Percentile(50)) / 1000)
        .Number("update_p99_us", static_cast<double>(all.update_times.Percentile(99)) / 1000)
        .Number("longest_change_us", Figure("ranges.longest_change_us"));
    std::printf("%s\n", line.Str().c_str());
    std::fflush(stdout);
  }

  const BenchOptions options_;
  const testing::TempDir temporary_;
  std::unique_ptr<Embedded> store_;
  TableId table_;
};

int Main(int argc, const char* const* argv) {
  BenchOptions options;
  FlagSet flags("range_bench", "Scans and updates over tables of few and of many logical ranges; JSON lines.");
  flags.Add("records", &options.records, "in the table", uint64_t{1000}, uint64_t{100'000'000});
  flags.Add("value_bytes", &options.value_bytes, "of each", uint32_t{0}, uint32_t{1 << 20});
  flags.Add("threads", &options.threads, "that work", uint32_t{1}, uint32_t{1024});
  flags.Add("rounds", &options.rounds, "in which the cases alternate", uint32_t{1}, uint32_t{1000});
  flags.Add("measured", &options.measured, "time that each case is measured in a round");
  flags.Add("settled", &options.settled, "time that it works before, a quarter of it with fixed ranges");
  flags.Add("ranges", &options.ranges, "how many; 0 = as the component finds right");
  flags.Add("lengths", &options.lengths, "of scans, in records");
  flags.Add("updates", &options.updates, "percent of transactions that update a record");
  flags.Add("change_every_ms", &options.change_every_ms,
            "how often all ranges are cut anew, at random, at most --ranges of them; 0 = never");
  flags.Add("dir", &options.directory, "folder; none = a temporary one");
  const auto system = NewSystemStorage(IoKind::kAuto, RealRuntime());
  OrDie(system.status(), "storage");
  const auto rest = flags.Parse(argc, argv, **system);
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return 0;
  }
  if (!rest.ok() || !rest->empty()) {
    std::fprintf(stderr, "%s\n", rest.ok() ? "an argument that is no flag" : rest.status().ToString().c_str());
    return 2;
  }
  if (options.ranges.empty()) options.ranges = {"1", "16", "256", "4096", "0"};
  if (options.lengths.empty()) options.lengths = {"100", "10000"};
  if (options.updates.empty()) options.updates = {"0", "50", "90", "99"};
  if (options.change_every_ms.empty()) options.change_every_ms = {"0"};
  Bench bench(std::move(options));
  bench.Load();
  bench.Run();
  return 0;
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) { return deut::Main(argc, argv); }
