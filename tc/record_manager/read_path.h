// Point reads: raise, then look; the chain decides, else the DC's record is the version (paper 4.1; rules R2, R6, S4, S7, D1), and is kept in the
// read cache.
// Thread-safety: as RecordManager.
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

  // Step one, without the DC. kAsk: the record table holds nothing for this reader, and the read is protected: ask the DC.
  // kFailed: *failed says why; a conflict, mostly.
  enum class Found : uint8_t { kAnswered, kAsk, kFailed };
  Found LookInChain(TableId table, std::string_view key, RecordBatch* result, Status* failed);

 private:
  // S7: what the DC has answered. An answer of a later life than the one that was asked first is good, too: it is behind the gate (X3).
  void KeepAnswer(TableId table, std::string_view key, const RecordBatch& answer);
  // A version that is paged out, to be read back without the guard (S9).
  struct InLog {
    LoggedPut put;
    Version version;
  };

  // S9: what no chain shows may be in a spilled run.
  Found LookInSpilled(TableId table, std::string_view key, RecordBatch* result, Status* failed);
  // The value is where the log says.
  Found ReadFromLog(const LoggedPut& put, Version version, RecordBatch* result, Status* failed);

  // Nothing: to be called again after a wait (R9), or, if `in_log` has been filled, to be read there.
  std::optional<Found> Look(TableId table, std::string_view key, RecordBatch* result, Status* failed,
                            std::optional<InLog>* in_log);

  Engine& engine_;
  Transaction& txn_;
  BoundedWait wait_;
  // S7: nothing is kept where something was spilled, or may have been since the chain was looked at.
  const uint64_t spills_;
  bool found_runs_ = false;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_READ_PATH_H_
