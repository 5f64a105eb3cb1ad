#include "integration/history/unknown_placement.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace deut::history {
namespace {

using Key = std::pair<uint32_t, std::string_view>;

// What happened to a key.
struct Event {
  Position at;
  bool write = false;
  std::optional<WriteId> value = std::nullopt;  // what was read or written; nothing: absent
};

class Placement {
 public:
  Placement(const HistoryIndex& index, std::vector<Position>* positions) : index_(index), positions_(*positions) {}

  void PlaceAll();

 private:
  void Watch(uint32_t place);
  void CollectEvents();
  static void SortEvents(std::vector<Event>* events);
  void AddEvents(uint32_t place);  // unsorted
  Position After(const Position& position) const;
  void Place(uint32_t place);
  bool Fits(const Position& at, uint32_t place) const;
  static bool WriteFits(const std::vector<Event>& events, const Position& at, uint64_t id,
                        const OperationRecord& operation);

  const HistoryIndex& index_;
  std::vector<Position>& positions_;
  std::vector<uint32_t> unplaced_;
  absl::flat_hash_map<Key, std::vector<Event>> events_;  // of the keys that they touch, in the order of their places
};

void Placement::PlaceAll() {
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const TransactionRecord& t = index_.transaction(i);
    if (index_.committed(i) && positions_[i].timestamp == 0 && (t.outcome == Outcome::kUnknown || t.untimed)) {
      unplaced_.push_back(i);
      Watch(i);
    }
  }
  if (unplaced_.empty()) return;
  std::sort(unplaced_.begin(), unplaced_.end(),
            [&](uint32_t a, uint32_t b) { return index_.transaction(a).invoke < index_.transaction(b).invoke; });
  CollectEvents();
  for (const uint32_t place : unplaced_) Place(place);
}

void Placement::Watch(uint32_t place) {
  for (const OperationRecord& operation : index_.transaction(place).operations) {
    if (operation.kind != OperationKind::kScan) events_[{operation.table, operation.key}];
  }
}

void Placement::CollectEvents() {
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (index_.committed(i) && positions_[i].timestamp != 0) AddEvents(i);
  }
  for (auto& [key, events] : events_) SortEvents(&events);
}

void Placement::SortEvents(std::vector<Event>* events) {
  std::stable_sort(events->begin(), events->end(), [](const Event& a, const Event& b) { return a.at < b.at; });
}

void Placement::AddEvents(uint32_t place) {
  const TransactionRecord& t = index_.transaction(place);
  const auto add = [&](const Key& key, bool write, const Value* value) {
    const auto it = events_.find(key);
    if (it == events_.end()) return;
    Event event{.at = positions_[place], .write = write};
    if (value != nullptr) event.value = value->id;
    it->second.push_back(event);
  };
  for (const OperationRecord& operation : t.operations) {
    if (IsWrite(operation.kind)) {
      add({operation.table, operation.key}, true, operation.value ? &*operation.value : nullptr);
    }
    ForEachRead(t, operation,
                [&](const std::string& key, const Value* value) { add({operation.table, key}, false, value); });
    if (operation.kind != OperationKind::kScan) continue;
    // Keys that the scan found absent.
    const Scan& scan = t.scans[operation.scan];
    for (const auto& [key, events] : events_) {
      if (key.first != operation.table || !Within(key.second, scan.reached_low, scan.reached_high)) continue;
      const bool found = std::any_of(scan.results.begin(), scan.results.end(),
                                     [&](const auto& result) { return result.first == key.second; });
      if (!found) add(key, false, nullptr);
    }
  }
}

// The first free place behind a position.
Position Placement::After(const Position& position) const {
  Position after{.timestamp = position.timestamp, .rank = std::max(position.rank + 1, 2U)};
  const auto taken = [&](uint32_t place) { return positions_[place] == after; };
  while (std::any_of(unplaced_.begin(), unplaced_.end(), taken)) ++after.rank;
  return after;
}

// Whether the transaction would read what it did, and everybody who read a key that it writes would still read what they did.
bool Placement::Fits(const Position& at, uint32_t place) const {
  for (const OperationRecord& operation : index_.transaction(place).operations) {
    if (operation.kind == OperationKind::kScan) continue;
    const std::vector<Event>& events = events_.at({operation.table, operation.key});
    if (operation.kind == OperationKind::kRead) {
      const Event* latest = nullptr;
      for (const Event& event : events) {
        if (event.write && event.at < at) latest = &event;
      }
      const bool own = operation.value && operation.value->id.writer == index_.transaction(place).id;
      const std::optional<WriteId> there = latest == nullptr ? std::nullopt : latest->value;
      const std::optional<WriteId> read = operation.value ? std::optional(operation.value->id) : std::nullopt;
      if (!own && there != read) return false;
    } else if (IsWrite(operation.kind) && !WriteFits(events, at, index_.transaction(place).id, operation)) {
      return false;
    }
  }
  return true;
}

bool Placement::WriteFits(const std::vector<Event>& events, const Position& at, uint64_t id,
                          const OperationRecord& operation) {
  bool replaced = false;  // by a later writer
  for (const Event& event : events) {
    const bool behind = event.at > at;
    if (event.write) {
      replaced = replaced || behind;
      continue;
    }
    const bool saw = event.value && event.value->writer == id;
    const bool current = behind && !replaced;
    if (saw && !current) return false;
    if (current && !saw && !(operation.kind == OperationKind::kDelete && !event.value)) return false;
  }
  return true;
}

void Placement::Place(uint32_t place) {
  const TransactionRecord& t = index_.transaction(place);
  Position low{.timestamp = 1, .rank = 0};
  std::optional<Position> end;  // it stands in front of this
  const auto in_front_of = [&](const Position& position) {
    if (!end || position < *end) end = position;
  };
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const TransactionRecord& other = index_.transaction(i);
    if (!index_.committed(i) || positions_[i].timestamp == 0 || other.outcome != Outcome::kCommitted) continue;
    if (other.complete < t.invoke) low = std::max(low, positions_[i]);
    if (t.outcome == Outcome::kCommitted && t.complete < other.invoke && !other.snapshot) in_front_of(positions_[i]);
  }
  std::vector<Position> candidates;
  for (const OperationRecord& operation : t.operations) {
    if (operation.kind == OperationKind::kRead && operation.value) {
      const HistoryIndex::Write* source = index_.Find(operation.value->id);
      if (source != nullptr && source->transaction != place) low = std::max(low, positions_[source->transaction]);
    }
    if (operation.kind == OperationKind::kScan) continue;
    for (const Event& event : events_.at({operation.table, operation.key})) {
      candidates.push_back(event.at);
      if (event.value && event.value->writer == t.id) in_front_of(event.at);
    }
  }
  candidates.push_back(low);
  std::sort(candidates.begin(), candidates.end());
  std::optional<Position> chosen;
  for (const Position& candidate : candidates) {
    if (candidate < low || (end && candidate >= *end)) continue;
    const Position at = After(candidate);
    if (!chosen) chosen = at;
    if (!Fits(at, place)) continue;
    chosen = at;
    break;
  }
  positions_[place] = chosen ? *chosen : After(low);
  AddEvents(place);
  for (const OperationRecord& operation : t.operations) {
    if (operation.kind != OperationKind::kScan) SortEvents(&events_.at({operation.table, operation.key}));
  }
}

}  // namespace

std::vector<Position> Positions(const HistoryIndex& index) {
  std::vector<Position> positions(index.size());
  for (uint32_t i = 0; i < index.size(); ++i) {
    const TransactionRecord& t = index.transaction(i);
    if (t.timestamp != 0) positions[i] = {.timestamp = t.timestamp, .rank = t.snapshot ? 0U : 1U};
  }
  Placement(index, &positions).PlaceAll();
  return positions;
}

}  // namespace deut::history
