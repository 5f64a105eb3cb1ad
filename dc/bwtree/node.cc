#include "dc/bwtree/node.h"

#include <array>
#include <cstring>
#include <new>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/page_memory.h"

namespace deut::dc {

void PrefetchChain(const Node* head) {
  constexpr size_t kMaxSections = 16;
  if (head->chain_length < Delta::kJumpLength) return;
  std::array<const Node*, kMaxSections> sections;
  size_t count = 0;
  for (const Node* node = head; node->kind != NodeKind::kBase && count < sections.size();
       node = static_cast<const Delta*>(node)->jump) {
    sections[count++] = node;
  }
  for (int step = 0; step < Delta::kJumpLength; ++step) {
    for (size_t i = 0; i < count; ++i) {
      const Node*& node = sections[i];
      if (node->kind == NodeKind::kBase) continue;
      // Prefetches the key, which does not fit into the first line.
      __builtin_prefetch(reinterpret_cast<const char*>(node) + sizeof(RecordDelta));
      node = node->next;
    }
  }
}

void FreeChain(void* head) {
  for (const Node* node = static_cast<const Node*>(head); node != nullptr;) {
    const Node* next = node->next;
    NodeDeleter()(node);
    node = next;
  }
}

namespace {

size_t BlockBytes(const Node& node) {
  switch (node.kind) {
    case NodeKind::kPut:
    case NodeKind::kTombstone:
      return static_cast<const RecordDelta&>(node).block_bytes();
    case NodeKind::kSplit:
      return static_cast<const SplitDelta&>(node).block_bytes();
    case NodeKind::kIndexTerm:
      return static_cast<const IndexTermDelta&>(node).block_bytes();
    case NodeKind::kRemove:
      return RemoveDelta::block_bytes();
    case NodeKind::kFlushMark:
      return FlushMark::block_bytes();
    case NodeKind::kBase:
      return static_cast<const BasePage&>(node).block_bytes();
  }
  FailStop("a node of an unknown kind");
}

}  // namespace

size_t ChainBytes(const Node* head) {
  size_t bytes = 0;
  for (const Node* node = head; node != nullptr; node = node->next) bytes += BlockBytes(*node);
  return bytes;
}

bool IsInDrainingSlab(const Node* head) {
  for (const Node* node = head; node != nullptr; node = node->next) {
    if (PageMemory::IsDraining(node)) return true;
  }
  return false;
}

RecordDelta* RecordDelta::Fill(void* memory, NodeKind kind, std::string_view key, std::string_view value,
                               Version version) {
  DEUT_DCHECK(key.size() <= kMaxKeyBytes);  // the node keeps the length in 16 bits
  auto* const delta = new (memory) RecordDelta;
  delta->kind = kind;
  delta->timestamp = version.timestamp;
  delta->sequence = version.sequence;
  delta->key_bytes = static_cast<uint16_t>(key.size());
  delta->key_tag = KeyTag(key);
  delta->value_bytes = static_cast<uint32_t>(value.size());
  char* data = static_cast<char*>(memory) + sizeof(RecordDelta);
  std::memcpy(data, key.data(), key.size());
  if (!value.empty()) std::memcpy(data + key.size(), value.data(), value.size());
  return delta;
}

Owned<RecordDelta> RecordDelta::New(NodeKind kind, std::string_view key, std::string_view value, Version version,
                                    size_t more) {
  const size_t bytes = BytesFor(key.size() + value.size());
  Owned<RecordDelta> delta(Fill(PageMemory::Allocate(bytes * (1 + more)), kind, key, value, version));
  delta->room = static_cast<uint32_t>(bytes * more);
  return delta;
}

Owned<RecordDelta> RecordDelta::NewOn(const Node* head, NodeKind kind, std::string_view key, std::string_view value,
                                      Version version, size_t more) {
  if (!IsRecord(head)) return New(kind, key, value, version, more);
  const auto* const host = static_cast<const RecordDelta*>(head);
  const size_t bytes = BytesFor(key.size() + value.size());
  // Relaxed order suffices: the flag publishes nothing. The memory behind the host became visible with the host
  // itself.
  if (bytes > host->room ||
      (host->room_taken.exchange(true, std::memory_order_relaxed) && DEUT_STEP("bwtree.room_taken_once"))) {
    return New(kind, key, value, version, more);
  }
  char* const memory = const_cast<char*>(reinterpret_cast<const char*>(host)) + host->bytes();
  Owned<RecordDelta> delta(Fill(memory, kind, key, value, version));
  delta->tenant = true;
  delta->room = host->room - static_cast<uint32_t>(bytes);
  return delta;
}

Owned<SplitDelta> SplitDelta::New(const Node* head, std::string_view separator, PageId right) {
  // A split moves the fence down (N4), and leaves the left page a range of its own.
  DEUT_DCHECK(separator > head->base->low());
  DEUT_DCHECK(!head->fence->bounded() || separator < head->fence->high_key());
  void* memory = PageMemory::Allocate(sizeof(SplitDelta) + separator.size());
  Owned<SplitDelta> delta(new (memory) SplitDelta);
  char* data = static_cast<char*>(memory) + sizeof(SplitDelta);
  std::memcpy(data, separator.data(), separator.size());
  delta->kind = NodeKind::kSplit;
  delta->own_fence = Fence{data, static_cast<uint32_t>(separator.size()), right};
  delta->Delta::LinkTo(head, delta->bytes(), kSplitLength);
  delta->fence = &delta->own_fence;
  delta->high_key_prefix = KeyPrefix64(separator);
  return delta;
}

Owned<IndexTermDelta> IndexTermDelta::New(std::string_view separator, PageId child) {
  void* memory = PageMemory::Allocate(sizeof(IndexTermDelta) + separator.size());
  Owned<IndexTermDelta> delta(new (memory) IndexTermDelta);
  std::memcpy(static_cast<char*>(memory) + sizeof(IndexTermDelta), separator.data(), separator.size());
  delta->kind = NodeKind::kIndexTerm;
  delta->child = child;
  delta->key_bytes = static_cast<uint16_t>(separator.size());
  return delta;
}

Owned<RemoveDelta> RemoveDelta::New(const Node* head) {
  Owned<RemoveDelta> removed(new (PageMemory::Allocate(sizeof(RemoveDelta))) RemoveDelta);
  removed->kind = NodeKind::kRemove;
  removed->Delta::LinkTo(head, sizeof(RemoveDelta), 0);
  return removed;
}

Owned<FlushMark> FlushMark::New(uint64_t serial) {
  Owned<FlushMark> mark(new (PageMemory::Allocate(sizeof(FlushMark))) FlushMark);
  mark->kind = NodeKind::kFlushMark;
  mark->state.serial = serial;
  return mark;
}

}  // namespace deut::dc
