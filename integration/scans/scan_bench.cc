// Serializable scans against the same scans straight from the data component's records, in one process, over the same data. README.md.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "dc/record_ops/record_operations.h"
#include "dc/server/data_component_server.h"
#include "protocol/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/client/retry.h"
#include "tc/server/transaction_component.h"

namespace deut {
namespace {

constexpr uint32_t kBatchBytes = 256 << 10;

struct BenchOptions {
  uint64_t records = 2'000'000;
  uint32_t value_bytes = 100;
  uint32_t rounds = 7;
  uint64_t per_round = 2'000'000;  // records that each side reads in a round, at most
  std::vector<std::string> lengths;
  std::vector<std::string> only;
  std::string directory;
};

std::string KeyOf(uint64_t i) { return absl::StrFormat("user%012d", i); }

void OrDie(const Status& status, std::string_view what) {
  if (!status.ok()) FailStop(Concat(what, ": ", status.ToString()));
}

int64_t ProcessorNanos() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What was read, to be compared: each side touches every byte.
struct Seen {
  uint64_t records = 0;
  uint32_t checksum = 0;
  void Add(std::string_view key, std::string_view value) {
    checksum = ExtendCrc32c(checksum, key.data(), key.size());
    checksum = ExtendCrc32c(checksum, value.data(), value.size());
    ++records;
  }
  friend bool operator==(const Seen&, const Seen&) = default;
};

class Bench {
 public:
  explicit Bench(BenchOptions options) : options_(std::move(options)), storage_(Storage()) {
    dc::DataComponentOptions dc_options;
    dc_options.directory = Directory() + "/dc";
    dc_ = std::make_unique<InProcessDataComponent>(
        RealRuntime(), [this, dc_options]() -> Result<std::unique_ptr<DataComponent>> {
          DEUT_ASSIGN_OR_RETURN(std::unique_ptr<dc::DataComponentServer> server,
                                dc::DataComponentServer::Open(dc_options, *storage_, RealRuntime()));
          records_ = &server->operations();
          return std::unique_ptr<DataComponent>(std::move(server));
        });
    OrDie(dc_->Start(), "data component");
    tc::TransactionComponentOptions tc_options;
    tc_options.log.directory = Directory() + "/tc";
    auto opened = tc::TransactionComponent::Open(tc_options, RealRuntime(), *storage_, *dc_);
    OrDie(opened.status(), "transaction component");
    tc_ = std::move(*opened);
    OrDie(tc_->WaitServing(RealRuntime().Now() + seconds(60)), "serving");
    client_ = Client::FromService(tc_.get(), {});
  }
  ~Bench() {
    client_.reset();
    tc_->Stop();
  }

  void Load() {
    auto created = client_->CreateTable("t");
    OrDie(created.status(), "table");
    table_ = *created;
    TransactionOptions buffered;
    buffered.durability = Durability::kBuffered;
    std::string value(options_.value_bytes, '\0');
    Random random(1);
    for (uint64_t i = 0; i < options_.records;) {
      auto begun = client_->Begin(buffered);
      OrDie(begun.status(), "load");
      for (uint64_t end = std::min(options_.records, i + 500); i < end; ++i) {
        for (char& c : value) c = static_cast<char>(random.Next());
        OrDie(begun->Put(table_, KeyOf(i), value), "load");
      }
      OrDie(begun->Commit().status(), "load");
    }
    // All of it in the DC, none in the TC, and ranges as they are after some time.
    OrDie(client_->DropCaches({.timeout = seconds(600)}), "settle");
    RealRuntime().SleepUntil(RealRuntime().Now() + seconds(12));
  }

  // `count` records from `first` on.
  Seen Direct(uint64_t first, uint64_t count) {
    Seen seen;
    dc::ScanCursor cursor{KeyOf(first), "", false};
    dc::RecordOperations::ScanAhead ahead;
    RecordBatch batch;
    while (seen.records < count && !cursor.complete) {
      batch.Clear();
      dc::ScanBudget budget;
      budget.records = count - seen.records;
      budget.bytes = kBatchBytes;
      OrDie(records_->Scan(table_, Direction::kAscending, &cursor, &budget, UINT64_MAX, &batch, &ahead), "direct scan");
      for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) seen.Add(it.record().key, it.record().value);
    }
    return seen;
  }

  // The same as one serializable transaction.
  Seen Transactional(uint64_t first, uint64_t count) {
    Seen seen;
    auto begun = client_->Begin();
    OrDie(begun.status(), "scan");
    Scanner scanner =
        begun->OpenScanner(table_, {.low = KeyOf(first), .limit_records = count, .batch_bytes = kBatchBytes});
    while (scanner.Next()) seen.Add(scanner.key(), scanner.value());
    OrDie(scanner.status(), "scan");
    OrDie(begun->Commit().status(), "scan");
    return seen;
  }

  struct Sample {
    double wall_nanos = 0;  // a record
    double processor_nanos = 0;
  };
  template <typename Scan>
  Sample Measure(uint64_t seed, uint64_t length, uint64_t scans, std::vector<Seen>* seen, const Scan& scan) {
    Random random(seed);
    const MonotonicTime begin = RealRuntime().Now();
    const int64_t processor = ProcessorNanos();
    for (uint64_t i = 0; i < scans; ++i) seen->push_back(scan(random.Below(options_.records - length + 1), length));
    const double records = static_cast<double>(scans) * static_cast<double>(length);
    return {static_cast<double>((RealRuntime().Now() - begin).count()) / records,
            static_cast<double>(ProcessorNanos() - processor) / records};
  }

  void Run() {
    std::printf("%9s  %21s  %21s  %s\n", "", "direct, ns/record", "serializable", "ratio of medians, (round by round)");
    for (const std::string& text : options_.lengths) {
      const uint64_t length = std::min<uint64_t>(options_.records, std::stoull(text));
      const uint64_t scans = std::clamp<uint64_t>(options_.per_round / length, 1, 20'000);
      std::vector<double> direct, transactional, ratios, wall;
      for (uint32_t round = 0; round < options_.rounds; ++round) {
        std::vector<Seen> a, b;
        Sample d, t;
        const auto run_direct = [&] {
          if (!Wanted("direct")) return;
          d = Measure(round, length, scans, &a, [this](uint64_t at, uint64_t n) { return Direct(at, n); });
        };
        const auto run_transactional = [&] {
          if (!Wanted("serializable")) return;
          t = Measure(round, length, scans, &b, [this](uint64_t at, uint64_t n) { return Transactional(at, n); });
        };
        if (round % 2 == 0) run_direct();
        run_transactional();
        if (round % 2 != 0) run_direct();
        if (options_.only.empty() && a != b) FailStop("the two sides have not read the same");
        direct.push_back(d.processor_nanos);
        transactional.push_back(t.processor_nanos);
        ratios.push_back(t.processor_nanos / d.processor_nanos);
        wall.push_back(t.wall_nanos / d.wall_nanos);
      }
      for (auto* samples : {&direct, &transactional, &ratios, &wall}) std::sort(samples->begin(), samples->end());
      const size_t middle = options_.rounds / 2;
      std::printf("%9llu  %7.1f (%5.1f-%5.1f)  %7.1f (%5.1f-%5.1f)  %.3f (%.3f-%.3f); by the wall %.3f\n",
                  static_cast<unsigned long long>(length), direct[middle], direct.front(), direct.back(),
                  transactional[middle], transactional.front(), transactional.back(), ratios[middle], ratios.front(),
                  ratios.back(), wall[middle]);
      std::fflush(stdout);
    }
  }

 private:
  static std::unique_ptr<deut::Storage> Storage() {
    auto storage = NewSystemStorage(IoKind::kAuto, RealRuntime());
    OrDie(storage.status(), "storage");
    return std::move(*storage);
  }
  std::string Directory() const { return options_.directory.empty() ? temporary_.path() : options_.directory; }
  bool Wanted(std::string_view side) const {
    return options_.only.empty() || std::find(options_.only.begin(), options_.only.end(), side) != options_.only.end();
  }

  const BenchOptions options_;
  testing::TempDir temporary_;
  const std::unique_ptr<deut::Storage> storage_;
  dc::RecordOperations* records_ = nullptr;
  std::unique_ptr<InProcessDataComponent> dc_;
  std::unique_ptr<tc::TransactionComponent> tc_;
  std::unique_ptr<Client> client_;
  TableId table_;
};

int Main(int argc, const char* const* argv) {
  BenchOptions options;
  FlagSet flags("scan_bench",
                "Serializable scans against the same scans of the data component's records, in one process.");
  flags.Add("records", &options.records, "in the table", uint64_t{1000}, uint64_t{100'000'000});
  flags.Add("value_bytes", &options.value_bytes, "of each", uint32_t{0}, uint32_t{1 << 20});
  flags.Add("rounds", &options.rounds, "in which the two alternate", uint32_t{1}, uint32_t{1000});
  flags.Add("per_round", &options.per_round, "records that each reads in a round, about", uint64_t{1}, UINT64_MAX);
  flags.Add("lengths", &options.lengths, "of scans, in records");
  flags.Add("only", &options.only, "one side: direct or serializable, for profiles");
  flags.Add("dir", &options.directory, "folder; none = a temporary one");
  const auto system = NewSystemStorage(IoKind::kAuto, RealRuntime());
  OrDie(system.status(), "storage");
  const auto rest = flags.Parse(argc, argv, **system);
  if (flags.help_requested()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (!rest.ok() || !rest->empty()) {
    std::fprintf(stderr, "%s\n", rest.ok() ? "an argument that is no flag" : rest.status().ToString().c_str());
    return 2;
  }
  if (options.lengths.empty()) options.lengths = {"10", "100", "1000", "10000", "100000", "1000000"};
  Bench bench(std::move(options));
  bench.Load();
  bench.Run();
  return 0;
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) { return deut::Main(argc, argv); }
