#include "integration/history/dependencies.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/concat.h"
#include "integration/history/history_text.h"

namespace deut::history {
namespace {

constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

struct Reader {
  uint32_t transaction = 0;
  bool predicate = false;  // the reader is a scan that did not find the key
};

// The evidence that a version is later than another one.
enum class Basis : uint8_t {
  kRead,  // values that were read
  kTime,  // their writers did not overlap in time
  kSeen,  // one was read before the other was first read or written
};

struct Successor {
  uint32_t version = 0;  // a later version of the same key
  Basis basis = Basis::kRead;
};

constexpr EdgeKinds kWwBy[] = {kWw, kWwTimed, kWwSeen};
constexpr EdgeKinds kRwBy[] = {kRw, kRwTimed, kRwSeen};
constexpr EdgeKinds kRwPredicateBy[] = {kRwPredicate, kRwPredicateTimed, kRwPredicateSeen};

struct Version {
  uint32_t maker = kNobody;
  std::vector<Reader> readers;
  std::vector<Successor> later;
  std::vector<uint32_t> updaters;  // transactions that read this version and then wrote the key
};

struct Key {
  uint32_t table = 0;
  std::string_view name;
  bool lists = false;    // all its writes are appends
  bool deleted = false;  // a transaction that did not abort may have deleted it
  std::vector<Version> versions{1};
  absl::flat_hash_map<uint32_t, uint32_t> made_by;  // index of a transaction -> its version
  const Value* longest = nullptr;                   // of a list key: the longest list that was read
  uint32_t longest_reader = 0;
};

// One transaction's use of one version.
struct Access {
  uint32_t transaction = 0;
  uint32_t version = 0;
  bool write = false;
};

class Finder {
 public:
  Finder(const HistoryIndex& index, Report* report)
      : index_(index), report_(report), found_(static_cast<uint32_t>(index.size())) {}

  Dependencies Run();

 private:
  const TransactionRecord& transaction(uint32_t place) const { return index_.transaction(place); }

  uint32_t KeyOf(uint32_t table, std::string_view name);
  void FindVersions();
  void SortKeys();
  void ReadAll(uint32_t place);
  void RecordRead(uint32_t place, uint32_t key, const Value* value);
  void RecordReadByScan(uint32_t place, const OperationRecord& operation);
  void RecordListRead(uint32_t place, uint32_t key, const Value& value);
  void CheckOwn(uint32_t place, uint32_t key, const OperationRecord& own, const Value* value);
  void ReadVersion(uint32_t place, uint32_t key, uint32_t version, bool predicate);
  void Wrote(uint32_t place, uint32_t key, const OperationRecord& operation);
  // Returns kNobody if the write made no version, or if its transaction did not commit.
  uint32_t VersionOf(uint32_t key, const WriteId& id) const;

  void OrderList(uint32_t key);
  void OrderByTime(uint32_t key);
  void Order(uint32_t key, uint32_t before, uint32_t after, Basis basis);
  void AddEdges(uint32_t key);
  void ReportLostUpdates(uint32_t key);
  void AddTime();

  const HistoryIndex& index_;
  Report* const report_;
  Dependencies found_;
  std::vector<Key> keys_;
  absl::flat_hash_map<std::pair<uint32_t, std::string_view>, uint32_t> numbers_;
  std::map<uint32_t, std::vector<uint32_t>> sorted_;  // table -> keys by name

  // State of the transaction that is being read.
  absl::flat_hash_map<uint32_t, const OperationRecord*> own_;    // key -> its last write so far
  absl::flat_hash_map<uint32_t, uint32_t> read_before_writing_;  // key -> version
};

uint32_t Finder::KeyOf(uint32_t table, std::string_view name) {
  const auto [it, added] = numbers_.try_emplace({table, name}, static_cast<uint32_t>(keys_.size()));
  if (added) {
    keys_.emplace_back();
    keys_.back().table = table;
    keys_.back().name = name;
  }
  return it->second;
}

void Finder::FindVersions() {
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const TransactionRecord& t = transaction(i);
    for (const OperationRecord& operation : t.operations) {
      if (operation.kind == OperationKind::kScan) continue;
      Key& key = keys_[KeyOf(operation.table, operation.key)];
      if (!IsWrite(operation.kind)) continue;
      if (operation.kind == OperationKind::kDelete && t.outcome != Outcome::kAborted) key.deleted = true;
      if (!index_.committed(i)) continue;
      const bool append = operation.kind == OperationKind::kAppend;
      if (key.versions.size() == 1) key.lists = append;
      if (!append) key.lists = false;
      const auto [it, added] = key.made_by.try_emplace(i, static_cast<uint32_t>(key.versions.size()));
      if (added) {
        key.versions.emplace_back();
        key.versions.back().maker = i;
      }
    }
  }
}

void Finder::SortKeys() {
  for (uint32_t i = 0; i < keys_.size(); ++i) {
    // A deletion leaves no trace in the lists that come after it, so a deleted key is not treated as a list.
    if (keys_[i].deleted) keys_[i].lists = false;
    if (keys_[i].versions.size() > 1) sorted_[keys_[i].table].push_back(i);
  }
  for (auto& [table, keys] : sorted_) {
    std::sort(keys.begin(), keys.end(), [&](uint32_t a, uint32_t b) { return keys_[a].name < keys_[b].name; });
  }
}

uint32_t Finder::VersionOf(uint32_t key, const WriteId& id) const {
  const HistoryIndex::Write* write = index_.Find(id);
  if (write == nullptr) return kNobody;
  const auto it = keys_[key].made_by.find(write->transaction);
  return it == keys_[key].made_by.end() ? kNobody : it->second;
}

void Finder::ReadAll(uint32_t place) {
  const TransactionRecord& t = transaction(place);
  own_.clear();
  read_before_writing_.clear();
  for (const OperationRecord& operation : t.operations) {
    if (operation.kind == OperationKind::kScan) {
      RecordReadByScan(place, operation);
      continue;
    }
    const uint32_t key = KeyOf(operation.table, operation.key);
    if (operation.kind == OperationKind::kRead) {
      RecordRead(place, key, operation.value ? &*operation.value : nullptr);
    } else if (IsWrite(operation.kind)) {
      if (operation.kind == OperationKind::kInsert) RecordRead(place, key, nullptr);
      Wrote(place, key, operation);
    }
  }
}

void Finder::Wrote(uint32_t place, uint32_t key, const OperationRecord& operation) {
  const auto [it, first] = own_.try_emplace(key, &operation);
  it->second = &operation;
  if (!first) return;
  const auto read = read_before_writing_.find(key);
  if (read != read_before_writing_.end()) keys_[key].versions[read->second].updaters.push_back(place);
}

void Finder::RecordRead(uint32_t place, uint32_t key, const Value* value) {
  if (const auto own = own_.find(key); own != own_.end()) {
    CheckOwn(place, key, *own->second, value);
    return;
  }
  if (value != nullptr) {
    if (keys_[key].lists) RecordListRead(place, key, *value);
    const uint32_t version = VersionOf(key, value->id);
    if (version == kNobody) return;
    if (keys_[key].versions[version].maker == place) {
      report_->Add(Anomaly::kInternal,
                   Concat("T", transaction(place).id, " read ", KeyText(keys_[key].name), "=", ToText(*value),
                          " before it wrote that"),
                   {transaction(place).id});
      return;
    }
    ReadVersion(place, key, version, false);
  } else if (!keys_[key].deleted) {
    ReadVersion(place, key, 0, false);
  }
}

void Finder::ReadVersion(uint32_t place, uint32_t key, uint32_t version, bool predicate) {
  keys_[key].versions[version].readers.push_back({.transaction = place, .predicate = predicate});
  read_before_writing_.try_emplace(key, version);
}

// After its own write a transaction must see that write, and in a list also the elements that were there before it.
void Finder::CheckOwn(uint32_t place, uint32_t key, const OperationRecord& own, const Value* value) {
  const bool absent = own.kind == OperationKind::kDelete;
  const bool right = absent ? value == nullptr : value != nullptr && value->id == own.value->id;
  if (!right) {
    report_->Add(Anomaly::kInternal,
                 Concat("T", transaction(place).id, " read ", KeyText(keys_[key].name), "=",
                        value == nullptr ? "-" : ToText(*value), " after its own ", ToText(transaction(place), own)),
                 {transaction(place).id});
    return;
  }
  if (value != nullptr && keys_[key].lists) RecordListRead(place, key, *value);
}

void Finder::RecordListRead(uint32_t place, uint32_t number, const Value& value) {
  Key& key = keys_[number];
  const auto element = [](const Value& list, size_t i) -> const WriteId& {
    return i < list.before.size() ? list.before[i] : list.id;
  };
  const bool longer = key.longest == nullptr || value.before.size() > key.longest->before.size();
  const size_t common = key.longest == nullptr ? 0 : std::min(value.before.size(), key.longest->before.size()) + 1;
  size_t equal = 0;
  while (equal < common && element(value, equal) == element(*key.longest, equal)) ++equal;
  // A list whose last write did not commit is reported by another name (G1a), so it is left out here.
  if (equal < common && VersionOf(number, value.id) != kNobody && VersionOf(number, key.longest->id) != kNobody) {
    report_->Add(Anomaly::kIncompatibleOrder,
                 Concat(KeyText(key.name), ": T", transaction(place).id, " read ", ToText(value), ", T",
                        transaction(key.longest_reader).id, " read ", ToText(*key.longest)),
                 {transaction(place).id, transaction(key.longest_reader).id});
  }
  if (equal == common && !longer) return;  // a prefix of a list that was checked
  absl::flat_hash_set<WriteId> seen;
  for (size_t i = 0; i <= value.before.size(); ++i) {
    if (seen.insert(element(value, i)).second) continue;
    report_->Add(Anomaly::kDuplicateElement,
                 Concat("T", transaction(place).id, " read ", KeyText(key.name), "=", ToText(value)),
                 {transaction(place).id});
    break;
  }
  if (!longer) return;
  key.longest = &value;
  key.longest_reader = place;
}

void Finder::RecordReadByScan(uint32_t place, const OperationRecord& operation) {
  const TransactionRecord& t = transaction(place);
  const Scan& scan = t.scans[operation.scan];
  absl::flat_hash_set<uint32_t> found;
  for (const auto& [name, value] : scan.results) {
    const uint32_t key = KeyOf(operation.table, name);
    if (!found.insert(key).second) {
      report_->Add(Anomaly::kScanOrder, Concat("T", t.id, " scanned ", KeyText(name), " twice"), {t.id});
    }
    RecordRead(place, key, &value);
  }
  const std::vector<uint32_t>& keys = sorted_[operation.table];
  auto it = std::lower_bound(keys.begin(), keys.end(), std::string_view(scan.reached_low),
                             [&](uint32_t key, std::string_view low) { return keys_[key].name < low; });
  for (; it != keys.end() && Within(keys_[*it].name, scan.reached_low, scan.reached_high); ++it) {
    if (found.contains(*it)) continue;
    if (const auto own = own_.find(*it); own != own_.end()) {
      CheckOwn(place, *it, *own->second, nullptr);
    } else if (!keys_[*it].deleted) {
      ReadVersion(place, *it, 0, true);
    }
  }
}

void Finder::Order(uint32_t key, uint32_t before, uint32_t after, Basis basis) {
  if (before == after) return;
  keys_[key].versions[before].later.push_back({.version = after, .basis = basis});
}

void Finder::OrderList(uint32_t number) {
  Key& key = keys_[number];
  uint32_t last = 0;
  std::vector<bool> listed(key.versions.size(), false);
  const auto next = [&](const WriteId& id) {
    const uint32_t version = VersionOf(number, id);
    if (version == kNobody) return;
    Order(number, last, version, Basis::kRead);
    listed[version] = true;
    last = version;
  };
  if (key.longest != nullptr) {
    for (const WriteId& id : key.longest->before) next(id);
    next(key.longest->id);
  }
  for (uint32_t version = 1; version < key.versions.size(); ++version) {
    if (!listed[version]) Order(number, last, version, Basis::kRead);
  }
}

// An access sees the version of every access that ended before it began, or a later one. Only the last of these ended
// accesses are compared: each of the others ended before one of the last ones began.
void Finder::OrderByTime(uint32_t number) {
  Key& key = keys_[number];
  std::vector<Access> begun, ended;
  for (uint32_t version = 0; version < key.versions.size(); ++version) {
    const auto add = [&](uint32_t place, bool write) {
      if (!transaction(place).snapshot) begun.push_back({place, version, write});
      if (transaction(place).outcome == Outcome::kCommitted) ended.push_back({place, version, write});
    };
    if (version != 0) add(key.versions[version].maker, true);
    for (const Reader& reader : key.versions[version].readers) add(reader.transaction, false);
  }
  std::sort(begun.begin(), begun.end(), [&](const Access& a, const Access& b) {
    return transaction(a.transaction).invoke < transaction(b.transaction).invoke;
  });
  std::sort(ended.begin(), ended.end(), [&](const Access& a, const Access& b) {
    return transaction(a.transaction).complete < transaction(b.transaction).complete;
  });
  size_t gone = 0;  // number of accesses in `ended` that ended before the present one of `begun` began
  int64_t latest_invoke = std::numeric_limits<int64_t>::min();
  absl::flat_hash_set<std::tuple<uint32_t, uint32_t, Basis>> known;
  for (const Access& access : begun) {
    for (;
         gone < ended.size() && transaction(ended[gone].transaction).complete < transaction(access.transaction).invoke;
         ++gone) {
      latest_invoke = std::max(latest_invoke, transaction(ended[gone].transaction).invoke);
    }
    for (size_t i = gone; i > 0;) {
      --i;
      if (transaction(ended[i].transaction).complete < latest_invoke) break;
      if (ended[i].version == access.version || access.version == 0) continue;
      const Basis basis = ended[i].write && access.write ? Basis::kTime : Basis::kSeen;
      if (known.insert({ended[i].version, access.version, basis}).second) {
        Order(number, ended[i].version, access.version, basis);
      }
    }
  }
}

void Finder::ReportLostUpdates(uint32_t number) {
  const Key& key = keys_[number];
  for (const Version& version : key.versions) {
    if (version.updaters.size() < 2) continue;
    const uint64_t a = transaction(version.updaters[0]).id, b = transaction(version.updaters[1]).id;
    report_->Add(Anomaly::kLostUpdate,
                 Concat("T", a, " and T", b, " both read ", KeyText(key.name), " as ",
                        version.maker == kNobody ? "absent" : Concat("T", transaction(version.maker).id, " left it"),
                        " and wrote it"),
                 {a, b});
  }
}

void Finder::AddEdges(uint32_t number) {
  const Key& key = keys_[number];
  for (const Version& version : key.versions) {
    for (const Reader& reader : version.readers) {
      if (version.maker != kNobody) found_.graph.Add(version.maker, reader.transaction, kWr, number);
    }
    for (const Successor& later : version.later) {
      const uint32_t maker = key.versions[later.version].maker;
      if (maker == kNobody) continue;
      const auto basis = static_cast<size_t>(later.basis);
      if (version.maker != kNobody) found_.graph.Add(version.maker, maker, kWwBy[basis], number);
      for (const Reader& reader : version.readers) {
        found_.graph.Add(reader.transaction, maker, (reader.predicate ? kRwPredicateBy : kRwBy)[basis], number);
      }
    }
  }
}

void Finder::AddTime() {
  std::vector<uint32_t> begun, ended;
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (!index_.committed(i)) continue;
    if (!transaction(i).snapshot) begun.push_back(i);
    if (transaction(i).outcome == Outcome::kCommitted) ended.push_back(i);
  }
  std::sort(begun.begin(), begun.end(),
            [&](uint32_t a, uint32_t b) { return transaction(a).invoke < transaction(b).invoke; });
  std::sort(ended.begin(), ended.end(),
            [&](uint32_t a, uint32_t b) { return transaction(a).complete < transaction(b).complete; });
  size_t next = 0;
  uint32_t moment = kNobody;
  for (const uint32_t place : begun) {
    if (next < ended.size() && transaction(ended[next]).complete < transaction(place).invoke) {
      const uint32_t fresh = found_.graph.AddMoment();
      if (moment != kNobody) found_.graph.Add(moment, fresh, kTime, 0);
      moment = fresh;
      for (; next < ended.size() && transaction(ended[next]).complete < transaction(place).invoke; ++next) {
        found_.graph.Add(ended[next], moment, kTime, 0);
      }
    }
    if (moment != kNobody) found_.graph.Add(moment, place, kTime, 0);
  }
}

Dependencies Finder::Run() {
  FindVersions();
  SortKeys();
  for (uint32_t i = 0; i < index_.size(); ++i) {
    if (index_.committed(i)) ReadAll(i);
  }
  for (uint32_t key = 0; key < keys_.size(); ++key) {
    ReportLostUpdates(key);
    if (keys_[key].lists) {
      OrderList(key);
    } else {
      for (uint32_t version = 0; version < keys_[key].versions.size(); ++version) {
        for (const uint32_t updater : keys_[key].versions[version].updaters) {
          Order(key, version, keys_[key].made_by.at(updater), Basis::kRead);
        }
      }
      OrderByTime(key);
      // A version that no read orders behind another one comes at least after the absence.
      if (!keys_[key].deleted) {
        std::vector<bool> preceded(keys_[key].versions.size(), false);
        for (const Version& version : keys_[key].versions) {
          for (const Successor& later : version.later) {
            if (later.basis == Basis::kRead) preceded[later.version] = true;
          }
        }
        for (uint32_t version = 1; version < preceded.size(); ++version) {
          if (!preceded[version]) Order(key, 0, version, Basis::kRead);
        }
      }
    }
    AddEdges(key);
  }
  AddTime();
  found_.graph.Finish();
  report_->edges = found_.graph.edges().size();
  for (const Key& key : keys_) found_.keys.push_back(KeyText(key.name));
  return std::move(found_);
}

}  // namespace

Dependencies FindDependencies(const HistoryIndex& index, Report* report) { return Finder(index, report).Run(); }

}  // namespace deut::history
