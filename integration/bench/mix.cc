#include "integration/bench/mix.h"

#include "common/base/concat.h"

namespace deut::bench {
namespace {

using ycsb::Distribution;

constexpr std::string_view kUniformSuffix = "-uniform";

// Percent of reads, updates, inserts, scans, read-modify-writes.
constexpr Mix kMixes[] = {
    {.name = "a", .percent = {50, 50, 0, 0, 0}},
    {.name = "b", .percent = {95, 5, 0, 0, 0}},
    {.name = "c", .percent = {100, 0, 0, 0, 0}},
    {.name = "d", .percent = {95, 0, 5, 0, 0}, .distribution = Distribution::kLatest},
    {.name = "e", .percent = {0, 5, 0, 95, 0}, .theta = 0.877},
    {.name = "f", .percent = {50, 0, 0, 0, 50}},
    {.name = "t", .percent = {84, 16, 0, 0, 0}, .steps = 4},
    {.name = "l",
     .percent = {0, 0, 0, 100, 0},
     .distribution = Distribution::kUniform,
     .scan_min = 10'000,
     .scan_max = 10'000},
    {.name = "u", .percent = {0, 100, 0, 0, 0}, .distribution = Distribution::kUniform},
};

// Returns whether the mix reads and writes single records, chosen by Zipf.
bool HasUniformVariant(const Mix& mix) {
  return mix.distribution == Distribution::kZipfian && mix.percent[static_cast<size_t>(StepKind::kScan)] == 0;
}

}  // namespace

StepKind Mix::Choose(Random& random) const {
  uint64_t draw = random.Below(100);
  for (int kind = 0; kind < kStepKinds; ++kind) {
    if (draw < percent[kind]) return static_cast<StepKind>(kind);
    draw -= percent[kind];
  }
  return StepKind::kRead;
}

Result<Mix> MixByName(std::string_view name) {
  const bool uniform = name.ends_with(kUniformSuffix);
  const std::string_view base = uniform ? name.substr(0, name.size() - kUniformSuffix.size()) : name;
  for (Mix mix : kMixes) {
    if (mix.name != base) continue;
    if (!uniform) return mix;
    if (!HasUniformVariant(mix)) break;
    mix.distribution = Distribution::kUniform;
    return mix;
  }
  return DEUT_ERROR(kInvalidArgument, "no workload is named ", Quoted(name),
                    "; there are a, b, c, d, e, f, t, l and u, and a, b, c, f and t with -uniform");
}

}  // namespace deut::bench
