#include "dc/bench/sparse_tree.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "dc/bwtree/page_image.h"

namespace deut::dc::bench {
namespace {

constexpr size_t kDigits = 12;

std::string Digits(uint64_t record) { return absl::StrFormat("%012x", record); }

Owned<BasePage> BuildLeaf(uint64_t first, uint64_t count, const BasePage::Bounds& bounds) {
  std::vector<std::string> records(count);  // each a key and its value, without a gap
  BasePage::Content content;
  for (uint64_t i = 0; i < count; ++i) {
    const BenchValue value(first + i, kSparseVersion.timestamp);
    records[i] = SparseKey(first + i);
    PageEntry entry;
    entry.key_bytes = static_cast<uint16_t>(records[i].size());
    records[i].append(value);
    entry.data = records[i].data();
    entry.value_bytes = kValueBytes;
    entry.version = kSparseVersion;
    content.Add(entry);
  }
  return BasePage::Build(/*level=*/0, bounds, Timestamp(), content);
}

struct Child {
  std::string low;
  PageId id;
};

Owned<BasePage> BuildInner(uint8_t level, std::span<const Child> children, const BasePage::Bounds& bounds) {
  BasePage::Content content;
  for (const Child& child : children) {
    PageEntry entry;
    entry.data = child.low.data();
    entry.key_bytes = static_cast<uint16_t>(child.low.size());
    entry.child = child.id;
    content.Add(entry);
  }
  return BasePage::Build(level, bounds, Timestamp(), content);
}

// Returns the number of entries that the last page of a level keeps when it splits because of its `count` entries.
uint64_t KeptOf(uint64_t count) { return count - count / 8; }

}  // namespace

std::string SparseKey(uint64_t record) { return Digits(record) + "abcdefgh"; }

SparseFill::SparseFill(const BwTreeOptions& options) {
  // Bounds and ids as most pages have them.
  constexpr uint64_t kFirst = 1;
  const std::string low = Digits(kFirst);
  const auto bounds_of = [&low](const std::string& high) {
    return BasePage::Bounds{.low = low, .high = high, .sibling = PageId(2)};
  };
  uint64_t count = 1;
  while (BuildLeaf(kFirst, count, bounds_of(Digits(kFirst + count)))->bytes() <= options.leaf_page_bytes) ++count;
  records = KeptOf(count);
  const std::string high = Digits(kFirst + records);
  leaf_bytes = BaseImageBytes(*BuildLeaf(kFirst, records, bounds_of(high))) - low.size() - high.size();

  std::vector<Child> some;
  do {
    some.push_back({.low = Digits(kFirst + some.size()), .id = PageId(2)});
  } while (BuildInner(/*level=*/1, some, bounds_of(Digits(kFirst + some.size())))->bytes() <= options.inner_page_bytes);
  children = std::max<uint64_t>(KeptOf(some.size()), 2);
}

SparseTree::SparseTree(const SparseFill& fill, uint64_t leaves) : fill_(fill), pages_{leaves} {
  DEUT_CHECK(leaves >= 2);
  while (pages_.back() > 1) pages_.push_back((pages_.back() + fill.children - 1) / fill.children);
}

uint64_t SparseTree::inner_pages() const { return std::accumulate(pages_.begin() + 1, pages_.end(), uint64_t{0}); }

uint64_t SparseTree::LeavesBelow(uint8_t level) const {
  uint64_t leaves = 1;
  for (uint8_t i = 0; i < level; ++i) leaves *= fill_.children;
  return leaves;
}

PageId SparseTree::IdOf(uint8_t level, uint64_t page) const {
  if (level == root_level()) return kRoot;
  const uint64_t last_leaf = std::min((page + 1) * LeavesBelow(level), leaves()) - 1;
  // Before this leaf lie the root's id, all earlier leaves, and the inner pages that end with one of these.
  uint64_t id = kRoot.value + 1 + last_leaf;
  for (uint8_t above = 1; above < root_level(); ++above) id += last_leaf / LeavesBelow(above);
  return PageId(static_cast<uint32_t>(id + level));
}

bool SparseTree::EndsPage(uint8_t level, uint64_t leaf) const {
  return leaf + 1 == leaves() || (leaf + 1) % LeavesBelow(level) == 0;
}

std::string SparseTree::LowOf(uint8_t level, uint64_t page) const {
  return page == 0 ? std::string() : Digits(page * LeavesBelow(level) * fill_.records);
}

std::string SparseTree::HighOf(uint8_t level, uint64_t page) const {
  return page + 1 == pages_[level] ? std::string() : LowOf(level, page + 1);
}

Owned<BasePage> SparseTree::Build(uint8_t level, uint64_t page) const {
  DEUT_CHECK(page < pages_[level]);
  const std::string low = LowOf(level, page), high = HighOf(level, page);
  const bool last = page + 1 == pages_[level];
  const BasePage::Bounds bounds{.low = low, .high = high, .sibling = last ? PageId() : IdOf(level, page + 1)};
  if (level == 0) return BuildLeaf(page * fill_.records, fill_.records, bounds);
  const auto below = static_cast<uint8_t>(level - 1);
  std::vector<Child> children;
  const uint64_t end = std::min((page + 1) * fill_.children, pages_[below]);
  for (uint64_t i = page * fill_.children; i < end; ++i) children.push_back({LowOf(below, i), IdOf(below, i)});
  return BuildInner(level, children, bounds);
}

uint64_t SparseTree::LeafImageBytes(uint64_t leaf) const {
  return fill_.leaf_bytes + (leaf == 0 ? 0 : kDigits) + (leaf + 1 == leaves() ? 0 : kDigits);
}

}  // namespace deut::dc::bench
