// Measures the cost of range control for transactions that never scan. Two stores in one process, one of them without
// range control, take turns at the same transactions. README.md.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/observe/histogram.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/scans/direct_store.h"
#include "integration/ycsb/json.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

struct BenchOptions {
  uint64_t records = 200'000;
  uint32_t value_bytes = 100;
  uint32_t rounds = 20;
  uint64_t transactions = 50'000;  // in each turn
  uint32_t threads = 1;
  std::string directory;
};

double Nanos(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double Middle(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples.empty() ? 0 : samples[samples.size() / 2];
}

struct Workload {
  const char* name;
  uint32_t operations;
  uint32_t percent_reads;
};
constexpr Workload kWorkloads[] = {{"update", 1, 0}, {"four_operations", 4, 84}};

// One of the two stores, and the figures of its turns.
class Side {
 public:
  Side(const BenchOptions& options, tc::RangeControl control, const std::string& directory)
      : options_(options), store_(StoreOptions(options, control, directory)) {}

  void Clear() {
    client_us_.clear(), all_us_.clear(), rates_.clear();
    latency_ns_.Clear();
  }

  // Runs one turn. The store is settled before and after it, so the turn's processor time includes its background
  // work.
  void Turn(const Workload& workload, uint64_t seed) {
    const double all = Nanos(CLOCK_PROCESS_CPUTIME_ID);
    const MonotonicTime begin = RealRuntime().Now();
    std::atomic<uint64_t> client_ns{0};
    const uint64_t each = options_.transactions / options_.threads;
    {
      std::vector<std::unique_ptr<Thread>> threads;
      std::vector<Histogram> latencies(options_.threads);
      for (uint32_t t = 0; t < options_.threads; ++t) {
        threads.push_back(RealRuntime().StartThread("client", [&, t] {
          const double mine = Nanos(CLOCK_THREAD_CPUTIME_ID);
          Client(workload, Mix64(seed) + t, each, &latencies[t]);
          client_ns.fetch_add(static_cast<uint64_t>(Nanos(CLOCK_THREAD_CPUTIME_ID) - mine));
        }));
      }
      threads.clear();  // waits for the threads
      for (const Histogram& latency : latencies) latency_ns_.Merge(latency);
    }
    const auto done = static_cast<double>(each * options_.threads);
    rates_.push_back(done / std::chrono::duration<double>(RealRuntime().Now() - begin).count());
    store_.Settle();
    client_us_.push_back(static_cast<double>(client_ns.load()) / done / 1000);
    all_us_.push_back((Nanos(CLOCK_PROCESS_CPUTIME_ID) - all) / done / 1000);
  }

  // Microseconds of processor time a transaction, one value for each turn: of the clients' threads, which run the
  // transactions; of the whole process.
  const std::vector<double>& client_us() const { return client_us_; }
  const std::vector<double>& all_us() const { return all_us_; }
  const std::vector<double>& rates() const { return rates_; }
  const Histogram& latency_ns() const { return latency_ns_; }

 private:
  static DirectStoreOptions StoreOptions(const BenchOptions& options, tc::RangeControl control,
                                         const std::string& directory) {
    DirectStoreOptions store;
    store.records = options.records;
    store.value_bytes = options.value_bytes;
    store.directory = directory;
    store.tc.conflicts.range_control = control;
    return store;
  }

  void Client(const Workload& workload, uint64_t seed, uint64_t transactions, Histogram* latency_ns) {
    Random random(seed);
    TransactionOptions buffered;
    buffered.durability = Durability::kBuffered;
    OneShot one(store_.client(), buffered);
    std::string value(options_.value_bytes, 'v');
    for (uint64_t i = 0; i < transactions; ++i) {
      one.Clear();
      for (uint32_t o = 0; o < workload.operations; ++o) {
        const std::string key = DirectStore::KeyOf(random.Below(options_.records));
        if (random.Below(100) < workload.percent_reads) {
          one.Get(store_.table(), key);
        } else {
          value[random.Below(value.size())] = static_cast<char>(random.Next());
          one.Put(store_.table(), key, value);
        }
      }
      const MonotonicTime begin = RealRuntime().Now();
      DirectStore::OrDie(RunOneShot(one).status(), workload.name);
      latency_ns->Record(static_cast<uint64_t>((RealRuntime().Now() - begin).count()));
    }
  }

  const BenchOptions& options_;
  DirectStore store_;
  std::vector<double> client_us_, all_us_, rates_;
  Histogram latency_ns_;
};

// Returns [[microseconds, share of transactions that took at most this long], ...].
std::string CumulativeJson(const Histogram& latency_ns) {
  std::string points;
  for (const double percent : {0.1,  1.0,  2.0,  5.0,  10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0,
                               80.0, 85.0, 90.0, 95.0, 97.0, 98.0, 99.0, 99.5, 99.9, 99.99}) {
    points += Concat(points.empty() ? "" : ",", "[", static_cast<double>(latency_ns.Percentile(percent)) / 1000, ",",
                     percent / 100, "]");
  }
  return Concat("[", points, "]");
}

double MiddleRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return Middle(std::move(ratios));
}

void Run(const BenchOptions& options) {
  const testing::TempDir temporary;
  const std::string directory = options.directory.empty() ? temporary.path() : options.directory;
  Side on(options, tc::RangeControl::kRanges, directory + "/on");
  Side off(options, tc::RangeControl::kNone, directory + "/off");
  struct Named {
    const char* name;
    Side* side;
  };
  const std::array<Named, 2> sides = {{{"on", &on}, {"off", &off}}};
  for (const Workload& workload : kWorkloads) {
    for (const Named& named : sides) {
      named.side->Turn(workload, 0);  // warms up
      named.side->Clear();
    }
    for (uint32_t round = 0; round < options.rounds; ++round) {
      for (size_t i = 0; i < sides.size(); ++i) sides[(round + i) % sides.size()].side->Turn(workload, round + 1);
    }
    for (const Named& named : sides) {
      const Side& side = *named.side;
      std::printf("%s\n", ycsb::JsonObject()
                              .Text("workload", workload.name)
                              .Text("ranges", named.name)
                              .Number("threads", uint64_t{options.threads})
                              .Number("rounds", uint64_t{options.rounds})
                              .Number("client_us", Middle(side.client_us()))
                              .Number("processor_us", Middle(side.all_us()))
                              .Number("transactions_per_second", Middle(side.rates()))
                              .Raw("latency_us", side.latency_ns().ToMicrosJson())
                              .Raw("cumulative", CumulativeJson(side.latency_ns()))
                              .Str()
                              .c_str());
    }
    std::printf("%s\n", ycsb::JsonObject()
                            .Text("workload", workload.name)
                            .Text("ranges", "on/off")
                            .Number("client_us", MiddleRatio(on.client_us(), off.client_us()))
                            .Number("processor_us", MiddleRatio(on.all_us(), off.all_us()))
                            .Number("transactions_per_second", MiddleRatio(on.rates(), off.rates()))
                            .Number("latency_p50", static_cast<double>(on.latency_ns().Percentile(50)) /
                                                       static_cast<double>(off.latency_ns().Percentile(50)))
                            .Str()
                            .c_str());
    std::fflush(stdout);
  }
}

int Main(int argc, const char* const* argv) {
  BenchOptions options;
  FlagSet flags("range_cost_bench", "Point transactions with and without range control, in turns.");
  flags.Add("records", &options.records, "in each store", uint64_t{1000}, uint64_t{100'000'000});
  flags.Add("value_bytes", &options.value_bytes, "of each", uint32_t{1}, uint32_t{1 << 20});
  flags.Add("rounds", &options.rounds, "in which the two alternate", uint32_t{1}, uint32_t{1000});
  flags.Add("transactions", &options.transactions, "of a turn", uint64_t{1}, uint64_t{1'000'000'000});
  flags.Add("threads", &options.threads, "of clients", uint32_t{1}, uint32_t{1000});
  flags.Add("dir", &options.directory, "folder; none = a temporary one");
  const auto system = NewSystemStorage(IoKind::kAuto, RealRuntime());
  DirectStore::OrDie(system.status(), "storage");
  const auto rest = flags.Parse(argc, argv, **system);
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return 0;
  }
  if (!rest.ok() || !rest->empty()) {
    std::fprintf(stderr, "%s\n", rest.ok() ? "an argument that is no flag" : rest.status().ToString().c_str());
    return 2;
  }
  Run(options);
  return 0;
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) { return deut::Main(argc, argv); }
