#include "integration/history/history_edn.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/concat.h"
#include "integration/history/history_text.h"

namespace deut::history {
namespace {

struct Event {
  int64_t time = 0;
  bool invoke = false;
  const TransactionRecord* transaction = nullptr;
};

class Writer {
 public:
  Writer(const History& history, std::ostream& out) : history_(history), out_(out) {}

  Status Run() {
    for (const TransactionRecord& t : history_.transactions) {
      for (const OperationRecord& operation : t.operations) {
        if (operation.kind == OperationKind::kAppend) lists_ = true;
      }
    }
    std::vector<Event> events;
    int64_t end = 0;
    for (const TransactionRecord& t : history_.transactions) {
      if (t.snapshot) continue;
      DEUT_RETURN_IF_ERROR(Check(t));
      events.push_back({.time = t.invoke, .invoke = true, .transaction = &t});
      end = std::max({end, t.invoke, t.outcome == Outcome::kUnknown ? t.invoke : t.complete});
    }
    for (size_t i = 0, begun = events.size(); i < begun; ++i) {
      const TransactionRecord& t = *events[i].transaction;
      // The end of a transaction of unknown outcome is not known, so its event goes behind all others.
      const int64_t time = t.outcome == Outcome::kUnknown ? end : t.complete;
      events.push_back({.time = time, .invoke = false, .transaction = &t});
    }
    // Invocations come first among events at one time, so that the output adds no order that the history does not have.
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return a.time != b.time ? a.time < b.time : a.invoke > b.invoke;
    });
    for (const Event& event : events) Write(event);
    return Status();
  }

 private:
  Status Check(const TransactionRecord& t) const {
    for (const OperationRecord& operation : t.operations) {
      const bool blind_to_lists = lists_ && MakesValue(operation.kind) && operation.kind != OperationKind::kAppend;
      if (operation.kind != OperationKind::kDelete && !blind_to_lists) continue;
      return DEUT_ERROR(kInvalidArgument, "Elle has no word for ", ToText(t, operation), " of T", t.id);
    }
    return Status();
  }

  int64_t Number(const WriteId& id) { return numbers_.try_emplace(id, numbers_.size() + 1).first->second; }

  uint32_t Process(const Event& event) {
    const uint64_t id = event.transaction->id;
    if (!event.invoke) return process_of_.at(id);
    const auto it = processes_.try_emplace(event.transaction->client, next_process_).first;
    const uint32_t process = it->second;
    if (process == next_process_) ++next_process_;
    process_of_[id] = process;
    if (event.transaction->outcome == Outcome::kUnknown) it->second = next_process_;
    return process;
  }

  std::string KeyOf(const OperationRecord& operation, const std::string& key) const {
    return Concat("\"", operation.table == 0 ? "" : Concat(operation.table, ":"), KeyText(key), "\"");
  }

  std::string ReadText(const OperationRecord& operation, const std::string& key, const Value* value, bool known) {
    std::string text = Concat("[:r ", KeyOf(operation, key), " ");
    if (value == nullptr || !known) return text + "nil]";
    if (!lists_) return Concat(text, Number(value->id), "]");
    text += "[";
    for (const WriteId& id : value->before) ConcatTo(&text, Number(id), " ");
    return Concat(text, Number(value->id), "]]");
  }

  void Write(const Event& event) {
    const TransactionRecord& t = *event.transaction;
    const bool known = !event.invoke && t.outcome == Outcome::kCommitted;
    std::string value;
    for (const OperationRecord& operation : t.operations) {
      if (MakesValue(operation.kind)) {
        ConcatTo(&value, value.empty() ? "" : " ", lists_ ? "[:append " : "[:w ", KeyOf(operation, operation.key), " ",
                 Number(operation.value->id), "]");
      }
      ForEachRead(t, operation, [&](const std::string& key, const Value* seen) {
        ConcatTo(&value, value.empty() ? "" : " ", ReadText(operation, key, seen, known));
      });
    }
    const char* type = event.invoke                       ? "invoke"
                       : t.outcome == Outcome::kCommitted ? "ok"
                       : t.outcome == Outcome::kAborted   ? "fail"
                                                          : "info";
    out_ << "{:index " << index_++ << ", :time " << event.time << ", :type :" << type << ", :process " << Process(event)
         << ", :f :txn, :value [" << value << "]}\n";
  }

  const History& history_;
  std::ostream& out_;
  bool lists_ = false;
  uint64_t index_ = 0;
  uint32_t next_process_ = 0;
  std::map<uint32_t, uint32_t> processes_;  // client -> its process
  absl::flat_hash_map<uint64_t, uint32_t> process_of_;
  absl::flat_hash_map<WriteId, int64_t> numbers_;
};

}  // namespace

Status WriteEdn(const History& history, std::ostream& out) { return Writer(history, out).Run(); }

}  // namespace deut::history
