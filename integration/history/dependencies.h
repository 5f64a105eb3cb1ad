// FindDependencies derives from the values read, without timestamps, which transaction must come before which.
//
// A *version* is the state that a committed transaction leaves under a key (its last write there). Version 0 of a key
// is its absence. A read names the version that it saw, because each value carries the identity of its write. The
// order of a key's versions is known in these cases:
//   - A list names the elements before it. An element missing in the longest list comes after that list, because
//     lists only grow.
//   - A transaction that reads a version and then writes the key makes a later version.
//   - Accesses to the key, reads included, that do not overlap in time are ordered by time (strictness).
//   - If no transaction deletes the key, its absence comes before every other version.
//
// There are three kinds of edges. A ww edge joins two versions of which one is known to be later (edges to the
// nearest ones suffice). A wr edge leads from a version's maker to its readers. An rw edge leads from a reader of a
// version to the maker of a version known to be later. A scan reads the records that it returned, and the absence of
// every other key within the bounds that it reached. Some anomalies need no order. A read may miss an earlier write
// of its own transaction, lists may contradict each other, and two transactions may both read and replace the same
// version. Not detected: the order of blind writes that overlap, and absence of keys that are deleted, because it
// does not tell which deletion caused it. Snapshots may be stale, so real time orders no transaction before them.
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
  DependencyGraph graph;          // finished: Out may be called
  std::vector<std::string> keys;  // by Edge::key, as text
};

Dependencies FindDependencies(const HistoryIndex& index, Report* report);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_DEPENDENCIES_H_
