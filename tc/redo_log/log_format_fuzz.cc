// Bytes from a damaged or hostile disk: records, blocks, segment headers, and a recovery over a file that begins with
// them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/coding/siphash.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/recovery.h"

namespace deut::tc {
namespace {

void DecodeRecords(std::string_view bytes) {
  // With a valid first word, so that the fuzzer reaches the bodies.
  std::string record(bytes.substr(0, bytes.size() / 8 * 8));
  if (record.size() < 2 * kRecordWordBytes) return;
  const RecordType type = static_cast<RecordType>(1 + static_cast<unsigned char>(record[0]) % 8);
  const RecordWord word{
      .bytes = static_cast<uint32_t>(record.size()), .type = type, .padding = static_cast<uint8_t>(record[1] & 7)};
  const Lsn lsn(uint64_t{1} << 20);
  StoreU64(record.data(), EncodeRecordWord(lsn, word));
  LogRecord decoded;
  size_t needed = 0;
  if (!DecodeRecord(lsn, record, &decoded, &needed).ok()) return;
  DEUT_CHECK(needed == record.size());
  uint64_t sum = 0, count = 0;
  for (const Update& update : decoded.updates) {
    sum += update.key.size() + update.value.size();
    ++count;
  }
  DEUT_CHECK(sum <= record.size() && count == decoded.updates.size());
  for (size_t i = 0; i < decoded.chunks.size(); ++i) DEUT_CHECK(decoded.chunks[i] < lsn);
  LogState state;
  state.Apply(decoded);
}

// Offset of the log's key in the first block of a segment.
constexpr size_t kKeyAt = kBlockHeaderBytes + 40;

SipHashKey KeyIn(const std::string& first_block) {
  return {.low = LoadU64(first_block.data() + kKeyAt), .high = LoadU64(first_block.data() + kKeyAt + 8)};
}

// Makes a block with a valid seal and checksum around any content. The first one of a segment brings its own key.
std::string MakeBlock(std::string_view bytes, uint64_t offset, uint32_t predecessor, SipHashKey key = {}) {
  std::string block(BlockBytesFor(std::max<size_t>(bytes.size(), 8)), '\0');
  constexpr size_t kSealAt = kBlockHeaderBytes - 8;
  std::memcpy(block.data() + 8, bytes.data(), std::min(bytes.size(), block.size() - 8));
  StoreU32(block.data(), 0x474C5244);
  StoreU16(block.data() + 8, kLogFormatVersion);
  StoreU16(block.data() + 10, offset == 0 ? 1 : 2);
  StoreU32(block.data() + 12, static_cast<uint32_t>(block.size()));
  StoreU32(block.data() + 20, predecessor);
  StoreU64(block.data() + 40, 1);
  StoreU64(block.data() + 48, offset);
  if (offset == 0) key = KeyIn(block);
  StoreU64(block.data() + kSealAt, SipHash(key, std::string_view(block).substr(8, kSealAt - 8)));
  StoreU32(block.data() + 4, Crc32c(block.data() + 8, block.size() - 8));
  return block;
}

void DecodeBlocks(std::string_view bytes) {
  const std::string block = MakeBlock(bytes, 0, 0);
  BlockHeader header;
  if (!ReadBlockHeader(block.data(), 1, 0, block.size(), &header).ok()) return;
  DEUT_CHECK(header.block_bytes <= block.size());
  if (!VerifyBlock(block.data(), header).ok()) return;
  LogState state;
  uint64_t segment_bytes = 0;
  (void)DecodeSegmentHeader(block.data(), header, &state, &segment_bytes);
}

void Recover(std::string_view bytes) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  DEUT_CHECK(storage->CreateDirectory("/log").ok());
  const auto file = storage->Open("/log/" + SegmentName(1), {.create = true, .writable = true});
  DEUT_CHECK(file.ok() && (*file)->Allocate(32 << 10).ok());
  const size_t half = bytes.size() / 2;
  const std::string first = MakeBlock(bytes.substr(0, std::min<size_t>(half, 4000)), 0, 0);
  DEUT_CHECK((*file)->Write(0, first.data(), kSegmentHeaderBytes).ok());
  const std::string second =
      MakeBlock(bytes.substr(half, 20000), kSegmentHeaderBytes, LoadU32(first.data() + 4), KeyIn(first));
  DEUT_CHECK((*file)->Write(kSegmentHeaderBytes, second.data(), std::min<size_t>(second.size(), 24 << 10)).ok());
  const Result<RecoveredChain> chain = RecoverChain(*storage, "/log");
  DEUT_CHECK(chain.ok() || chain.status() == ErrorCode::kCorruption);
  // Blocks that were valid are valid when they are read again.
  if (chain.ok()) DEUT_CHECK(RewriteUnprovenBlocks(*storage, "/log", chain->unproven).ok());
}

}  // namespace
}  // namespace deut::tc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0:
      deut::tc::DecodeRecords(bytes);
      break;
    case 1:
      deut::tc::DecodeBlocks(bytes);
      break;
    default:
      deut::tc::Recover(bytes);
  }
  return 0;
}
