// DurableSignal: bumps a ChangeWord once the log is durable past an LSN. So one thread can wait for the log and for
// other events at the same time. At most one registration is outstanding. It may outlive the owner: the log answers
// it when it stops.
// Thread-safety: Arm by one thread. Ownership: the log outlives it; the word is shared with the registration.
#ifndef TC_DC_LINK_DURABLE_SIGNAL_H_
#define TC_DC_LINK_DURABLE_SIGNAL_H_

#include <atomic>
#include <memory>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/dc_link/change_word.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class DurableSignal {
 public:
  DurableSignal(RedoLog& log, std::shared_ptr<ChangeWord> word)
      : log_(log), shared_(std::make_shared<Shared>()), word_(std::move(word)) {}

  // False: the record at `lsn` is durable already. True: the word will be bumped when it is, or when an earlier
  // registration fires. REQUIRES: the caller has loaded the word before.
  bool Arm(Lsn lsn) {
    if (log_.durable() > lsn) return false;
    if (shared_->armed.exchange(true, std::memory_order_seq_cst)) return true;
    auto* waiter = new Waiter(shared_, word_);  // OnDurable deletes it
    // True: the record became durable meanwhile, and the log did not take the waiter.
    if (log_.NotifyWhenDurable(lsn, waiter, Urgency::kNotUrgent)) {
      delete waiter;
      shared_->armed.store(false, std::memory_order_seq_cst);
      return false;
    }
    return true;
  }

 private:
  struct Shared {
    std::atomic<bool> armed{false};
  };

  class Waiter final : public DurabilityCallback {
   public:
    Waiter(std::shared_ptr<Shared> shared, std::shared_ptr<ChangeWord> word)
        : shared_(std::move(shared)), word_(std::move(word)) {}
    void OnDurable(const Status&) override {
      shared_->armed.store(false, std::memory_order_seq_cst);
      word_->Bump();
      delete this;
    }

   private:
    std::shared_ptr<Shared> shared_;
    std::shared_ptr<ChangeWord> word_;
  };

  RedoLog& log_;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<ChangeWord> word_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DURABLE_SIGNAL_H_
