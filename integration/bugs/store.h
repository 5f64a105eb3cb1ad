// Store: one life of a whole store, or of a TC on a DC of somebody else, in this process, on a disk that may fail. The end of the
// redo log, at which a tcd stops, is here an event: the store answers with errors until it is destroyed.
// Thread-safety: client() and failure() from any thread; the rest by one. Ownership: storage and pages outlive it; transactions end before it.
#ifndef INTEGRATION_BUGS_STORE_H_
#define INTEGRATION_BUGS_STORE_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "integration/bugs/environment.h"
#include "integration/bugs/link.h"
#include "integration/bugs/severable_service.h"
#include "integration/power/checkpointing_dc.h"
#include "protocol/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut::bugs {

// A DC's next life. `pages` null: its pages are on `storage`; else they are kept there. `on_failure`: the disk has failed.
Result<std::unique_ptr<DataComponent>> OpenDc(const Environment& environment, Storage& storage, power::KeptPages* pages,
                                              std::function<void(const Status&)> on_failure);

class Store {
 public:
  // Returns when it serves; else with the reason: the log's failure, why it is refused, or that `powerless` has become true.
  // `pages`: see OpenDc.
  static Result<std::unique_ptr<Store>> Open(const Environment& environment, Storage& storage, power::KeptPages* pages,
                                             absl::FunctionRef<bool()> powerless);
  // The TC alone; the DC outlives it.
  static Result<std::unique_ptr<Store>> Open(const Environment& environment, Storage& storage, DataComponent& dc,
                                             absl::FunctionRef<bool()> powerless);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Client& client() { return *client_; }
  // From now on client() hears nothing any more; neighbour() still does.
  void Sever() { severable_->Sever(); }
  Client& neighbour() { return *neighbour_; }
  // Of the first table. Waits, up to `patience`: a log that has just begun may still wait for its next segment.
  Result<TableId> CreateTable(std::string_view name, Duration patience);
  // The log's failure or the DC's, or why the TC refuses to serve; OK while there is none.
  Status failure() { return failure_->status(); }
  // `dead` is called while none lives. REQUIRES: a DC of its own.
  Status RestartDc(absl::FunctionRef<void()> dead);
  // Gives up soon: a store whose log has failed collects nothing more.
  Status DropCaches();

 private:
  // The first that has happened. The DC is there before the store.
  class Failure {
   public:
    Failure() : mutex_(RealRuntime()) {}
    void Note(const Status& status) DEUT_EXCLUDES(mutex_);
    Status status() DEUT_EXCLUDES(mutex_);

   private:
    Mutex mutex_;
    Status status_ DEUT_GUARDED_BY(mutex_);
  };

  explicit Store(std::shared_ptr<Failure> failure) : failure_(std::move(failure)) {}
  static Result<std::unique_ptr<Store>> Open(const Environment& environment, Storage& storage, DataComponent& dc,
                                             absl::FunctionRef<bool()> powerless, std::shared_ptr<Failure> failure);

  const std::shared_ptr<Failure> failure_;
  std::unique_ptr<InProcessDataComponent> dc_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<tc::TransactionComponent> tc_;
  std::unique_ptr<SeverableService> severable_;
  std::unique_ptr<Client> client_, neighbour_;
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_STORE_H_
