// BegunScan: a transaction that begins with a scan, begun before its thread comes to it, so that the first batches of many such transactions are
// asked of the DC in one message (read_ahead.h).
//
// It is the transaction itself, not a hint: it has its timestamp, and counts in the low-water (L1) from before it looks until it has ended; it has
//   raised, looked at and gathered its first stretch (R2) before it asks (S4). Whoever runs it later goes on from there, as a scan does whose
//   DC took so long: updates that come between are of later transactions, which it does not see, or of earlier ones, which its raise refuses.
// Who may be begun so: a serializable transaction that writes and declares nothing, so while it waits to be run nobody meets anything of it but what
//   it has raised, and it waits for nothing that one of those behind it has, but for the DC. A writer in the way at the very beginning (R8), spilled
//   runs, which would have to be read, a table that the DC does not know, a full budget (Engine::scan_ahead), and many that are begun already
//   (Engine::begun_scans) keep it from being begun.
// X3: it is run only where the DC has answered what was asked, in the life that was asked, and in time. Else it ends, and whoever runs the
//   transaction begins it anew, behind the gate, with the time that its client gives it: so nothing that was begun waits for a DC that is away.
// States: begun -> asked (ReadAhead::Start) -> answered (Asked) -> taken (Take: it is the session's). From all but taken: given up (GiveUp; Asked,
//   without an answer; the destructor), which ends the transaction. While it is asked the DC has its request.
// Thread-safety: one thread at a time. Ownership: borrows the engine; owns what its request refers to.
#ifndef TC_RECORD_MANAGER_BEGUN_SCAN_H_
#define TC_RECORD_MANAGER_BEGUN_SCAN_H_

#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "protocol/data_component.h"
#include "protocol/transaction_service.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class BegunScan final : public BegunOneShot {
 public:
  // Null: it is not for that, or not now.
  static std::unique_ptr<BegunScan> TryBegin(Engine& engine, const TransactionOptions& options,
                                             absl::Span<const Operation> operations);
  // REQUIRES: the DC does not have the request.
  ~BegunScan() override { GiveUp(); }
  BegunScan(const BegunScan&) = delete;
  BegunScan& operator=(const BegunScan&) = delete;

  // REQUIRES: it is begun.
  DataRequest* request();
  // The DC does not have the request any more.
  void Asked();
  void GiveUp();
  // The transaction, to go on with: its first operation takes up the scan. Null: it has been given up, or taken.
  std::unique_ptr<Transaction> Take();

 private:
  explicit BegunScan(Engine& engine) : engine_(engine) {}

  Engine& engine_;
  ScanPermit permit_;  // while it has the transaction
  std::unique_ptr<Transaction> txn_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_BEGUN_SCAN_H_
