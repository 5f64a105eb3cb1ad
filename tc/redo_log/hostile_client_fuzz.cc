// Values that are shaped like blocks. The input says what each false block claims. The log must start again with
// every commit in any case.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/hostile_client.h"
#include "tc/redo_log/log_reader.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

constexpr size_t kMaxCommits = 24;

class Bytes {
 public:
  explicit Bytes(std::string_view rest) : rest_(rest) {}
  bool empty() const { return rest_.empty(); }
  uint64_t Take(size_t count) {
    uint64_t number = 0;
    for (; count > 0 && !rest_.empty(); --count, rest_.remove_prefix(1)) {
      number = number << 8 | static_cast<uint8_t>(rest_[0]);
    }
    return number;
  }

 private:
  std::string_view rest_;
};

RedoLogOptions Options() {
  RedoLogOptions options;
  options.directory = "/log";
  options.tc = TcId(1);
  options.ring_bytes = 32 << 10;
  options.segment_bytes = 32 << 10;
  options.max_record_bytes = 8 << 10;
  options.block_bytes = 8 << 10;
  options.chunk_bytes = 2 << 10;
  options.spare_segments = 1;
  return options;
}

std::unique_ptr<RedoLog> MustOpen(Storage& storage, RecoveredLog* recovered) {
  Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(Options(), RealRuntime(), storage, recovered);
  DEUT_CHECK(log.ok());
  return *std::move(log);
}

void Play(Bytes bytes) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  HostileClient client(*storage, "/log");
  std::vector<uint64_t> wanted;
  RecoveredLog recovered;
  {
    const std::unique_ptr<RedoLog> log = MustOpen(*storage, &recovered);
    for (uint64_t i = 0; i < kMaxCommits && !bytes.empty(); ++i) {
      const uint64_t what = bytes.Take(1);
      HostileClient::Guess guess{.segments_ahead = what % 4, .epochs_ahead = what / 4 % 4};
      if ((what & 16) != 0) guess.first_lsn = guess.durable = Lsn(bytes.Take(8) & ~uint64_t{7});
      if ((what & 32) != 0) guess.seal = bytes.Take(8);
      if ((what & 64) != 0) guess.kind = static_cast<BlockKind>(bytes.Take(2));
      const uint64_t timestamp = recovered.first_timestamp.value + i;
      client.Commit(*log, timestamp, guess);
      wanted.push_back(timestamp);
      if ((what & 128) == 0) continue;
      DEUT_CHECK(log->AdvanceRedoStart({.lsn = log->durable(), .stable = {}}, kNoDeadline).ok());
      wanted.clear();
    }
  }
  const std::unique_ptr<RedoLog> log = MustOpen(*storage, &recovered);
  const std::unique_ptr<LogReader> reader = log->NewReader(recovered.redo_start.lsn);
  std::vector<uint64_t> found;
  while (reader->position() < recovered.end_lsn) {
    LogRecord record;
    DEUT_CHECK(reader->Next(&record, kNoDeadline).ok());
    if (record.type == RecordType::kCommit) found.push_back(record.timestamp.value);
  }
  DEUT_CHECK(found == wanted);
}

}  // namespace
}  // namespace deut::tc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  deut::tc::Play(deut::tc::Bytes({reinterpret_cast<const char*>(data), size}));
  return 0;
}
