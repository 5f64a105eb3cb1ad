// RangeExchange: new ranges for a table, in place of the old ones (architecture section 3; what remains of rules P when nothing is open while
// the map is swung). The new ranges remember the latest last_read of the old ones they overlap, and hold a posting of every uncollected transaction
// that wrote into them; so nothing that was read is forgotten, and nothing that is only in the TC is missed by a gather.
//
// Steps, on the collector's thread, so that nothing is collected meanwhile and nobody waits for a round of it with the gate closed:
//   1. Close the gate to new transactions and wait, for the time given, until none is open. If some remain: open it, give up.
//   2. Take over what has finished. If only little is left to be posted into the new ranges (counted in keys), post it, raise their
//      last_read, swing the map, open the gate; then retire the old map.
//   3. Else open the gate and post into the new ranges, which nobody sees yet, while transactions go on; take over what has finished
//      meanwhile, until only little is left; then from 1 again.
// So what happens behind the closed gate is bounded, whatever the backlog is.
// Thread-safety: one exchange of a table at a time. Readers of the old map hold a guard.
#ifndef TC_CATALOGUE_RANGE_EXCHANGE_H_
#define TC_CATALOGUE_RANGE_EXCHANGE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "tc/catalogue/table_state.h"
#include "tc/mvcc/collector.h"
#include "tc/txn/active_transactions.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class RangeExchange {
 public:
  // Keys that are posted with the gate closed, at most (and those of the transaction that passes the limit).
  static constexpr size_t kKeysBehindGate = 1024;

  RangeExchange(Runtime& runtime, ReclamationDomain& domain, ActiveTransactions& active, Collector& collector)
      : runtime_(runtime), domain_(domain), active_(active), collector_(collector) {}

  // `cuts`: ascending, distinct, non-empty keys. False: transactions remained open for longer than `gate`, and nothing has changed.
  // REQUIRES: the collector is started; the calling thread has no open transaction.
  bool Run(TableState& table, const std::vector<std::string>& cuts, Duration gate);

  // The longest that the gate was closed.
  Duration longest_gate() const { return longest_gate_; }

 private:
  using Records = std::vector<TransactionRecord*>;

  bool RunOnCollector(Collector::Access& access, Duration gate);
  bool CloseGate(Duration gate);
  void OpenGate();
  // More than kKeysBehindGate keys. Looks at no more of them than that.
  static bool Many(const Records& records);
  // Into the new ranges.
  void Post(const Records& records);
  void RaiseLastReads();
  void RetireOld(const RangeMap* old_map, Collector::Access& access);

  Runtime& runtime_;
  ReclamationDomain& domain_;
  ActiveTransactions& active_;
  Collector& collector_;

  TableState* table_ = nullptr;
  std::unique_ptr<RangeMap> new_map_;
  std::vector<std::pair<TransactionRecord*, Range*>> posted_;
  MonotonicTime closed_at_;
  Duration longest_gate_{0};
};

}  // namespace deut::tc

#endif  // TC_CATALOGUE_RANGE_EXCHANGE_H_
