// The nodes of a page's chain. A page is a chain of delta nodes, newest first, that ends in a base page. The mapping
// table points at the newest node. [Bw-tree, ICDE 2013, section III]
//
//   leaf   (level 0)   RecordDelta (put, tombstone)   SplitDelta   BasePage of records
//   inner  (level > 0) IndexTermDelta                 SplitDelta   BasePage of (separator, child)
//   both               FlushMark: the nodes below it were written, or are being written, to storage
//                      RemoveDelta: the page is being merged into its left neighbour (merge.cc), and never changes
//                      again
//
// A leaf's chain may end in a stub: a base page without records that stands for the page's image on storage. Updates
// are put on a stub blindly. A thread that needs more than the page's bounds loads the image first. A leaf that is
// entirely on storage has no chain at all (page_word.h). Inner pages are always in memory.
//
// Every node repeats the data that its readers need first, so that no thread walks a chain for it. These are the
// base, the length of the chain, and the page's fence (its upper bound and right neighbour) as of this node.
// Invariants:
//   N1 A node is immutable once the mapping table has pointed at it. Before that, one thread owns it (Owned). There are
//      two exceptions: StoredState::in falls, and RecordDelta::room_taken goes from false to true.
//   N2 A chain is retired as a whole by the thread whose compare-and-swap replaced its head. A replaced head is never
//      linked under another one. So a thread that read a head inside a guard may follow all its pointers.
//   N3 Keys at or above a node's fence in the nodes below it are dead: they live in the right neighbour.
//   N4 A page's low key never changes. Its fence moves down (split), or up to the fence of the right neighbour that
//      it absorbs (merge).
//   N5 Nothing is put on a RemoveDelta. It stops being the page's head only if the merge is undone.
//   N6 A record delta lies either in an allocation of its own, which may have room behind it for later deltas, or in
//      such room (a tenant). A tenant is only ever put on a chain that contains the node whose room it took. So an
//      allocation is retired as a whole, with one chain (N2).
// Room behind a delta: free --NewOn--> taken, by one atomic exchange; it is never given back. Only the winner writes
// there. The loser allocates, and so does a thread whose delta does not fit. A tenant's own room is the rest of its
// host's. A thread that took room and then finds the chain replaced leaves the room to be freed with the old chain,
// which its guard keeps alive until then.
// Ownership: a node is one allocation of PageMemory (except tenants); its bytes follow it. Thread-safety: by N1 none is
// needed.
#ifndef DC_BWTREE_NODE_H_
#define DC_BWTREE_NODE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "dc/bwtree/page_memory.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

class BasePage;

enum class NodeKind : uint8_t { kBase, kPut, kTombstone, kSplit, kIndexTerm, kFlushMark, kRemove };

// The upper bound of a page (exclusive), and the page that holds the keys at or above it.
struct Fence {
  const char* high = nullptr;
  uint32_t high_bytes = 0;
  PageId sibling;  // kNoPage: the page has no upper bound

  bool bounded() const { return sibling != kNoPage; }
  std::string_view high_key() const { return {high, high_bytes}; }
};

// Where a page's image has something that the page in memory has, or has lost. The image only gains, so a value that
// was right stays right, and may become larger than necessary. The smaller of two right values is right.
enum class StoredIn : uint8_t {
  kBasePart = 0,   // in the base part
  kDeltaPart = 1,  // in the base part or in a delta part
  kNoPart = 2,     // perhaps in no part: the next image must have it
};

// Part of a FlushMark and of a base page. `in` says where the image has this node and the nodes below it. It begins as
// kNoPart, and falls once, when the image of the flush with this serial is registered. If it is not kNoPart for the
// head, the page is clean. `serial` names the latest flush of this state, running or finished; 0: none.
struct StoredState {
  uint64_t serial = 0;
  mutable std::atomic<StoredIn> in{StoredIn::kNoPart};
};

// Returns the first 8 bytes of `key` behind `skip`, as a number that sorts like them (padded with zeros). If the
// results for two keys differ, they decide the order of the keys; else the keys must be compared.
inline uint64_t KeyPrefix64(std::string_view key, size_t skip = 0) {
  uint64_t prefix = 0;
  const size_t left = key.size() > skip ? key.size() - skip : 0;
  if (left >= sizeof(prefix)) [[likely]] {
    std::memcpy(&prefix, key.data() + skip, sizeof(prefix));
  } else if (left != 0) {
    std::memcpy(&prefix, key.data() + skip, left);
  }
  return __builtin_bswap64(prefix);
}

// A reader that passes by, a writer that prepends, and the decision whether to consolidate need only the first cache
// line of the newest node.
struct Node {
  const Node* next = nullptr;             // the next older node; null in a base page
  const BasePage* base = nullptr;         // the end of the chain
  const Fence* fence = nullptr;           // lies in a node of this chain
  uint64_t high_key_prefix = UINT64_MAX;  // KeyPrefix64 of the fence's key; all ones if there is none
  uint32_t base_bytes = 0;                // bytes of the base
  uint32_t delta_bytes = 0;               // bytes of this node and the deltas below it, with the room behind them
  uint16_t chain_length = 0;              // number of deltas, this one included; a split delta counts kSplitLength
  NodeKind kind = NodeKind::kBase;
  uint8_t level = 0;       // 0 = leaf
  uint16_t key_bytes = 0;  // bytes of a delta's key
  uint16_t key_tag = 0;    // hash of a record delta's key: keys with different tags differ

  bool is_leaf() const { return level == 0; }
};

// Any node but a base page.
struct Delta : Node {
  const Node* jump = nullptr;  // a node some deltas further down, or the base: see PrefetchChain

  // A jump skips about this many deltas.
  static constexpr uint16_t kJumpLength = 4;

 protected:
  // Puts a delta of `bytes` bytes that counts `length` on top of `head`.
  void LinkTo(const Node* head, size_t bytes, uint16_t length) {
    DEUT_DCHECK(head->kind != NodeKind::kRemove);  // N5
    next = head;
    const bool to_head = head->kind == NodeKind::kBase || head->chain_length % kJumpLength == 0;
    jump = to_head ? head : static_cast<const Delta*>(head)->jump;
    base = head->base;
    fence = head->fence;
    high_key_prefix = head->high_key_prefix;
    base_bytes = head->base_bytes;
    delta_bytes = head->delta_bytes + static_cast<uint32_t>(bytes);
    chain_length = static_cast<uint16_t>(std::min<uint32_t>(uint32_t{head->chain_length} + length, UINT16_MAX));
    level = head->level;
  }
};

struct NodeDeleter {
  inline void operator()(const Node* node) const;
};

// A node that no other thread can see.
template <typename T>
using Owned = std::unique_ptr<T, NodeDeleter>;

// Frees a chain that no thread can see any more. Fits ReclamationDomain::Retire.
void FreeChain(void* head);
// The number of bytes that FreeChain frees: those of the blocks of all nodes. Visits all of them. The bytes that decide
// whether a page is consolidated or merged do not depend on the sizes of blocks: `delta_bytes` and `base_bytes`.
size_t ChainBytes(const Node* head);
// Tells whether a node of the chain keeps a slab from being emptied.
bool IsInDrainingSlab(const Node* head);

// A short hash of a record's key, for Node::key_tag.
inline uint16_t KeyTag(std::string_view key) {
  // Keys differ most at their ends.
  uint64_t tail = 0;
  const size_t bytes = std::min(key.size(), sizeof(tail));
  if (bytes != 0) std::memcpy(&tail, key.data() + key.size() - bytes, bytes);
  return static_cast<uint16_t>(((tail ^ key.size()) * 0x9e3779b97f4a7c15ull) >> 48);
}

// One version of one record: a full value or a tombstone (rules S10, X2). Key and value follow the node, without a
// gap.
struct RecordDelta : Delta {
  uint32_t room = 0;  // free bytes behind this delta
  bool tenant = false;
  mutable std::atomic<bool> room_taken{false};
  Timestamp timestamp;
  uint32_t sequence = 0;
  uint32_t value_bytes = 0;

  // Creates a delta in an allocation of its own, with room for `more` deltas of this size behind it.
  static Owned<RecordDelta> New(NodeKind kind, std::string_view key, std::string_view value, Version version,
                                size_t more = 0);
  // Creates a delta in the room behind `head` if it fits there and this thread wins the room, else as New. The delta
  // may be put on `head`, and on other heads with the same base. Those are newer heads of the same chain: a chain
  // that replaces another one has another base, and no base address is reused inside a guard (N2).
  // REQUIRES: `head` is the head of a leaf. The caller read it inside a guard, and holds the guard until the delta is
  // installed or dropped.
  static Owned<RecordDelta> NewOn(const Node* head, NodeKind kind, std::string_view key, std::string_view value,
                                  Version version, size_t more);
  // May be called again with another head while the delta is owned, if the delta may be put on that head.
  void LinkTo(const Node* head) { Delta::LinkTo(head, allocated_bytes(), 1); }

  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const { return {data(), key_bytes}; }
  std::string_view value() const { return {data() + key_bytes, value_bytes}; }
  Version version() const { return Version{timestamp, sequence}; }
  bool tombstone() const { return kind == NodeKind::kTombstone; }
  // Bytes of the delta without the room behind it.
  size_t bytes() const { return BytesFor(size_t{key_bytes} + value_bytes); }
  // Bytes of the delta with the room behind it; 0 for a tenant, whose bytes count as its host's.
  size_t allocated_bytes() const { return tenant ? 0 : bytes() + room; }
  // Bytes of the delta's block; 0 for a tenant.
  size_t block_bytes() const { return tenant ? 0 : PageMemory::BytesOf(bytes() + room); }

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
  PageMemory::Free(const_cast<Node*>(node));
}

// First step of a split. From here on the page ends at `separator`, and the keys at or above it live in `right`.
struct SplitDelta : Delta {
  Fence own_fence;

  // Half the base below a split delta is dead, so the chain should be consolidated early.
  static constexpr uint16_t kSplitLength = 2;

  // Linked to `head`.
  static Owned<SplitDelta> New(const Node* head, std::string_view separator, PageId right);
  size_t bytes() const { return sizeof(SplitDelta) + own_fence.high_bytes; }
  size_t block_bytes() const { return PageMemory::BytesOf(bytes()); }
};

// Second step of a split: keys from `separator` up to the next separator of the page belong to `child`.
struct IndexTermDelta : Delta {
  PageId child;

  static Owned<IndexTermDelta> New(std::string_view separator, PageId child);
  void LinkTo(const Node* head) { Delta::LinkTo(head, bytes(), 1); }

  std::string_view separator() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }
  size_t bytes() const { return sizeof(IndexTermDelta) + key_bytes; }
  size_t block_bytes() const { return PageMemory::BytesOf(bytes()); }
};

// Head of a page that is being merged into its left neighbour. Once the page has no index term any more, its records
// belong to the left neighbour.
struct RemoveDelta : Delta {
  // Linked to `head`.
  static Owned<RemoveDelta> New(const Node* head);
  static size_t block_bytes() { return PageMemory::BytesOf(sizeof(RemoveDelta)); }
};

// Prefetches the deltas of a leaf's chain, for a caller that will read all of them. The deltas lie far apart, so
// following `next` takes one cache miss for each. Here the sections between jumps are followed side by side.
void PrefetchChain(const Node* head);

inline bool IsRemoved(const Node* head) { return head->kind == NodeKind::kRemove; }

// Put on a page when a flusher is about to write it.
struct FlushMark : Delta {
  StoredState state;

  static Owned<FlushMark> New(uint64_t serial);
  void LinkTo(const Node* head) { Delta::LinkTo(head, sizeof(FlushMark), 0); }
  static size_t block_bytes() { return PageMemory::BytesOf(sizeof(FlushMark)); }
};

static_assert(std::max({alignof(RecordDelta), alignof(SplitDelta), alignof(IndexTermDelta), alignof(RemoveDelta),
                        alignof(FlushMark)}) <= PageMemory::kAlignment);

}  // namespace deut::dc

#endif  // DC_BWTREE_NODE_H_
