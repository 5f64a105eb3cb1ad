// YCSB-E scans beside an old reader. One thread scans, another updates at a fixed rate, with keys of the same
// distribution. Rounds alternate without and with a transaction that has been open for some time, so that all updates
// since then wait in the transaction component. README.md.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/huge_pages.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/product/embedded/embedded.h"
#include "integration/ycsb/json.h"
#include "integration/ycsb/key_chooser.h"
#include "integration/ycsb/record.h"
#include "tc/client/one_scan.h"
#include "tc/client/one_shot.h"

namespace deut {
namespace {

constexpr Duration kBurst = milliseconds(1);
constexpr uint64_t kLoadBatch = 500;
constexpr uint32_t kBatchBytes = 64 << 10;

struct BenchOptions {
  uint64_t records = 1'000'000;
  uint32_t value_bytes = 100;
  uint64_t updates = 20'000;
  Duration age = seconds(60);
  Duration measured = seconds(5);
  uint32_t rounds = 3;
  uint32_t scan_min = 1, scan_max = 100;
  double theta = 0.877;
  std::string directory;
};

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) FailStop(result.status().ToString());
  return *std::move(result);
}

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Updates records at a fixed rate until it is destroyed.
class Updater {
 public:
  Updater(Client& client, TableId table, const BenchOptions& options)
      : client_(client),
        table_(table),
        options_(options),
        keys_(ycsb::Distribution::kZipfian, options.records, options.theta) {
    thread_ = RealRuntime().StartThread("updates", [this] { Run(); });
  }
  ~Updater() {
    stop_.store(true);
    thread_.reset();
  }
  uint64_t updates() const { return updates_.load(); }

 private:
  void Run() {
    Random random(1);
    TransactionOptions transaction;
    transaction.durability = Durability::kBuffered;
    OneShot update(client_, transaction);
    std::string key, value;
    const MonotonicTime begin = RealRuntime().Now();
    while (!stop_.load()) {
      const double due = Seconds(RealRuntime().Now() - begin) * static_cast<double>(options_.updates);
      while (static_cast<double>(updates_.load()) < due && !stop_.load()) {
        const uint64_t number = keys_.Next(random, options_.records);
        ycsb::MakeKey(number, &key);
        ycsb::MakeValue(number, {.writer = 2, .sequence = static_cast<uint32_t>(updates_.load())}, key,
                        options_.value_bytes, &value);
        update.Clear();
        update.Put(table_, key, value);
        if (const auto done = update.Run(); done.ok()) {
          updates_.fetch_add(1);
        } else if (done.status() != ErrorCode::kAborted) {
          FailStop(done.status().ToString());
        }
      }
      RealRuntime().SleepUntil(RealRuntime().Now() + kBurst);
    }
  }

  Client& client_;
  const TableId table_;
  const BenchOptions options_;
  ycsb::KeyChooser keys_;
  std::atomic<uint64_t> updates_{0};
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

class Bench {
 public:
  explicit Bench(BenchOptions options)
      : options_(std::move(options)), keys_(ycsb::Distribution::kZipfian, options_.records, options_.theta) {
    EmbeddedOptions store;
    store.data_dir = options_.directory.empty() ? temporary_.path() : options_.directory;
    store.tc.idle_timeout = seconds(3600);
    store.client.default_timeout = seconds(60);
    store_ = Must(Embedded::Open(store));
    Load();
  }

  void Run() {
    const Updater updater(client(), table_, options_);
    // Waits until the store has adapted the ranges to the load.
    Wait(seconds(5));
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      const Measured without = Measure();
      std::optional<Transaction> old(Must(client().Begin()));
      const MonotonicTime opened = RealRuntime().Now();
      const uint64_t updates = updater.updates();
      (void)Must(old->Get(table_, ycsb::KeyOf(0)));
      Wait(options_.age - options_.measured);
      const Measured with = Measure();
      ycsb::JsonObject json;
      json.Number("without", without.rate).Number("with", with.rate);
      json.Number("without_us", without.processor_us).Number("with_us", with.processor_us);
      json.Number("ratio", with.rate / without.rate)
          .Number("processor_ratio", without.processor_us / with.processor_us);
      json.Number("gathered_a_scan_without", without.gathered).Number("gathered_a_scan_with", with.gathered);
      json.Number("aborted", without.aborted + with.aborted);
      json.Number("age", Seconds(RealRuntime().Now() - opened)).Number("updates", updater.updates() - updates);
      json.Number("pinned_bytes", Figure("versions.bytes"));
      std::printf("%s\n", json.Str().c_str());
      std::fflush(stdout);
      old.reset();
      WaitUntilShipped();
    }
  }

 private:
  struct Measured {
    double rate = 0;          // scans a second of elapsed time
    double processor_us = 0;  // processor time of the scanning thread, a scan
    double gathered = 0;      // keys gathered from the TC, a scan
    uint64_t aborted = 0;
  };

  Client& client() { return store_->client(); }
  static void Wait(Duration duration) { RealRuntime().SleepUntil(RealRuntime().Now() + duration); }

  void Load() {
    table_ = Must(client().CreateTable("t"));
    TransactionOptions buffered;
    buffered.durability = Durability::kBuffered;
    std::string value;
    for (uint64_t i = 0; i < options_.records;) {
      Transaction load = Must(client().Begin(buffered));
      for (const uint64_t end = std::min(options_.records, i + kLoadBatch); i < end; ++i) {
        const std::string key = ycsb::KeyOf(i);
        ycsb::MakeValue(i, {.writer = 1, .sequence = static_cast<uint32_t>(i)}, key, options_.value_bytes, &value);
        if (const Status put = load.Put(table_, key, value); !put.ok()) FailStop(put.ToString());
      }
      (void)Must(load.Commit());
    }
    if (const Status dropped = client().DropCaches({.timeout = seconds(600)}); !dropped.ok())
      FailStop(dropped.ToString());
  }

  uint64_t Figure(std::string_view name) {
    for (const CounterValue& value : Must(client().GetStatus()).tc) {
      if (value.name == name) return value.value;
    }
    FailStop(std::string("no figure ") + std::string(name));
  }

  // Waits until the updates that the old reader held back have been shipped to the data component.
  void WaitUntilShipped() {
    while (Figure("versions.folded_bytes") > uint64_t{4} << 20) Wait(milliseconds(50));
    Wait(seconds(1));
  }

  Measured Measure() {
    Random random(++seed_);
    Measured measured;
    uint64_t scans = 0;
    std::string key;
    const uint64_t gathered = Figure("scans.gathered_keys");
    const MonotonicTime begin = RealRuntime().Now();
    const double processor = ProcessorSeconds();
    MonotonicTime now = begin;
    for (; now < begin + options_.measured; now = RealRuntime().Now()) {
      ycsb::MakeKey(keys_.Next(random, options_.records), &key);
      const uint64_t records = options_.scan_min + random.Below(options_.scan_max - options_.scan_min + 1);
      OneScan scan(client(), table_, {.low = key, .limit_records = records, .batch_bytes = kBatchBytes});
      while (scan.Next()) bytes_ += scan.value().size();
      if (scan.status() == ErrorCode::kAborted) {
        ++measured.aborted;
      } else if (!scan.status().ok()) {
        FailStop(scan.status().ToString());
      } else {
        ++scans;
      }
    }
    measured.processor_us = (ProcessorSeconds() - processor) * 1e6 / static_cast<double>(scans);
    measured.rate = static_cast<double>(scans) / Seconds(now - begin);
    measured.gathered = static_cast<double>(Figure("scans.gathered_keys") - gathered) / static_cast<double>(scans);
    return measured;
  }

  const BenchOptions options_;
  const testing::TempDir temporary_;
  ycsb::KeyChooser keys_;
  std::unique_ptr<Embedded> store_;
  TableId table_;
  uint64_t seed_ = 2;
  uint64_t bytes_ = 0;
};

int Main(int argc, char** argv) {
  BenchOptions options;
  FlagSet flags("old_reader_bench", "Scans beside updates, without and with an old reader; a JSON object a round.");
  flags.Add("records", &options.records, "in the table", uint64_t{100}, uint64_t{100'000'000});
  flags.Add("value_bytes", &options.value_bytes, "of each", ycsb::kMinValueBytes, uint32_t{1 << 16});
  flags.Add("updates", &options.updates, "a second", uint64_t{0}, uint64_t{1'000'000});
  flags.Add("age", &options.age, "of the old reader when the measurement ends");
  flags.Add("measured", &options.measured, "time, each");
  flags.Add("rounds", &options.rounds, "of both", uint32_t{1}, uint32_t{1000});
  flags.Add("scan_min", &options.scan_min, "records of a scan, at least", uint32_t{1}, uint32_t{1000});
  flags.Add("scan_max", &options.scan_max, "and at most", uint32_t{1}, uint32_t{1000});
  flags.Add("theta", &options.theta, "of the Zipf distribution of updates' keys, and of where scans begin");
  flags.Add("dir", &options.directory, "folder; none = a temporary one");
  const auto system = NewSystemStorage(IoKind::kAuto, RealRuntime());
  if (!system.ok()) FailStop(system.status().ToString());
  const auto rest = flags.Parse(argc, argv, **system);
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return 0;
  }
  if (!rest.ok() || !rest->empty() || options.scan_min > options.scan_max || options.age < options.measured ||
      options.theta < 0 || options.theta >= 1) {
    std::fprintf(stderr, "%s\n",
                 rest.ok() ? "an argument that is no flag, or contradicts another" : rest.status().ToString().c_str());
    return 2;
  }
  // Uses huge pages, as the daemons do.
  if (const std::string why = UseHugePages(argv); !why.empty())
    std::fprintf(stderr, "no huge pages: %s\n", why.c_str());
  Bench(std::move(options)).Run();
  return 0;
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) { return deut::Main(argc, argv); }
