// Point reads. HOT PATH: no lock, no system call; allocates only for the answer, and for a consolidation now and then.
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/leaf_view.h"

namespace deut::dc {

BwTree::Found BwTree::ReadPage(const PageView& page, std::string_view key, RecordBatch* answer) {
  if (!page.loaded()) return Found::kNotLoaded;
  const bool found = AppendRecord(page.head(), key, answer);
  if (page.head()->chain_length != 0) ConsolidateForReaders(page, page.head()->chain_length);
  return found ? Found::kYes : Found::kNo;
}

BwTree::Found BwTree::Read(std::string_view key, RecordBatch* answer) {
  const ReclamationDomain::Guard guard(domain_);
  return ReadPage(DescendToUse(Target(key, Side::kAt)), key, answer);
}

BwTree::Lookup BwTree::BeginRead(std::string_view key) {
  const Target target(key, Side::kAt);
  const PageView page = FindLeaf(target);
  if (page.id != kNoPage) BasePage::Prefetch(page.head());
  return Lookup(target, page);
}

void BwTree::ContinueRead(Lookup* lookup) {
  const Node* const head = lookup->page_.head();
  if (head == nullptr) return;
  const std::string_view key = lookup->target_.key;
  switch (lookup->step_++) {
    case 0:
      // For a page with deltas, EndRead follows the chain and then finds the base in the cache.
      if (head->kind == NodeKind::kBase) {
        head->base->PrefetchKeyPrefixes(key);
      } else {
        BasePage::Prefetch(head->base);
      }
      break;
    case 1:
      if (head->kind == NodeKind::kBase) {
        head->base->PrefetchEntry(key);
      } else {
        head->base->PrefetchKeyPrefixes(key);
        PrefetchChain(head);
      }
      break;
    default:
      break;
  }
}

// The page is read as of BeginRead, which is within the caller's own call: inside the guard a head stays as it was
// (N1, N2).
BwTree::Found BwTree::EndRead(const Lookup& lookup, RecordBatch* answer) {
  const Target& target = lookup.target_;
  const Node* const head = lookup.page_.head();
  DEUT_DCHECK(head == nullptr || lookup.step_ == kReadSteps);
  const bool found = head != nullptr && head->is_leaf() && !IsRemoved(head) &&
                     (!LiesLeft(*head, target) || DEUT_OMITTED("bwtree.lookup_fence"));
  return ReadPage(found ? lookup.page_ : DescendToUse(target), target.key, answer);
}

}  // namespace deut::dc
