// Repartitioner: keeps every table's logical ranges in step with its size (paper, section 2.3.2; architecture section 3).
//
// One thread. It asks the DC for the tables' sizes; a table that has doubled since its ranges were made (or never had any made)
// gets new ranges from the DC's Partition (tc/mvcc/range_partition.h says how). The DC's answer is advice: any cuts are correct ones.
// Thread-safety: Start, Stop by one thread; figures from any.
#ifndef TC_SERVER_REPARTITIONER_H_
#define TC_SERVER_REPARTITIONER_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "tc/dc_link/dc_link.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

class Repartitioner {
 public:
  struct Options {
    uint32_t records_per_range = 2000;
    uint32_t max_ranges = 8192;
    uint32_t fixed_ranges = 0;
    Duration period = milliseconds(500);
  };

  Repartitioner(Options options, Engine& engine, DcLink& dc);
  ~Repartitioner();

  void Start();
  void Stop();

  // One look at all tables; also what the thread does every period.
  void RunOnce(Deadline deadline);

  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  // The longest that a range was sealed and not yet replaced.
  Duration longest_change() const { return Duration(longest_change_.load(std::memory_order_relaxed)); }

 private:
  void Run();
  uint32_t RangesFor(uint64_t records) const;

  const Options options_;
  Engine& engine_;
  DcLink& dc_;
  std::atomic<uint64_t> changes_{0};
  std::atomic<int64_t> longest_change_{0};
  // Records at the last partitioning.
  absl::flat_hash_map<const TableState*, uint64_t> partitioned_;
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_REPARTITIONER_H_
