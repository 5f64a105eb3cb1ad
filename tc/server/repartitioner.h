// Repartitioner: keeps every table's logical ranges in step with its size (paper, section 2.3.2; architecture section 3).
//
// One thread. It asks the DC for the tables' sizes; a table that has grown fourfold since its ranges were made (or never had any made)
// gets a new map from the DC's Partition (tc/catalogue/range_exchange.h says how). If transactions remain open for longer than the gate may
// be closed, the attempt is repeated later, after pauses that grow. The DC's answer is advice: any cuts are correct ones.
// Thread-safety: Start, Stop by one thread; figures from any.
#ifndef TC_SERVER_REPARTITIONER_H_
#define TC_SERVER_REPARTITIONER_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "tc/catalogue/range_exchange.h"
#include "tc/dc_link/dc_link.h"
#include "tc/record_manager/engine.h"

namespace deut::tc {

class Repartitioner {
 public:
  struct Options {
    uint32_t records_per_range = 2000;
    uint32_t max_ranges = 512;
    uint32_t fixed_ranges = 0;
    Duration period = milliseconds(500);
    Duration gate = milliseconds(20);
  };

  Repartitioner(Options options, Engine& engine, DcLink& dc);
  ~Repartitioner();

  void Start();
  void Stop();

  // One look at all tables; also what the thread does every period.
  void RunOnce(Deadline deadline);

  uint64_t attempts() const { return attempts_.load(std::memory_order_relaxed); }
  uint64_t exchanges() const { return exchanges_.load(std::memory_order_relaxed); }
  // The longest that new transactions were held back.
  Duration longest_gate() const { return Duration(longest_gate_.load(std::memory_order_relaxed)); }

 private:
  void Run();
  uint32_t RangesFor(uint64_t records) const;
  bool Exchange(TableState& table, const std::vector<std::string>& cuts);

  const Options options_;
  Engine& engine_;
  DcLink& dc_;
  std::atomic<uint64_t> attempts_{0};
  std::atomic<uint64_t> exchanges_{0};
  std::atomic<int64_t> longest_gate_{0};
  RangeExchange exchange_;
  int failed_in_a_row_ = 0;
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_REPARTITIONER_H_
