// Measures the store with its data component at a distance: real daemons, and a proxy between them that delays
// messages. README.md.
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
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "integration/harness/cluster.h"
#include "integration/harness/fault_proxy.h"
#include "tc/client/client.h"
#include "tc/client/connect.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

struct BenchOptions {
  std::vector<std::string> round_trips_us;
  uint64_t records = 200'000;
  uint32_t value_bytes = 100;
  uint32_t threads = 16;
  Duration time = seconds(5);
  uint64_t redo_updates = 200'000;
};

void OrDie(const Status& status, std::string_view what) {
  if (!status.ok()) FailStop(Concat(what, ": ", status.ToString()));
}

std::string KeyOf(uint64_t i) { return absl::StrFormat("user%012d", i); }

double Since(MonotonicTime begin) { return std::chrono::duration<double>(RealRuntime().Now() - begin).count(); }

TransactionOptions Buffered() {
  TransactionOptions options;
  options.durability = Durability::kBuffered;
  return options;
}

class Bench {
 public:
  explicit Bench(BenchOptions options) : options_(std::move(options)), cluster_({.proxies = true, .record_bytes = 0}) {
    OrDie(cluster_.AwaitServing(), "start");
    auto connected = Client::Connect(cluster_.tc_address(), {});
    OrDie(connected.status(), "connect");
    client_ = std::move(*connected);
    auto table = client_->CreateTable("t");
    OrDie(table.status(), "table");
    table_ = *table;
  }

  void Run() {
    std::printf("%10s %10s %10s %10s %12s %12s %12s %12s %12s\n", "added ms", "E/s", "T/s", "U/s", "scan rec/s",
                "descending", "ship upd/s", "redo s", "redo upd/s");
    // Loads without a delay.
    Load(0, options_.records);
    Settle();
    for (const std::string& text : options_.round_trips_us) {
      const Duration added = microseconds(std::stoll(text));
      for (const auto direction : {testing::Direction::kToServer, testing::Direction::kToClient}) {
        cluster_.tc_dc().SetFlow(direction, {.delay = added / 2});
      }
      std::printf("%10.1f", static_cast<double>(added.count()) / 1e6);
      Print(Rate([this](Client& client, Random& random) { ShortScan(client, random); }));
      Print(Rate([this](Client& client, Random& random) { FourOperations(client, random); }));
      Print(Rate([this](Client& client, Random& random) { Update(client, random); }));
      Settle();
      Print(LongScan(Direction::kAscending));
      Print(LongScan(Direction::kDescending));
      Print(Ship());
      Redo();
      std::printf("\n");
    }
  }

 private:
  static void Print(double figure) {
    std::printf(" %11.0f", figure);
    std::fflush(stdout);
  }
  void Settle() { OrDie(client_->DropCaches({.timeout = seconds(600)}), "settle"); }

  std::string Value(Random& random) const {
    std::string value(options_.value_bytes, '\0');
    for (char& c : value) c = static_cast<char>(random.Next());
    return value;
  }

  void Load(uint64_t begin, uint64_t end) {
    Random random(begin + 1);
    while (begin < end) {
      OneShot puts(*client_, Buffered());
      std::vector<std::string> keys, values;
      for (uint64_t i = 0; i < 500 && begin < end; ++i, ++begin) {
        keys.push_back(KeyOf(begin));
        values.push_back(Value(random));
      }
      for (size_t i = 0; i < keys.size(); ++i) puts.Put(table_, keys[i], values[i]);
      OrDie(RunOneShot(puts).status(), "load");
    }
  }

  // Returns operations a second of all threads; each thread has connections of its own.
  template <typename Operation>
  double Rate(const Operation& operation) {
    std::atomic<uint64_t> done{0};
    const MonotonicTime begin = RealRuntime().Now();
    {
      std::vector<std::unique_ptr<Thread>> threads;
      for (uint32_t t = 0; t < options_.threads; ++t) {
        threads.push_back(RealRuntime().StartThread("client", [&, t] {
          Random random(t + 1);
          while (RealRuntime().Now() < begin + options_.time) {
            operation(*client_, random);
            done.fetch_add(1);
          }
        }));
      }
    }
    return static_cast<double>(done.load()) / Since(begin);
  }

  // 95 % scans of 1 to 100 records, 5 % updates.
  void ShortScan(Client& client, Random& random) {
    if (random.Below(100) < 5) return Update(client, random);
    OneShot scan(client, Buffered());
    scan.Scan(table_, {.low = KeyOf(random.Below(options_.records)), .limit_records = 1 + random.Below(100)});
    OrDie(RunOneShot(scan).status(), "E");
  }
  // Four operations, 84 % of them reads.
  void FourOperations(Client& client, Random& random) {
    OneShot four(client, Buffered());
    std::vector<std::string> keys, values;
    for (int i = 0; i < 4; ++i) {
      keys.push_back(KeyOf(random.Below(options_.records)));
      values.push_back(Value(random));
    }
    for (size_t i = 0; i < 4; ++i) {
      if (random.Below(100) < 84) {
        four.Get(table_, keys[i]);
      } else {
        four.Put(table_, keys[i], values[i]);
      }
    }
    OrDie(RunOneShot(four).status(), "T");
  }
  void Update(Client& client, Random& random) {
    OneShot update(client);
    const std::string key = KeyOf(random.Below(options_.records)), value = Value(random);
    update.Put(table_, key, value);
    OrDie(RunOneShot(update).status(), "U");
  }

  // Scans everything in one serializable transaction. Returns records a second.
  double LongScan(Direction direction) {
    const MonotonicTime begin = RealRuntime().Now();
    auto t = client_->Begin();
    OrDie(t.status(), "scan");
    Scanner scanner = t->OpenScanner(table_, {.direction = direction});
    uint64_t records = 0;
    while (scanner.Next()) ++records;
    OrDie(scanner.status(), "scan");
    OrDie(t->Commit().status(), "scan");
    if (records != options_.records) FailStop(Concat("a scan saw ", records, " records"));
    return static_cast<double>(records) / Since(begin);
  }

  // Returns updates a second from the first commit until the DC has applied the last one; the commits come faster
  // than the link can ship them.
  double Ship() {
    const MonotonicTime begin = RealRuntime().Now();
    Load(0, std::min(options_.redo_updates, options_.records));
    Settle();
    return static_cast<double>(std::min(options_.redo_updates, options_.records)) / Since(begin);
  }

  // Kills and starts the DC, and waits until it has applied everything again.
  void Redo() {
    const uint64_t before = Resent();
    cluster_.KillDc();
    const MonotonicTime begin = RealRuntime().Now();
    cluster_.StartDc();
    OrDie(cluster_.AwaitServing(seconds(600)), "redo");
    const double time = Since(begin);
    std::printf(" %12.2f", time);
    Print(static_cast<double>(Resent() - before) / time);
  }
  uint64_t Resent() {
    auto status = client_->GetStatus();
    OrDie(status.status(), "status");
    return testing::CounterOf(status->tc, "ship.updates");
  }

  const BenchOptions options_;
  testing::Cluster cluster_;
  std::unique_ptr<Client> client_;
  TableId table_;
};

int Main(int argc, const char* const* argv) {
  BenchOptions options;
  FlagSet flags("distance_bench", "The store with delays between its components. TCD and DCD name the daemons.");
  flags.Add("round_trips_us", &options.round_trips_us, "added to a round trip between TC and DC, in microseconds");
  flags.Add("records", &options.records, "in the table", uint64_t{1000}, uint64_t{100'000'000});
  flags.Add("value_bytes", &options.value_bytes, "of each", uint32_t{0}, uint32_t{1 << 20});
  flags.Add("threads", &options.threads, "of clients, in E, T and U", uint32_t{1}, uint32_t{1000});
  flags.Add("time", &options.time, "of E, T and U each");
  flags.Add("redo_updates", &options.redo_updates, "that are shipped", uint64_t{1}, UINT64_MAX);
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
  if (options.round_trips_us.empty()) options.round_trips_us = {"0", "200", "1000", "10000"};
  Bench bench(std::move(options));
  bench.Run();
  return 0;
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) { return deut::Main(argc, argv); }
