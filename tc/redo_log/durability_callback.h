// DurabilityCallback: a callback for the moment when a record of the redo log is durable, so that no thread has to wait
// (asynchronous commits). Derive from it, embed it in the transaction, and register it with
// RedoLog::NotifyWhenDurable.
// Ownership: the registrar keeps it alive until OnDurable has been entered. OnDurable may destroy it.
#ifndef TC_REDO_LOG_DURABILITY_CALLBACK_H_
#define TC_REDO_LOG_DURABILITY_CALLBACK_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace deut::tc {

// How soon a record with a waiter is to be durable: at once, or when the log writes it anyway
// (RedoLogOptions::linger).
enum class Urgency : uint8_t { kUrgent, kNotUrgent };

class DurabilityCallback {
 public:
  virtual ~DurabilityCallback() = default;
  // Called exactly once, on the log thread or on a committer that has led. It must not block. It must not append to
  // the log: the append could wait for the thread that it runs on.
  //   OK: durable. CANCELLED: the log was stopped before.
  //   IO_ERROR: the log has failed; the record may or may not be durable (OUTCOME_UNKNOWN to a client).
  virtual void OnDurable(const Status& status) = 0;

 private:
  friend class DurabilityQueue;
  Lsn lsn_;
  DurabilityCallback* next_ = nullptr;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_DURABILITY_CALLBACK_H_
