// History: what clients of a transactional store did and saw, to be judged by the checkers (timestamp_checker.h, cycle_checker.h).
//
// The store is empty when a history begins: what is there before is written by recorded transactions. Every write has an identity of its
// own, which its value carries, so that a read says by whom and by which write its value was made; a list is the value's writes in order.
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

// One write of one transaction. {0, 0} is nobody's: the identity of a value that could not be understood.
struct WriteId {
  uint64_t writer = 0;    // TransactionRecord::id
  uint32_t sequence = 0;  // of the writes of that transaction, from 1
  friend constexpr auto operator<=>(const WriteId&, const WriteId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const WriteId& id) {
    return H::combine(std::move(h), id.writer, id.sequence);
  }
};

struct Value {
  WriteId id;                   // the write that made this value
  std::vector<WriteId> before;  // lists: the elements in front of it, in order; registers: none
  friend bool operator==(const Value&, const Value&) = default;
};

enum class OperationKind : uint8_t {
  kRead,     // `value`, or nothing: absent
  kPresent,  // the key is there; its value is not known (a refused insert)
  kWrite,    // blind
  kInsert,   // saw that the key is absent, and wrote
  kUpdate,   // saw that the key is there, and wrote
  kAppend,   // to a list (an absent key is an empty one)
  kDelete,   // blind
  kScan,
};

// Of a scan of [low, high); an empty low is below every key, an empty high above.
struct Scan {
  std::string low, high;
  bool descending = false;
  uint64_t limit = 0;  // records; 0 = none
  // What the scan answers for: a limit may end it before the requested bounds.
  std::string reached_low, reached_high;
  std::vector<std::pair<std::string, Value>> results;  // in the order of the scan
  friend bool operator==(const Scan&, const Scan&) = default;
};

struct OperationRecord {
  OperationKind kind = OperationKind::kRead;
  uint32_t table = 0;
  std::string key;
  std::optional<Value> value;        // kRead: what was seen; kWrite, kInsert, kUpdate, kAppend: its id is the write
  uint32_t scan = 0;                 // kScan: place in TransactionRecord::scans
  int64_t invoke = 0, complete = 0;  // both 0: not recorded
  friend bool operator==(const OperationRecord&, const OperationRecord&) = default;
};

enum class Outcome : uint8_t {
  kCommitted,
  kAborted,  // has written nothing
  kUnknown,  // committed or aborted
};

struct TransactionRecord {
  uint64_t id = 0;  // unique, not 0
  uint32_t client = 0;
  int64_t invoke = 0;
  int64_t complete = 0;  // of no meaning if the outcome is unknown: it may still be going on
  // Its place in the serial order; of a snapshot the timestamp that it reads below. 0 = not known.
  uint64_t timestamp = 0;
  // The store tells no timestamp of such transactions: it stands where the reads and its interval allow it (unknown_placement.h).
  bool untimed = false;
  Outcome outcome = Outcome::kCommitted;
  bool snapshot = false;
  uint64_t min_timestamp =
      0;  // of a snapshot: contains at least what was committed at this time; 0 = asked for nothing
  std::vector<OperationRecord> operations;  // in order
  std::vector<Scan> scans;
  friend bool operator==(const TransactionRecord&, const TransactionRecord&) = default;
};

struct History {
  std::vector<TransactionRecord> transactions;  // in any order
};

// True for the kinds that write (kDelete among them).
constexpr bool IsWrite(OperationKind kind) { return kind >= OperationKind::kWrite && kind <= OperationKind::kDelete; }
// True for the kinds whose value's id is a write.
constexpr bool MakesValue(OperationKind kind) {
  return kind >= OperationKind::kWrite && kind <= OperationKind::kAppend;
}

// Whether a scan's bounds hold the key.
inline bool Within(std::string_view key, std::string_view low, std::string_view high) {
  return key >= low && (high.empty() || key < high);
}

// Calls see(key, value) for every value that the operation read: const std::string&, const Value* (null: absent).
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
