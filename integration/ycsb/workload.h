// Workload: the mix of operations of one of the YCSB core workloads (Cooper et al., "Benchmarking cloud serving systems with YCSB",
// SoCC 2010).
//   a  50 % reads, 50 % updates                  zipfian      d  95 % reads, 5 % inserts                 latest
//   b  95 % reads, 5 % updates                   zipfian      e  95 % scans, 5 % inserts                 zipfian
//   c  reads                                     zipfian      f  50 % reads, 50 % read-modify-writes     zipfian
//   e-update  95 % scans, 5 % updates            zipfian
// and two that cause conflicts over ranges. Options set the length of scans, the number of records of an interactive
// write, and its pauses:
//   hot       50 % scans, 50 % interactive writes   uniform; in a small table, which is one hot range
//   long      5 % scans, 95 % inserts               uniform; with scans of many thousand records
#ifndef INTEGRATION_YCSB_WORKLOAD_H_
#define INTEGRATION_YCSB_WORKLOAD_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/random.h"
#include "integration/ycsb/key_chooser.h"

namespace deut::ycsb {

enum class OperationType : uint8_t { kRead = 0, kUpdate, kInsert, kScan, kReadModifyWrite, kInteractiveWrite };
constexpr int kOperationTypes = 6;
const char* OperationTypeName(OperationType type);

struct Workload {
  std::string name;
  // Percentage of each type of operation.
  std::array<uint32_t, kOperationTypes> percent{};
  Distribution distribution = Distribution::kZipfian;

  OperationType Choose(Random& random) const;
  // Makes `scans` of a hundred transactions scan, and the others update. INVALID_ARGUMENT if the workload has other
  // operations.
  Status SetScanPercent(uint32_t scans);
};

// INVALID_ARGUMENT names the known workloads.
Result<Workload> WorkloadByName(std::string_view name);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_WORKLOAD_H_
