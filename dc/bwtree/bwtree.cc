#include "dc/bwtree/bwtree.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/flight_board.h"
#include "dc/bwtree/leaf_view.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

BwTree::BwTree(const BwTreeEnvironment& environment, const BwTreeOptions& options, TableId table, PageId root)
    : pages_(environment.pages),
      domain_(environment.domain),
      consolidation_timestamp_(environment.consolidation_timestamp),
      gate_(environment.gate),
      images_(environment.images),
      options_(options),
      table_(table),
      root_(root) {}

Result<std::unique_ptr<BwTree>> BwTree::Create(const BwTreeEnvironment& environment, const BwTreeOptions& options,
                                               TableId table) {
  DEUT_CHECK(options.leaf_page_bytes > 0 && options.inner_page_bytes > 0 && options.leaf_chain_length > 0 &&
             options.inner_chain_length > 0);
  Owned<BasePage> page = BasePage::Build(/*level=*/0, BasePage::Bounds{}, Timestamp(), BasePage::Content());
  const ReclamationDomain::Guard guard(environment.domain);
  const PageId root = environment.pages.Allocate(page.get());
  if (root == kNoPage) {
    return DEUT_ERROR(kResourceExhausted, "Bw-tree: no page id for a new tree, all ", environment.pages.capacity(),
                      " are in use");
  }
  std::unique_ptr<BwTree> tree(new BwTree(environment, options, table, root));
  tree->CountPublished(page.release()->block_bytes());
  return tree;
}

std::unique_ptr<BwTree> BwTree::Restore(const BwTreeEnvironment& environment, const BwTreeOptions& options,
                                        TableId table, PageId root) {
  return std::unique_ptr<BwTree>(new BwTree(environment, options, table, root));
}

BwTree::~BwTree() {
  size_t freed = 0;
  FreePages(SIZE_MAX, &freed);
  // Every node that was ever published was retired, or was reached from the root just now.
  DEUT_DCHECK(bytes_.load(std::memory_order_relaxed) == 0);
}

bool BwTree::FreePages(size_t most, size_t* freed) {
  DEUT_IN_FLIGHT("dc.table_free");
  if (!std::exchange(freeing_, true)) to_free_.push_back(root_);
  for (; !to_free_.empty() && *freed < most; ++*freed) {
    const PageId id = to_free_.back();
    to_free_.pop_back();
    FreePage(id);
  }
  return to_free_.empty();
}

void BwTree::FreePage(PageId id) {
  const Node* const head = pages_.Load(id);
  // A page that was merged away has lost its term, and frees itself (merge.cc).
  DEUT_DCHECK(head == nullptr || !IsRemoved(head));
  if (head != nullptr && !head->is_leaf()) {
    // All terms are there: every splitter has finished.
    const Owned<BasePage> page = BuildConsolidated(head);
    for (size_t i = 0; i < page->count(); ++i) to_free_.push_back(page->child(i));
  }
  // If a flusher holds the claim, TakeImage dooms the image and the flusher frees the id when it releases the claim.
  ImageParts parts;
  const bool free = pages_.TakeImage(id, &parts, domain_);
  if (images_ != nullptr) {
    for (const PageAddress part : parts.all()) images_->MarkDead(part);
  }
  if (head != nullptr) {
    bytes_.fetch_sub(static_cast<int64_t>(ChainBytes(head)), std::memory_order_relaxed);
    FreeChain(const_cast<Node*>(head));
  }
  pages_.ExchangeRecords(id, 0);
  if (free) pages_.FreeUnseen(id);
}

void BwTree::Retire(const Node* head) {
  const size_t bytes = ChainBytes(head);
  bytes_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  domain_.Retire(const_cast<Node*>(head), FreeChain, bytes);
}

void BwTree::CountRecords(PageId id, uint32_t live) {
  records_.fetch_add(int64_t{live} - int64_t{pages_.ExchangeRecords(id, live)}, std::memory_order_relaxed);
}

void BwTree::CountStoredRecords(std::span<const PageId> leaves, uint32_t live_of_each) {
  for (const PageId leaf : leaves) pages_.RestoreRecords(leaf, live_of_each);
  records_.fetch_add(static_cast<int64_t>(uint64_t{live_of_each} * leaves.size()), std::memory_order_relaxed);
}

BwTreeStatistics BwTree::statistics() const {
  BwTreeStatistics statistics;
  // The counters are relaxed and may be read in the middle of a change, so a sum can be negative for a moment.
  statistics.records = static_cast<uint64_t>(std::max<int64_t>(records_.load(std::memory_order_relaxed), 0));
  statistics.bytes = static_cast<uint64_t>(std::max<int64_t>(bytes_.load(std::memory_order_relaxed), 0));
  statistics.consolidations = consolidations_.load(std::memory_order_relaxed);
  statistics.lost_consolidations = lost_consolidations_.load(std::memory_order_relaxed);
  statistics.splits = splits_.load(std::memory_order_relaxed);
  statistics.helped_splits = helped_splits_.load(std::memory_order_relaxed);
  statistics.merges = merges_.load(std::memory_order_relaxed);
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
