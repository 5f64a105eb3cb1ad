// FakeTransactions: a transaction table for tests of the link: a counter, and at most one old transaction that holds
// low-water and redo start back.
// Thread-safety: all methods from any thread. Ownership: the log outlives it.
#ifndef TC_DC_LINK_FAKE_TRANSACTIONS_H_
#define TC_DC_LINK_FAKE_TRANSACTIONS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "common/base/ids.h"
#include "tc/dc_link/active_floor_source.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class FakeTransactions final : public LowWaterSource, public ActiveFloorSource {
 public:
  explicit FakeTransactions(Timestamp first) : next_(first.value) {}

  // The log whose tail bounds the first records of transactions that begin later.
  void set_log(RedoLog* log) { log_.store(log); }
  Timestamp Draw() { return Timestamp{next_.fetch_add(1)}; }
  Timestamp next() const { return Timestamp{next_.load()}; }
  // A start of the TC: timestamps are drawn from here on.
  void SkipTo(Timestamp first) { next_.store(std::max(next_.load(), first.value)); }
  // An active transaction of this timestamp; UINT64_MAX = none.
  void HoldBackAt(uint64_t timestamp) { oldest_.store(timestamp); }
  void Release() { oldest_.store(UINT64_MAX); }
  // An active transaction whose first record is at or behind `lsn`; UINT64_MAX = none.
  void HoldRecordsFrom(uint64_t lsn) { first_record_.store(lsn); }
  uint64_t rounds() const { return rounds_.load(); }

  Timestamp low_water() const override { return Timestamp{low_water_.load()}; }
  Timestamp AdvanceNow() override {
    rounds_.fetch_add(1);
    const uint64_t counter = next_.load();
    const uint64_t low = std::min(counter, oldest_.load());
    uint64_t seen = low_water_.load();
    while (seen < low && !low_water_.compare_exchange_weak(seen, low)) {
    }
    return low_water();
  }
  Lsn OldestFirstRecord() const override { return std::min(log_.load()->tail(), Lsn{first_record_.load()}); }

 private:
  std::atomic<RedoLog*> log_{nullptr};
  std::atomic<uint64_t> next_;
  std::atomic<uint64_t> oldest_{UINT64_MAX};
  std::atomic<uint64_t> low_water_{0};
  std::atomic<uint64_t> first_record_{UINT64_MAX};
  std::atomic<uint64_t> rounds_{0};
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_FAKE_TRANSACTIONS_H_
