// BlockingDurabilityWait: lets a thread wait, with a deadline, until a record is durable. After a missed deadline, a second wait
// for the same record continues the first one. So polling leaves no waiters behind.
// Thread-safety: one thread at a time. Ownership: the writer outlives it, or was stopped.
#ifndef TC_REDO_LOG_BLOCKING_DURABILITY_WAIT_H_
#define TC_REDO_LOG_BLOCKING_DURABILITY_WAIT_H_

#include <atomic>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "tc/redo_log/durability_callback.h"
#include "tc/redo_log/log_writer.h"

namespace deut::tc {

class BlockingDurabilityWait {
 public:
  BlockingDurabilityWait(Runtime& runtime, LogWriter& writer, Urgency urgency)
      : runtime_(runtime), writer_(writer), urgency_(urgency) {}
  ~BlockingDurabilityWait() { Drop(); }
  BlockingDurabilityWait(const BlockingDurabilityWait&) = delete;
  BlockingDurabilityWait& operator=(const BlockingDurabilityWait&) = delete;

  // As RedoLog::WaitDurable.
  Status Wait(Lsn lsn, Deadline deadline) {
    if (writer_.durable() > lsn) return Status::Ok();
    if (node_ == nullptr || node_->lsn != lsn) {
      Drop();
      node_ = new Node(runtime_, lsn);
      if (writer_.NotifyWhenDurable(lsn, node_, urgency_)) {
        node_->Release();  // it was not taken
        Drop();
        return Status::Ok();
      }
    }
    if (!node_->event.Wait(runtime_, deadline)) {
      return DEUT_ERROR(kDeadlineExceeded, "the redo log was durable up to LSN ", writer_.durable().value,
                        " at the deadline, not yet the record at ", lsn.value);
    }
    Status status = node_->status;
    Drop();
    return status;
  }

 private:
  // Held by the waiting side and, until it has answered, by the log thread. The last holder frees it.
  struct Node final : DurabilityCallback {
    Node(Runtime& r, Lsn l) : runtime(r), lsn(l) {}
    void OnDurable(const Status& s) override {
      status = s;
      event.Signal(runtime);
      Release();
    }
    void Release() {
      if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
    Runtime& runtime;
    const Lsn lsn;
    Status status;
    Event event;
    std::atomic<int> holders{2};
  };

  void Drop() {
    if (node_ != nullptr) node_->Release();
    node_ = nullptr;
  }

  Runtime& runtime_;
  LogWriter& writer_;
  const Urgency urgency_;
  Node* node_ = nullptr;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_BLOCKING_DURABILITY_WAIT_H_
