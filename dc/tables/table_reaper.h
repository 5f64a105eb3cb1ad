// TableReaper: frees the trees of dropped tables on a thread of its own, kPagesPerStep pages at a time, so that no
// thread waits for a large tree. After each step it pauses for as long as the step took, so that it takes at most half
// of a processor from the threads that work. It holds no guard and no mutex while it pauses.
//
// States of a tree: dropped, doomed, freed. A dropped tree is out of the registry and in the reclamation domain:
// threads inside a guard may still read it. After Add it is doomed: no thread can see it. The domain's deleter only
// hands the tree over, whatever thread it runs on.
// A step frees one page after another. Before it frees an inner page, it notes the ids of that page's children. So a
// step holds only the ids of the neighbours on one path in memory.
// Checkpoints: a freed page no longer has an image, and its id waits in limbo like every freed id (mapping_table.h).
// A checkpoint that is taken in the middle contains images of pages that are not freed yet, but no root that leads to
// them. A recovery from it frees these pages, because no page names them (recovery.h). If the checkpoint still had
// the table, redo repeats the drop.
// Thread-safety: all methods from any thread; Stop by one thread. Ownership: the reaper owns doomed tables. The
// mapping table and the domain of their trees outlive the call of Stop. A thread that adds a table after that call
// frees the table itself.
#ifndef DC_TABLES_TABLE_REAPER_H_
#define DC_TABLES_TABLE_REAPER_H_

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
  TableReaper* reaper = nullptr;  // null: the thread that collects the table frees it
  Table* next_doomed = nullptr;   // used by the reaper only
};

class TableReaper {
 public:
  // Freeing this many pages of 32 KiB takes less than a millisecond.
  static constexpr size_t kPagesPerStep = 64;

  explicit TableReaper(Runtime& runtime);
  ~TableReaper();
  TableReaper(const TableReaper&) = delete;
  TableReaper& operator=(const TableReaper&) = delete;

  // Latch-free. REQUIRES: no thread can see the table.
  void Add(Table* table);
  // Frees the remaining tables at once.
  void Stop();

  // tables(): number of tables that are doomed and not freed yet. bytes(): their bytes in memory.
  uint64_t tables() const { return tables_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Pages freed since the start.
  uint64_t pages_freed() const { return pages_freed_.load(std::memory_order_relaxed); }

 private:
  void Run();
  // Frees all added tables, in steps until `stop_` is set, then at once.
  void FreeAdded();
  void Free(Table* table);
  // Waits for `time`, or until the reaper is to stop.
  void Pause(Duration time);

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

#endif  // DC_TABLES_TABLE_REAPER_H_
