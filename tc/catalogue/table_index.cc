#include "tc/catalogue/table_index.h"

#include <bit>

#include "common/base/check.h"

namespace deut::tc {
namespace {

constexpr size_t kMinCapacity = 64;

}  // namespace

TableIndex::TableIndex() : array_(new Array(kMinCapacity)) {}

TableIndex::~TableIndex() { delete array_.load(std::memory_order_relaxed); }

void TableIndex::Put(const Array& array, TableState* state) {
  size_t at = state->id().value & array.mask;
  while (const TableState* const other = array.slots[at].load(std::memory_order_relaxed)) {
    DEUT_CHECK(other == Gap() || other->id() != state->id());  // a look-up would never get to the second one
    at = (at + 1) & array.mask;
  }
  array.slots[at].store(state, std::memory_order_seq_cst);
}

TableIndex::Replaced TableIndex::Insert(TableState* state) {
  const Array* const before = array_.load(std::memory_order_relaxed);
  Replaced replaced;
  // Look-ups end at an empty slot, so one must remain; at least half of the slots are empty, which keeps look-ups short.
  if (2 * (states_ + gaps_ + 1) > before->mask + 1) {
    auto after = std::make_unique<Array>(std::bit_ceil(std::max(kMinCapacity, 4 * (states_ + 1))));
    for (size_t at = 0; at <= before->mask; ++at) {
      TableState* const kept = before->slots[at].load(std::memory_order_relaxed);
      if (kept != nullptr && kept != Gap()) Put(*after, kept);
    }
    gaps_ = 0;
    array_.store(after.release(), std::memory_order_seq_cst);
    replaced = std::shared_ptr<const Array>(before);
  }
  Put(*array_.load(std::memory_order_relaxed), state);
  ++states_;
  DEUT_CHECK(2 * (states_ + gaps_) <= capacity());
  return replaced;
}

void TableIndex::Erase(TableId id) {
  const Array& array = *array_.load(std::memory_order_relaxed);
  size_t at = id.value & array.mask;
  for (;; at = (at + 1) & array.mask) {
    TableState* const state = array.slots[at].load(std::memory_order_relaxed);
    DEUT_CHECK(state != nullptr);
    if (state != Gap() && state->id() == id) break;
  }
  array.slots[at].store(Gap(), std::memory_order_seq_cst);
  --states_;
  ++gaps_;
  // A gap in front of an empty slot is useless, so it becomes empty, too. As ids ascend, few other gaps remain.
  if (array.slots[(at + 1) & array.mask].load(std::memory_order_relaxed) != nullptr) return;
  for (; array.slots[at].load(std::memory_order_relaxed) == Gap(); at = (at - 1) & array.mask) {
    DEUT_CHECK(gaps_ > 0);
    array.slots[at].store(nullptr, std::memory_order_seq_cst);
    --gaps_;
  }
}

}  // namespace deut::tc
