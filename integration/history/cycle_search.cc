#include "integration/history/cycle_search.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/check.h"

namespace deut::history {
namespace {

// Once the search has visited this many edges, it tries no further start node.
constexpr size_t kMaxSteps = 20'000'000;

constexpr EdgeKinds kDependencies = kWw | kWr | kRw | kRwPredicate;
constexpr EdgeKinds kDependenciesAndTime = kDependencies | kTime | kWwTimed | kRwTimed | kRwPredicateTimed;

// Tarjan's algorithm with an explicit stack, because a long history would overflow the thread's stack.
class ComponentSearch {
 public:
  ComponentSearch(const DependencyGraph& graph, const std::vector<uint32_t>& nodes, EdgeKinds kinds)
      : graph_(graph),
        nodes_(nodes),
        kinds_(kinds),
        place_(graph.nodes(), kOutside),
        low_(nodes.size()),
        order_(nodes.size(), 0),
        on_stack_(nodes.size(), false) {
    for (uint32_t i = 0; i < nodes.size(); ++i) place_[nodes[i]] = i;
  }

  std::vector<std::vector<uint32_t>> Run() {
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (order_[i] == 0) Visit(i);
    }
    return std::move(found_);
  }

 private:
  static constexpr uint32_t kOutside = std::numeric_limits<uint32_t>::max();
  struct Frame {
    uint32_t node;
    const Edge* next;
  };

  void Enter(uint32_t i) {
    order_[i] = low_[i] = ++counter_;
    stack_.push_back(i);
    on_stack_[i] = true;
    frames_.push_back({i, graph_.Out(nodes_[i]).begin()});
  }

  void Visit(uint32_t root) {
    Enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const uint32_t i = frame.node;
      if (frame.next == graph_.Out(nodes_[i]).end()) {
        if (low_[i] == order_[i]) CollectComponent(i);
        frames_.pop_back();
        if (!frames_.empty()) low_[frames_.back().node] = std::min(low_[frames_.back().node], low_[i]);
        continue;
      }
      const Edge& edge = *frame.next++;
      const uint32_t to = (edge.kind & kinds_) == 0 ? kOutside : place_[edge.to];
      if (to == kOutside) continue;
      if (order_[to] == 0) {
        Enter(to);
      } else if (on_stack_[to]) {
        low_[i] = std::min(low_[i], order_[to]);
      }
    }
  }

  void CollectComponent(uint32_t root) {
    std::vector<uint32_t> component;
    uint32_t top = kOutside;
    do {
      top = stack_.back();
      stack_.pop_back();
      on_stack_[top] = false;
      component.push_back(nodes_[top]);
    } while (top != root);
    if (component.size() > 1) found_.push_back(std::move(component));
  }

  const DependencyGraph& graph_;
  const std::vector<uint32_t>& nodes_;
  const EdgeKinds kinds_;
  std::vector<uint32_t> place_;  // by node: its index in `nodes_`, or kOutside
  std::vector<uint32_t> low_, order_;
  std::vector<bool> on_stack_;
  std::vector<uint32_t> stack_;
  std::vector<Frame> frames_;
  uint32_t counter_ = 0;
  std::vector<std::vector<uint32_t>> found_;
};

// Finds the path with the fewest transactions inside a component. Moments cost nothing.
class PathSearch {
 public:
  PathSearch(const DependencyGraph& graph, const std::vector<uint32_t>& component, EdgeKinds kinds)
      : graph_(graph), kinds_(kinds) {
    for (const uint32_t node : component) reached_.try_emplace(node);
  }

  bool exhausted() const { return steps_ > kMaxSteps; }

  // Finds a path from `from`, along at least one edge, to `to`. Returns nothing if each path has more than `limit`
  // transactions.
  std::optional<std::vector<Edge>> Find(uint32_t from, uint32_t to, uint32_t limit) {
    ++round_;
    std::deque<std::pair<uint32_t, uint32_t>> open;  // node, cost
    open.emplace_back(from, 0);
    bool first = true;
    while (!open.empty()) {
      const auto [node, cost] = open.front();
      open.pop_front();
      if (cost > limit) return std::nullopt;
      if (node == to && !first) return PathTo(from, to);
      // The start node does not count as reached at first, so that a cycle can return to it.
      if (!first && reached_.find(node)->second.cost < cost) continue;
      first = false;
      for (const Edge& edge : graph_.Out(node)) {
        ++steps_;
        if ((edge.kind & kinds_) == 0) continue;
        const auto it = reached_.find(edge.to);
        if (it == reached_.end()) continue;
        const uint32_t next = cost + (graph_.IsMoment(edge.to) ? 0 : 1);
        Reached& reached = it->second;
        if (reached.round == round_ && reached.cost <= next) continue;
        reached = {.round = round_, .cost = next, .by = &edge};
        if (next == cost) {
          open.emplace_front(edge.to, next);
        } else {
          open.emplace_back(edge.to, next);
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Reached {
    uint32_t round = 0;
    uint32_t cost = 0;
    const Edge* by = nullptr;
  };

  std::vector<Edge> PathTo(uint32_t from, uint32_t to) {
    std::vector<Edge> path;
    uint32_t node = to;
    do {
      path.push_back(*reached_.find(node)->second.by);
      node = path.back().from;
    } while (node != from);
    std::reverse(path.begin(), path.end());
    return path;
  }

  const DependencyGraph& graph_;
  const EdgeKinds kinds_;
  absl::flat_hash_map<uint32_t, Reached> reached_;
  uint32_t round_ = 0;
  size_t steps_ = 0;
};

uint32_t Transactions(const DependencyGraph& graph, const std::vector<Edge>& path) {
  return static_cast<uint32_t>(
      std::count_if(path.begin(), path.end(), [&](const Edge& edge) { return !graph.IsMoment(edge.to); }));
}

constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max() - 1;

std::optional<std::vector<Edge>> ShortestCycle(const DependencyGraph& graph, const std::vector<uint32_t>& component,
                                               EdgeKinds kinds) {
  const std::vector<std::vector<uint32_t>> inner = Components(graph, component, kinds);
  if (inner.empty()) return std::nullopt;
  // Every component has a cycle; the smallest component shows the shortest one.
  const std::vector<uint32_t>& smallest =
      *std::min_element(inner.begin(), inner.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  PathSearch search(graph, smallest, kinds);
  std::optional<std::vector<Edge>> best;
  for (const uint32_t node : smallest) {
    if (graph.IsMoment(node)) continue;
    const uint32_t limit = best ? Transactions(graph, *best) - 1 : kNoLimit;
    if (limit < 2 || (best && search.exhausted())) break;
    std::optional<std::vector<Edge>> path = search.Find(node, node, limit);
    if (path) best = std::move(path);
  }
  return best;
}

// Finds a cycle with exactly one anti-dependency.
std::optional<std::vector<Edge>> SingleCycle(const DependencyGraph& graph, const std::vector<uint32_t>& component,
                                             EdgeKinds anti, EdgeKinds others) {
  PathSearch search(graph, component, others);
  std::vector<bool> inside(graph.nodes(), false);
  for (const uint32_t node : component) inside[node] = true;
  std::optional<std::vector<Edge>> best;
  for (const uint32_t node : component) {
    for (const Edge& edge : graph.Out(node)) {
      if ((edge.kind & anti) == 0 || !inside[edge.to] || search.exhausted()) continue;
      const uint32_t limit = best ? Transactions(graph, *best) - 2 : kNoLimit;
      if (limit < 1) return best;
      std::optional<std::vector<Edge>> path = search.Find(edge.to, node, limit);
      if (!path) continue;
      path->insert(path->begin(), edge);
      best = std::move(path);
    }
  }
  return best;
}

// Kinds of evidence that a cycle may use, in the order in which they are tried: dependencies alone; also real time;
// also the time at which versions were seen.
enum class Basis : uint8_t { kDependencies, kTime, kSeen };

std::optional<Cycle> Gravest(const DependencyGraph& graph, const std::vector<uint32_t>& component, Basis basis) {
  EdgeKinds ww = kWw, rw = kRw, predicate = kRwPredicate;
  const bool timed = basis != Basis::kDependencies;
  if (timed) {
    ww |= kWwTimed | kTime;
    rw |= kRwTimed;
    predicate |= kRwPredicateTimed;
  }
  if (basis == Basis::kSeen) {
    ww |= kWwSeen;
    rw |= kRwSeen;
    predicate |= kRwPredicateSeen;
  }
  const auto cycle = [](Anomaly anomaly, std::optional<std::vector<Edge>> edges) -> std::optional<Cycle> {
    if (!edges) return std::nullopt;
    return Cycle{.anomaly = anomaly, .edges = *std::move(edges)};
  };
  const auto shortest = [&](Anomaly anomaly, EdgeKinds kinds) {
    return cycle(anomaly, ShortestCycle(graph, component, kinds));
  };
  const auto single = [&] {
    return cycle(timed ? Anomaly::kGSingleRealTime : Anomaly::kGSingle,
                 SingleCycle(graph, component, rw | predicate, ww | kWr));
  };
  // If only reads show an order of versions, the contradiction is a read's, not a write's: a single anti-dependency
  // comes first.
  if (basis == Basis::kSeen) {
    if (auto found = single()) return found;
  }
  if (auto found = shortest(timed ? Anomaly::kG0RealTime : Anomaly::kG0, ww)) return found;
  if (auto found = shortest(timed ? Anomaly::kG1cRealTime : Anomaly::kG1c, ww | kWr)) return found;
  if (auto found = single()) return found;
  if (auto found = shortest(timed ? Anomaly::kG2ItemRealTime : Anomaly::kG2Item, ww | kWr | rw)) return found;
  return shortest(timed ? Anomaly::kG2PredicateRealTime : Anomaly::kG2Predicate, ww | kWr | rw | predicate);
}

}  // namespace

std::vector<std::vector<uint32_t>> Components(const DependencyGraph& graph, const std::vector<uint32_t>& nodes,
                                              EdgeKinds kinds) {
  return ComponentSearch(graph, nodes, kinds).Run();
}

Cycle GravestCycle(const DependencyGraph& graph, const std::vector<uint32_t>& component) {
  for (const Basis basis : {Basis::kDependencies, Basis::kTime}) {
    const EdgeKinds kinds = basis == Basis::kDependencies ? kDependencies : kDependenciesAndTime;
    if (Components(graph, component, kinds).empty()) continue;
    if (std::optional<Cycle> found = Gravest(graph, component, basis)) return *std::move(found);
  }
  std::optional<Cycle> found = Gravest(graph, component, Basis::kSeen);
  DEUT_CHECK(found.has_value());  // a component has a cycle, and this call allows all kinds of edges
  return *std::move(found);
}

}  // namespace deut::history
