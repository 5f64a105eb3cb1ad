// BecomeWriter: a transaction calls it before it posts, publishes or installs anything; only the first call has an
//   effect (rule L2, ahead; active_transactions.h).
// A snapshot may have passed the transaction, because that had been open for long and had only read. Such a snapshot
//   would miss its writes, so the transaction loses.
// Thread-safety: the transaction's thread.
#ifndef TC_RECORD_MANAGER_BECOME_WRITER_H_
#define TC_RECORD_MANAGER_BECOME_WRITER_H_

#include <string_view>

#include "common/base/status.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

// ABORTED: the transaction has lost to a snapshot. No other transaction has seen anything of it. `table` and `key` of
// the write are only for the message. The snapshot has nothing to do with them, so the abort reason is one of its
// own.
inline Status BecomeWriter(Engine& engine, Transaction& txn, TableId table, std::string_view key) {
  if (txn.writer_) return Status::Ok();
  if (!engine.active.BecomeWriter(txn.slot_, txn.timestamp_)) [[unlikely]] {
    return Conflict(engine, AbortReason::kPassedBySnapshot, txn.timestamp_, table, key,
                    engine.active.latest_passing_snapshot());
  }
  txn.writer_ = true;
  return Status::Ok();
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_BECOME_WRITER_H_
