// ReadPath: point reads. A read raises, then looks at the chain. If the chain decides nothing, the DC's record is the
//   version, and is kept in the read cache (paper 4.1; rules R2, R6, S4, S7, D1).
// Thread-safety: as RecordManager. Ownership: borrows engine and transaction.
#ifndef TC_RECORD_MANAGER_READ_PATH_H_
#define TC_RECORD_MANAGER_READ_PATH_H_

#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "tc/record_manager/bounded_wait.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class ReadPath {
 public:
  ReadPath(Engine& engine, Transaction& txn);

  Status Get(TableId table, std::string_view key, RecordBatch* result, Deadline deadline);
  Status MultiGet(absl::Span<const Operation* const> gets, absl::Span<OperationResult* const> results,
                  Deadline deadline);

  // The first step, without the DC. kAsk: the record table holds nothing for this reader, and the read is protected,
  // so the caller asks the DC. kFailed: *failed has the error, mostly a conflict.
  enum class Found : uint8_t { kAnswered, kAsk, kFailed };
  Found LookInChain(TableId table, std::string_view key, RecordBatch* result, Status* failed);

 private:
  // S7: keeps an answer of the DC. An answer of a later incarnation than the one that was asked first is good, too,
  // because it has passed the gate (X3).
  void KeepAnswer(TableId table, std::string_view key, const RecordBatch& answer);
  // A version that is paged out, to be read back without the guard (S9).
  struct InLog {
    LoggedPut put;
    Version version;
  };

  // S9: a version that no chain shows may be in a spilled run.
  Found LookInSpilled(TableId table, std::string_view key, RecordBatch* result, Status* failed);
  // Reads the value from its place in the log.
  Found ReadFromLog(const LoggedPut& put, Version version, RecordBatch* result, Status* failed);

  // Returns nothing if the caller must wait and call it again (R9), or if it has filled `in_log`, so that the caller
  // reads there.
  std::optional<Found> Look(TableId table, std::string_view key, RecordBatch* result, Status* failed,
                            std::optional<InLog>* in_log);

  Engine& engine_;
  Transaction& txn_;
  BoundedWait wait_;
  // S7: no answer is kept if anything is spilled, or may have been spilled since the look at the chain.
  const uint64_t spills_;
  bool found_runs_ = false;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_READ_PATH_H_
