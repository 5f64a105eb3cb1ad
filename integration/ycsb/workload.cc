#include "integration/ycsb/workload.h"

#include "absl/strings/escaping.h"

namespace deut::ycsb {
namespace {

struct Row {
  const char* name;
  // in the order read, update, insert, scan, read-modify-write, interactive write
  std::array<uint32_t, kOperationTypes> percent;
  Distribution distribution;
};

constexpr Row kRows[] = {
    {"a", {50, 50, 0, 0, 0, 0}, Distribution::kZipfian},   {"b", {95, 5, 0, 0, 0, 0}, Distribution::kZipfian},
    {"c", {100, 0, 0, 0, 0, 0}, Distribution::kZipfian},   {"d", {95, 0, 5, 0, 0, 0}, Distribution::kLatest},
    {"e", {0, 0, 5, 95, 0, 0}, Distribution::kZipfian},    {"e-update", {0, 5, 0, 95, 0, 0}, Distribution::kZipfian},
    {"f", {50, 0, 0, 0, 50, 0}, Distribution::kZipfian},   {"hot", {0, 0, 0, 50, 0, 50}, Distribution::kUniform},
    {"long", {0, 0, 95, 5, 0, 0}, Distribution::kUniform},
};

}  // namespace

const char* OperationTypeName(OperationType type) {
  switch (type) {
    case OperationType::kRead:
      return "read";
    case OperationType::kUpdate:
      return "update";
    case OperationType::kInsert:
      return "insert";
    case OperationType::kScan:
      return "scan";
    case OperationType::kReadModifyWrite:
      return "read_modify_write";
    case OperationType::kInteractiveWrite:
      return "interactive_write";
  }
  return "unknown";
}

OperationType Workload::Choose(Random& random) const {
  uint64_t draw = random.Below(100);
  for (int type = 0; type < kOperationTypes; ++type) {
    if (draw < percent[type]) return static_cast<OperationType>(type);
    draw -= percent[type];
  }
  return OperationType::kRead;
}

Status Workload::SetScanPercent(uint32_t scans) {
  uint32_t& updates_percent = percent[static_cast<int>(OperationType::kUpdate)];
  uint32_t& scans_percent = percent[static_cast<int>(OperationType::kScan)];
  if (updates_percent + scans_percent != 100 || scans > 100)
    return DEUT_ERROR(kInvalidArgument, "workload ", name, " does not consist of updates and scans of which ", scans,
                      " % could be scans");
  scans_percent = scans;
  updates_percent = 100 - scans;
  return Status::Ok();
}

Result<Workload> WorkloadByName(std::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name) return Workload{.name = row.name, .percent = row.percent, .distribution = row.distribution};
  }
  return DEUT_ERROR(kInvalidArgument, "no workload is named \"", absl::CHexEscape(std::string(name)),
                    "\"; there are a, b, c, d, e, e-update, f, hot and long");
}

}  // namespace deut::ycsb
