// PrefetchedScan: a transaction that begins with a scan, and is begun before a session's thread runs it. So the first
// batches of many such transactions are asked of the DC in one message (read_ahead.h).
//
// It is the transaction itself, not a hint. It has its timestamp, and counts in the low-water (L1) from before it
//   looks until it has ended. It has raised, looked at and gathered its first stretch (R2) before it asks the DC
//   (S4). The session that runs it later continues like a scan whose DC took that long to answer. Updates installed
//   meanwhile belong to later transactions, which the scan does not see, or to earlier ones, which its raise refuses.
// A transaction may be begun ahead only if all of this holds:
// - It is serializable, and neither writes nor declares anything. So while it waits to be run, other transactions
//   meet nothing of it but what it has raised. It waits for nothing that a transaction behind it holds, only for the
//   DC.
// - No earlier uncommitted writer is in the way at the very beginning of the scan (R8).
// - There are no spilled runs, which would have to be read, and the DC knows the table.
// - The budget Engine::scan_ahead has room, and Engine::prefetched_scans has a permit.
// X3: the transaction is run only if the DC has answered the request, in the incarnation that was asked, and in time.
//   Otherwise it is aborted, and the session begins the client's transaction anew, behind the gate, with the client's
//   deadline. So no begun transaction waits for a DC that is away.
// States: begun -> asked (ReadAhead::Start) -> answered (OnRequestReturned) -> taken (TakeTransaction: the session
//   owns it). Every state but taken can become given up (GiveUp, OnRequestReturned without an answer, the destructor),
//   which aborts the transaction. While the state is asked the DC link holds the request.
// Thread-safety: one thread at a time. Ownership: borrows the engine; owns everything that its request refers to.
#ifndef TC_RECORD_MANAGER_PREFETCHED_SCAN_H_
#define TC_RECORD_MANAGER_PREFETCHED_SCAN_H_

#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "protocol/data_component.h"
#include "protocol/transaction_service.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class PrefetchedScan final : public BegunOneShot {
 public:
  // Begins the transaction and gathers its first stretch. Returns null if it may not be begun ahead, or cannot be
  // now.
  static std::unique_ptr<PrefetchedScan> TryBegin(Engine& engine, const TransactionOptions& options,
                                                  absl::Span<const Operation> operations);
  // REQUIRES: the DC link does not hold the request.
  ~PrefetchedScan() override { GiveUp(); }
  PrefetchedScan(const PrefetchedScan&) = delete;
  PrefetchedScan& operator=(const PrefetchedScan&) = delete;

  // The request for the first batch. REQUIRES: it is neither taken nor given up.
  DataRequest* request();
  // Says that the DC link no longer holds the request. Without an answer the transaction is given up.
  void OnRequestReturned();
  void GiveUp();
  // Returns the transaction. Its first operation continues the scan. Returns null if it was given up or taken before.
  std::unique_ptr<Transaction> TakeTransaction();

 private:
  explicit PrefetchedScan(Engine& engine) : engine_(engine) {}

  Engine& engine_;
  ScanPermit permit_;  // held as long as it has the transaction
  std::unique_ptr<Transaction> txn_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_PREFETCHED_SCAN_H_
