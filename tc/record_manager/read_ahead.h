// ReadAhead: asks the DC in one message for the points that several transactions are about to read. So they find them
// in the read cache (S7), and none of them waits for the DC alone. It is a hint: the later readers read as usual, and
// ask by themselves for records that are not there. The same message carries the first batches of transactions that
// begin with a scan and were begun ahead (prefetched_scan.h).
//
// It is a reader as S7 means it. It has a timestamp of its own, which counts in the low-water from before it looks
//   until the answers are kept. For each key it raises (last_read, or the bucket's floor: R6), then looks, then asks.
//   A look that raises nothing comes first, so it raises nothing where the TC has anything of the key. Its raises
//   only refuse earlier writers, as those of the later readers would.
// It never waits for committing transactions, for a DC that is away, or for timestamps. While there are spilled runs
//   it asks for nothing, because no answer would be kept (S9).
// States:
//   idle -> collecting       Add, when a point is to be read and a timestamp was drawn; BeginScan
//   collecting -> submitted  Start; a Start that does not ask goes back to idle
//   submitted -> idle        Finish
// Thread-safety: one thread at a time. Ownership: borrows the engine, and the keys of the added operations until it
//   is idle again.
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
#include "tc/record_manager/engine.h"
#include "tc/record_manager/prefetched_scan.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {

class ReadAhead {
 public:
  // Limits for one message. All answers are kept until the last one is there.
  static constexpr size_t kMaxReads = 128;
  static constexpr size_t kMaxScans = 32;

  explicit ReadAhead(Engine& engine) : engine_(engine) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Returns true if the operation reads a point of which the TC has nothing; then Start will ask for it.
  bool Add(const Operation& operation);
  // Returns null if the transaction is not begun, and then asks for nothing of it. A prefetched scan must live until this
  // is idle again.
  std::unique_ptr<PrefetchedScan> BeginScan(const TransactionOptions& options, absl::Span<const Operation> operations);
  // Sends the message. Returns false if nothing is asked for.
  bool Start();
  // Waits for the answers until the deadline, and keeps those that have come. Returns false if some have not come in
  // time.
  bool Finish(Deadline deadline);

 private:
  // Raises, then looks. Returns true if the TC has nothing that this reader would see.
  bool RaiseAndCheckAbsent(TableId table, std::string_view key);
  bool Begin();
  void End();
  // Keeps the answer to a point read. Returns true if the read cache had no room.
  bool Keep(DataRequest* request, const SpillWatch& spilled);

  Engine& engine_;
  std::optional<ActiveTransactions::Begun> reader_;  // set while it is collecting or submitted
  uint64_t spills_ = 0;                              // number of spills before it looked
  size_t reads_ = 0;
  std::deque<DataRequest> requests_;     // the first reads_ are in use; the rest keep their memory
  std::vector<PrefetchedScan*> scans_;   // scans that have yet to ask, or have asked
  std::vector<DataRequest*> submitted_;  // requests that the DC holds: the point reads, then those of scans
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_READ_AHEAD_H_
