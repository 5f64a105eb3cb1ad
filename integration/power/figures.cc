#include "integration/power/figures.h"

#include <cstdio>
#include <cstdlib>

namespace deut::power {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void Figures::Add(const PowerRun& run) {
  lives += run.lives();
  reads += run.reads();
  transactions += run.oracle().attempts();
  found += run.oracle().committed();
  lost_buffered += run.oracle().lost_buffered();
  unknown_found += run.oracle().unknown_found();
  trimmed_runs += run.trimmed() ? 1 : 0;
  dc.Add(run.dc_work());
}

Figures::~Figures() {
  std::printf(
      "crash points %lu, second crashes in recovery %lu, lives %lu, judged readings %lu, transactions %lu (found %lu, "
      "buffered and lost %lu, of unknown outcome and found %lu), runs whose log was trimmed %lu, splits %lu, merges "
      "%lu, checkpoints %lu, segments cleaned %lu, pages loaded %lu\n",
      crash_points, second_crashes, lives, reads, transactions, found, lost_buffered, unknown_found, trimmed_runs,
      dc.splits, dc.merges, dc.checkpoints, dc.cleaned, dc.loaded);
}

}  // namespace deut::power
