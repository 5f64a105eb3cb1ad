// The nodes of a page's chain. A page is a chain of delta nodes, newest first, that ends in a base page; the mapping table
// points at the newest. [Bw-tree, ICDE 2013, section III]
//
//   leaf   (level 0)   RecordDelta (put, tombstone)   SplitDelta   BasePage of records
//   inner  (level > 0) IndexTermDelta                 SplitDelta   BasePage of (separator, child)
//   both               FlushMark: what is below it was written, or is being written, to storage
//                      RemoveDelta: the page is being merged into its left neighbour (merge.cc), and never changes again
//
// A leaf's chain may end in a stub: a base page without records that stands for the page's image on storage. Updates are
// put on it blindly; whoever wants to know more than the page's bounds loads the image first. A leaf of which nothing is in memory
// has no chain at all (page_word.h). Inner pages are always in memory.
//
// Every node repeats what a visitor asks first, so that nobody walks a chain for it: where the base is, how long the chain is,
// and the page's fence (its upper bound and right neighbour) as of this node.
// Invariants:
//   N1 A node is immutable once the mapping table has pointed at it (but StoredState::written and RecordDelta's mark that its room is taken, which
//      go from false to true); before that one thread owns it (Owned).
//   N2 A chain is retired as a whole by the thread whose compare-and-swap replaced its head, and a replaced head is never
//      linked under another one. So whoever got a head inside a guard may follow all its pointers.
//   N3 Keys at or above a node's fence in the nodes below it are dead: they live in the right neighbour.
//   N4 A page's low key never changes; its fence moves down (split), or up to that of the right neighbour that it takes in.
//   N5 Nothing is put on a RemoveDelta. Its head is replaced only if the merge is undone.
//   N6 A record delta lies in an allocation of its own, which may have room behind it for some that come later, or in such room (a tenant). A tenant
//      is only ever put on a chain that contains the node whose room it took: so all of an allocation is retired with one chain (N2).
// Room behind a delta: free --NewOn--> taken, one exchange, never given back. The winner alone writes there; the loser, and who finds that it
//   does not fit, allocates. A tenant's own room is the rest of it. Whoever took room and finds the chain replaced leaves it to be freed with the
//   old chain, which its guard keeps until then.
// Ownership: a node is one allocation (but tenants), its bytes follow it. Thread-safety: by N1 none is needed.
#ifndef DC_BWTREE_NODE_H_
#define DC_BWTREE_NODE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/base/ids.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

class BasePage;

enum class NodeKind : uint8_t { kBase, kPut, kTombstone, kSplit, kIndexTerm, kFlushMark, kRemove };

// The upper bound of a page (exclusive) and the page that holds what is at or above it.
struct Fence {
  const char* high = nullptr;
  uint32_t high_bytes = 0;
  PageId sibling;  // kNoPage: the page has no upper bound

  bool bounded() const { return sibling != kNoPage; }
  std::string_view high_key() const { return {high, high_bytes}; }
};

// Carried by a FlushMark and by a base page: whether what they and the nodes below them say is in the page's image. If that is so of the
// head, the page is clean. `serial` names the flush that is at work, or was; 0: none.
struct StoredState {
  uint64_t serial = 0;
  mutable std::atomic<bool> written{false};
};

// The first 8 bytes of `key` behind `skip`, as a number that sorts like them (padded with zeros): if the heads of two keys differ they
// decide the keys' order, else the keys have to be compared.
inline uint64_t KeyHead(std::string_view key, size_t skip = 0) {
  uint64_t head = 0;
  const size_t left = key.size() > skip ? key.size() - skip : 0;
  if (left >= sizeof(head)) [[likely]] {
    std::memcpy(&head, key.data() + skip, sizeof(head));
  } else if (left != 0) {
    std::memcpy(&head, key.data() + skip, left);
  }
  return __builtin_bswap64(head);
}

// What a visitor needs of the newest node lies in its first line: to pass by, to prepend, and to decide whether to consolidate.
struct Node {
  const Node* next = nullptr;       // older; null in a base page
  const BasePage* base = nullptr;   // the end of the chain
  const Fence* fence = nullptr;     // lies in a node of this chain
  uint64_t high_head = UINT64_MAX;  // KeyHead of the fence's key; all ones if there is none
  uint32_t base_bytes = 0;          // allocated for the base
  uint32_t delta_bytes = 0;         // allocated for this node and the deltas below it
  uint16_t chain_length = 0;        // deltas, this one included; a split delta counts kSplitLength
  NodeKind kind = NodeKind::kBase;
  uint8_t level = 0;       // 0 = leaf
  uint16_t key_bytes = 0;  // of a delta's key
  uint16_t key_tag = 0;    // of a record delta's key: keys with different tags differ

  bool is_leaf() const { return level == 0; }
};

// Any node but a base page.
struct Delta : Node {
  const Node* jump = nullptr;  // some deltas further down, or the base: see PrefetchChain

  // About so many deltas are between two that a jump leads to.
  static constexpr uint16_t kJumpLength = 4;

 protected:
  // Puts a delta of `bytes` bytes that counts `length` on top of `head`.
  void LinkTo(const Node* head, size_t bytes, uint16_t length) {
    next = head;
    const bool to_head = head->kind == NodeKind::kBase || head->chain_length % kJumpLength == 0;
    jump = to_head ? head : static_cast<const Delta*>(head)->jump;
    base = head->base;
    fence = head->fence;
    high_head = head->high_head;
    base_bytes = head->base_bytes;
    delta_bytes = head->delta_bytes + static_cast<uint32_t>(bytes);
    chain_length = static_cast<uint16_t>(std::min<uint32_t>(uint32_t{head->chain_length} + length, UINT16_MAX));
    level = head->level;
  }
};

struct NodeDeleter {
  inline void operator()(const Node* node) const;
};

// A node that nobody else can see.
template <typename T>
using Owned = std::unique_ptr<T, NodeDeleter>;

// Frees a chain that nobody can see any more. Fits ReclamationDomain::Retire.
void FreeChain(void* head);
// What FreeChain frees, in bytes.
inline size_t ChainBytes(const Node* head) { return size_t{head->delta_bytes} + head->base_bytes; }

// A short hash of a record's key, for Node::key_tag.
inline uint16_t KeyTag(std::string_view key) {
  // The ends of keys differ most.
  uint64_t tail = 0;
  const size_t bytes = std::min(key.size(), sizeof(tail));
  if (bytes != 0) std::memcpy(&tail, key.data() + key.size() - bytes, bytes);
  return static_cast<uint16_t>(((tail ^ key.size()) * 0x9e3779b97f4a7c15ull) >> 48);
}

// One version of one record: a full value or a tombstone (rules S10, X2). Key and value follow, without a gap.
struct RecordDelta : Delta {
  uint32_t room = 0;  // bytes behind this delta
  bool tenant = false;
  mutable std::atomic<bool> room_taken{false};
  Timestamp timestamp;
  uint32_t sequence = 0;
  uint32_t value_bytes = 0;

  // In an allocation of its own, with room for `more` deltas of this size behind it.
  static Owned<RecordDelta> New(NodeKind kind, std::string_view key, std::string_view value, Version version,
                                size_t more = 0);
  // In the room behind `head` if it can be had, else as New. It may be put on `head`, and on other heads of the same base: those are further heads of
  // the same chain, because every chain that replaces another one has another base, and no base comes back inside a guard (N2).
  // REQUIRES: `head` is a leaf's; a guard, in which `head` was found, and which is held until the delta is put on the chain or given up.
  static Owned<RecordDelta> NewOn(const Node* head, NodeKind kind, std::string_view key, std::string_view value,
                                  Version version, size_t more);
  // May be repeated with another head as long as the delta is owned, if it may be put there.
  void LinkTo(const Node* head) { Delta::LinkTo(head, allocated_bytes(), 1); }

  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const { return {data(), key_bytes}; }
  std::string_view value() const { return {data() + key_bytes, value_bytes}; }
  Version version() const { return Version{timestamp, sequence}; }
  bool tombstone() const { return kind == NodeKind::kTombstone; }
  // Up to its room.
  size_t bytes() const { return BytesFor(size_t{key_bytes} + value_bytes); }
  // What it was allocated with; a tenant counts as its host.
  size_t allocated_bytes() const { return tenant ? 0 : bytes() + room; }

  static constexpr size_t BytesFor(size_t data_bytes) {
    return (sizeof(RecordDelta) + data_bytes + (alignof(RecordDelta) - 1)) & ~(alignof(RecordDelta) - 1);
  }

 private:
  RecordDelta() = default;
  static RecordDelta* Fill(void* memory, NodeKind kind, std::string_view key, std::string_view value, Version version);
};

inline bool IsRecord(const Node* node) { return node->kind == NodeKind::kPut || node->kind == NodeKind::kTombstone; }

void NodeDeleter::operator()(const Node* node) const {
  if (IsRecord(node) && static_cast<const RecordDelta*>(node)->tenant) return;
  ::operator delete(const_cast<Node*>(node));
}

// First step of a split: from here on the page ends at `separator`, and what is at or above it lives in `right`.
struct SplitDelta : Delta {
  Fence own_fence;

  // Half the base below a split delta is dead, so the chain is to be consolidated early.
  static constexpr uint16_t kSplitLength = 2;

  // Linked to `head`.
  static Owned<SplitDelta> New(const Node* head, std::string_view separator, PageId right);
  size_t bytes() const { return sizeof(SplitDelta) + own_fence.high_bytes; }
};

// Second step of a split: keys from `separator` up to the next separator of the page belong to `child`.
struct IndexTermDelta : Delta {
  PageId child;

  static Owned<IndexTermDelta> New(std::string_view separator, PageId child);
  void LinkTo(const Node* head) { Delta::LinkTo(head, bytes(), 1); }

  std::string_view separator() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }
  size_t bytes() const { return sizeof(IndexTermDelta) + key_bytes; }
};

// Put on a page that is to be merged into its left neighbour. Once it has no index term any more, it is the left neighbour's.
struct RemoveDelta : Delta {
  // Linked to `head`.
  static Owned<RemoveDelta> New(const Node* head);
};

// Starts loading the deltas of a leaf's chain, for who will look at all of them. They lie far apart, so following `next` takes a cache miss for each;
// here the stretches between jumps are followed side by side.
void PrefetchChain(const Node* head);

inline bool IsRemoved(const Node* head) { return head->kind == NodeKind::kRemove; }

// Put on a page when it is about to be written.
struct FlushMark : Delta {
  StoredState state;

  static Owned<FlushMark> New(uint64_t serial);
  void LinkTo(const Node* head) { Delta::LinkTo(head, sizeof(FlushMark), 0); }
};

}  // namespace deut::dc

#endif  // DC_BWTREE_NODE_H_
