// Finds cycles in a dependency graph: the strongly connected components in linear time, and in each component a short
// cycle of the gravest kind.
// Thread-safety: pure functions.
#ifndef INTEGRATION_HISTORY_CYCLE_SEARCH_H_
#define INTEGRATION_HISTORY_CYCLE_SEARCH_H_

#include <cstdint>
#include <vector>

#include "integration/history/dependency_graph.h"
#include "integration/history/report.h"

namespace deut::history {

// Returns the components of more than one node in the graph that `nodes` and the edges of these kinds form.
std::vector<std::vector<uint32_t>> Components(const DependencyGraph& graph, const std::vector<uint32_t>& nodes,
                                              EdgeKinds kinds);

struct Cycle {
  Anomaly anomaly = Anomaly::kG2Item;
  std::vector<Edge> edges;  // each begins where the previous one ends, moments included
};

// Returns a cycle of the gravest kind in `component`, a component of the whole graph. Among the start nodes that were
// tried, the cycle has the fewest transactions; all are tried unless the component is huge.
Cycle GravestCycle(const DependencyGraph& graph, const std::vector<uint32_t>& component);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_CYCLE_SEARCH_H_
