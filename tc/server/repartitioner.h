// Repartitioner: adapts every table's logical ranges to its size and updates (paper, sections 2.3.2 and 5.5;
// rule P; "Logical ranges" in tc/README.md).
//
// One thread. Every period it measures each range (range_loads.h), plans splits and merges (range_plan.h), chooses
//   where to cut (range_cuts.h), and changes the ranges that differ (tc/mvcc/range_partition.h).
// It asks the DC's Partition where the records are. It does so when the table's size has changed by an eighth, or
//   when a quarter of it was written since. It never spends more than a twentieth of the time on that. The DC's
//   answer is advice:
//   any cuts are correct.
// With a fixed number of ranges it cuts a table anew by the DC's advice when its size has doubled, and does nothing
//   else.
// Thread-safety: Start, Stop by one thread; figures from any thread. Ownership: borrows engine and DC link.
#ifndef TC_SERVER_REPARTITIONER_H_
#define TC_SERVER_REPARTITIONER_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "tc/dc_link/dc_link.h"
#include "tc/record_manager/engine.h"
#include "tc/server/range_loads.h"
#include "tc/server/range_options.h"
#include "tc/server/range_plan.h"

namespace deut::tc {

class Repartitioner {
 public:
  Repartitioner(const RangeOptions& options, Engine& engine, DcLink& dc);
  ~Repartitioner();

  void Start();
  void Stop();

  // Looks at all tables once, as the thread does every period.
  void RunOnce(Deadline deadline);

  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  // How often the DC was asked where the records are.
  uint64_t looks() const { return looks_.load(std::memory_order_relaxed); }
  // The longest time for which a range was sealed and not yet replaced.
  Duration longest_change() const { return Duration(longest_change_.load(std::memory_order_relaxed)); }

 private:
  // State of one table.
  struct Known {
    RangeLoads loads;
    uint64_t records = 0;  // at the last look
    MonotonicTime next_look{};
  };

  void Run();
  void CutAtRandom(TableState& table, Deadline deadline);
  void CutIntoFixed(TableState& table, uint64_t records, Deadline deadline);
  void Adapt(TableState& table, uint64_t records, Deadline deadline);
  void Look(const TableState& table, uint64_t records, Known* known, Deadline deadline);
  std::vector<std::string> CutsAfter(const TableState& table, const RangeLoads& loads, const RangePlan& plan) const;
  void Recut(TableState& table, const std::vector<std::string>& cuts);

  const RangeOptions options_;
  Engine& engine_;
  DcLink& dc_;
  Random random_;
  uint64_t begun_ = 0;  // transactions begun before the last random cut
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> looks_{0};
  std::atomic<int64_t> longest_change_{0};
  absl::flat_hash_map<TableId, std::unique_ptr<Known>> known_;
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_REPARTITIONER_H_
