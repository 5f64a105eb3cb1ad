// Where to cut logical ranges: any keys are correct ones (rules P), some are better.
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

// Keys of the range that transactions, whose postings are there, have written or declared: ascending, without the range's low, each as often as
// it was met; of some hundred transactions a few each, the latest first, until there are `enough`. Takes a guard of its own.
// REQUIRES: the range stays.
std::vector<std::string> KeysWritten(ReclamationDomain& domain, const TableState& table, const Range& range,
                                     size_t enough = SIZE_MAX);

// At most parts - 1 of the ascending candidates, each once, so that there are about as many between any two. Candidates that occur more than
// once count as often as they occur.
std::vector<std::string> EvenCuts(const std::vector<std::string>& candidates, size_t parts);

// For tests: other cuts than there are, at random: some of them, or none, with some of the candidates. Fewer than max_ranges.
std::vector<std::string> RandomCuts(std::vector<std::string> now, const std::vector<std::string>& candidates,
                                    size_t max_ranges, Random& random);

}  // namespace deut::tc

#endif  // TC_SERVER_RANGE_CUTS_H_
