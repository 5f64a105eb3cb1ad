// HostileClient: attacks a redo log with its values alone. It shapes their bytes like blocks of the log, at places
// where recovery looks for blocks. It knows the format, the numbers of the files, and the TC id, TC epoch and nonce
// of the log, but not the log's key. It is for tests and fuzzing.
// Thread-safety: one thread. Ownership: the storage outlives it.
#ifndef TC_REDO_LOG_HOSTILE_CLIENT_H_
#define TC_REDO_LOG_HOSTILE_CLIENT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/block_window.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class HostileClient {
 public:
  // Each commit is a block of two pages. The second page is the false block.
  static constexpr std::string_view kKey = "victim-1";
  static constexpr size_t kPrefixBytes =
      kBlockHeaderBytes + kRecordWordBytes + kTransactionHeaderBytes + kUpdateHeaderBytes + kKey.size();
  static constexpr size_t kValueBytes = 2 * kBlockAlignment - kPrefixBytes;

  // The fields of a false block.
  struct Guess {
    uint64_t segments_ahead = 1;  // it names the segment that many numbers after the newest file
    uint64_t epochs_ahead = 0;
    Lsn first_lsn{uint64_t{1} << 40};
    Lsn durable{uint64_t{1} << 40};
    uint64_t seal = 0;
    uint32_t predecessor = 0;
    BlockKind kind = BlockKind::kRecords;
  };

  HostileClient(Storage& storage, std::string directory) : storage_(storage), directory_(std::move(directory)) {}

  // Commits a value with a false block, and waits until it is durable.
  void Commit(RedoLog& log, uint64_t timestamp, const Guess& guess) {
    const std::string value = Value(log, guess);
    const Update update{.kind = LogEntryKind::kPut, .sequence = 1, .table = TableId(1), .key = kKey, .value = value};
    const AppendResult appended = log.AppendCommit(Timestamp(timestamp), {&update, 1});
    DEUT_CHECK(log.WaitDurable(appended.lsn, kNoDeadline).ok());
  }

 private:
  std::string Value(const RedoLog& log, const Guess& guess) {
    uint64_t newest = 0;
    const uint64_t offset = NextOffset(&newest) + kBlockAlignment;
    std::string block(kBlockAlignment, 'x');
    // A real writer's code, except for the seal: the guess replaces it, and the checksum is computed again.
    SealBlock(BlockHeader{.kind = BlockKind::kRecords,
                          .block_bytes = kBlockAlignment,
                          .payload_bytes = kBlockAlignment - kBlockHeaderBytes,
                          .predecessor = guess.predecessor,
                          .first_lsn = guess.first_lsn,
                          .durable = guess.durable,
                          .segment = newest + guess.segments_ahead,
                          .offset = offset,
                          .tc = log.tc(),
                          .epoch = TcEpoch(log.epoch().value + guess.epochs_ahead),
                          .nonce = log.nonce()},
              SipHashKey{}, block.data());
    StoreU16(block.data() + 10, static_cast<uint16_t>(guess.kind));
    StoreU64(block.data() + kBlockHeaderBytes - 8, guess.seal);
    StoreU32(block.data() + 4, Crc32c(block.data() + 8, block.size() - 8));
    return std::string(kBlockAlignment - kPrefixBytes, 'v') + block;
  }

  // Returns the offset of the log's next block, and the number of the newest file.
  uint64_t NextOffset(uint64_t* newest) {
    const auto names = storage_.List(directory_);
    DEUT_CHECK(names.ok());
    std::vector<uint64_t> numbers;
    for (const std::string& name : *names) {
      uint64_t number = 0;
      if (ParseSegmentName(name, &number)) numbers.push_back(number);
    }
    std::ranges::sort(numbers, std::greater<>());
    *newest = numbers.front();
    for (const uint64_t number : numbers) {
      const auto file = storage_.Open(directory_ + "/" + SegmentName(number), {});
      if (!file.ok()) continue;  // the file was renamed meanwhile
      BlockWindow window;
      const uint64_t bytes = *(*file)->Size();
      uint64_t offset = 0;
      while (offset < bytes) {
        const auto block = window.Read(**file, number, bytes, offset);
        if (!block.ok()) break;
        offset += block->header.block_bytes;
      }
      // Offset 0: the first block of this process is not there yet. A full segment: the next one begins.
      if (offset != 0) return offset + 2 * kBlockAlignment <= bytes ? offset : kSegmentHeaderBytes;
    }
    return kSegmentHeaderBytes;
  }

  Storage& storage_;
  const std::string directory_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_HOSTILE_CLIENT_H_
