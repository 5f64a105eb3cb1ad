// Helpers of the redo log's tests: small logs, recognisable commits, and the content of a log as values.
#ifndef TC_REDO_LOG_LOG_TEST_UTIL_H_
#define TC_REDO_LOG_LOG_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

// A log whose ring and segments are full after a few records. Failures are collected, not fatal.
inline RedoLogOptions SmallLog(const std::string& directory) {
  RedoLogOptions options;
  options.directory = directory;
  options.ring_bytes = 32 << 10;
  options.segment_bytes = 64 << 10;
  options.max_record_bytes = 8 << 10;
  options.block_bytes = 8 << 10;
  options.chunk_bytes = 2 << 10;
  options.space_reserve_bytes = 32 << 10;
  options.timestamp_block = 1000;
  options.on_failure = [](const Status&) {};
  return options;
}

inline Update Put(uint32_t sequence, std::string_view key, std::string_view value) {
  return {.kind = LogEntryKind::kPut, .sequence = sequence, .table = TableId(1), .key = key, .value = value};
}

// A record as a value.
struct ReadRecord {
  Lsn lsn;
  RecordType type = RecordType::kCommit;
  TcEpoch epoch;
  Timestamp timestamp;
  std::vector<std::pair<std::string, std::string>> updates;  // key, value; a commit's: those of its chunks first
  Cut cut;
};

inline void AddUpdates(const UpdateList& updates, ReadRecord* record) {
  for (const Update& update : updates) record->updates.emplace_back(update.key, update.value);
}

// Returns all durable records from `from` on. Chunks are resolved into their commits and left out. `error`: the first
// error of reading.
inline std::vector<ReadRecord> ReadAll(RedoLog& log, Lsn from, Status* error) {
  std::vector<ReadRecord> records;
  const std::unique_ptr<LogReader> reader = log.NewReader(from);
  const Lsn end = log.durable();
  while (reader->position() < end) {
    LogRecord record;
    *error = reader->Next(&record, kNoDeadline);
    if (!error->ok()) return records;
    if (record.type == RecordType::kChunk) continue;
    ReadRecord read{.lsn = record.lsn,
                    .type = record.type,
                    .epoch = record.epoch,
                    .timestamp = record.timestamp,
                    .updates = {},
                    .cut = record.cut};
    for (size_t i = 0; i < record.chunks.size(); ++i) {
      LogRecord chunk;
      *error = reader->ReadChunk(record, record.chunks[i], &chunk);
      if (!error->ok()) return records;
      AddUpdates(chunk.updates, &read);
    }
    AddUpdates(record.updates, &read);
    records.push_back(std::move(read));
  }
  return records;
}

// As above, for a caller that expects no error.
inline std::vector<ReadRecord> ReadAll(RedoLog& log, Lsn from) {
  Status error;
  std::vector<ReadRecord> records = ReadAll(log, from, &error);
  EXPECT_TRUE(error.ok()) << error.ToString();
  return records;
}

// Returns the timestamps of the commits among `records`, in their order.
inline std::vector<uint64_t> CommitTimestamps(const std::vector<ReadRecord>& records) {
  std::vector<uint64_t> timestamps;
  for (const ReadRecord& record : records) {
    if (record.type == RecordType::kCommit) timestamps.push_back(record.timestamp.value);
  }
  return timestamps;
}

inline std::unique_ptr<RedoLog> MustOpen(const RedoLogOptions& options, Storage& storage, RecoveredLog* recovered) {
  Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(options, RealRuntime(), storage, recovered);
  EXPECT_TRUE(log.ok()) << log.status().ToString();
  return log.ok() ? std::move(*log) : nullptr;
}

// Returns the value of a test's commit: it names its timestamp and is at least `bytes` long.
inline std::string ValueOf(uint64_t timestamp, size_t bytes) {
  std::string value = "value-" + std::to_string(timestamp) + "-";
  value.resize(std::max(bytes, value.size()), static_cast<char>('a' + timestamp % 26));
  return value;
}

inline AppendResult Commit(RedoLog& log, uint64_t timestamp, size_t value_bytes = 20) {
  const std::string key = "key-" + std::to_string(timestamp);
  const std::string value = ValueOf(timestamp, value_bytes);
  const Update update = Put(1, key, value);
  return log.AppendCommit(Timestamp(timestamp), {&update, 1});
}

inline Deadline In(Duration duration) { return RealRuntime().Now() + duration; }

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_TEST_UTIL_H_
