// TransactionComponent: a whole TC: redo log, concurrency control, dc link, ranges, sessions (tc/README.md; rule
// X4 for its start).
//
// States: starting -> serving -> stopped, or -> refused (a final error: fenced, the wrong DC, ...). Open recovers the
//   log and returns. A thread then waits until the DC has applied the content of the log (X4), loads the catalogue,
//   partitions the tables, and serves. Until then, and while refused, every call returns the reason.
// Thread-safety: any thread; Stop once. Ownership: borrows runtime, storage and DC, which outlive it.
#ifndef TC_SERVER_TRANSACTION_COMPONENT_H_
#define TC_SERVER_TRANSACTION_COMPONENT_H_

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "protocol/transaction_service.h"
#include "tc/server/transaction_component_options.h"

namespace deut::tc {

class TransactionComponent final : public TransactionService {
 public:
  // CORRUPTION, UNAVAILABLE (directory locked), or IO_ERROR from the log. Needs no DC.
  static Result<std::unique_ptr<TransactionComponent>> Open(TransactionComponentOptions options, Runtime& runtime,
                                                            Storage& storage, DataComponent& dc);
  ~TransactionComponent() override;

  // From now on nothing is begun, and every thread that waits for the DC or for collection gets UNAVAILABLE at once.
  // Without this a server that waits for its handlers before Stop would wait as long as they do. Any thread, any
  // number of times.
  void BeginStop();
  // BeginStop; then aborts open transactions and writes the log out. Sessions must have ended, or may only be
  // destroyed afterwards.
  void Stop();

  // Returns OK once the TC serves, the final error if it is refused, and at the deadline UNAVAILABLE, with the state
  // that it is in.
  Status WaitServing(Deadline deadline);

  bool LosesAnswers() const override { return false; }
  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<Lsn> AwaitDurable(Lsn at, Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<std::string> NameOfTable(TableId table) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override;
  Status DropCaches(Deadline deadline) override;

 private:
  struct Parts;
  // Waits until everything that has finished so far is at the DC, and is gone from here except for the read cache.
  Status WaitCollected(Deadline deadline);
  explicit TransactionComponent(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_TRANSACTION_COMPONENT_H_
