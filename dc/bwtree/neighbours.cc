// Finds the leaves that a scan will reach and that are not in memory.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_state.h"

namespace deut::dc {

std::vector<std::string> BwTree::FindUnloadedLeaves(const Target& target, bool ascending, size_t count,
                                                    std::string_view end) {
  std::vector<std::string> lows;
  const ReclamationDomain::Guard guard(domain_);
  if (pages_.Load(root_)->level == 0) return lows;
  const InnerTerms terms(Descend(/*level=*/1, target).head());
  // Index behind the named leaf. It is not 0, because the first term is below every key.
  const bool endless = target.side == Side::kBelow && target.key.empty();
  const size_t behind = endless                    ? terms.count()
                        : target.side == Side::kAt ? terms.UpperBound(target.key)
                                                   : terms.LowerBound(target.key);
  DEUT_DCHECK(behind != 0);
  size_t first = ascending ? behind - 1 : behind - 1 - std::min(count, behind - 1);
  size_t last = ascending ? std::min<size_t>(behind + count, terms.count()) - 1 : behind - 1;
  if (!end.empty() && ascending) {
    while (last > first && terms.key(last) >= end) --last;
  } else if (!end.empty()) {
    // A leaf ends where its right neighbour begins.
    while (first < last && terms.key(first + 1) <= end) ++first;
  }
  for (size_t i = first; i <= last; ++i) {
    const Node* const head = pages_.Load(terms.child(i));
    if (head == nullptr || IsStub(head)) lows.emplace_back(terms.key(i));
  }
  return lows;
}

}  // namespace deut::dc
