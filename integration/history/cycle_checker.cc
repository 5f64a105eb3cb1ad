#include "integration/history/cycle_checker.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "integration/history/cycle_search.h"
#include "integration/history/dependencies.h"
#include "integration/history/dependency_graph.h"
#include "integration/history/history_index.h"
#include "integration/history/history_text.h"

namespace deut::history {
namespace {

// The checker shows a cycle of at most this many components, and only counts the others.
constexpr size_t kMaxShown = 10;
constexpr size_t kMaxTransactionText = 600;

std::string EdgeName(EdgeKinds kind) {
  if (kind == kTime) return "real time";
  const char* name = "rw-predicate";
  if ((kind & kWr) != 0) name = "wr";
  if ((kind & (kWw | kWwTimed | kWwSeen)) != 0) name = "ww";
  if ((kind & (kRw | kRwTimed | kRwSeen)) != 0) name = "rw";
  if ((kind & (kWwTimed | kRwTimed | kRwPredicateTimed)) != 0) return Concat(name, " (by real time)");
  if ((kind & (kWwSeen | kRwSeen | kRwPredicateSeen)) != 0) return Concat(name, " (by when it was seen)");
  return name;
}

void AddCycle(const HistoryIndex& index, const Dependencies& dependencies, const Cycle& cycle, Report* report) {
  std::string message = "cycle";
  std::vector<uint64_t> about;
  std::string lines;
  size_t from = 0;
  // Starts the cycle at a transaction, not at a moment.
  while (dependencies.graph.IsMoment(cycle.edges[from].from)) ++from;
  for (size_t i = 0; i < cycle.edges.size(); ++i) {
    const Edge& edge = cycle.edges[(from + i) % cycle.edges.size()];
    if (dependencies.graph.IsMoment(edge.from)) continue;
    const TransactionRecord& t = index.transaction(edge.from);
    about.push_back(t.id);
    ConcatTo(&message, " T", t.id, " -", EdgeName(edge.kind));
    if (edge.kind != kTime) ConcatTo(&message, " ", dependencies.keys[edge.key]);
    ConcatTo(&message, "->");
    std::string text = ToText(t);
    if (text.size() > kMaxTransactionText) text = text.substr(0, kMaxTransactionText) + "...";
    ConcatTo(&lines, "\n    ", text);
  }
  ConcatTo(&message, " T", about.front(), lines);
  report->Add(cycle.anomaly, std::move(message), std::move(about));
}

}  // namespace

Report CheckCycles(const History& history) {
  Report report;
  const HistoryIndex index(history, &report);
  if (!report.ok()) return report;
  index.CheckSources(&report);
  index.Count(&report);
  const Dependencies dependencies = FindDependencies(index, &report);
  std::vector<uint32_t> nodes(dependencies.graph.nodes());
  std::iota(nodes.begin(), nodes.end(), 0);
  const std::vector<std::vector<uint32_t>> components = Components(dependencies.graph, nodes, kAllEdges);
  for (size_t i = 0; i < components.size(); ++i) {
    if (i < kMaxShown) {
      AddCycle(index, dependencies, GravestCycle(dependencies.graph, components[i]), &report);
    } else {
      ++report.violation_count;
    }
  }
  return report;
}

}  // namespace deut::history
