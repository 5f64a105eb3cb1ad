// Report: the anomalies that a checker found in a history, and counts of what it checked.
// Thread-safety: values.
#ifndef INTEGRATION_HISTORY_REPORT_H_
#define INTEGRATION_HISTORY_REPORT_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace deut::history {

// In order of gravity, the gravest first: a report is named after the first of its anomalies.
enum class Anomaly : uint8_t {
  kMalformed,           // the history contradicts itself: nothing else in it can be judged
  kDuplicateTimestamp,  // two transactions have the same timestamp
  kGarbageRead,         // a value that no transaction wrote to this key
  kAbortedRead,         // G1a: a value of a transaction that aborted
  kIntermediateRead,    // G1b: a value that its own transaction replaced
  kInternal,            // a transaction does not see its own writes
  kScanOrder,           // results out of order, out of bounds, or beyond the limit
  // Found by the timestamp checker: differences from the state that the serial order leaves.
  kRealTimeOrder,  // a transaction completed before another was invoked, and is ordered after it
  kStaleSnapshot,  // a snapshot lacks commits that its min_timestamp asks for
  kStaleRead,      // an older state of the key
  kFutureRead,     // a value from later in the order
  kWrongList,      // the right last element after wrong ones
  kPhantom,        // a scan without a key that was there, or with one that was not
  // Found by the cycle checker.
  kDuplicateElement,   // a list holds a write twice
  kIncompatibleOrder,  // lists of one key that are not prefixes of each other
  kLostUpdate,         // two transactions updated the same version
  kG0,                 // a cycle of write-write dependencies: dirty write
  kG1c,                // ... and write-read ones: circular information flow
  kGSingle,            // one anti-dependency: read skew
  kG2Item,             // several: write skew
  kG2Predicate,        // a cycle with an anti-dependency on a scan: phantom
  kG0RealTime,         // the same five, if only the order of real time closes the cycle
  kG1cRealTime,
  kGSingleRealTime,
  kG2ItemRealTime,
  kG2PredicateRealTime,
};

const char* AnomalyName(Anomaly anomaly);

struct Violation {
  Anomaly anomaly = Anomaly::kMalformed;
  std::string message;                 // may have several lines
  std::vector<uint64_t> transactions;  // ids of the transactions that it is about
};

struct Report {
  // At most this many violations are kept; further ones are only counted.
  static constexpr size_t kMaxKept = 20;

  std::vector<Violation> violations;
  std::set<Anomaly> anomalies;
  uint64_t violation_count = 0;

  uint64_t committed = 0;  // includes those of unknown outcome that count as committed
  uint64_t aborted = 0;
  uint64_t unknown_committed = 0;
  uint64_t unknown_dropped = 0;  // of unknown outcome, without evidence of a commit
  uint64_t operations = 0;       // this and the following figures count committed transactions only
  uint64_t reads = 0;            // values and absences read by point reads and scans
  uint64_t scans = 0;
  uint64_t edges = 0;  // edges of the dependency graph

  bool ok() const { return violation_count == 0; }
  // Returns "ok", or the name of the gravest anomaly.
  std::string verdict() const;
  void Add(Anomaly anomaly, std::string message, std::vector<uint64_t> transactions);
  // Returns the verdict, the figures and the violations.
  std::string ToText() const;
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_REPORT_H_
