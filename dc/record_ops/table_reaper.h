// TableReaper: frees the trees of dropped tables on a thread of its own, kPagesPerStep pages at a time, so that no thread waits for a large one.
//
// States of a tree: dropped (out of the registry, in the reclamation domain: threads inside a guard may still look at it), doomed (Add:
//   nobody can see it), freed. The domain's deleter only hands the tree over, whatever thread it runs on.
// A step frees one page after another; before it frees an inner page it notes the ids of that page's children. So a step holds no more in
//   memory than the ids of the neighbours on one path.
// Checkpoints: a page that was freed has no image any more, and its id waits in limbo as every freed id does (mapping_table.h). A checkpoint
//   in the middle names images of pages that are not freed yet, under no root. A start from it frees them, as no page names them
//   (recovery.h), and redo repeats the drop if the checkpoint still had the table.
// Thread-safety: all methods from any thread; Stop by one. Ownership: the reaper owns doomed tables. The mapping table and the domain of
//   their trees outlive the call of Stop. A thread that adds a table after that call frees the table itself.
#ifndef DC_RECORD_OPS_TABLE_REAPER_H_
#define DC_RECORD_OPS_TABLE_REAPER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {

class TableReaper;

struct Table {
  TableId id;
  std::string name;
  std::unique_ptr<BwTree> tree;
  TableReaper* reaper = nullptr;  // null: whoever collects the table frees it
  Table* next_doomed = nullptr;   // the reaper's
};

class TableReaper {
 public:
  // Less than a millisecond, for pages of 32 KiB.
  static constexpr size_t kPagesPerStep = 64;

  explicit TableReaper(Runtime& runtime);
  ~TableReaper();
  TableReaper(const TableReaper&) = delete;
  TableReaper& operator=(const TableReaper&) = delete;

  // Latch-free. REQUIRES: no thread can see the table.
  void Add(Table* table);
  // Frees the rest at once.
  void Stop();

  // Tables that are doomed and not freed yet; their bytes in memory.
  uint64_t tables() const { return tables_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Pages freed since the start.
  uint64_t pages_freed() const { return pages_freed_.load(std::memory_order_relaxed); }

 private:
  void Run();
  // Frees all that was added, in steps until `stop_`, then at once.
  void FreeAdded();
  void Free(Table* table);

  Runtime& runtime_;
  std::atomic<Table*> added_{nullptr};
  std::atomic<uint32_t> wakes_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> tables_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> pages_freed_{0};
  std::unique_ptr<Thread> thread_;  // the last member: it uses the others
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_TABLE_REAPER_H_
