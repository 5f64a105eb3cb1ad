#include "dc/bwtree/bwtree.h"

#include <algorithm>

#include "common/base/check.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {

Result<std::unique_ptr<BwTree>> BwTree::Create(const BwTreeEnvironment& environment, const BwTreeOptions& options) {
  DEUT_CHECK(options.leaf_page_bytes > 0 && options.inner_page_bytes > 0 && options.leaf_chain_length > 0 &&
             options.inner_chain_length > 0);
  Owned<BasePage> page = BasePage::Build(/*level=*/0, BasePage::Bounds{}, Timestamp(), BasePage::Content());
  const ReclamationDomain::Guard guard(environment.domain);
  const PageId root = environment.pages.Allocate(page.get());
  if (root == kNoPage) {
    return DEUT_ERROR(kResourceExhausted, "Bw-tree: no page id for a new tree, all ", environment.pages.capacity(),
                      " are in use");
  }
  std::unique_ptr<BwTree> tree(new BwTree(environment, options, root));
  tree->CountPublished(page.release()->bytes());
  return tree;
}

BwTree::~BwTree() {
  // Level by level, each from its leftmost page along the side links, which reach every page of a level.
  PageId leftmost = root_;
  while (leftmost != kNoPage) {
    const Node* first = pages_.Load(leftmost);
    const PageId below = first->is_leaf() ? kNoPage : first->base->child(0);
    for (PageId id = leftmost; id != kNoPage;) {
      const Node* head = pages_.Load(id);
      const PageId right = head->fence->sibling;
      FreeChain(const_cast<Node*>(head));
      pages_.FreeUnseen(id);
      id = right;
    }
    leftmost = below;
  }
}

void BwTree::Retire(const Node* head, int64_t live) {
  const size_t bytes = ChainBytes(head);
  bytes_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  if (head->is_leaf()) records_.fetch_add(live - int64_t{head->base->live_records()}, std::memory_order_relaxed);
  domain_.Retire(const_cast<Node*>(head), FreeChain, bytes);
}

BwTreeStatistics BwTree::statistics() const {
  BwTreeStatistics statistics;
  statistics.records = static_cast<uint64_t>(std::max<int64_t>(records_.load(std::memory_order_relaxed), 0));
  statistics.bytes = static_cast<uint64_t>(std::max<int64_t>(bytes_.load(std::memory_order_relaxed), 0));
  statistics.consolidations = consolidations_.load(std::memory_order_relaxed);
  statistics.lost_consolidations = lost_consolidations_.load(std::memory_order_relaxed);
  statistics.splits = splits_.load(std::memory_order_relaxed);
  statistics.helped_splits = helped_splits_.load(std::memory_order_relaxed);
  return statistics;
}

uint64_t BwTree::ApproximateRecords() {
  const ReclamationDomain::Guard guard(domain_);
  const Node* root = pages_.Load(root_);
  if (!root->is_leaf()) return statistics().records;
  uint64_t records = 0;
  LeafMerge merge(root, {}, {});
  for (PageEntry entry; merge.Next(&entry);) records += entry.tombstone ? 0 : 1;
  return records;
}

}  // namespace deut::dc
