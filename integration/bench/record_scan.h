// ForEachRecord: reads a range of any length in batches of a few thousand records.
// Thread-safety: as its transaction.
#ifndef INTEGRATION_BENCH_RECORD_SCAN_H_
#define INTEGRATION_BENCH_RECORD_SCAN_H_

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "integration/bench/backend.h"

namespace deut::bench {

// Calls `record` for the records of [low, high), ascending, until it returns an error. REQUIRES: no key in the range
// is a prefix of another.
inline Status ForEachRecord(InteractiveTransaction& transaction, std::string low, std::string_view high,
                            absl::FunctionRef<Status(std::string_view key, std::string_view value)> record) {
  constexpr uint32_t kBatch = 5000;
  for (;;) {
    Status verdict;
    std::string last;
    uint32_t seen = 0;
    DEUT_RETURN_IF_ERROR(
        transaction.Scan(low, high, Order::kAscending, kBatch, [&](std::string_view key, std::string_view value) {
          if (verdict.ok()) verdict = record(key, value);
          if (++seen == kBatch) last = key;
        }));
    DEUT_RETURN_IF_ERROR(verdict);
    if (seen < kBatch) return Status();
    // This is above the last key, and below every other key behind it.
    low = last + ' ';
  }
}

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_RECORD_SCAN_H_
