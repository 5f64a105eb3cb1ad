// DescriptorBudget: how many file descriptors a process may have, and how its connections and files share them. A process that runs out of
// descriptors fails at whatever it does next, so the share is fixed at the start and kept by caps.
// Thread-safety: pure functions, but RaiseDescriptorLimit, which main calls before it starts threads.
#ifndef COMMON_RUNTIME_DESCRIPTOR_BUDGET_H_
#define COMMON_RUNTIME_DESCRIPTOR_BUDGET_H_

#include <cstdint>

#include "common/base/status.h"

namespace deut {

// What a daemon takes.
struct DescriptorNeeds {
  uint64_t reserve =
      128;  // everything that is neither of the others: queues, epoll sets, links to other daemons, one attempt too many
  uint64_t least_files = 64;
  uint64_t most_files = 64;  // more than these are of no use
  uint64_t per_connection = 2;
};

struct DescriptorBudget {
  uint64_t limit = 0;
  uint64_t connections = 0;
  uint64_t files = 0;
};

// With 0 for the wanted connections, the budget has at most this many. A budget with fewer than kLeastConnections is refused.
constexpr uint64_t kMostConnectionsByDefault = 16'384;
constexpr uint64_t kLeastConnections = 16;

// Raises the soft limit of open files to the hard one. Returns the limit that holds from now on. IO_ERROR says what the system refused.
Result<uint64_t> RaiseDescriptorLimit();

// Shares `limit` out. `connections` is what --max_connections asks for; 0: what fits. INVALID_ARGUMENT says what is needed, what there is, and
// what to change. Files get what is left, between the least and the most.
Result<DescriptorBudget> PlanDescriptors(uint64_t limit, const DescriptorNeeds& needs, uint64_t connections);

}  // namespace deut

#endif  // COMMON_RUNTIME_DESCRIPTOR_BUDGET_H_
