#include "common/runtime/descriptor_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace deut {
namespace {

constexpr const char* kRaise = "raise the limit of open files (ulimit -Hn in a shell, LimitNOFILE= in a systemd unit)";

}  // namespace

Result<uint64_t> RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return DEUT_ERROR(kIoError, "the limit of open files cannot be read: ", std::generic_category().message(errno));
  }
  if (limit.rlim_cur < limit.rlim_max) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return DEUT_ERROR(kIoError, "the limit of open files cannot be raised from ", before, " to the hard limit of ",
                        limit.rlim_max, ": ", std::generic_category().message(errno));
    }
  }
  return uint64_t{limit.rlim_cur};
}

Result<DescriptorBudget> PlanDescriptors(uint64_t limit, const DescriptorNeeds& needs, uint64_t connections,
                                         uint64_t default_max) {
  const uint64_t fixed = needs.reserve + needs.min_files;
  const uint64_t wanted = connections == 0 ? kMinConnections : connections;
  const uint64_t needed = fixed + wanted * needs.per_connection;
  if (needed > limit) {
    const uint64_t fit = limit > fixed ? (limit - fixed) / needs.per_connection : 0;
    if (connections > 0 && fit >= 1) {
      return DEUT_ERROR(kInvalidArgument, "--max_connections=", connections, " needs ", needed, " open files (",
                        needs.per_connection, " for each connection, ", needs.min_files, " for data, ", needs.reserve,
                        " in reserve), and the hard limit is ", limit, "; lower --max_connections to ", fit,
                        " at most, or ", kRaise);
    }
    return DEUT_ERROR(kInvalidArgument, "at least ", needed, " open files are needed (", wanted, " connections of ",
                      needs.per_connection, ", ", needs.min_files, " for data, ", needs.reserve,
                      " in reserve), and the hard limit is ", limit, "; ", kRaise);
  }
  DescriptorBudget budget{.limit = limit, .connections = connections, .files = 0};
  if (connections == 0) {
    // Files get a quarter of the limit first, because even a small process must be able to read its data.
    const uint64_t most = std::max(needs.min_files, std::min(needs.max_files, needs.files_before_connections));
    const uint64_t files = std::clamp(limit / 4, needs.min_files, most);
    const uint64_t taken = needs.reserve + files;
    const uint64_t fit = limit > taken ? (limit - taken) / needs.per_connection : 0;
    budget.connections = std::clamp(fit, kMinConnections, std::max(default_max, kMinConnections));
  }
  budget.files = std::min(needs.max_files, limit - needs.reserve - budget.connections * needs.per_connection);
  return budget;
}

}  // namespace deut
