// Cuts a tree into pieces of about equal size; reads its inner pages only.
#include <algorithm>
#include <functional>
#include <string_view>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {
namespace {

// This many separators for each piece make the pieces equal enough.
constexpr size_t kSeparatorsPerPiece = 8;

}  // namespace

std::vector<std::string> BwTree::Separators(uint8_t level) {
  std::vector<std::string> separators;
  for (std::string low;;) {
    DEUT_POINT("bwtree.partition.before_page");
    const ReclamationDomain::Guard guard(domain_);
    const PageView page = Descend(level, Target(low, Side::kAt));
    const Owned<BasePage> copy = BuildConsolidated(page.head());
    for (size_t i = 0; i < copy->count(); ++i) {
      const std::string_view key = copy->key(i);
      // A page behind the walk may have been merged into this one.
      if (key.empty() || (!separators.empty() && key <= separators.back())) continue;
      separators.emplace_back(key);
    }
    if (!page.head()->fence->bounded()) return separators;
    DEUT_CHECK(page.head()->fence->high_key() > low);  // else the walk would never end
    low.assign(page.head()->fence->high_key());
  }
}

std::vector<std::string> BwTree::Partition(uint32_t n) {
  if (n < 2) return {};
  uint8_t level;
  {
    const ReclamationDomain::Guard guard(domain_);
    level = pages_.Load(root_)->level;
  }
  // Descend from the root until there are enough separators; each level has some hundred times as many as the level
  // above.
  std::vector<std::string> separators;
  for (; level > 0 && separators.size() < kSeparatorsPerPiece * n; --level) separators = Separators(level);
  std::vector<std::string> cuts;
  const size_t pieces = std::min<size_t>(n, separators.size() + 1);
  for (size_t i = 1; i < pieces; ++i) {
    // Separators stand between separators.size() + 1 children; cut after every (children / pieces)-th.
    cuts.push_back(std::move(separators[i * (separators.size() + 1) / pieces - 1]));
  }
  // No cut was taken, and emptied, twice.
  DEUT_CHECK(std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end());
  return cuts;
}

}  // namespace deut::dc
