// The state of a page's image on storage, as its chain tells it: clean, stub, restructured, removals. Thread-safety:
// reads immutable nodes; the caller holds a guard.
#ifndef DC_BWTREE_PAGE_STATE_H_
#define DC_BWTREE_PAGE_STATE_H_

#include <algorithm>

#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// Null if the node carries none.
inline const StoredState* StoredStateOf(const Node* node) {
  if (node->kind == NodeKind::kFlushMark) return &static_cast<const FlushMark*>(node)->state;
  if (node->kind == NodeKind::kBase) return &static_cast<const BasePage*>(node)->stored();
  return nullptr;
}

// Where the image has this node and the nodes below it, as far as the node says.
inline StoredIn StoredInOf(const Node* node) {
  const StoredState* state = StoredStateOf(node);
  return state == nullptr ? StoredIn::kNoPart : state->in.load(std::memory_order_acquire);
}

inline bool IsWritten(const Node* node) { return StoredInOf(node) != StoredIn::kNoPart; }

// The image contains everything that the chain contains.
inline bool IsClean(const Node* head) { return IsWritten(head); }

// The page is dirty and marked: the thread that put the first such delta on a clean page has marked it
// (mapping_table.h). It takes the head's first line only. A dirty page may have another head.
inline bool IsMarkedDirty(const Node* head) {
  return head != nullptr && (IsRecord(head) || head->kind == NodeKind::kSplit || head->kind == NodeKind::kIndexTerm);
}

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

// Where the image says that records are gone of which the page in memory has no trace: dropped tombstones, and the keys
// behind a split. kNoPart: perhaps nowhere, so the whole page must be written. kDeltaPart: perhaps only the delta parts
// say so, so they must stay until there is a new base part. kBasePart: there is nothing to keep. For a page without an
// image it is kNoPart.
inline StoredIn RemovalsOf(const Node* head) {
  StoredIn in = StoredIn::kNoPart;
  StoredIn removals = StoredIn::kBasePart;
  for (const Node* node = head;; node = node->next) {
    in = std::min(in, StoredInOf(node));
    if (node->kind == NodeKind::kSplit) removals = std::max(removals, in);
    if (node->kind == NodeKind::kBase) {
      return std::max(removals, std::min(in, static_cast<const BasePage*>(node)->removals()));
    }
  }
}

// Like IsRestructured, for the image that is being written under the mark with this serial. Also true if the mark was
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
