// The state of a page's image on storage, as its chain tells it: clean, stub, restructured. Thread-safety: reads
// immutable nodes; the caller holds a guard.
#ifndef DC_BWTREE_PAGE_STATE_H_
#define DC_BWTREE_PAGE_STATE_H_

#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// Null if the node carries none.
inline const StoredState* StoredStateOf(const Node* node) {
  if (node->kind == NodeKind::kFlushMark) return &static_cast<const FlushMark*>(node)->state;
  if (node->kind == NodeKind::kBase) return &static_cast<const BasePage*>(node)->stored();
  return nullptr;
}

inline bool IsWritten(const Node* node) {
  const StoredState* state = StoredStateOf(node);
  return state != nullptr && state->written.load(std::memory_order_acquire);
}

// The image contains everything that the chain contains.
inline bool IsClean(const Node* head) { return IsWritten(head); }

// The base is only a placeholder for the image.
inline bool IsStub(const Node* head) { return head->base->stub(); }

// The page's bounds or children differ from those of its image.
inline bool IsRestructured(const Node* head) {
  for (const Node* node = head; !IsWritten(node); node = node->next) {
    if (node->kind == NodeKind::kSplit || node->kind == NodeKind::kIndexTerm) return true;
    if (node->kind == NodeKind::kBase) return static_cast<const BasePage*>(node)->restructured();
  }
  return false;
}

// The same for the image that is being written under the mark with this serial. Also true if the mark was
// consolidated away.
inline bool IsRestructuredSince(const Node* head, uint64_t serial) {
  for (const Node* node = head;; node = node->next) {
    const StoredState* state = StoredStateOf(node);
    if (state != nullptr && state->serial == serial) return false;
    if (node->kind == NodeKind::kSplit || node->kind == NodeKind::kIndexTerm) return true;
    if (node->kind == NodeKind::kBase) return static_cast<const BasePage*>(node)->restructured();
  }
}

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_STATE_H_
