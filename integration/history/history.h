// History: the operations and results that clients of a transactional store recorded, for the checkers to judge
// (timestamp_checker.h, cycle_checker.h).
//
// The store is empty when a history begins, so all its content comes from recorded transactions. Every write has a
// unique identity, which its value carries. A read therefore tells which transaction and which write made its value.
// A list is the sequence of its writes.
// Thread-safety: values. Units: times are nanoseconds of one monotonic clock, from any origin.
#ifndef INTEGRATION_HISTORY_HISTORY_H_
#define INTEGRATION_HISTORY_HISTORY_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deut::history {

// One write of one transaction. {0, 0} belongs to no transaction: it identifies a value that could not be parsed.
struct WriteId {
  uint64_t writer = 0;    // TransactionRecord::id
  uint32_t sequence = 0;  // counts the writes of that transaction, from 1
  friend constexpr auto operator<=>(const WriteId&, const WriteId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const WriteId& id) {
    return H::combine(std::move(h), id.writer, id.sequence);
  }
};

struct Value {
  WriteId id;                   // the write that made this value
  std::vector<WriteId> before;  // lists: the elements in front of `id`, in order; registers: empty
  friend bool operator==(const Value&, const Value&) = default;
};

enum class OperationKind : uint8_t {
  kRead,     // saw `value`, or that the key is absent (no value)
  kPresent,  // saw that the key is there, but not its value (a refused insert)
  kWrite,    // blind
  kInsert,   // saw that the key is absent, and wrote it
  kUpdate,   // saw that the key is there, and wrote it
  kAppend,   // appended to a list (an absent key is an empty list)
  kDelete,   // blind
  kScan,
};

// A scan of [low, high). An empty low is below every key, an empty high above every key.
struct Scan {
  std::string low, high;
  bool descending = false;
  uint64_t limit = 0;  // records; 0 = none
  // The bounds that the scan answers for: a limit may end it before the requested bounds.
  std::string reached_low, reached_high;
  std::vector<std::pair<std::string, Value>> results;  // in the order of the scan
  friend bool operator==(const Scan&, const Scan&) = default;
};

struct OperationRecord {
  OperationKind kind = OperationKind::kRead;
  uint32_t table = 0;
  std::string key;
  std::optional<Value> value;        // kRead: the value seen; kWrite, kInsert, kUpdate, kAppend: its id is the write
  uint32_t scan = 0;                 // kScan: index in TransactionRecord::scans
  int64_t invoke = 0, complete = 0;  // both 0: not recorded
  friend bool operator==(const OperationRecord&, const OperationRecord&) = default;
};

enum class Outcome : uint8_t {
  kCommitted,
  kAborted,  // wrote nothing
  kUnknown,  // committed or aborted
};

struct TransactionRecord {
  uint64_t id = 0;  // unique, not 0
  uint32_t client = 0;
  int64_t invoke = 0;
  int64_t complete = 0;  // meaningless if the outcome is unknown: the transaction may still be running
  // The transaction's place in the serial order; for a snapshot, the timestamp that it reads below. 0 = not known.
  uint64_t timestamp = 0;
  // The store returns no timestamp for such a transaction. Its place is any that its reads and its interval allow
  // (unknown_placement.h).
  bool untimed = false;
  Outcome outcome = Outcome::kCommitted;
  bool snapshot = false;
  uint64_t min_timestamp = 0;  // for a snapshot: it must contain everything committed at this timestamp; 0 = no demand
  std::vector<OperationRecord> operations;  // in order
  std::vector<Scan> scans;
  friend bool operator==(const TransactionRecord&, const TransactionRecord&) = default;
};

struct History {
  std::vector<TransactionRecord> transactions;  // in any order
};

// True for the kinds that write, kDelete included.
constexpr bool IsWrite(OperationKind kind) { return kind >= OperationKind::kWrite && kind <= OperationKind::kDelete; }
// True for the kinds that write a value, whose id is then the write.
constexpr bool MakesValue(OperationKind kind) {
  return kind >= OperationKind::kWrite && kind <= OperationKind::kAppend;
}

// True if [low, high) contains the key.
inline bool Within(std::string_view key, std::string_view low, std::string_view high) {
  return key >= low && (high.empty() || key < high);
}

// Calls see(key, value) for every value that the operation read, with const std::string& and const Value* (null:
// absent).
template <typename See>
void ForEachRead(const TransactionRecord& transaction, const OperationRecord& operation, See see) {
  if (operation.kind == OperationKind::kRead) {
    see(operation.key, operation.value ? &*operation.value : nullptr);
  } else if (operation.kind == OperationKind::kScan) {
    for (const auto& [key, value] : transaction.scans[operation.scan].results) see(key, &value);
  }
}

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_HISTORY_H_
