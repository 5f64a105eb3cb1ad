// TableIndex: table id -> table state, for the look-up at the start of every operation. A hash table with open addressing. Its memory follows the
// number of tables in it, not the number of ids that were ever used.
//
// A slot is empty, holds a state, or is a gap left by an erased state. A look-up probes from the id's slot to the first empty one. An id is
//   inserted at most once, so a look-up that passes a slot while it changes misses nothing. Ids ascend, so the low bits of neighbours differ.
// When states and gaps fill half of the array, a new array without gaps replaces it. The caller frees the old array, and erased states, when no
//   look-up that began before can be in progress (catalogue.h says when that is).
// Memory order: look-ups and changes are sequentially consistent, because the caller's argument compares their places in the total order.
// Thread-safety: Find by any thread, latch-free; Insert and Erase by one thread at a time. Ownership: of the array; not of the states.
#ifndef TC_CATALOGUE_TABLE_INDEX_H_
#define TC_CATALOGUE_TABLE_INDEX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/ids.h"
#include "common/testing/test_points.h"
#include "tc/catalogue/table_state.h"

namespace deut::tc {

class TableIndex {
 public:
  TableIndex();
  ~TableIndex();
  TableIndex(const TableIndex&) = delete;
  TableIndex& operator=(const TableIndex&) = delete;

  // HOT PATH. Null: there is no state of this id.
  TableState* Find(TableId id) const {
    const Array& array = *array_.load(std::memory_order_seq_cst);
    DEUT_POINT("table_index.array_loaded");
    for (size_t at = id.value & array.mask;; at = (at + 1) & array.mask) {
      TableState* const state = array.slots[at].load(std::memory_order_seq_cst);
      if (state == nullptr) return nullptr;
      DEUT_POINT("table_index.state_loaded");
      if (state != Gap() && state->id() == id) [[likely]]
        return state;
    }
  }

  // The array that an insertion has replaced; null: none.
  using Replaced = std::shared_ptr<const void>;
  // Returns the replaced array, to be freed by the caller. REQUIRES: the state's id was never in the index.
  [[nodiscard]] Replaced Insert(TableState* state);
  // REQUIRES: the id is in the index.
  void Erase(TableId id);

  size_t capacity() const { return array_.load(std::memory_order_seq_cst)->mask + 1; }

 private:
  using Slot = std::atomic<TableState*>;
  struct Array {
    explicit Array(size_t capacity) : mask(capacity - 1), slots(std::make_unique<Slot[]>(capacity)) {}
    const size_t mask;
    const std::unique_ptr<Slot[]> slots;
  };

  static TableState* Gap() { return reinterpret_cast<TableState*>(uintptr_t{1}); }
  static void Put(const Array& array, TableState* state);

  std::atomic<const Array*> array_;
  // Used only by the one thread that changes the index.
  size_t states_ = 0;
  size_t gaps_ = 0;
};

}  // namespace deut::tc

#endif  // TC_CATALOGUE_TABLE_INDEX_H_
