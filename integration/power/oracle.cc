#include "integration/power/oracle.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/recorder.h"
#include "integration/history/timestamp_checker.h"

namespace deut::power {
namespace {

using history::IsWrite;
using history::MakesValue;
using history::OperationKind;
using history::OperationRecord;
using history::TransactionRecord;

constexpr uint64_t kMaxPayload = 400;

bool Writes(const TransactionRecord& record) {
  return std::ranges::any_of(record.operations, [](const OperationRecord& o) { return IsWrite(o.kind); });
}

const char* Name(Acknowledgement told) {
  switch (told) {
    case Acknowledgement::kRefused:
      return "refused";
    case Acknowledgement::kBuffered:
      return "acknowledged as buffered";
    case Acknowledgement::kDurable:
      return "acknowledged as durable";
    case Acknowledgement::kUnknown:
      return "of unknown outcome";
  }
  return "?";
}

std::string Describe(const Attempt& attempt) {
  return Concat("transaction ", attempt.record.id, " (life ", attempt.life, ", timestamp ", attempt.record.timestamp,
                ", LSN ", attempt.lsn.value, ", ", Name(attempt.told), ")");
}

}  // namespace

std::string PayloadOf(history::WriteId id) {
  const uint64_t mixed = Mix64(id.writer * 1000 + id.sequence);
  std::string payload(mixed % kMaxPayload, static_cast<char>('a' + mixed % 26));
  return payload;
}

std::string JournalKey(uint64_t transaction) {
  std::string number = std::to_string(transaction);
  return Concat("t", std::string(8 - std::min<size_t>(8, number.size()), '0'), number);
}

void Oracle::BeginLife() {
  const MutexLock lock(mutex_);
  ++life_;
  drawn_before_ = std::max(drawn_before_, drawn_);
}

std::string Oracle::NoteTimestamp(Timestamp timestamp) {
  const MutexLock lock(mutex_);
  drawn_ = std::max(drawn_, timestamp.value);
  if (timestamp.value > drawn_before_) return "";
  return Concat("timestamp ", timestamp.value, " is drawn in life ", life_, "; an earlier life has drawn ",
                drawn_before_);
}

void Oracle::Ended(Attempt attempt) {
  const MutexLock lock(mutex_);
  attempt.life = life_;
  attempts_.push_back(std::move(attempt));
}

void Oracle::TableChanged(const TableChange& change) {
  const MutexLock lock(mutex_);
  if (change.told == Acknowledgement::kRefused) return;
  Table& table = tables_[change.name];
  (change.created ? table.created : table.dropped) = change;
  table.found.reset();
}

std::unique_ptr<Oracle> Oracle::AsOf(int64_t moment) const {
  auto then = std::make_unique<Oracle>();
  const MutexLock lock(mutex_);
  const MutexLock then_lock(then->mutex_);
  then->ids_.store(ids_.load());
  then->life_ = life_;
  for (const Attempt& attempt : attempts_) {
    if (attempt.record.invoke > moment) continue;
    const bool ended = attempt.record.complete < moment;
    Attempt& known = then->attempts_.emplace_back(attempt);
    known.found.reset();
    if (!ended && known.told != Acknowledgement::kRefused) known.told = Acknowledgement::kUnknown;
    if (ended && !known.record.snapshot) then->drawn_ = std::max(then->drawn_, known.record.timestamp);
  }
  const auto as_of = [moment](std::optional<TableChange> change) {
    if (change && change->invoke > moment) change.reset();
    if (change && change->complete >= moment) change->told = Acknowledgement::kUnknown;
    return change;
  };
  for (const auto& [name, table] : tables_) {
    const Table known{.created = as_of(table.created), .dropped = as_of(table.dropped), .found = {}};
    if (known.created) then->tables_[name] = known;
  }
  return then;
}

std::string Oracle::JudgeTables(const Found& found) {
  for (const std::string& name : found.tables) {
    if (!tables_.contains(name)) return Concat("table ", name, " was never created");
  }
  for (auto& [name, table] : tables_) {
    const bool there = std::ranges::find(found.tables, name) != found.tables.end();
    if (table.found) {
      if (*table.found != there) return Concat("table ", name, there ? " has risen again" : " has vanished");
      continue;
    }
    const auto is_durable = [](const std::optional<TableChange>& change) {
      return change && change->told == Acknowledgement::kDurable;
    };
    if (there && is_durable(table.dropped))
      return Concat("table ", name, " is there, though its drop was acknowledged");
    if (!there && !table.dropped && is_durable(table.created)) {
      return Concat("table ", name, " is lost, though its creation was acknowledged");
    }
    table.found = there;
  }
  return "";
}

std::string Oracle::JudgeAttempts(const Found& found) {
  static const std::map<std::string, std::string> nothing;
  const auto at = found.records.find(found.journal);
  const std::map<std::string, std::string>& journal = at == found.records.end() ? nothing : at->second;
  std::set<std::string> expected;
  for (Attempt& attempt : attempts_) {
    if (!Writes(attempt.record)) continue;
    const std::string key = JournalKey(attempt.record.id);
    const bool there = journal.contains(key);
    if (there) expected.insert(key);
    if (attempt.found) {
      if (*attempt.found == there) continue;
      return Concat(Describe(attempt), there ? " has risen again" : " has vanished after it was found");
    }
    if (there && attempt.told == Acknowledgement::kRefused) return Concat(Describe(attempt), " is there");
    if (!there && attempt.told == Acknowledgement::kDurable) return Concat(Describe(attempt), " is lost");
  }
  for (const auto& [key, value] : journal) {
    if (!expected.contains(key)) return Concat("the journal holds ", key, ", which nobody wrote");
  }
  for (Attempt& attempt : attempts_) {
    if (!attempt.found) attempt.found = journal.contains(JournalKey(attempt.record.id));
  }
  return "";
}

std::string Oracle::JudgePrefix() {
  // For each life: the last transaction that is there, by its commit record and by the time of its invocation.
  std::map<uint32_t, const Attempt*> last, latest;
  for (const Attempt& attempt : attempts_) {
    if (attempt.found != true) continue;
    const Attempt*& by_lsn = last[attempt.life];
    if (by_lsn == nullptr || attempt.lsn > by_lsn->lsn) by_lsn = &attempt;
    const Attempt*& by_time = latest[attempt.life];
    if (by_time == nullptr || attempt.record.invoke > by_time->record.invoke) by_time = &attempt;
  }
  for (const Attempt& attempt : attempts_) {
    if (attempt.found != false || attempt.told != Acknowledgement::kBuffered || !Writes(attempt.record)) continue;
    if (const Attempt* there = last[attempt.life]; there != nullptr && there->lsn > attempt.lsn)
      return Concat(Describe(attempt), " is missing in front of ", Describe(*there));
    if (const Attempt* there = latest[attempt.life]; there != nullptr && there->record.invoke > attempt.record.complete)
      return Concat(Describe(attempt), " is missing, and ", Describe(*there), " began after it was acknowledged");
  }
  return "";
}

std::string Oracle::JudgeRecords(const Found& found) {
  std::vector<const Attempt*> there;
  for (const Attempt& attempt : attempts_) {
    if (attempt.found == true) there.push_back(&attempt);
  }
  std::ranges::sort(there, {}, [](const Attempt* attempt) { return attempt->record.timestamp; });
  std::map<uint32_t, std::map<std::string, std::string>> expected;
  for (const Attempt* attempt : there) {
    for (const OperationRecord& operation : attempt->record.operations) {
      if (MakesValue(operation.kind)) {
        expected[operation.table][operation.key] =
            history::StoredText(*operation.value, PayloadOf(operation.value->id));
      } else if (operation.kind == OperationKind::kDelete) {
        expected[operation.table].erase(operation.key);
      }
    }
  }
  for (const auto& [table, records] : found.records) {
    const std::map<std::string, std::string>& right = expected[table];
    for (const auto& [key, value] : records) {
      const auto at = right.find(key);
      if (at == right.end())
        return Concat("table ", table, " holds ", Quoted(key), " = ", Quoted(value), ", which should not be there");
      if (at->second != value)
        return Concat("table ", table, " holds ", Quoted(key), " = ", Quoted(value), " in place of ",
                      Quoted(at->second));
    }
    for (const auto& [key, value] : right) {
      if (!records.contains(key)) return Concat("table ", table, " lacks ", Quoted(key), " = ", Quoted(value));
    }
  }
  return "";
}

std::string Oracle::Judge(Found found) {
  const MutexLock lock(mutex_);
  std::string wrong = JudgeTables(found);
  if (wrong.empty()) wrong = JudgeAttempts(found);
  if (wrong.empty()) wrong = JudgePrefix();
  if (wrong.empty()) wrong = JudgeRecords(found);
  readers_.push_back(std::move(found.reader));
  return wrong;
}

std::string Oracle::Finish() {
  const MutexLock lock(mutex_);
  history::History history;
  for (const Attempt& attempt : attempts_) {
    TransactionRecord record = attempt.record;
    const bool stands = Writes(record) ? attempt.found == true : attempt.told == Acknowledgement::kDurable;
    record.outcome = stands ? history::Outcome::kCommitted : history::Outcome::kAborted;
    history.transactions.push_back(std::move(record));
  }
  for (const TransactionRecord& reader : readers_) history.transactions.push_back(reader);
  const history::Report by_timestamps = CheckTimestamps(history);
  if (!by_timestamps.ok()) return by_timestamps.ToText();
  const history::Report by_cycles = CheckCycles(history);
  return by_cycles.ok() ? "" : by_cycles.ToText();
}

uint64_t Oracle::attempts() const {
  const MutexLock lock(mutex_);
  return attempts_.size();
}

uint64_t Oracle::committed() const {
  const MutexLock lock(mutex_);
  return static_cast<uint64_t>(std::ranges::count_if(attempts_, [](const Attempt& a) { return a.found == true; }));
}

uint64_t Oracle::lost_buffered() const {
  const MutexLock lock(mutex_);
  return static_cast<uint64_t>(std::ranges::count_if(attempts_, [](const Attempt& a) {
    return a.found == false && a.told == Acknowledgement::kBuffered && Writes(a.record);
  }));
}

uint64_t Oracle::unknown_found() const {
  const MutexLock lock(mutex_);
  return static_cast<uint64_t>(std::ranges::count_if(
      attempts_, [](const Attempt& a) { return a.found == true && a.told == Acknowledgement::kUnknown; }));
}

}  // namespace deut::power
