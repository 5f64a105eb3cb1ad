// Blocks and segment headers, the parts of the redo log's files (grammar in FORMAT.md). A block is a header, complete
// records, and zero padding to 4 KiB. A segment is a header block followed by blocks. Every block names its own place
// and its predecessor's checksum, so that the valid blocks of a log form one chain (D2).
//
// A log has a key of its own, drawn at random when the log is created and kept in its segment headers alone. Every
// block carries a seal: a hash of its place and header under that key. Clients choose the bytes of values, but not
// the bytes at offset 0 of a file, and they never learn the key. So a value that is shaped like a block, checksum
// included, has no right seal.
// Thread-safety: pure functions. Errors: CORRUPTION with the reason; the caller adds file and offset.
#ifndef TC_LOG_FORMAT_BLOCK_FORMAT_H_
#define TC_LOG_FORMAT_BLOCK_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/siphash.h"
#include "common/io/storage.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {

constexpr uint16_t kLogFormatVersion = 2;
constexpr size_t kBlockAlignment = kIoAlignment;
constexpr size_t kBlockHeaderBytes = 88;
constexpr size_t kSegmentHeaderBytes = kBlockAlignment;
// LSN of a new log's first record; 0 stays free for "none".
constexpr Lsn kFirstLsn{8};
// No log reaches this number. Larger ones are refused before arithmetic on them can overflow.
constexpr uint64_t kMaxLogNumber = uint64_t{1} << 62;

enum class BlockKind : uint16_t { kSegmentHeader = 1, kRecords = 2 };

struct BlockHeader {
  BlockKind kind = BlockKind::kRecords;
  uint32_t block_bytes = 0;  // with header and padding
  uint32_t payload_bytes = 0;
  uint32_t predecessor = 0;  // checksum of the block before it in the log, 0 for the log's first block
  Lsn first_lsn;             // LSN of the payload's first byte; in a segment header: of the segment's first record
  Lsn durable;               // the durable LSN when this block was submitted
  uint64_t segment = 0;      // its own place
  uint64_t offset = 0;
  TcId tc;
  TcEpoch epoch;  // epoch of the TC that wrote it
  uint64_t nonce = 0;
  uint64_t seal = 0;  // filled by ReadBlockHeader; SealBlock computes its own
  Lsn end_lsn() const { return kind == BlockKind::kRecords ? Lsn(first_lsn.value + payload_bytes) : first_lsn; }
};

inline size_t BlockBytesFor(size_t payload_bytes) {
  return (kBlockHeaderBytes + payload_bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

// Writes the header in front of the payload, which is in its place already, zeroes the padding, and returns the
// checksum. `header.block_bytes` is BlockBytesFor(payload_bytes), and `block` has that many bytes.
uint32_t SealBlock(const BlockHeader& header, const SipHashKey& key, char* block);
// True if a writer of the log with this key sealed the block at `block`. REQUIRES: ReadBlockHeader was OK.
bool IsSealed(const char* block, const SipHashKey& key);

// Reads the header at `bytes` (at least kBlockHeaderBytes) of an expected block at (segment, offset). OK means that
// the fields are consistent and that the block ends within `room` bytes. It does not verify the block's content.
Status ReadBlockHeader(const char* bytes, uint64_t segment, uint64_t offset, uint64_t room, BlockHeader* header);
// Checks the whole block, header.block_bytes long, and returns its checksum.
Result<uint32_t> VerifyBlock(const char* block, const BlockHeader& header);

// The state of a file as its first block shows it. Every version of the format, past and future, keeps this: the
// first 16 bytes of a block are magic, checksum, version, kind and length, in the widths of this version. The
// checksum covers the rest of the block.
enum class FirstBlock {
  kUnwritten,  // zeros, or a torn write whose first sector is missing
  kBroken,     // of this version, but not whole: a torn write or damage
  kWhole,      // of this version and whole; it may name another segment, from an earlier use of the file
};
// `bytes` is the beginning of the file of segment `number`, `size` bytes long; bytes beyond the end of the file read
// as zeros. kWhole fills `header`.
//   VERSION_MISMATCH: a whole block of another version of the format; the error names both.
//   CORRUPTION: not a block of a redo log; a damaged block that says another version; or a whole block that no writer
//   has written here.
// After an error nobody may remove the file or write to it, because it was not understood.
Result<FirstBlock> UnderstandFirstBlock(const char* bytes, size_t size, uint64_t number, BlockHeader* header);

// State that must outlive trimming (D3). Every segment header repeats it as of the segment's first LSN; records
// change it.
struct LogState {
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;
  SipHashKey key;       // key of the log, under all its epochs. Secret: it is shown to nobody outside the log's files
  Timestamp reserved;   // all timestamps below it may have been drawn
  Timestamp low_water;  // the highest low-water that was logged
  RedoStart redo_start;
  std::vector<DcId> known_dcs;  // ascending

  // Applies `record`. Commits and chunks change nothing.
  void Apply(const LogRecord& record);
};

// Fills the 4 KiB of a segment's header block and returns its checksum. Sets `header.kind`, its sizes and its offset,
// and seals with state.key.
uint32_t EncodeSegmentHeader(BlockHeader header, const LogState& state, uint64_t segment_bytes, char* block);
// REQUIRES: a verified block of kind kSegmentHeader.
Status DecodeSegmentHeader(const char* block, const BlockHeader& header, LogState* state, uint64_t* segment_bytes);

// Suffix of the name of a segment that is kept although it is not part of the log, because its first block is
// damaged. A number may follow.
constexpr std::string_view kDamagedSuffix = ".damaged";

// "log-" and the segment's number in 20 digits.
std::string SegmentName(uint64_t number);
// Returns false if `name` is not a segment's name.
bool ParseSegmentName(std::string_view name, uint64_t* number);

}  // namespace deut::tc

#endif  // TC_LOG_FORMAT_BLOCK_FORMAT_H_
