// BulkBytes: the bytes that large transactions hold, counted apart from the version budget (rule S9).
//
// A transaction with at least kMinBulkBytes pinned bytes is a bulk transaction. From then on it charges memory before it uses it, in steps of
//   kBulkStep. A charge stands while anything of the transaction is in memory: its record owns the hold, and every version and posting holds a
//   reference to the record. So the charge ends when the transaction has been collected: aborted, applied by the data component, or spilled.
// Rules
//   1 The charges of all bulk transactions are at most `budget` together, with one exception.
//   2 One transaction may exceed that: the first that finds no room takes the permit, by exchange, and keeps it while its hold exists. Its own
//     bound is --max_transaction_bytes.
//   3 A transaction that is charged in full is not refused because of others' bytes. One that finds neither room nor permit is treated as any
//     other writer: it is refused once pinned memory exceeds the version budget and all charges.
// Counter-example without 2: two open transactions of 1.2 GiB each, with a budget of 1 GiB. Each is refused because of the bytes of the other,
//   however often it retries, until one of them gives up. With rule 2 the holder of the permit goes on, and the other is refused.
// Counter-example without 1 and 3: one client writes 2 GiB, and every other writer is refused until the data component has applied them.
// Bound: pinned memory is at most twice the version budget, plus --max_transaction_bytes, plus a step for each bulk transaction.
// Thread-safety: all methods from any thread; a hold's Charge by its transaction alone. Ownership: shared with the holds, which may end later.
#ifndef TC_TXN_BULK_BYTES_H_
#define TC_TXN_BULK_BYTES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/testing/test_points.h"

namespace deut::tc {

class BulkBytes {
 public:
  static constexpr uint64_t kMinBulkBytes = uint64_t{1} << 20;
  static constexpr uint64_t kBulkStep = uint64_t{1} << 20;

  class Hold {
   public:
    explicit Hold(std::shared_ptr<BulkBytes> of) : of_(std::move(of)) {}
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      of_->held_.fetch_sub(bytes_, std::memory_order_relaxed);
      if (permit_) of_->permit_.store(false, std::memory_order_release);
    }

    // Returns true if a transaction that holds `bytes` now is charged for them and for the next step.
    bool Charge(uint64_t bytes, uint64_t budget) {
      while (bytes_ < bytes + kBulkStep) {
        if (!of_->TryTake(budget, &permit_)) return false;
        bytes_ += kBulkStep;
      }
      return true;
    }

   private:
    const std::shared_ptr<BulkBytes> of_;
    uint64_t bytes_ = 0;
    bool permit_ = false;
  };

  uint64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  bool TryTake(uint64_t budget, bool* permit) {
    uint64_t held = held_.load(std::memory_order_relaxed);
    while (!*permit && held + kBulkStep <= budget) {
      if (held_.compare_exchange_weak(held, held + kBulkStep, std::memory_order_relaxed)) return true;
    }
    if (!*permit) *permit = DEUT_STEP("S9.bulk_permit") && !permit_.exchange(true, std::memory_order_acquire);
    if (*permit) held_.fetch_add(kBulkStep, std::memory_order_relaxed);
    return *permit;
  }

  std::atomic<uint64_t> held_{0};
  std::atomic<bool> permit_{false};
};

}  // namespace deut::tc

#endif  // TC_TXN_BULK_BYTES_H_
