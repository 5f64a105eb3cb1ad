#include "integration/ycsb/verify.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "common/coding/crc32c.h"
#include "integration/ycsb/record.h"
#include "tc/client/retry.h"
#include "tc/client/scanner.h"
#include "tc/client/transaction.h"

namespace deut::ycsb {
namespace {

constexpr size_t kReadsPerMessage = 512;
constexpr size_t kMaxDetails = 10;

void AddDetail(std::vector<std::string>* details, std::string detail) {
  if (details->size() < kMaxDetails) details->push_back(std::move(detail));
}

// Reads the keys in one transaction; `answers` has one answer a key, in the same order.
Status ReadKeys(Client& client, TableId table, const std::vector<std::string>& keys, Duration deadline,
                std::vector<OperationResult>* answers) {
  std::vector<Operation> reads;
  reads.reserve(keys.size());
  for (const std::string& key : keys) reads.push_back({.kind = OperationKind::kGet, .table = table, .key = key});
  RetryOptions retry;
  retry.timeout = deadline;
  return RunOneShot(client, retry, reads, answers).status();
}

void CheckRecord(const JournalContents& journal, uint64_t number, const std::string& key, const OperationResult& answer,
                 JournalCheck* check) {
  const RecordHistory& history = journal.records.at(number);
  check->checked += history.acknowledged_writes;
  const RecordBatch::Iterator it(answer.records);
  if (!it.Valid()) {
    if (!history.acknowledged) return;
    ++check->missing;
    AddDetail(&check->details,
              Concat("missing: record ", number, " (", key, "), acknowledged at timestamp ", history.timestamp.value,
                     " for writer ", history.newest.writer, ", sequence ", history.newest.sequence));
    return;
  }
  const Result<WriteId> id = CheckValue(key, it.record().value);
  if (id.ok() && history.Allows(*id)) return;
  // If the journal has no acknowledged write of the record, its value may be older than the journal.
  if (id.ok() && !history.acknowledged && !journal.writers.contains(id->writer)) return;
  ++check->wrong;
  AddDetail(&check->details,
            id.ok()
                ? Concat("wrong: record ", number, " (", key, ") holds the value of writer ", id->writer, ", sequence ",
                         id->sequence, "; the newest acknowledged one is of writer ", history.newest.writer,
                         ", sequence ", history.newest.sequence, ", timestamp ", history.timestamp.value)
                : Concat("wrong: record ", number, ": ", id.status().ToString()));
}

struct Seen {
  std::string key;
  uint32_t value_crc = 0;
};

// Appends up to `limit` records to `seen`.
Status ScanSome(Client& client, TableId table, Direction direction, uint64_t limit, Duration deadline,
                std::vector<Seen>* seen) {
  RetryOptions retry;
  retry.timeout = deadline;
  const size_t before = seen->size();
  return RunTransaction(client, retry, [&](Transaction& transaction) {
    seen->resize(before);
    Scanner scanner = transaction.OpenScanner(table, {.direction = direction, .limit_records = limit});
    while (scanner.Next()) {
      DEUT_RETURN_IF_ERROR(CheckValue(scanner.key(), scanner.value()).status());
      seen->push_back({.key = std::string(scanner.key()), .value_crc = Crc32c(scanner.value())});
    }
    return scanner.status();
  });
}

Status CompareWithPoints(Client& client, TableId table, const std::vector<Seen>& seen, Duration deadline,
                         ReadCheck* check) {
  std::vector<std::string> keys;
  std::vector<OperationResult> answers;
  for (size_t next = 0; next < seen.size(); next += keys.size()) {
    keys.clear();
    while (keys.size() < kReadsPerMessage && next + keys.size() < seen.size())
      keys.push_back(seen[next + keys.size()].key);
    DEUT_RETURN_IF_ERROR(ReadKeys(client, table, keys, deadline, &answers));
    for (size_t i = 0; i < keys.size(); ++i) {
      ++check->points;
      const RecordBatch::Iterator it(answers[i].records);
      if (it.Valid() && Crc32c(it.record().value) == seen[next + i].value_crc) continue;
      ++check->disagreements;
      AddDetail(&check->details, Concat("key ", keys[i], ": a scan shows it, a point read ",
                                        it.Valid() ? "shows another value" : "does not"));
    }
  }
  return Status();
}

}  // namespace

std::string JournalCheck::Summary() const {
  return Concat("acknowledged ", acknowledged, ", checked ", checked, ", missing ", missing, ", wrong ", wrong,
                ", unknown ", unknown);
}

Result<JournalCheck> CheckAgainstJournal(Client& client, TableId table, const JournalContents& journal,
                                         Duration deadline) {
  JournalCheck check{.acknowledged = journal.acknowledged, .unknown = journal.unknown};
  std::vector<uint64_t> numbers;
  std::vector<std::string> keys;
  std::vector<OperationResult> answers;
  const auto read = [&]() -> Status {
    keys.clear();
    for (const uint64_t number : numbers) keys.push_back(KeyOf(number));
    DEUT_RETURN_IF_ERROR(ReadKeys(client, table, keys, deadline, &answers));
    for (size_t i = 0; i < numbers.size(); ++i) CheckRecord(journal, numbers[i], keys[i], answers[i], &check);
    numbers.clear();
    return Status();
  };
  for (const auto& [number, history] : journal.records) {
    numbers.push_back(number);
    if (numbers.size() == kReadsPerMessage) DEUT_RETURN_IF_ERROR(read());
  }
  if (!numbers.empty()) DEUT_RETURN_IF_ERROR(read());
  return check;
}

Status CheckKillTimes(const JournalContents& journal, const std::vector<int64_t>& kills_us) {
  for (const int64_t kill : kills_us) {
    if (journal.first_run_ack_us < kill && kill < journal.last_run_ack_us) continue;
    return DEUT_ERROR(kNotFound, "the kill at ", kill, " us does not lie between the first acknowledgement (",
                      journal.first_run_ack_us, ") and the last (", journal.last_run_ack_us, ")");
  }
  return Status();
}

Result<ReadCheck> CheckReads(Client& client, TableId table, uint64_t records, Duration deadline) {
  ReadCheck check;
  std::vector<Seen> seen;
  seen.reserve(records);
  DEUT_RETURN_IF_ERROR(client.DropCaches({.timeout = deadline}));
  DEUT_RETURN_IF_ERROR(ScanSome(client, table, Direction::kAscending, records / 2, deadline, &seen));
  check.scanned_ascending = seen.size();
  DEUT_RETURN_IF_ERROR(ScanSome(client, table, Direction::kDescending, records - records / 2, deadline, &seen));
  check.scanned_descending = seen.size() - check.scanned_ascending;
  if (seen.size() < records)
    return DEUT_ERROR(kNotFound, "asked to read ", records, " records, the table has only ", seen.size());
  for (size_t i = 1; i < seen.size(); ++i) {
    if (i == check.scanned_ascending) continue;
    const bool in_order = i < check.scanned_ascending ? seen[i - 1].key < seen[i].key : seen[i - 1].key > seen[i].key;
    if (in_order) continue;
    ++check.disagreements;
    AddDetail(&check.details, Concat("a scan shows ", seen[i - 1].key, " and then ", seen[i].key));
  }
  DEUT_RETURN_IF_ERROR(client.DropCaches({.timeout = deadline}));
  DEUT_RETURN_IF_ERROR(CompareWithPoints(client, table, seen, deadline, &check));
  return check;
}

}  // namespace deut::ycsb
