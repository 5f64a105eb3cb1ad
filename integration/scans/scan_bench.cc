// Compares serializable scans with the same scans straight from the data component's records, and with scans
// validated by a second scan; in one process, over the same data. README.md.

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "integration/scans/direct_store.h"
#include "integration/ycsb/json.h"

namespace deut {
namespace {

struct BenchOptions {
  DirectStoreOptions store;
  uint32_t rounds = 7;
  uint64_t per_round = 2'000'000;  // each side reads at most this many records in a round
  std::vector<std::string> lengths;
  std::vector<std::string> only;
  bool json = false;
};

int64_t ProcessorNanos() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

using Seen = DirectStore::Seen;

// One way to scan, and its cost in each round: nanoseconds a record, of the thread's processor time and of elapsed
// time.
struct Side {
  const char* name;
  std::vector<double> processor = {}, wall = {};
};

double Middle(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples.empty() ? 0 : samples[samples.size() / 2];
}

class Bench {
 public:
  explicit Bench(BenchOptions options) : options_(std::move(options)), store_(options_.store) {
    // Waits until the store has adapted the ranges.
    RealRuntime().SleepUntil(RealRuntime().Now() + seconds(12));
  }

  void Run() {
    if (!options_.json) {
      std::printf(
          "nanoseconds a record, medians (least-most); ratios to direct, round by round\n%9s  %21s  %21s  %21s\n", "",
          "direct", "serializable", "validated");
    }
    for (const std::string& text : options_.lengths) RunLength(std::min<uint64_t>(store_.records(), std::stoull(text)));
  }

 private:
  bool Wanted(const Side& side) const {
    return options_.only.empty() ||
           std::find(options_.only.begin(), options_.only.end(), side.name) != options_.only.end();
  }

  Seen Scan(size_t side, uint64_t first, uint64_t count) {
    if (side == 0) return store_.ScanDirectly(first, count);
    if (side == 1) return store_.ScanSerializably(first, count);
    return store_.ScanAndValidate(first, count, &repeated_);
  }

  std::vector<Seen> Measure(size_t which, Side* side, uint64_t seed, uint64_t length, uint64_t scans) {
    std::vector<Seen> seen;
    Random random(seed);
    const MonotonicTime begin = RealRuntime().Now();
    const int64_t processor = ProcessorNanos();
    for (uint64_t i = 0; i < scans; ++i)
      seen.push_back(Scan(which, random.Below(store_.records() - length + 1), length));
    const double records = static_cast<double>(scans) * static_cast<double>(length);
    side->wall.push_back(static_cast<double>((RealRuntime().Now() - begin).count()) / records);
    side->processor.push_back(static_cast<double>(ProcessorNanos() - processor) / records);
    return seen;
  }

  void RunLength(uint64_t length) {
    const uint64_t scans = std::clamp<uint64_t>(options_.per_round / length, 1, 20'000);
    std::vector<Side> sides = {{.name = "direct"}, {.name = "serializable"}, {.name = "validated"}};
    repeated_ = 0;
    for (uint32_t round = 0; round < options_.rounds; ++round) {
      std::vector<Seen> expected;
      for (size_t i = 0; i < sides.size(); ++i) {
        const size_t which = (round + i) % sides.size();  // each round begins with another side
        if (!Wanted(sides[which])) continue;
        std::vector<Seen> seen = Measure(which, &sides[which], round, length, scans);
        if (expected.empty()) expected = seen;
        if (seen != expected) FailStop("the sides have not read the same");
      }
    }
    Print(length, sides);
    std::fflush(stdout);
  }

  static double Ratio(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
    return Middle(std::move(ratios));
  }

  void Print(uint64_t length, const std::vector<Side>& sides) const {
    if (options_.json) {
      ycsb::JsonObject json;
      json.Number("records_a_scan", length).Number("rounds", uint64_t{options_.rounds}).Number("repeated", repeated_);
      for (const Side& side : sides) {
        json.Number(Concat(side.name, "_ns"), Middle(side.processor));
        json.Number(Concat(side.name, "_wall_ns"), Middle(side.wall));
        json.Number(Concat(side.name, "_ratio"), Ratio(side.processor, sides[0].processor));
      }
      std::printf("%s\n", json.Str().c_str());
      return;
    }
    std::printf("%9llu", static_cast<unsigned long long>(length));
    for (const Side& side : sides) {
      if (side.processor.empty()) continue;
      const auto [least, most] = std::minmax_element(side.processor.begin(), side.processor.end());
      std::printf("  %7.1f (%5.1f-%5.1f)", Middle(side.processor), *least, *most);
    }
    std::printf("  %.3f  %.3f; by the wall %.3f  %.3f\n", Ratio(sides[1].processor, sides[0].processor),
                Ratio(sides[2].processor, sides[0].processor), Ratio(sides[1].wall, sides[0].wall),
                Ratio(sides[2].wall, sides[0].wall));
  }

  const BenchOptions options_;
  DirectStore store_;
  uint64_t repeated_ = 0;
};

int Main(int argc, const char* const* argv) {
  BenchOptions options;
  FlagSet flags("scan_bench", "Serializable, direct and validated scans of the same records, in one process.");
  flags.Add("records", &options.store.records, "in the table", uint64_t{1000}, uint64_t{100'000'000});
  flags.Add("value_bytes", &options.store.value_bytes, "of each", uint32_t{0}, uint32_t{1 << 20});
  flags.Add("rounds", &options.rounds, "in which the sides alternate", uint32_t{1}, uint32_t{1000});
  flags.Add("per_round", &options.per_round, "records that each reads in a round, about", uint64_t{1}, UINT64_MAX);
  flags.Add("lengths", &options.lengths, "of scans, in records");
  flags.Add("only", &options.only, "these sides: direct, serializable, validated");
  flags.Add("json", &options.json, "one JSON object a line, in place of a table");
  flags.Add("dir", &options.store.directory, "folder; none = a temporary one");
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
  if (options.lengths.empty()) options.lengths = {"10", "100", "1000", "10000", "100000", "1000000"};
  Bench bench(std::move(options));
  bench.Run();
  return 0;
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) { return deut::Main(argc, argv); }
