// ReadAhead: what several transactions are about to read by points is asked of the DC in one message, so that they find it in the read cache (S7) and
// none of them waits for it alone. A hint: whoever reads afterwards reads as ever, and asks for itself what is not there. In the same message go the
// first batches of transactions that begin with a scan, and have been begun for that (begun_scan.h).
//
// It is a reader as S7 means it: it has a timestamp of its own, which counts in the low-water from before it looks until what was answered is kept;
//   of each key it raises (last_read, or the bucket's floor: R6), then looks, then asks. A look that raises nothing comes before, so where the TC has
//   anything of a key nothing is raised. What it raises only refuses earlier writers, as the later readers would.
// It waits for nobody: not for who is committing, not for a DC that is away, not for timestamps. Where there are spilled runs it asks for nothing, as
//   nothing would be kept (S9).
// States: idle -> wanting (Want: something is wanted, it has a timestamp; BeginScan) -> asked (Start) -> idle (Finish).
//   A Start that does not ask: idle.
// Thread-safety: one thread at a time. Ownership: borrows the engine, and the keys of what is wanted until it is idle again.
#ifndef TC_RECORD_MANAGER_READ_AHEAD_H_
#define TC_RECORD_MANAGER_READ_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/read_cache.h"
#include "tc/record_manager/begun_scan.h"
#include "tc/record_manager/engine.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {

class ReadAhead {
 public:
  // What is asked for at once: the answers are kept until they are all there.
  static constexpr size_t kMostReads = 128;
  static constexpr size_t kMostScans = 32;

  explicit ReadAhead(Engine& engine) : engine_(engine) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // True: the operation reads a point of which the TC has nothing, and it will be asked for.
  bool Want(const Operation& operation);
  // Null: it is not begun, and nothing of it is asked for. What is begun stays until this is idle again.
  std::unique_ptr<BegunScan> BeginScan(const TransactionOptions& options, absl::Span<const Operation> operations);
  // False: nothing is asked for.
  bool Start();
  // Waits for the answers, to the deadline at most, and keeps what has come. False: not all has come in time.
  bool Finish(Deadline deadline);

 private:
  // Nothing that this reader would see is in the TC; it has raised, then looked.
  bool Absent(TableId table, std::string_view key);
  bool Begin();
  void End();
  // Keeps the answer to a point read. True: there was no room.
  bool Keep(DataRequest* request, const SpillWatch& spilled);

  Engine& engine_;
  std::optional<ActiveTransactions::Begun> reader_;  // while it wants or asks
  uint64_t spills_ = 0;                              // as it was before it looked
  size_t wanted_ = 0;
  std::deque<DataRequest> requests_;  // the first wanted_ are in use; the rest keep their memory
  std::vector<BegunScan*> scans_;     // that have yet to ask, or have asked
  std::vector<DataRequest*> asked_;   // those in the DC's hands; the wanted ones, then those of scans
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_READ_AHEAD_H_
