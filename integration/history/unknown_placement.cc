#include "integration/history/unknown_placement.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace deut::history {
namespace {

using Key = std::pair<uint32_t, std::string_view>;

// One search tries at most this many places.
constexpr uint32_t kMaxLooks = 5000;
// Distance in rank to the previous transaction, which leaves room in front of the placed one for others.
constexpr uint32_t kRankStep = 1U << 16;

// A write or a read of a key.
struct Event {
  enum Kind : uint8_t { kWritten, kRead, kFoundThere };
  Position at;
  Kind kind = kRead;
  std::optional<WriteId> value = std::nullopt;  // the value written or read; nothing: absent
};

class Placement {
 public:
  Placement(const HistoryIndex& index, std::vector<Position>* positions) : index_(index), positions_(*positions) {}

  void PlaceAll();

 private:
  // A transaction to be placed, and the bounds that transactions with a timestamp set for it.
  struct Unplaced {
    uint32_t place = 0;
    Position low{.timestamp = 1, .rank = 0};     // it stands behind this position
    std::optional<Position> end = std::nullopt;  // ... and in front of this one
  };
  enum class Slots : uint8_t { kOwnKeys, kAll };

  Unplaced Watch(uint32_t place);
  void CollectEvents();
  void AddEvents(uint32_t place);  // keeps the events in the order of their positions
  void RemoveEvents(uint32_t place);
  std::vector<std::vector<size_t>> Groups() const;  // groups of indices in `unplaced_`
  void PlaceGroup(const std::vector<size_t>& group);
  bool Search(const std::vector<size_t>& group, size_t next, Slots slots, uint32_t* looks);
  void PlaceByItself(const Unplaced& unplaced);
  std::vector<Position> Candidates(const Unplaced& unplaced, Slots slots) const;
  std::optional<Position> After(const Position& position) const;
  bool Fits(const Position& at, uint32_t place) const;
  bool WriteFits(const std::vector<Event>& events, const Position& at, uint32_t place,
                 const OperationRecord& operation) const;
  bool IsUnplaced(const WriteId& value) const;
  bool AllSawWhatWasThere() const;

  const HistoryIndex& index_;
  std::vector<Position>& positions_;
  std::vector<Unplaced> unplaced_;
  absl::flat_hash_map<Key, std::vector<Event>>
      events_;  // events of the keys that unplaced transactions touch, in the order of their positions
  absl::flat_hash_set<Key> keys_;  // keys of the group that is being placed
};

void Placement::PlaceAll() {
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const TransactionRecord& t = index_.transaction(i);
    if (index_.committed(i) && positions_[i].timestamp == 0 && (t.outcome == Outcome::kUnknown || t.untimed)) {
      places.push_back(i);
    }
  }
  if (places.empty()) return;
  std::sort(places.begin(), places.end(),
            [&](uint32_t a, uint32_t b) { return index_.transaction(a).invoke < index_.transaction(b).invoke; });
  for (const uint32_t place : places) unplaced_.push_back(Watch(place));
  CollectEvents();
  for (const std::vector<size_t>& together : Groups()) PlaceGroup(together);
}

// Transactions that touch a common key belong to one group, transitively.
std::vector<std::vector<size_t>> Placement::Groups() const {
  std::vector<std::vector<size_t>> groups;
  std::vector<bool> taken(unplaced_.size());
  for (size_t first = 0; first < unplaced_.size(); ++first) {
    if (taken[first]) continue;
    absl::flat_hash_set<Key> keys;
    std::vector<size_t> group;
    const auto add = [&](size_t i) {
      taken[i] = true;
      group.push_back(i);
      for (const OperationRecord& operation : index_.transaction(unplaced_[i].place).operations) {
        if (operation.kind != OperationKind::kScan) keys.insert({operation.table, operation.key});
      }
    };
    const auto touches = [&](size_t i) {
      const std::vector<OperationRecord>& operations = index_.transaction(unplaced_[i].place).operations;
      return std::any_of(operations.begin(), operations.end(), [&](const OperationRecord& operation) {
        return operation.kind != OperationKind::kScan && keys.contains({operation.table, operation.key});
      });
    };
    add(first);
    for (bool more = true; more;) {
      more = false;
      for (size_t i = first + 1; i < unplaced_.size(); ++i) {
        if (taken[i] || !touches(i)) continue;
        add(i);
        more = true;
      }
    }
    std::sort(group.begin(), group.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

void Placement::PlaceGroup(const std::vector<size_t>& group) {
  keys_.clear();
  for (const size_t i : group) {
    for (const OperationRecord& operation : index_.transaction(unplaced_[i].place).operations) {
      if (operation.kind != OperationKind::kScan) keys_.insert({operation.table, operation.key});
    }
  }
  for (const Slots slots : {Slots::kOwnKeys, Slots::kAll}) {
    uint32_t looks = kMaxLooks;
    if (Search(group, 0, slots, &looks)) return;
  }
  for (const size_t i : group) PlaceByItself(unplaced_[i]);
}

Placement::Unplaced Placement::Watch(uint32_t place) {
  const TransactionRecord& t = index_.transaction(place);
  for (const OperationRecord& operation : t.operations) {
    if (operation.kind != OperationKind::kScan) events_[{operation.table, operation.key}];
  }
  Unplaced unplaced{.place = place};
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const TransactionRecord& other = index_.transaction(i);
    if (!index_.committed(i) || positions_[i].timestamp == 0 || other.outcome != Outcome::kCommitted) continue;
    if (other.complete < t.invoke) unplaced.low = std::max(unplaced.low, positions_[i]);
    if (t.outcome == Outcome::kCommitted && t.complete < other.invoke && !other.snapshot) {
      unplaced.end = std::min(unplaced.end.value_or(positions_[i]), positions_[i]);
    }
  }
  return unplaced;
}

void Placement::CollectEvents() {
  std::vector<uint32_t> timed;
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (index_.committed(i) && positions_[i].timestamp != 0) timed.push_back(i);
  }
  std::sort(timed.begin(), timed.end(), [&](uint32_t a, uint32_t b) { return positions_[a] < positions_[b]; });
  for (const uint32_t i : timed) AddEvents(i);
}

void Placement::AddEvents(uint32_t place) {
  const TransactionRecord& t = index_.transaction(place);
  const auto add = [&](const Key& key, Event::Kind kind, const Value* value) {
    const auto it = events_.find(key);
    if (it == events_.end()) return;
    Event event{.at = positions_[place], .kind = kind};
    if (value != nullptr) event.value = value->id;
    const auto behind = std::upper_bound(it->second.begin(), it->second.end(), event,
                                         [](const Event& a, const Event& b) { return a.at < b.at; });
    it->second.insert(behind, event);
  };
  for (const OperationRecord& operation : t.operations) {
    const Key name(operation.table, operation.key);
    if (operation.kind == OperationKind::kInsert) add(name, Event::kRead, nullptr);
    if (operation.kind == OperationKind::kUpdate || operation.kind == OperationKind::kPresent) {
      add(name, Event::kFoundThere, nullptr);
    }
    if (IsWrite(operation.kind)) add(name, Event::kWritten, operation.value ? &*operation.value : nullptr);
    ForEachRead(t, operation,
                [&](const std::string& key, const Value* value) { add({operation.table, key}, Event::kRead, value); });
    if (operation.kind != OperationKind::kScan) continue;
    // Keys in the scan's bounds that it found absent.
    const Scan& scan = t.scans[operation.scan];
    for (const auto& [key, events] : events_) {
      if (key.first != operation.table || !Within(key.second, scan.reached_low, scan.reached_high)) continue;
      const bool found = std::any_of(scan.results.begin(), scan.results.end(),
                                     [&](const auto& result) { return result.first == key.second; });
      if (!found) add(key, Event::kRead, nullptr);
    }
  }
}

void Placement::RemoveEvents(uint32_t place) {
  for (auto& [key, events] : events_) {
    std::erase_if(events, [&](const Event& event) { return event.at == positions_[place]; });
  }
}

bool Placement::IsUnplaced(const WriteId& value) const {
  const HistoryIndex::Write* write = index_.Find(value);
  return write != nullptr && positions_[write->transaction].timestamp == 0;
}

// Returns the first free position behind `position`. Returns nothing if there is no room left.
std::optional<Position> Placement::After(const Position& position) const {
  const uint32_t rank = std::max(position.rank, 1U);
  uint64_t next = std::numeric_limits<uint64_t>::max();  // lowest rank already taken behind `position`
  for (const Unplaced& other : unplaced_) {
    const Position& taken = positions_[other.place];
    if (taken.timestamp == position.timestamp && taken.rank > rank) next = std::min<uint64_t>(next, taken.rank);
  }
  const uint64_t after = next == std::numeric_limits<uint64_t>::max() ? uint64_t{rank} + kRankStep : (rank + next) / 2;
  if (after <= rank || after > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return Position{.timestamp = position.timestamp, .rank = static_cast<uint32_t>(after)};
}

// True if at this position the transaction would read the values that it read, and every reader of a key that it
// writes would still read its own value. Search checks what an insert or an update found when all are placed.
bool Placement::Fits(const Position& at, uint32_t place) const {
  const TransactionRecord& t = index_.transaction(place);
  for (size_t i = 0; i < t.operations.size(); ++i) {
    const OperationRecord& operation = t.operations[i];
    if (operation.kind == OperationKind::kScan) continue;
    const std::vector<Event>& events = events_.at({operation.table, operation.key});
    const bool own =
        std::any_of(t.operations.begin(), t.operations.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const OperationRecord& earlier) {
                      return IsWrite(earlier.kind) && earlier.table == operation.table && earlier.key == operation.key;
                    });
    const Event* latest = nullptr;
    for (const Event& event : events) {
      if (event.kind == Event::kWritten && event.at < at) latest = &event;
    }
    const std::optional<WriteId> there = latest == nullptr ? std::nullopt : latest->value;
    if (operation.kind == OperationKind::kRead && !own) {
      const std::optional<WriteId> read = operation.value ? std::optional(operation.value->id) : std::nullopt;
      if (there != read) return false;
    }
    // Others see what the transaction leaves, so only its last write of a key counts: a key that it deletes and inserts
    // again is there.
    const bool last =
        std::none_of(t.operations.begin() + static_cast<std::ptrdiff_t>(i) + 1, t.operations.end(),
                     [&](const OperationRecord& later) {
                       return IsWrite(later.kind) && later.table == operation.table && later.key == operation.key;
                     });
    if (last && IsWrite(operation.kind) && !WriteFits(events, at, place, operation)) return false;
  }
  return true;
}

bool Placement::WriteFits(const std::vector<Event>& events, const Position& at, uint32_t place,
                          const OperationRecord& operation) const {
  const uint64_t id = index_.transaction(place).id;
  bool replaced = false;  // a later transaction has replaced the value
  for (const Event& event : events) {
    if (event.at <= at) {
      if (event.value && event.kind == Event::kRead && event.value->writer == id) return false;
      continue;
    }
    if (event.kind == Event::kWritten) {
      replaced = true;
      continue;
    }
    if (event.kind == Event::kFoundThere) {
      if (!replaced && operation.kind == OperationKind::kDelete) return false;
      continue;
    }
    const bool saw = event.value && event.value->writer == id;
    if (saw && replaced) return false;
    if (saw || replaced) continue;
    // The value's writer is not placed yet and must stand in between. Its own turn in the search decides whether it
    // finds a place there.
    if (event.value && IsUnplaced(*event.value)) {
      replaced = true;
    } else if (operation.kind != OperationKind::kDelete || event.value) {
      return false;
    }
  }
  return true;
}

// Returns in order the places where the transaction may stand: behind each event of its keys, or of all keys of its
// group.
std::vector<Position> Placement::Candidates(const Unplaced& unplaced, Slots slots) const {
  const TransactionRecord& t = index_.transaction(unplaced.place);
  Position low = unplaced.low;
  std::optional<Position> end = unplaced.end;
  const auto in_front_of = [&](const Position& position) { end = std::min(end.value_or(position), position); };
  for (const Unplaced& other : unplaced_) {
    const Position& at = positions_[other.place];
    const TransactionRecord& o = index_.transaction(other.place);
    if (at.timestamp == 0) continue;
    if (o.outcome == Outcome::kCommitted && o.complete < t.invoke) low = std::max(low, at);
    if (t.outcome == Outcome::kCommitted && t.complete < o.invoke) in_front_of(at);
  }
  std::vector<Position> candidates;
  for (const OperationRecord& operation : t.operations) {
    if (operation.kind == OperationKind::kScan) continue;
    if (operation.kind == OperationKind::kRead && operation.value) {
      const HistoryIndex::Write* source = index_.Find(operation.value->id);
      if (source != nullptr && source->transaction != unplaced.place) {
        low = std::max(low, positions_[source->transaction]);
      }
    }
    for (const Event& event : events_.at({operation.table, operation.key})) {
      candidates.push_back(event.at);
      if (event.value && event.value->writer == t.id) in_front_of(event.at);
    }
  }
  if (slots == Slots::kAll) {
    candidates.clear();
    for (const Key& key : keys_) {
      for (const Event& event : events_.at(key)) candidates.push_back(event.at);
    }
  }
  candidates.push_back(low);
  std::erase_if(candidates, [&](const Position& each) { return each < low || (end && each >= *end); });
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<Position> places;
  for (const Position& candidate : candidates) {
    const std::optional<Position> at = After(candidate);
    if (at && (!end || *at < *end)) places.push_back(*at);
  }
  return places;
}

bool Placement::Search(const std::vector<size_t>& group, size_t next, Slots slots, uint32_t* looks) {
  if (next == group.size()) return AllSawWhatWasThere();
  const Unplaced& unplaced = unplaced_[group[next]];
  const uint32_t place = unplaced.place;
  for (const Position& at : Candidates(unplaced, slots)) {
    if (*looks == 0) return false;
    --*looks;
    if (!Fits(at, place)) continue;
    positions_[place] = at;
    AddEvents(place);
    if (Search(group, next + 1, slots, looks)) return true;
    RemoveEvents(place);
    positions_[place] = Position();
  }
  return false;
}

// Called when a whole group is placed. True if every key that was found present had a writer, even if its value was
// not read, and if every key that was found absent had been deleted or never written.
bool Placement::AllSawWhatWasThere() const {
  for (const Key& key : keys_) {
    std::optional<WriteId> there;
    for (const Event& event : events_.at(key)) {
      switch (event.kind) {
        case Event::kWritten:
          there = event.value;
          break;
        case Event::kRead:
          if (there != event.value) return false;
          break;
        case Event::kFoundThere:
          if (!there) return false;
          break;
      }
    }
  }
  return true;
}

void Placement::PlaceByItself(const Unplaced& unplaced) {
  const std::vector<Position> candidates = Candidates(unplaced, Slots::kOwnKeys);
  const auto fits =
      std::find_if(candidates.begin(), candidates.end(), [&](const Position& at) { return Fits(at, unplaced.place); });
  Position& at = positions_[unplaced.place];
  if (fits != candidates.end()) {
    at = *fits;
  } else {
    at = !candidates.empty() ? candidates.front() : After(unplaced.low).value_or(unplaced.low);
  }
  AddEvents(unplaced.place);
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
