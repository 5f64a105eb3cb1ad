// FindDependencies: who must come before whom, from what was read alone, without a timestamp.
//
// A *version* is what a committed transaction leaves under a key (its last write there); version 0 of a key is its absence. Reads name versions,
// because values carry the identity of their write. What is known of the order of a key's versions:
//   - a list names those before it, and what is missing in the longest list comes after it (lists only grow);
//   - who reads a version and then writes the key makes a later one;
//   - accesses to the key that do not overlap in time are in that order (strictness), the reads among them too;
//   - without deletions of the key: absence is before everything.
// Edges: ww between versions of which one is known to be later, the nearest ones suffice; wr from a version's maker to its readers; rw from the
// readers of a version to the makers of those known to be later. A scan reads what it returned, and the absence of every other key within
// the bounds it reached.
// Without need of an order: a read inside a transaction that does not show its own write, lists that contradict each other, two transactions
// that read one version and both replaced it.
// Not seen: the order of blind writes that overlap; what is absent where keys are deleted (the absence does not say which deletion it is of).
// Snapshots may be stale: nothing is before them by real time.
// Thread-safety: pure function.
#ifndef INTEGRATION_HISTORY_DEPENDENCIES_H_
#define INTEGRATION_HISTORY_DEPENDENCIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "integration/history/dependency_graph.h"
#include "integration/history/history_index.h"
#include "integration/history/report.h"

namespace deut::history {

struct Dependencies {
  explicit Dependencies(uint32_t transactions) : graph(transactions) {}
  DependencyGraph graph;          // finished
  std::vector<std::string> keys;  // by Edge::key, as text
};

Dependencies FindDependencies(const HistoryIndex& index, Report* report);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_DEPENDENCIES_H_
