// Finds cycles in a dependency graph: strongly connected components in linear time, and in each the gravest kind of cycle, a short one.
// Thread-safety: pure functions.
#ifndef INTEGRATION_HISTORY_CYCLE_SEARCH_H_
#define INTEGRATION_HISTORY_CYCLE_SEARCH_H_

#include <cstdint>
#include <vector>

#include "integration/history/dependency_graph.h"
#include "integration/history/report.h"

namespace deut::history {

// Those with more than one node, of the graph of `nodes` and the edges of these kinds.
std::vector<std::vector<uint32_t>> Components(const DependencyGraph& graph, const std::vector<uint32_t>& nodes,
                                              EdgeKinds kinds);

struct Cycle {
  Anomaly anomaly = Anomaly::kG2Item;
  std::vector<Edge> edges;  // each begins where the one before ends, moments included
};

// Of a component of the whole graph. A cycle of the kind found has the fewest transactions of those that were tried: all, unless the
// component is huge.
Cycle GravestCycle(const DependencyGraph& graph, const std::vector<uint32_t>& component);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_CYCLE_SEARCH_H_
