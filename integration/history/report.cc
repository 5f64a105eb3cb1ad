#include "integration/history/report.h"

#include <utility>

#include "common/base/concat.h"

namespace deut::history {

const char* AnomalyName(Anomaly anomaly) {
  switch (anomaly) {
    case Anomaly::kMalformed:
      return "malformed";
    case Anomaly::kDuplicateTimestamp:
      return "duplicate-timestamp";
    case Anomaly::kGarbageRead:
      return "garbage-read";
    case Anomaly::kAbortedRead:
      return "G1a";
    case Anomaly::kIntermediateRead:
      return "G1b";
    case Anomaly::kInternal:
      return "internal";
    case Anomaly::kScanOrder:
      return "scan-order";
    case Anomaly::kRealTimeOrder:
      return "real-time";
    case Anomaly::kStaleSnapshot:
      return "stale-snapshot";
    case Anomaly::kStaleRead:
      return "stale-read";
    case Anomaly::kFutureRead:
      return "future-read";
    case Anomaly::kWrongList:
      return "wrong-list";
    case Anomaly::kPhantom:
      return "phantom";
    case Anomaly::kDuplicateElement:
      return "duplicate-element";
    case Anomaly::kIncompatibleOrder:
      return "incompatible-order";
    case Anomaly::kLostUpdate:
      return "lost-update";
    case Anomaly::kG0:
      return "G0";
    case Anomaly::kG1c:
      return "G1c";
    case Anomaly::kGSingle:
      return "G-single";
    case Anomaly::kG2Item:
      return "G2-item";
    case Anomaly::kG2Predicate:
      return "G2-predicate";
    case Anomaly::kG0RealTime:
      return "G0-real-time";
    case Anomaly::kG1cRealTime:
      return "G1c-real-time";
    case Anomaly::kGSingleRealTime:
      return "G-single-real-time";
    case Anomaly::kG2ItemRealTime:
      return "G2-item-real-time";
    case Anomaly::kG2PredicateRealTime:
      return "G2-predicate-real-time";
  }
  return "unknown";
}

std::string Report::verdict() const { return ok() ? "ok" : AnomalyName(*anomalies.begin()); }

void Report::Add(Anomaly anomaly, std::string message, std::vector<uint64_t> transactions) {
  ++violation_count;
  const bool first_of_its_kind = anomalies.insert(anomaly).second;
  // The first violation of each kind is always kept.
  if (violations.size() >= kMaxKept && !first_of_its_kind) return;
  violations.push_back({.anomaly = anomaly, .message = std::move(message), .transactions = std::move(transactions)});
}

std::string Report::ToText() const {
  std::string text = Concat("verdict: ", verdict(), "\ncommitted ", committed, " (of unknown outcome ",
                            unknown_committed, "), aborted ", aborted, ", of unknown outcome and without effect ",
                            unknown_dropped, "\noperations ", operations, ", reads ", reads, ", scans ", scans);
  if (edges != 0) ConcatTo(&text, ", edges ", edges);
  ConcatTo(&text, "\n");
  if (ok()) return text;
  ConcatTo(&text, "violations ", violation_count, ":");
  for (const Anomaly anomaly : anomalies) ConcatTo(&text, " ", AnomalyName(anomaly));
  ConcatTo(&text, "\n");
  for (const Violation& violation : violations) {
    ConcatTo(&text, "- ", AnomalyName(violation.anomaly), ": ", violation.message, "\n");
  }
  return text;
}

}  // namespace deut::history
