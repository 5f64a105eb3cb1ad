// Measures the speed of a data component's records in one process, through the interface that its server uses.
// README.md has the commands and the first figures.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/config/flags.h"
#include "common/io/storage.h"
#include "common/runtime/descriptor_budget.h"
#include "common/runtime/huge_pages.h"
#include "common/runtime/runtime.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_report.h"

namespace deut::dc::bench {
namespace {

constexpr int kUsage = 2;

// Segment files that a large store keeps open if the system allows it, as dcd does.
constexpr size_t kMaxOpenFiles = 10'240;
constexpr uint64_t kOtherDescriptors = 1024;

struct Part {
  std::string_view name;
  void (*run)(const BenchOptions& options, BenchReport* report);
  bool only_if_named = false;
};
constexpr Part kParts[] = {{"memory", BenchMemory},       {"beyond_memory", BenchBeyondMemory},
                           {"recovery", BenchRecovery},   {"checkpoint", BenchCheckpoint},
                           {"partition", BenchPartition}, {"large_store", BenchLargeStore, /*only_if_named=*/true}};

int Main(int argc, char** argv) {
  BenchOptions options;
  const Result<uint64_t> descriptors = RaiseDescriptorLimit();
  if (descriptors.ok() && *descriptors >= kMaxOpenFiles + kOtherDescriptors) options.open_files = kMaxOpenFiles;
  std::vector<std::string> parts;
  bool json = false;
  bool huge_pages = true;
  FlagSet flags("record_ops_bench", "Measures a data component's records in one process.");
  flags.Add(
      "parts", &parts,
      "parts to run: memory, beyond_memory, recovery, checkpoint, partition, large_store; none = all but large_store");
  flags.Add("records", &options.records, "number of records, each of 100 bytes with a key of 12 to 28 bytes",
            uint64_t{10000}, uint64_t{UINT32_MAX});
  flags.Add("rounds", &options.rounds, "number of rounds; the compared variants alternate in each", uint32_t{1},
            uint32_t{1000});
  flags.Add("time", &options.time, "duration of each measurement");
  flags.Add("dir", &options.directory, "folder for the data on disk, which is emptied first; none = a temporary one");
  flags.Add("recovery_gib", &options.recovery_gib, "largest of three sizes of data to recover, in GiB");
  flags.Add("memory_share", &options.memory_share, "beyond_memory: size of the data as a multiple of the memory",
            uint32_t{1}, uint32_t{1000});
  flags.AddBytes("store_bytes", &options.store_bytes, "large_store: bytes of the store; nearly all are holes in files",
                 uint64_t{1} << 20, uint64_t{4} << 40);
  flags.AddBytes("store_segment", &options.store_segment_bytes, "large_store: length of its segments",
                 uint64_t{64} << 10, uint64_t{1} << 30);
  flags.Add("json", &json, "write JSON in place of the table");
  flags.Add("huge_pages", &huge_pages, "memory in huge pages, as a daemon has it");
  const auto system = NewSystemStorage(IoKind::kAuto, RealRuntime());
  if (!system.ok()) {
    std::fprintf(stderr, "%s\n", system.status().ToString().c_str());
    return 1;
  }
  const auto rest = flags.Parse(argc, argv, **system);
  if (flags.text_requested()) {
    std::fputs(flags.RequestedText().c_str(), stdout);
    return 0;
  }
  const auto unknown = std::find_if(parts.begin(), parts.end(), [](const std::string& part) {
    return std::none_of(std::begin(kParts), std::end(kParts),
                        [&part](const Part& known) { return known.name == part; });
  });
  if (!rest.ok() || !rest->empty() || unknown != parts.end()) {
    std::fprintf(stderr, "%s\n",
                 rest.ok() ? "an unknown part, or an argument that is no flag" : rest.status().ToString().c_str());
    return kUsage;
  }
  if (huge_pages) {
    const std::string why = UseHugePages(argv);
    if (!why.empty()) std::fprintf(stderr, "no huge pages: %s\n", why.c_str());
  }
  BenchReport report;
  for (const Part& part : kParts) {
    const bool named = std::find(parts.begin(), parts.end(), part.name) != parts.end();
    if (!named && (!parts.empty() || part.only_if_named)) continue;
    part.run(options, &report);
  }
  std::fputs((json ? report.Json() : report.Text()).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace deut::dc::bench

int main(int argc, char** argv) { return deut::dc::bench::Main(argc, argv); }
