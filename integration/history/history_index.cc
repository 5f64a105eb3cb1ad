#include "integration/history/history_index.h"

#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/base/concat.h"
#include "integration/history/history_text.h"

namespace deut::history {

HistoryIndex::HistoryIndex(const History& history, Report* report) : history_(history), committed_(size(), false) {
  absl::flat_hash_set<uint64_t> ids;
  for (uint32_t i = 0; i < size(); ++i) {
    const TransactionRecord& t = transaction(i);
    if (t.id == 0 || !ids.insert(t.id).second) {
      report->Add(Anomaly::kMalformed, Concat("two transactions have the number ", t.id, ", or it is 0"), {t.id});
      return;
    }
    if (!AddWrites(i, report)) return;
  }
  ResetCommitted();
}

void HistoryIndex::ResetCommitted() {
  committed_.assign(size(), false);
  for (uint32_t i = 0; i < size(); ++i) {
    if (transaction(i).outcome == Outcome::kCommitted) SetCommitted(i);
  }
}

bool HistoryIndex::AddWrites(uint32_t place, Report* report) {
  const TransactionRecord& t = transaction(place);
  // Goes from back to front, so that the first write of a key that it meets is the last one.
  absl::flat_hash_set<std::pair<uint32_t, std::string_view>> keys;
  for (uint32_t i = static_cast<uint32_t>(t.operations.size()); i-- > 0;) {
    const OperationRecord& operation = t.operations[i];
    if (!IsWrite(operation.kind)) continue;
    if (t.snapshot) {
      report->Add(Anomaly::kMalformed, Concat("T", t.id, " is a snapshot and writes"), {t.id});
      return false;
    }
    const bool last = keys.insert({operation.table, operation.key}).second;
    if (!MakesValue(operation.kind)) continue;
    const bool own = operation.value && operation.value->id.writer == t.id && operation.value->before.empty();
    if (!own || !writes_.try_emplace(operation.value->id, Write{place, i, last}).second) {
      report->Add(Anomaly::kMalformed,
                  Concat("T", t.id, " ", ToText(t, operation), ": not its own write, or one that it made before"),
                  {t.id});
      return false;
    }
  }
  return true;
}

const HistoryIndex::Write* HistoryIndex::Find(const WriteId& id) const {
  const auto it = writes_.find(id);
  return it == writes_.end() ? nullptr : &it->second;
}

void HistoryIndex::SetCommitted(uint32_t place) {
  std::vector<uint32_t> open;
  const auto take = [&](uint32_t t) {
    if (committed_[t] || transaction(t).outcome == Outcome::kAborted) return;
    committed_[t] = true;
    open.push_back(t);
  };
  take(place);
  while (!open.empty()) {
    const TransactionRecord& reader = transaction(open.back());
    open.pop_back();
    const auto saw = [&](const WriteId& id) {
      if (const Write* write = Find(id); write != nullptr) take(write->transaction);
    };
    for (const OperationRecord& operation : reader.operations) {
      ForEachRead(reader, operation, [&](const std::string&, const Value* value) {
        if (value == nullptr) return;
        saw(value->id);
        for (const WriteId& id : value->before) saw(id);
      });
    }
  }
}

void HistoryIndex::CheckSources(Report* report) const {
  for (uint32_t i = 0; i < size(); ++i) {
    if (!committed_[i]) continue;
    const TransactionRecord& t = transaction(i);
    for (const OperationRecord& operation : t.operations) {
      ForEachRead(t, operation, [&](const std::string& key, const Value* value) {
        if (value != nullptr) CheckSource(i, operation, key, *value, report);
      });
    }
  }
}

void HistoryIndex::CheckSource(uint32_t reader, const OperationRecord& operation, const std::string& key,
                               const Value& value, Report* report) const {
  const uint64_t id = transaction(reader).id;
  // A lambda, because the text is needed only for a violation, and a list is checked element by element.
  const auto what = [&] { return Concat("T", id, " read ", KeyText(key), "=", ToText(value)); };
  const auto check = [&](const WriteId& element, bool newest) {
    const Write* write = Find(element);
    const OperationRecord* source = write == nullptr ? nullptr : &this->operation(*write);
    if (source == nullptr || source->table != operation.table || source->key != key) {
      report->Add(Anomaly::kGarbageRead,
                  Concat(what(), "; nobody wrote ", element.writer, ".", element.sequence, " there"), {id});
      return;
    }
    const TransactionRecord& writer = transaction(write->transaction);
    if (writer.outcome == Outcome::kAborted) {
      report->Add(Anomaly::kAbortedRead, Concat(what(), " of T", writer.id, ", which aborted"), {id, writer.id});
    } else if (newest && !write->last && write->transaction != reader) {
      report->Add(Anomaly::kIntermediateRead, Concat(what(), ", which T", writer.id, " itself replaced"),
                  {id, writer.id});
    }
  };
  for (const WriteId& element : value.before) check(element, false);
  check(value.id, true);
}

void HistoryIndex::Count(Report* report) const {
  for (uint32_t i = 0; i < size(); ++i) {
    const TransactionRecord& t = transaction(i);
    if (!committed_[i]) {
      ++(t.outcome == Outcome::kAborted ? report->aborted : report->unknown_dropped);
      continue;
    }
    ++report->committed;
    if (t.outcome == Outcome::kUnknown) ++report->unknown_committed;
    report->operations += t.operations.size();
    for (const OperationRecord& operation : t.operations) {
      if (operation.kind == OperationKind::kScan) ++report->scans;
      ForEachRead(t, operation, [&](const std::string&, const Value*) { ++report->reads; });
    }
  }
}

}  // namespace deut::history
