// LogForge: writes log files block by block, valid or not, for tests of recovery. Thread-safety: one thread.
// Ownership: the storage outlives it.
#ifndef TC_REDO_LOG_LOG_FORGE_H_
#define TC_REDO_LOG_LOG_FORGE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {

class LogForge {
 public:
  static constexpr uint64_t kSegmentBytes = 64 << 10;

  LogForge(Storage& storage, std::string directory) : storage_(storage), directory_(std::move(directory)) {
    EXPECT_TRUE(storage_.CreateDirectory(directory_).ok());
    state.tc = TcId(1);
    state.epoch = TcEpoch(1);
    state.nonce = 100;
    state.key = {.low = 11, .high = 12};
    state.reserved = Timestamp(1);
    state.redo_start.lsn = kFirstLsn;
  }

  // The fields of the next block. Tests may change them.
  LogState state;
  Lsn lsn = kFirstLsn;
  Lsn durable = kFirstLsn;
  uint32_t predecessor = 0;
  uint64_t segment = 0;
  uint64_t offset = 0;
  std::string payload;  // payload of the next block, see Record

  std::string Path(uint64_t number) const { return directory_ + "/" + SegmentName(number); }

  // Continues in a new file, and writes its header.
  void BeginSegment(uint64_t number) {
    segment = number;
    offset = 0;
    Allocate(number, kSegmentBytes);
    std::string block(kSegmentHeaderBytes, '\0');
    predecessor = EncodeSegmentHeader(Header(0), state, kSegmentBytes, block.data());
    Write(number, 0, block);
    offset = kSegmentHeaderBytes;
  }

  // Creates a file without any content.
  void Allocate(uint64_t number, uint64_t bytes) {
    const Result<std::unique_ptr<File>> file = storage_.Open(Path(number), {.create = true, .writable = true});
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    ASSERT_TRUE((*file)->Allocate(bytes).ok());
    ASSERT_TRUE(storage_.SyncDirectory(directory_).ok());
  }

  template <typename Body>
  void Record(RecordType type, const Body& body) {
    const RecordWord word = MakeRecordWord(type, body.Bytes());
    const size_t begin = payload.size();
    AppendU64(&payload, EncodeRecordWord(Lsn(lsn.value + begin), word));
    Sink sink{&payload};
    body.Write(sink);
    payload.resize(begin + word.bytes, '\0');
  }
  void CommitRecord(uint64_t timestamp, size_t value_bytes = 10) {
    const std::string value(value_bytes, 'v');
    const Update update{.kind = LogEntryKind::kPut, .sequence = 1, .table = TableId(1), .key = "k", .value = value};
    Record(RecordType::kCommit,
           TransactionBody{
               .timestamp = Timestamp(timestamp), .epoch = state.epoch, .updates = {&update, 1}, .chunks = {}});
  }

  // Writes `payload` as the next block. It says that everything before it is durable (or everything up to
  // `durable_lsn`). Returns its bytes.
  std::string Block() {
    durable = lsn;
    return BlockSubmittedAt(lsn);
  }
  std::string BlockSubmittedAt(Lsn durable_lsn) {
    std::string block = Forge(durable_lsn);
    Write(segment, offset, block);
    Advance(block);
    return block;
  }
  // As BlockSubmittedAt, but the block does not reach the disk.
  std::string LostBlock(Lsn durable_lsn) {
    std::string block = Forge(durable_lsn);
    Advance(block);
    return block;
  }

  // Begins a new TC epoch of the log at `cut`, in a new file.
  void NewStart(uint64_t number, Cut cut, bool log_the_cut = true) {
    lsn = durable = cut.lsn;
    state.epoch = TcEpoch(state.epoch.value + 1);
    state.nonce += 1;
    BeginSegment(number);
    if (log_the_cut) Record(RecordType::kEndOfEpoch, BytesBody{EncodeCutBody(cut)});
    Record(RecordType::kEpochStart, BytesBody{EncodeEpochStartBody(state.tc, state.epoch, state.nonce)});
    Block();
  }

  void Write(uint64_t number, uint64_t at, const std::string& bytes) {
    const Result<std::unique_ptr<File>> file = storage_.Open(Path(number), {.writable = true, .sync_writes = true});
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    const Status written = (*file)->Write(at, bytes.data(), bytes.size());
    ASSERT_TRUE(written.ok()) << written.ToString();
  }

  Cut Here() const { return {.lsn = lsn, .segment = segment, .offset = offset}; }

 private:
  struct Sink {
    std::string* bytes;
    void Put(const void* data, size_t size) { bytes->append(static_cast<const char*>(data), size); }
  };

  BlockHeader Header(size_t payload_bytes) const {
    return BlockHeader{.kind = BlockKind::kRecords,
                       .block_bytes = static_cast<uint32_t>(BlockBytesFor(payload_bytes)),
                       .payload_bytes = static_cast<uint32_t>(payload_bytes),
                       .predecessor = predecessor,
                       .first_lsn = lsn,
                       .durable = durable,
                       .segment = segment,
                       .offset = offset,
                       .tc = state.tc,
                       .epoch = state.epoch,
                       .nonce = state.nonce};
  }

  std::string Forge(Lsn durable_lsn) {
    BlockHeader header = Header(payload.size());
    header.durable = durable_lsn;
    std::string block(header.block_bytes, '\0');
    std::memcpy(block.data() + kBlockHeaderBytes, payload.data(), payload.size());
    predecessor = SealBlock(header, state.key, block.data());
    return block;
  }

  void Advance(const std::string& block) {
    lsn = Lsn(lsn.value + payload.size());
    offset += block.size();
    payload.clear();
  }

  Storage& storage_;
  const std::string directory_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_FORGE_H_
