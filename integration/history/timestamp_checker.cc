#include "integration/history/timestamp_checker.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/concat.h"
#include "integration/history/history_index.h"
#include "integration/history/history_text.h"
#include "integration/history/unknown_placement.h"

namespace deut::history {
namespace {

// A key that is present.
struct Cell {
  Value value;
  uint32_t writer = 0;  // index of the transaction
  Position seen;        // the last position at which the key is known to be present: written or read there
};

using Cells = absl::btree_map<std::string_view, Cell>;

class Checker {
 public:
  explicit Checker(const History& history) : index_(history, &report_) {}

  Report Run();

 private:
  const TransactionRecord& transaction(uint32_t place) const { return index_.transaction(place); }
  std::string Name(uint32_t place) const;

  bool CheckOrder();
  void SortByPosition();
  void FindUnknown();
  void Replay();
  void Run(uint32_t place);
  void RunOperation(const OperationRecord& operation);
  void RunWrite(const OperationRecord& operation);
  void CheckScan(const OperationRecord& operation);
  void CheckValue(const OperationRecord& operation, const std::string& key, const Value* seen);
  void CheckPresence(const OperationRecord& operation, bool expected);
  bool ExplainAbsence(uint32_t table, std::string_view key, const Cell& cell);
  bool ExplainPresence(uint32_t table, std::string_view key);
  bool GuessUnplaced(const std::vector<uint32_t>& candidates);
  bool Guess(uint32_t candidate);
  // If a violation may be caused by a guess, takes the guess back, never makes it again, and returns true.
  bool Refute(uint32_t writer);
  bool RefuteDeletion(uint32_t table, std::string_view key);
  Anomaly Judge(const Cell* cell, const Value* seen) const;
  void CheckRealTime();
  void CheckSnapshots();

  Report report_;  // findings that do not depend on the replay
  HistoryIndex index_;
  std::vector<Position> positions_;
  std::vector<uint32_t> order_;  // all transactions that have a position
  // Transactions of unknown outcome that delete, or write, a key, and whose values no transaction has read.
  using KeyName = std::pair<uint32_t, std::string_view>;
  absl::flat_hash_map<KeyName, std::vector<uint32_t>> unknown_deletes_, unknown_writes_;
  // The same for transactions without a timestamp: they get a position when they count as committed.
  absl::flat_hash_map<KeyName, std::vector<uint32_t>> unplaced_deletes_, unplaced_writes_;
  // Transactions among these that count as committed because of a key's absence or presence. With several candidates
  // the choice is a guess: one that then contradicts another read was wrong, and moves to `refuted_`.
  absl::flat_hash_set<uint32_t> guessed_, refuted_;

  // State of one replay.
  Report replay_;
  bool replay_discarded_ = false;  // a guess was made or taken back: the result of this replay is discarded
  absl::flat_hash_map<KeyName, uint32_t> guessed_deletions_;  // keys whose last deletion is a guess
  std::map<uint32_t, Cells> tables_;
  uint32_t current_ = 0;
  std::vector<std::pair<std::string_view, Cell*>> expected_;
};

std::string Checker::Name(uint32_t place) const {
  const Position& position = positions_[place];
  return Concat("T", transaction(place).id, " @", position.timestamp, position.rank > 1 ? "+" : "");
}

Report Checker::Run() {
  if (!report_.ok()) return report_;
  SortByPosition();
  if (!CheckOrder()) return report_;
  FindUnknown();
  for (;;) {
    replay_discarded_ = false;
    Replay();
    if (!replay_discarded_) break;
    SortByPosition();
  }
  index_.CheckSources(&report_);
  CheckRealTime();
  CheckSnapshots();
  index_.Count(&report_);
  for (Violation& violation : replay_.violations) {
    report_.Add(violation.anomaly, std::move(violation.message), std::move(violation.transactions));
  }
  report_.violation_count += replay_.violation_count - replay_.violations.size();
  return std::move(report_);
}

// Sorts the transactions that have a position. Those without a timestamp have one while they count as committed.
void Checker::SortByPosition() {
  positions_ = Positions(index_);
  order_.clear();
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (positions_[i].timestamp != 0) order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return positions_[a] < positions_[b]; });
}

bool Checker::CheckOrder() {
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (positions_[i].timestamp == 0 && index_.committed(i)) {
      report_.Add(Anomaly::kMalformed, Concat("T", transaction(i).id, " committed and has no timestamp"),
                  {transaction(i).id});
      return false;
    }
  }
  for (size_t i = 1; i < order_.size(); ++i) {
    const uint32_t a = order_[i - 1], b = order_[i];
    if (positions_[a] != positions_[b] || positions_[a].rank == 0) continue;
    if (!index_.committed(a) || !index_.committed(b)) continue;
    report_.Add(Anomaly::kDuplicateTimestamp, Concat(Name(a), " and ", Name(b)),
                {transaction(a).id, transaction(b).id});
  }
  return true;
}

void Checker::FindUnknown() {
  const auto find = [&](uint32_t place, auto* deletes, auto* writes) {
    for (const OperationRecord& operation : transaction(place).operations) {
      if (!IsWrite(operation.kind)) continue;
      (*(operation.kind == OperationKind::kDelete ? deletes : writes))[{operation.table, operation.key}].push_back(
          place);
    }
  };
  for (const uint32_t place : order_) {
    if (transaction(place).outcome == Outcome::kUnknown && !index_.committed(place)) {
      find(place, &unknown_deletes_, &unknown_writes_);
    }
  }
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (positions_[i].timestamp == 0 && transaction(i).outcome == Outcome::kUnknown) {
      find(i, &unplaced_deletes_, &unplaced_writes_);
    }
  }
  // The candidate that was invoked last is the likeliest one, and is tried first.
  for (auto* unplaced : {&unplaced_deletes_, &unplaced_writes_}) {
    for (auto& [key, places] : *unplaced) {
      std::sort(places.begin(), places.end(),
                [&](uint32_t a, uint32_t b) { return transaction(a).invoke < transaction(b).invoke; });
    }
  }
}

void Checker::Replay() {
  replay_ = Report();
  tables_.clear();
  guessed_deletions_.clear();
  for (const uint32_t place : order_) {
    if (!index_.committed(place)) continue;
    current_ = place;
    for (const OperationRecord& operation : transaction(place).operations) RunOperation(operation);
  }
}

void Checker::RunOperation(const OperationRecord& operation) {
  switch (operation.kind) {
    case OperationKind::kRead:
      CheckValue(operation, operation.key, operation.value ? &*operation.value : nullptr);
      break;
    case OperationKind::kPresent:
      CheckPresence(operation, true);
      break;
    case OperationKind::kScan:
      CheckScan(operation);
      break;
    case OperationKind::kUpdate:
      CheckPresence(operation, true);
      RunWrite(operation);
      break;
    case OperationKind::kInsert:
      CheckPresence(operation, false);
      RunWrite(operation);
      break;
    case OperationKind::kWrite:
    case OperationKind::kAppend:
    case OperationKind::kDelete:
      RunWrite(operation);
      break;
  }
}

void Checker::RunWrite(const OperationRecord& operation) {
  Cells& cells = tables_[operation.table];
  if (operation.kind == OperationKind::kDelete) {
    cells.erase(operation.key);
    if (guessed_.contains(current_)) guessed_deletions_[{operation.table, operation.key}] = current_;
    return;
  }
  if (!guessed_deletions_.empty()) guessed_deletions_.erase({operation.table, operation.key});
  const auto [it, absent] = cells.try_emplace(operation.key);
  Cell& cell = it->second;
  if (operation.kind == OperationKind::kAppend) {
    if (!absent) cell.value.before.push_back(cell.value.id);
    cell.value.id = operation.value->id;
  } else {
    cell.value = *operation.value;
  }
  cell.writer = current_;
  cell.seen = positions_[current_];
}

Anomaly Checker::Judge(const Cell* cell, const Value* seen) const {
  if (cell != nullptr && cell->writer == current_) return Anomaly::kInternal;
  if (seen == nullptr) return Anomaly::kStaleRead;
  const HistoryIndex::Write* source = index_.Find(seen->id);
  if (source == nullptr) return Anomaly::kGarbageRead;
  if (source->transaction == current_) return Anomaly::kInternal;
  if (positions_[source->transaction] > positions_[current_]) return Anomaly::kFutureRead;
  if (cell != nullptr && cell->value.id == seen->id) return Anomaly::kWrongList;
  return Anomaly::kStaleRead;
}

void Checker::CheckValue(const OperationRecord& operation, const std::string& key, const Value* seen) {
  Cells& cells = tables_[operation.table];
  const auto it = cells.find(key);
  Cell* cell = it == cells.end() ? nullptr : &it->second;
  if (cell == nullptr && seen == nullptr) return;
  if (cell != nullptr && seen != nullptr && cell->value == *seen) {
    cell->seen = positions_[current_];
    return;
  }
  if (seen == nullptr && ExplainAbsence(operation.table, key, *cell)) return;
  if (cell != nullptr ? Refute(cell->writer) : RefuteDeletion(operation.table, key)) return;
  std::string message = Concat(Name(current_), " read ", KeyText(key), "=", seen == nullptr ? "-" : ToText(*seen));
  ConcatTo(&message, "; the transactions before it leave ", cell == nullptr ? "-" : ToText(cell->value));
  std::vector<uint64_t> about = {transaction(current_).id};
  if (cell != nullptr) {
    ConcatTo(&message, " of ", Name(cell->writer));
    about.push_back(transaction(cell->writer).id);
  }
  replay_.Add(Judge(cell, seen), std::move(message), std::move(about));
}

void Checker::CheckPresence(const OperationRecord& operation, bool expected) {
  Cells& cells = tables_[operation.table];
  const auto it = cells.find(operation.key);
  if ((it != cells.end()) == expected) {
    if (expected) it->second.seen = positions_[current_];
    return;
  }
  if (expected) {
    if (ExplainPresence(operation.table, operation.key) || RefuteDeletion(operation.table, operation.key)) return;
  } else if (ExplainAbsence(operation.table, operation.key, it->second) || Refute(it->second.writer)) {
    return;
  }
  const bool own = it != cells.end() && it->second.writer == current_;
  replay_.Add(
      own ? Anomaly::kInternal : Anomaly::kStaleRead,
      Concat(Name(current_), " ", ToText(transaction(current_), operation), " found the key ",
             expected ? "there; the transactions before it leave none" : "absent; the transactions before it leave ",
             expected ? "" : ToText(it->second.value)),
      {transaction(current_).id});
}

// Chooses a transaction without a timestamp that was invoked before the transaction that shows its effect completed.
bool Checker::GuessUnplaced(const std::vector<uint32_t>& candidates) {
  for (size_t i = candidates.size(); i-- > 0;) {
    const uint32_t candidate = candidates[i];
    if (candidate == current_ || transaction(candidate).invoke > transaction(current_).complete) continue;
    if (guessed_.contains(candidate)) {
      if (replay_discarded_) return true;
      continue;
    }
    if (!refuted_.contains(candidate) && !index_.committed(candidate)) return Guess(candidate);
  }
  return false;
}

bool Checker::Guess(uint32_t candidate) {
  guessed_.insert(candidate);
  index_.SetCommitted(candidate);
  replay_discarded_ = true;
  return true;
}

bool Checker::Refute(uint32_t writer) {
  if (guessed_.erase(writer) == 0) return false;
  refuted_.insert(writer);
  index_.ResetCommitted();
  for (const uint32_t guessed : guessed_) index_.SetCommitted(guessed);
  replay_discarded_ = true;
  return true;
}

bool Checker::RefuteDeletion(uint32_t table, std::string_view key) {
  const auto it = guessed_deletions_.find({table, key});
  return it != guessed_deletions_.end() && Refute(it->second);
}

// A key that should be present was found absent. Guesses that a transaction of unknown outcome has committed which
// deletes the key after it was last known to be present.
bool Checker::ExplainAbsence(uint32_t table, std::string_view key, const Cell& cell) {
  const std::vector<uint32_t>& candidates = unknown_deletes_[{table, key}];
  for (size_t i = candidates.size(); i-- > 0;) {
    const uint32_t candidate = candidates[i];
    if (positions_[candidate] > positions_[current_] || positions_[candidate] < cell.seen) continue;
    if (guessed_.contains(candidate)) {
      if (replay_discarded_) return true;  // decided in this replay, which will be repeated
      continue;
    }
    if (!refuted_.contains(candidate) && !index_.committed(candidate)) return Guess(candidate);
  }
  return GuessUnplaced(unplaced_deletes_[{table, key}]);
}

// The same for a key that was found present by a transaction that does not know its value.
bool Checker::ExplainPresence(uint32_t table, std::string_view key) {
  const std::vector<uint32_t>& candidates = unknown_writes_[{table, key}];
  for (size_t i = candidates.size(); i-- > 0;) {
    const uint32_t candidate = candidates[i];
    if (positions_[candidate] > positions_[current_]) continue;
    if (guessed_.contains(candidate)) {
      if (replay_discarded_) return true;
      continue;
    }
    if (!refuted_.contains(candidate) && !index_.committed(candidate)) return Guess(candidate);
  }
  return GuessUnplaced(unplaced_writes_[{table, key}]);
}

void Checker::CheckScan(const OperationRecord& operation) {
  const TransactionRecord& reader = transaction(current_);
  const Scan& scan = reader.scans[operation.scan];
  const auto wrong = [&](Anomaly anomaly, std::string_view what, std::string_view key) {
    replay_.Add(anomaly,
                Concat(Name(current_), " scanned [", KeyText(scan.reached_low), ",", KeyText(scan.reached_high), ")",
                       scan.descending ? " downwards" : "", ": ", what, KeyText(key)),
                {reader.id});
  };
  const bool whole_front = scan.descending ? scan.reached_high == scan.high : scan.reached_low == scan.low;
  const bool inside = scan.descending
                          ? scan.reached_low >= scan.low
                          : scan.high.empty() || (!scan.reached_high.empty() && scan.reached_high <= scan.high);
  if (!whole_front || !inside) wrong(Anomaly::kScanOrder, "these bounds are not the front part of those asked for", "");
  if (scan.limit != 0 && scan.results.size() > scan.limit)
    wrong(Anomaly::kScanOrder, "more records than its limit", "");
  const auto before = [&](std::string_view a, std::string_view b) { return scan.descending ? a > b : a < b; };
  for (size_t i = 0; i < scan.results.size(); ++i) {
    const std::string& key = scan.results[i].first;
    if (!Within(key, scan.reached_low, scan.reached_high)) wrong(Anomaly::kScanOrder, "out of bounds: ", key);
    if (i != 0 && !before(scan.results[i - 1].first, key)) {
      wrong(Anomaly::kScanOrder, "not in order: ", key);
      return;
    }
  }

  Cells& cells = tables_[operation.table];
  expected_.clear();
  for (auto it = cells.lower_bound(scan.reached_low);
       it != cells.end() && Within(it->first, scan.reached_low, scan.reached_high); ++it) {
    expected_.emplace_back(it->first, &it->second);
  }
  if (scan.descending) std::reverse(expected_.begin(), expected_.end());
  size_t next = 0;
  const auto missing_until = [&](const std::string* key) {
    for (; next < expected_.size() && (key == nullptr || before(expected_[next].first, *key)); ++next) {
      const auto& [absent, cell] = expected_[next];
      if (ExplainAbsence(operation.table, absent, *cell) || Refute(cell->writer)) continue;
      wrong(cell->writer == current_ ? Anomaly::kInternal : Anomaly::kPhantom,
            Concat("without ", ToText(cell->value), " of ", Name(cell->writer), " at "), absent);
    }
  };
  for (const auto& [key, value] : scan.results) {
    missing_until(&key);
    if (next < expected_.size() && expected_[next].first == key) {
      CheckValue(operation, key, &value);
      ++next;
    } else if (!RefuteDeletion(operation.table, key)) {
      wrong(Anomaly::kPhantom, Concat("with ", ToText(value), " where the transactions before it leave nothing, at "),
            key);
    }
  }
  missing_until(nullptr);
}

void Checker::CheckRealTime() {
  std::vector<uint32_t> begun, ended;
  for (const uint32_t place : order_) {
    if (!index_.committed(place)) continue;
    if (!transaction(place).snapshot) begun.push_back(place);
    if (transaction(place).outcome == Outcome::kCommitted) ended.push_back(place);
  }
  std::sort(begun.begin(), begun.end(),
            [&](uint32_t a, uint32_t b) { return transaction(a).invoke < transaction(b).invoke; });
  std::sort(ended.begin(), ended.end(),
            [&](uint32_t a, uint32_t b) { return transaction(a).complete < transaction(b).complete; });
  const uint32_t* latest = nullptr;  // among the transactions that have ended, the last one in the serial order
  size_t next = 0;
  for (const uint32_t place : begun) {
    for (; next < ended.size() && transaction(ended[next]).complete < transaction(place).invoke; ++next) {
      if (latest == nullptr || positions_[*latest] < positions_[ended[next]]) latest = &ended[next];
    }
    if (latest == nullptr || positions_[*latest] < positions_[place]) continue;
    report_.Add(Anomaly::kRealTimeOrder,
                Concat(Name(*latest), " had completed at ", transaction(*latest).complete, ", before ", Name(place),
                       " was invoked at ", transaction(place).invoke, ", and is ordered after it"),
                {transaction(*latest).id, transaction(place).id});
  }
}

void Checker::CheckSnapshots() {
  for (const uint32_t place : order_) {
    const TransactionRecord& t = transaction(place);
    if (!t.snapshot || !index_.committed(place) || t.timestamp > t.min_timestamp) continue;
    report_.Add(Anomaly::kStaleSnapshot, Concat(Name(place), " must contain the commits up to ", t.min_timestamp),
                {t.id});
  }
}

}  // namespace

Report CheckTimestamps(const History& history) { return Checker(history).Run(); }

}  // namespace deut::history
