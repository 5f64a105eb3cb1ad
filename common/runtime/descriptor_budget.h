// DescriptorBudget: the number of file descriptors that a process may have, and their division between connections
// and files. A process that runs out of descriptors fails at whatever it does next. So the shares are fixed at the
// start, and limits on connections and files enforce them.
// Thread-safety: pure functions, except RaiseDescriptorLimit, which main calls before it starts threads.
#ifndef COMMON_RUNTIME_DESCRIPTOR_BUDGET_H_
#define COMMON_RUNTIME_DESCRIPTOR_BUDGET_H_

#include <cstdint>

#include "common/base/status.h"

namespace deut {

// The descriptors that a daemon needs.
struct DescriptorNeeds {
  uint64_t reserve =
      128;  // all other descriptors: queues, epoll sets, links to other daemons, one connection attempt beyond the limit
  uint64_t min_files = 64;
  uint64_t max_files = 64;  // upper bound of the files that are of use
  // Upper bound of the files that are planned before the connections. More files get what the connections leave.
  uint64_t files_before_connections = UINT64_MAX;
  uint64_t per_connection = 2;
};

struct DescriptorBudget {
  uint64_t limit = 0;
  uint64_t connections = 0;
  uint64_t files = 0;
};

// A budget with fewer connections is refused.
constexpr uint64_t kMinConnections = 16;

// Raises the soft limit of open files to the hard one. Returns the limit in force from now on. IO_ERROR names the
// call that the system refused.
Result<uint64_t> RaiseDescriptorLimit();

// Divides `limit`. `connections` is the value of --max_connections; 0: as many as fit, at most `default_max`. Files get
// the rest, between the least and the most. INVALID_ARGUMENT states the need, the limit, and the setting to change.
Result<DescriptorBudget> PlanDescriptors(uint64_t limit, const DescriptorNeeds& needs, uint64_t connections,
                                         uint64_t default_max);

}  // namespace deut

#endif  // COMMON_RUNTIME_DESCRIPTOR_BUDGET_H_
