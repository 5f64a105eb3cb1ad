// Where to cut logical ranges. Any keys are correct cuts (rules P); some are better than others.
// Thread-safety: any thread.
#ifndef TC_SERVER_RANGE_CUTS_H_
#define TC_SERVER_RANGE_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "common/sync/reclamation.h"
#include "tc/catalogue/table_state.h"
#include "tc/mvcc/range_table.h"

namespace deut::tc {

// Returns keys of the range that transactions with a posting there have written or declared. They are ascending,
// without the range's low, each as often as it was met. It takes a few keys of each of some hundred transactions, the
// latest first, until there are `enough`. Takes a guard of its own. REQUIRES: the range stays.
std::vector<std::string> KeysWritten(ReclamationDomain& domain, const TableState& table, const Range& range,
                                     size_t enough = SIZE_MAX);

// Returns at most parts - 1 of the ascending candidates, each once, with about as many candidates between any two. A
// candidate that occurs several times counts that often.
std::vector<std::string> EvenCuts(const std::vector<std::string>& candidates, size_t parts);

// For tests: returns random cuts, fewer than max_ranges: some of the present ones, or none, and some of the
// candidates.
std::vector<std::string> RandomCuts(std::vector<std::string> now, const std::vector<std::string>& candidates,
                                    size_t max_ranges, Random& random);

}  // namespace deut::tc

#endif  // TC_SERVER_RANGE_CUTS_H_
