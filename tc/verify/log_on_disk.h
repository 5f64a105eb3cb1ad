// LogOnDisk, for tests: a log directory in memory, as three starts of a redo log have left it. It has small commits and commits in chunks, a chunk
// whose transaction did not commit, low-water records, redo starts with a data component's positions, and segments that were recycled.
// Thread-safety: one thread.
#ifndef TC_VERIFY_LOG_ON_DISK_H_
#define TC_VERIFY_LOG_ON_DISK_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class LogOnDisk {
 public:
  static constexpr const char* kDirectory = "/tc";

  // `keep_bytes`: this much of the log before the redo start is kept, as for outcomes.
  explicit LogOnDisk(uint64_t keep_bytes = 0) : keep_bytes_(keep_bytes) {}

  void Fill() {
    for (int number = 1; number <= 3; ++number) WriteOneStart(number);
  }

  // Opens the log once more, appends a dozen commits in several segments, and closes it. `number`: the number of this start.
  void WriteOneStart(int number) {
    RecoveredLog recovered;
    RedoLogOptions options = Options();
    options.keep_time = std::chrono::hours(1);
    options.keep_bytes = keep_bytes_;
    const std::unique_ptr<RedoLog> log = MustOpen(options, *storage_, &recovered);
    const DcId dc(7);
    ASSERT_TRUE(log->AddKnownDc(dc, kNoDeadline).ok());
    uint64_t timestamp = recovered.first_timestamp.value;
    AppendResult last;
    for (int i = 0; i < 12; ++i, ++timestamp) {
      ASSERT_TRUE(log->EnsureReserved(Timestamp(timestamp), kNoDeadline).ok());
      last = CommitPieces(*log, timestamp, i % 5 == 4 ? 2500 : 100);
      // Every second commit waits, so that the blocks state different durable LSNs.
      if (i % 2 == 0) ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
      if (i == 6) log->AppendLowWater(Timestamp(timestamp));
      if (i == 8 && number < 3) {
        ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
        const RedoStart start{.lsn = last.first, .stable = {{.dc = dc, .stable = Position{before_.lsn, UINT32_MAX}}}};
        ASSERT_TRUE(log->AdvanceRedoStart(start, kNoDeadline).ok());
      }
      before_ = last;
    }
    const Update update = Put(1, "never", "committed");
    log->AppendChunk(Timestamp(timestamp), {&update, 1});
    last = log->AppendLowWater(Timestamp(timestamp));
    ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
    // Makes sure that there is a file behind the chain, however far the helper is.
    while (log->counters().spare_segments == 0) RealRuntime().Yield();
  }

  Storage& storage() { return *storage_; }
  std::vector<std::string> Segments() {
    std::vector<std::string> paths;
    const Result<std::vector<std::string>> names = storage_->List(kDirectory);
    EXPECT_TRUE(names.ok()) << names.status().ToString();
    for (const std::string& name : *names) {
      if (name.starts_with("log-")) paths.push_back(std::string(kDirectory) + "/" + name);
    }
    return paths;
  }
  void Flip(const std::string& path, uint64_t offset, int bit) {
    const Result<std::unique_ptr<File>> file = storage_->Open(path, {.writable = true});
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    char byte = 0;
    ASSERT_TRUE((*file)->Read(offset, &byte, 1).ok());
    byte = static_cast<char>(byte ^ (1 << bit));
    ASSERT_TRUE((*file)->Write(offset, &byte, 1).ok());
  }

  static RedoLogOptions Options() {
    RedoLogOptions options = SmallLog(kDirectory);
    options.ring_bytes = 16 << 10;
    options.segment_bytes = 16 << 10;
    options.max_record_bytes = 4 << 10;
    options.block_bytes = 4 << 10;
    options.chunk_bytes = 1 << 10;
    options.timestamp_block = 8;
    options.spare_segments = 1;
    return options;
  }

 private:
  static AppendResult CommitPieces(RedoLog& log, uint64_t timestamp, size_t bytes) {
    const std::string value = ValueOf(timestamp, bytes);
    std::vector<Update> updates;
    for (size_t at = 0; at < value.size(); at += 400) {
      updates.push_back(Put(static_cast<uint32_t>(updates.size() + 1), "key", std::string_view(value).substr(at, 400)));
    }
    return log.AppendCommit(Timestamp(timestamp), updates);
  }

  const uint64_t keep_bytes_;
  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  AppendResult before_;
};

}  // namespace deut::tc

#endif  // TC_VERIFY_LOG_ON_DISK_H_
