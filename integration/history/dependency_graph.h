// DependencyGraph: transactions and Adya's dependencies between them, with the order of real time in linear size.
// Nodes [0, transactions) are transactions, numbered by index in the history. The nodes behind them are moments. A
// completed transaction has an edge to a moment, and each moment has an edge to the next one. The last moment before
// a transaction's invocation has an edge to that transaction.
// Thread-safety: none while edges are added; constant after Finish.
#ifndef INTEGRATION_HISTORY_DEPENDENCY_GRAPH_H_
#define INTEGRATION_HISTORY_DEPENDENCY_GRAPH_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace deut::history {

// Sets of kinds of edges. Each kind says what the edge's first transaction did with respect to the second.
using EdgeKinds = uint16_t;
constexpr EdgeKinds kWw = 1;           // wrote the version that the second one replaced
constexpr EdgeKinds kWr = 2;           // wrote the version that the second one read
constexpr EdgeKinds kRw = 4;           // read the version that the second one replaced
constexpr EdgeKinds kRwPredicate = 8;  // scanned without finding the key that the second one inserted
constexpr EdgeKinds kTime = 16;        // completed before the second one was invoked
// The same kinds, where the order of the two versions is known only from the real time of their writers ...
constexpr EdgeKinds kWwTimed = 32;
constexpr EdgeKinds kRwTimed = 64;
constexpr EdgeKinds kRwPredicateTimed = 128;
// ... or only from the real time of transactions that saw them.
constexpr EdgeKinds kWwSeen = 256;
constexpr EdgeKinds kRwSeen = 512;
constexpr EdgeKinds kRwPredicateSeen = 1024;
constexpr EdgeKinds kAllEdges = 2047;

struct Edge {
  uint32_t from = 0, to = 0;
  uint32_t key = 0;  // number of the key; none for kTime
  EdgeKinds kind = 0;
};

class DependencyGraph {
 public:
  explicit DependencyGraph(uint32_t transactions) : transactions_(transactions), nodes_(transactions) {}

  uint32_t transactions() const { return transactions_; }
  uint32_t nodes() const { return nodes_; }
  bool IsMoment(uint32_t node) const { return node >= transactions_; }
  uint32_t AddMoment() { return nodes_++; }

  // An edge from a node to itself carries no information and is dropped.
  void Add(uint32_t from, uint32_t to, EdgeKinds kind, uint32_t key) {
    if (from != to) edges_.push_back({.from = from, .to = to, .key = key, .kind = kind});
  }

  // Ends the adding of edges; from now on Out may be called.
  void Finish() {
    starts_.assign(nodes_ + 1, 0);
    for (const Edge& edge : edges_) ++starts_[edge.from + 1];
    for (uint32_t i = 0; i < nodes_; ++i) starts_[i + 1] += starts_[i];
    std::vector<Edge> sorted(edges_.size());
    std::vector<size_t> next(starts_.begin(), starts_.end() - 1);
    for (const Edge& edge : edges_) sorted[next[edge.from]++] = edge;
    edges_ = std::move(sorted);
  }

  struct EdgeRange {
    const Edge *first, *last;
    const Edge* begin() const { return first; }
    const Edge* end() const { return last; }
  };
  EdgeRange Out(uint32_t node) const { return {edges_.data() + starts_[node], edges_.data() + starts_[node + 1]}; }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  const uint32_t transactions_;
  uint32_t nodes_;
  std::vector<Edge> edges_;
  std::vector<size_t> starts_;
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_DEPENDENCY_GRAPH_H_
