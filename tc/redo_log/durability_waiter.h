// DurabilityWaiter: somebody who is told once a record of the redo log is durable, without a thread that waits (asynchronous commits).
// Derive, embed in the transaction, register with RedoLog::NotifyWhenDurable.
// Ownership: the registrar keeps it alive until OnDurable has been entered; OnDurable may destroy it.
#ifndef TC_REDO_LOG_DURABILITY_WAITER_H_
#define TC_REDO_LOG_DURABILITY_WAITER_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace deut::tc {

// How soon a record is to be durable that somebody waits for: at once, or when it becomes so by itself (RedoLogOptions::linger).
enum class Hurry : uint8_t { kNow, kInTime };

class DurabilityWaiter {
 public:
  virtual ~DurabilityWaiter() = default;
  // Called exactly once, on the log thread or on that of a committer that has led: must not block, and must not append to the log (it could
  // wait for the thread it is on).
  // OK: durable. IO_ERROR: the log has failed, the record may or may not be durable (OUTCOME_UNKNOWN to a client). CANCELLED: the
  // log was stopped before.
  virtual void OnDurable(const Status& status) = 0;

 private:
  friend class DurabilityWaiters;
  Lsn lsn_;
  DurabilityWaiter* next_ = nullptr;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_DURABILITY_WAITER_H_
