// Report: what a checker found in a history, and over how much.
// Thread-safety: values.
#ifndef INTEGRATION_HISTORY_REPORT_H_
#define INTEGRATION_HISTORY_REPORT_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace deut::history {

// In the order of gravity: what a report is named after is the first of those found.
enum class Anomaly : uint8_t {
  kMalformed,           // the history contradicts itself: nothing else in it can be judged
  kDuplicateTimestamp,  // two transactions at one place
  kGarbageRead,         // a value that nobody wrote to this key
  kAbortedRead,         // G1a: a value of a transaction that aborted
  kIntermediateRead,    // G1b: a value that its own transaction replaced
  kInternal,            // a transaction does not see its own writes
  kScanOrder,           // results out of order, outside of the bounds, beyond the limit
  // The timestamp checker's: what differs from the state that the serial order leaves.
  kRealTimeOrder,  // completed before another was invoked, and ordered after it
  kStaleSnapshot,  // without what its min_timestamp asks for
  kStaleRead,      // an older state of the key
  kFutureRead,     // a value from later in the order
  kWrongList,      // the right last element after wrong ones
  kPhantom,        // a scan without a key that was there, or with one that was not
  // The cycle checker's.
  kDuplicateElement,   // a list holds a write twice
  kIncompatibleOrder,  // lists of one key that are not prefixes of each other
  kLostUpdate,         // two updated the same version
  kG0,                 // cycle of write-write dependencies: dirty write
  kG1c,                // ... and write-read ones: circular information flow
  kGSingle,            // one anti-dependency: read skew
  kG2Item,             // several: write skew
  kG2Predicate,        // with an anti-dependency on a scan: phantom
  kG0RealTime,         // these only together with the order of real time
  kG1cRealTime,
  kGSingleRealTime,
  kG2ItemRealTime,
  kG2PredicateRealTime,
};

const char* AnomalyName(Anomaly anomaly);

struct Violation {
  Anomaly anomaly = Anomaly::kMalformed;
  std::string message;                 // may have several lines
  std::vector<uint64_t> transactions;  // those that it is about
};

struct Report {
  // Violations beyond this number are counted, not kept.
  static constexpr size_t kMaxKept = 20;

  std::vector<Violation> violations;
  std::set<Anomaly> anomalies;
  uint64_t violation_count = 0;

  uint64_t committed = 0;  // those of unknown outcome included that were found to have committed
  uint64_t aborted = 0;
  uint64_t unknown_committed = 0;
  uint64_t unknown_dropped = 0;  // nothing shows that they committed
  uint64_t operations = 0;       // of committed transactions, as the rest
  uint64_t reads = 0;            // values read by points and scans, and absences
  uint64_t scans = 0;
  uint64_t edges = 0;  // of the dependency graph

  bool ok() const { return violation_count == 0; }
  // "ok", or the name of the gravest anomaly.
  std::string verdict() const;
  void Add(Anomaly anomaly, std::string message, std::vector<uint64_t> transactions);
  // Verdict, figures, violations.
  std::string ToText() const;
};

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_REPORT_H_
