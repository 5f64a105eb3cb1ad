// ForEachRecord: a range of any length, a few thousand records at a time.
#ifndef INTEGRATION_BENCH_RECORD_SCAN_H_
#define INTEGRATION_BENCH_RECORD_SCAN_H_

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "integration/bench/backend.h"

namespace deut::bench {

// Shows the records of [low, high) ascending, until one is refused. REQUIRES: no key there is the beginning of another.
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
    // Above that key, and below all others that are.
    low = last + ' ';
  }
}

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_RECORD_SCAN_H_
