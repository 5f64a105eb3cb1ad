#include "integration/history/simulator.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "integration/history/history_text.h"

namespace deut::history {
namespace {

using State = std::map<std::string, Value>;

std::string KeyName(uint64_t number) { return Concat("k", 100 + number); }

class Simulation {
 public:
  Simulation(const SimulatorOptions& options, Random& random) : options_(options), random_(random) {}

  History Run() {
    for (uint64_t i = 1; i <= options_.transactions; ++i) Step(i);
    // A history's transactions are in any order.
    std::shuffle(history_.transactions.begin(), history_.transactions.end(), random_);
    return std::move(history_);
  }

 private:
  static constexpr size_t kMaxAge = 4;  // maximum age of a snapshot, in transactions

  void Step(uint64_t id) {
    TransactionRecord t;
    t.id = id;
    t.client = static_cast<uint32_t>(random_.Below(5));
    t.timestamp = id * 10;
    const int64_t point = static_cast<int64_t>(id) * 100;
    const int64_t spread = options_.overlap * int64_t{100};
    t.invoke = point - (spread == 0 ? 10 : static_cast<int64_t>(random_.Below(static_cast<uint64_t>(spread))));
    t.complete = point + (spread == 0 ? 10 : static_cast<int64_t>(random_.Below(static_cast<uint64_t>(spread))));
    t.snapshot = options_.snapshots && random_.OneIn(8);
    const bool unknown = !t.snapshot && options_.unknown && random_.OneIn(options_.unknown_one_in);
    const bool applies = random_.OneIn(2);
    if (unknown) {
      t.outcome = Outcome::kUnknown;
    } else if (random_.OneIn(8)) {
      t.outcome = Outcome::kAborted;
    }
    State state = states_.empty() ? State() : states_.back();
    if (t.snapshot && !states_.empty()) {
      // A snapshot reads the state that an earlier transaction left.
      const uint64_t age = random_.Below(std::min<uint64_t>(states_.size(), kMaxAge));
      state = states_[states_.size() - 1 - age];
      t.timestamp = (id - age) * 10;
    }
    const bool may_delete = options_.deletes && (!unknown || options_.unknown_deletes);
    for (uint64_t count = 1 + random_.Below(options_.max_operations); count > 0; --count) Do(&t, &state, may_delete);
    const bool written = t.outcome == Outcome::kCommitted || (unknown && applies);
    states_.push_back(t.snapshot || !written ? (states_.empty() ? State() : states_.back()) : std::move(state));
    if (states_.size() > kMaxAge) states_.pop_front();
    if (unknown && options_.untimed) Forget(&t);
    history_.transactions.push_back(std::move(t));
  }

  static void Forget(TransactionRecord* t) {
    t->timestamp = 0;
    t->scans.clear();
    std::erase_if(t->operations, [](const OperationRecord& operation) { return !IsWrite(operation.kind); });
  }

  void Do(TransactionRecord* t, State* state, bool may_delete) {
    OperationRecord operation;
    operation.key = KeyName(random_.Below(options_.keys));
    const auto at = state->find(operation.key);
    const uint64_t choice = t->snapshot ? random_.Below(2) * 7 : random_.Below(8);
    if (options_.scans && choice == 7) {
      operation.kind = OperationKind::kScan;
      operation.key.clear();
      operation.scan = static_cast<uint32_t>(t->scans.size());
      t->scans.push_back(DoScan(*state));
    } else if (choice <= 2 || choice == 7) {
      operation.kind = OperationKind::kRead;
      if (at != state->end()) operation.value = at->second;
    } else if (may_delete && !options_.lists && choice == 3) {
      operation.kind = OperationKind::kDelete;
      state->erase(operation.key);
    } else {
      operation.kind = options_.lists ? OperationKind::kAppend : OperationKind::kWrite;
      if (!options_.lists && !options_.untimed && choice == 4) {
        operation.kind = at == state->end() ? OperationKind::kInsert : OperationKind::kUpdate;
      }
      Value value;
      value.id = {.writer = t->id, .sequence = ++sequences_[t->id]};
      operation.value = value;
      if (options_.lists && at != state->end()) {
        value.before = at->second.before;
        value.before.push_back(at->second.id);
      }
      (*state)[operation.key] = std::move(value);
    }
    t->operations.push_back(std::move(operation));
  }

  Scan DoScan(const State& state) {
    Scan scan;
    if (!random_.OneIn(4)) scan.low = KeyName(random_.Below(options_.keys));
    if (!random_.OneIn(4)) scan.high = KeyName(random_.Below(options_.keys) + 1);
    if (!scan.high.empty() && scan.low > scan.high) std::swap(scan.low, scan.high);
    scan.descending = random_.OneIn(2);
    if (random_.OneIn(2)) scan.limit = 1 + random_.Below(3);
    for (const auto& [key, value] : state) {
      if (Within(key, scan.low, scan.high)) scan.results.emplace_back(key, value);
    }
    if (scan.descending) std::reverse(scan.results.begin(), scan.results.end());
    scan.reached_low = scan.low;
    scan.reached_high = scan.high;
    if (scan.limit != 0 && scan.results.size() > scan.limit) {
      scan.results.resize(scan.limit);
      const std::string& last = scan.results.back().first;
      (scan.descending ? scan.reached_low : scan.reached_high) = scan.descending ? last : last + "!";
    }
    return scan;
  }

  const SimulatorOptions& options_;
  Random& random_;
  History history_;
  std::deque<State> states_;  // the states after each of the last transactions
  std::map<uint64_t, uint32_t> sequences_;
};

// Knows the values that may replace a result, and the results that may be changed.
class Corrupter {
 public:
  Corrupter(History* history, Random& random) : history_(*history), random_(random) {
    for (const TransactionRecord& t : history_.transactions) {
      if (t.outcome == Outcome::kUnknown) unknown_.insert(t.id);
    }
    for (const TransactionRecord& t : history_.transactions) {
      if (t.outcome != Outcome::kCommitted) continue;
      for (const OperationRecord& operation : t.operations) {
        ForEachRead(t, operation, [&](const std::string& key, const Value* value) {
          if (value != nullptr && Certain(*value)) seen_[key].push_back(*value);
        });
      }
    }
  }

  bool Run(std::string* what) {
    for (int attempt = 0; attempt < 200; ++attempt) {
      TransactionRecord& t = history_.transactions[random_.Below(history_.transactions.size())];
      if (t.outcome != Outcome::kCommitted || t.operations.empty()) continue;
      OperationRecord& operation = t.operations[random_.Below(t.operations.size())];
      const std::string before = ToText(t, operation);
      const bool changed = operation.kind == OperationKind::kRead   ? ChangeRead(&operation)
                           : operation.kind == OperationKind::kScan ? ChangeScan(&t.scans[operation.scan])
                                                                    : false;
      if (!changed) continue;
      *what = Concat("T", t.id, ": ", before, " became ", ToText(t, operation));
      return true;
    }
    return false;
  }

 private:
  bool Certain(const Value& value) const {
    const auto is_unknown = [&](const WriteId& id) { return unknown_.contains(id.writer); };
    return !is_unknown(value.id) && std::none_of(value.before.begin(), value.before.end(), is_unknown);
  }

  bool ChangeValue(const std::string& key, Value* value) {
    const std::vector<Value>& others = seen_[key];
    if (others.empty()) return false;
    const Value& other = others[random_.Below(others.size())];
    if (other == *value) return false;
    *value = other;
    return true;
  }

  bool ChangeRead(OperationRecord* operation) {
    if (!operation->value) {
      operation->value.emplace();
      if (ChangeValue(operation->key, &*operation->value)) return true;
      operation->value.reset();
      return false;
    }
    if (!Certain(*operation->value)) return false;
    if (!random_.OneIn(3)) return ChangeValue(operation->key, &*operation->value);
    operation->value.reset();
    return true;
  }

  bool ChangeScan(Scan* scan) {
    if (random_.OneIn(3)) return AddResult(scan);
    if (scan->results.empty()) return false;
    const size_t at = random_.Below(scan->results.size());
    if (!Certain(scan->results[at].second)) return false;
    if (random_.OneIn(2)) return ChangeValue(scan->results[at].first, &scan->results[at].second);
    scan->results.erase(scan->results.begin() + static_cast<ptrdiff_t>(at));
    return true;
  }

  bool AddResult(Scan* scan) {
    if (seen_.empty()) return false;
    const auto& [key, values] = *std::next(seen_.begin(), static_cast<ptrdiff_t>(random_.Below(seen_.size())));
    if (values.empty() || !Within(key, scan->reached_low, scan->reached_high)) return false;
    const auto place = std::find_if(scan->results.begin(), scan->results.end(), [&, &name = key](const auto& result) {
      return scan->descending ? result.first <= name : result.first >= name;
    });
    if (place != scan->results.end() && place->first == key) return false;
    scan->results.emplace(place, key, values.front());
    return true;
  }

  History& history_;
  Random& random_;
  std::set<uint64_t> unknown_;
  std::map<std::string, std::vector<Value>> seen_;
};

}  // namespace

History Simulate(const SimulatorOptions& options, Random& random) { return Simulation(options, random).Run(); }

bool CorruptOneResult(History* history, Random& random, std::string* what) {
  return Corrupter(history, random).Run(what);
}

}  // namespace deut::history
