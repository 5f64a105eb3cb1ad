// The reason why a transaction was aborted: the conflict rule, the key and the other transaction.
// Every abort has one. Clients see it, and statistics count by it. Numbers travel on the wire and are never reused.
#ifndef COMMON_BASE_ABORT_REASON_H_
#define COMMON_BASE_ABORT_REASON_H_

#include <cstdint>
#include <string>

namespace deut {

// X(enumerator, number, name, meaning)
// clang-format off
#define DEUT_ABORT_REASON_TABLE(X)                                                                              \
  X(kNone, 0, "none", "not aborted")                                                                            \
  X(kWriteUncommitted, 1, "write-uncommitted", "R1: another's uncommitted version heads the record's chain")    \
  X(kWriteLater, 2, "write-later", "R1: the record was committed with a later timestamp")                       \
  X(kRecordReadLater, 3, "record-read-later", "R1: the record was read by a later transaction")                 \
  X(kBucketFloor, 4, "bucket-floor", "R6: the read floor of the record's hash bucket is later")                 \
  X(kRangeReadLater, 5, "range-read-later", "R1: the record's range was read by a later transaction")           \
  X(kTableReadLater, 6, "table-read-later", "T1: the table is being dropped by a later transaction")            \
  X(kReadUncommitted, 7, "read-uncommitted", "record read met an earlier transaction's uncommitted version")    \
  X(kRangeWriter, 8, "range-writer", "R2: range read met an earlier uncommitted writer of the range")           \
  X(kTableWriter, 9, "table-writer", "T1: dropping the table met an earlier uncommitted writer")                \
  X(kIdle, 10, "idle", "the transaction was idle for longer than the configured time")                          \
  X(kRequested, 11, "requested", "the client asked for it or went away")                                        \
  X(kShutdown, 12, "shutdown", "the transaction component is stopping")                                         \
  X(kFailedOperation, 13, "failed-operation", "an operation of the transaction failed; see the message")        \
  X(kOverBudget, 14, "over-budget", "S9: what waited for it took more than the budget of versions")        \
  X(kPassedBySnapshot, 15, "passed-by-snapshot", "L2, ahead: a snapshot passed it, as it had only read")
// clang-format on

enum class AbortReason : uint8_t {
#define DEUT_ABORT_REASON_ENUM(enumerator, number, name, meaning) enumerator = number,
  DEUT_ABORT_REASON_TABLE(DEUT_ABORT_REASON_ENUM)
#undef DEUT_ABORT_REASON_ENUM
};

constexpr int kAbortReasonCount = 16;

// Returns the table's short name ("range-writer"); "unknown" for a number that is not in the table.
const char* AbortReasonName(AbortReason reason);

// Everything known about one abort. `key` and `other_timestamp` (0 = unknown) belong to the conflict that decided it.
struct AbortInfo {
  AbortReason reason = AbortReason::kNone;
  uint32_t table = 0;
  std::string key = {};
  uint64_t other_timestamp = 0;
};

}  // namespace deut

#endif  // COMMON_BASE_ABORT_REASON_H_
