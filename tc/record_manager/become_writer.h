// BecomeWriter: a transaction calls it once, before its first post, publication or install (rule L2, ahead; active_transactions.h).
// A snapshot may have passed the transaction because it had only read for long. That snapshot would miss its writes, so the transaction loses.
#ifndef TC_RECORD_MANAGER_BECOME_WRITER_H_
#define TC_RECORD_MANAGER_BECOME_WRITER_H_

#include <string_view>

#include "common/base/status.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

// ABORTED: it has lost to a snapshot; no other transaction has seen anything of it. `table` and `key` of the write are for the message: no
// other transaction has anything to do with them, which is why the reason is one of its own.
inline Status BecomeWriter(Engine& engine, Transaction& txn, TableId table, std::string_view key) {
  if (txn.writer_) return Status::Ok();
  if (!engine.active.BecomeWriter(txn.slot_, txn.timestamp_)) [[unlikely]] {
    return Conflict(engine, AbortReason::kPassedBySnapshot, txn.timestamp_, table, key, engine.active.ahead());
  }
  txn.writer_ = true;
  return Status::Ok();
}

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_BECOME_WRITER_H_
