// Spilled runs for tests. Thread-safety: one thread.
#ifndef TC_SPILL_SPILL_TEST_UTIL_H_
#define TC_SPILL_SPILL_TEST_UTIL_H_

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "tc/spill/spilled_runs.h"

namespace deut::tc {

// A version of table 1 by default; committed at ten times its timestamp, logged at a hundred times that.
inline SpilledVersion SpilledAt(std::string_view key, uint64_t timestamp, TableId table = TableId{1}) {
  return {.table = table,
          .key = key,
          .timestamp = Timestamp{timestamp},
          .sequence = 1,
          .value_bytes = static_cast<uint32_t>(key.size()),
          .commit = Lsn{10 * timestamp},
          .place = Lsn{100 * timestamp}};
}

// "key@timestamp" of every version in the order of the run; "!" marks a tombstone.
inline std::string TextOf(const SpilledRun& run) {
  std::string text;
  for (size_t b = 0; b < run.blocks(); ++b) {
    const Result<std::shared_ptr<const SpillBlock>> block = run.Read(b);
    if (!block.ok()) return block.status().ToString();
    for (const SpilledVersion& v : (*block)->versions())
      text += Concat(text.empty() ? "" : " ", v.key, "@", v.timestamp.value, v.tombstone ? "!" : "");
  }
  return text;
}

// A run of these versions, given in any order, which ends with the latest of their commits.
inline SpilledRuns::RunPointer RunOf(SpilledRuns& runs, std::vector<SpilledVersion> versions) {
  std::ranges::sort(versions, [](const SpilledVersion& a, const SpilledVersion& b) { return SpillOrder(a, b) < 0; });
  Result<SpilledRun::Builder> builder = runs.NewRun(versions.size());
  DEUT_CHECK(builder.ok());
  SpilledRun::CommitSpan span{.first = kMaxTimestamp, .first_commit = Lsn{UINT64_MAX}, .last = {}};
  for (const SpilledVersion& v : versions) {
    span.first = std::min(span.first, v.timestamp);
    span.first_commit = std::min(span.first_commit, v.commit);
    span.last = std::max(span.last, Position{v.commit, v.sequence});
    DEUT_CHECK(builder->Add(v).ok());
  }
  Result<SpilledRuns::RunPointer> run = builder->Finish(span);
  DEUT_CHECK(run.ok());
  return *std::move(run);
}

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_TEST_UTIL_H_
