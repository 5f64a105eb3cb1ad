// Store: one life of a whole store, or of a TC on a DC of another owner, in this process, on a disk that may fail. A
// failure of the redo log, which ends the process of a tcd, is an event here: the store answers with errors until it
// is destroyed.
// Thread-safety: any thread may call client() and failure(); one thread calls the rest. Ownership: storage and pages
// outlive the store; transactions end before it.
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
#include "protocol/data/in_process_data_component.h"
#include "tc/client/client.h"
#include "tc/server/transaction_component.h"

namespace deut::bugs {

// Opens a new incarnation of a DC. If `pages` is null, its pages are on `storage`; else it keeps its records in
// `pages`. `on_failure` is called when the disk fails.
Result<std::unique_ptr<DataComponent>> OpenDc(const Environment& environment, Storage& storage, power::KeptPages* pages,
                                              std::function<void(const Status&)> on_failure);

class Store {
 public:
  // Returns when the store serves, else with the reason: the log's failure, a refusal, or that `powerless` returned
  // true. `pages`: see OpenDc.
  static Result<std::unique_ptr<Store>> Open(const Environment& environment, Storage& storage, power::KeptPages* pages,
                                             absl::FunctionRef<bool()> powerless);
  // Opens only the TC; the DC outlives it.
  static Result<std::unique_ptr<Store>> Open(const Environment& environment, Storage& storage, DataComponent& dc,
                                             absl::FunctionRef<bool()> powerless);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Client& client() { return *client_; }
  // From now on client() gets no answers; neighbour() still does.
  void CutOffClients() { severable_->CutOffClients(); }
  Client& neighbour() { return *neighbour_; }
  // Creates the first table. Retries for up to `patience`, because a new log may still wait for its next segment.
  Result<TableId> CreateTable(std::string_view name, Duration patience);
  // Returns the log's failure, the DC's, or the reason why the TC refuses to serve; OK if there is none.
  Status failure() { return failure_->status(); }
  // Calls `dead` between the two incarnations. REQUIRES: the store has a DC of its own.
  Status RestartDc(absl::FunctionRef<void()> dead);
  // Has a short timeout, because a store whose log has failed collects no more versions.
  Status DropCaches();

 private:
  // Keeps the first failure. It is a separate object, because the DC exists before the store does.
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
