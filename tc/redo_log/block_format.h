// Blocks and segment headers: what the redo log's files consist of (grammar in FORMAT.md). A block is a header, a run of complete records,
// and zero padding to 4 KiB; a segment is a header block followed by blocks. Every block names its own place, and its predecessor's
// checksum, so that the valid blocks of a log form one chain (D2).
//
// A log has a key of its own, drawn at random when it is created and kept in its segment headers alone. Every block carries a seal: a hash of
// its place and header under that key. Clients choose what values hold, but not what stands at offset 0 of a file, and they never learn the
// key. So bytes of a value that are shaped like a block, checksum included, have no right seal.
// Thread-safety: pure functions. Errors: CORRUPTION with the reason; the caller adds file and offset.
#ifndef TC_REDO_LOG_BLOCK_FORMAT_H_
#define TC_REDO_LOG_BLOCK_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/siphash.h"
#include "common/io/storage.h"
#include "tc/redo_log/log_record.h"

namespace deut::tc {

constexpr uint16_t kLogFormatVersion = 2;
constexpr size_t kBlockAlignment = kIoAlignment;
constexpr size_t kBlockHeaderBytes = 88;
constexpr size_t kSegmentHeaderBytes = kBlockAlignment;
// LSN of a new log's first record; 0 stays free for "none".
constexpr Lsn kFirstLsn{8};
// No log gets that far. Larger numbers are refused before arithmetic on them can overflow.
constexpr uint64_t kMaxLogNumber = uint64_t{1} << 62;

enum class BlockKind : uint16_t { kSegmentHeader = 1, kRecords = 2 };

struct BlockHeader {
  BlockKind kind = BlockKind::kRecords;
  uint32_t block_bytes = 0;  // with header and padding
  uint32_t payload_bytes = 0;
  uint32_t predecessor = 0;  // checksum of the block before it in the log, 0 for the first of all
  Lsn first_lsn;             // of the payload's first byte; a segment header's: of the segment's first record
  Lsn durable;               // what was durable when this block was submitted
  uint64_t segment = 0;      // its own place
  uint64_t offset = 0;
  TcId tc;
  TcEpoch epoch;  // of the life that wrote it
  uint64_t nonce = 0;
  uint64_t seal = 0;  // as read; SealBlock sets its own
  Lsn end_lsn() const { return kind == BlockKind::kRecords ? Lsn(first_lsn.value + payload_bytes) : first_lsn; }
};

inline size_t BlockBytesFor(size_t payload_bytes) {
  return (kBlockHeaderBytes + payload_bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

// Writes the header in front of the payload that is in its place already, zeroes the padding, and returns the checksum.
// `header.block_bytes` is BlockBytesFor(payload_bytes), and so large is `block`.
uint32_t SealBlock(const BlockHeader& header, const SipHashKey& key, char* block);
// Whether the block that begins at `block` was sealed by a writer of the log with this key. REQUIRES: ReadBlockHeader was OK.
bool IsSealed(const char* block, const SipHashKey& key);

// Reads the header at `bytes` (at least kBlockHeaderBytes of them) of what should be a block at (segment, offset). OK says that the fields
// fit together and that the block ends within `room` bytes; not yet that its bytes are right.
Status ReadBlockHeader(const char* bytes, uint64_t segment, uint64_t offset, uint64_t room, BlockHeader* header);
// Checks the whole block, header.block_bytes long, and returns its checksum.
Result<uint32_t> VerifyBlock(const char* block, const BlockHeader& header);

// What the first block of a file says about the file. REQUIRES of every version of the format, past and future: the first 16 bytes of a block are
// magic, checksum, version, kind and length, in the widths of this one, and the checksum covers all of the block behind itself.
enum class FirstBlock {
  kUnwritten,  // nothing, or a torn write of which the first sector is missing
  kBroken,     // of this version, but not whole: a torn write or damage
  kWhole,      // of this version and whole; it may name another segment, of which the file was before
};
// `bytes` is the beginning of the file of segment `number`, `size` bytes long; what is behind the end of the file reads as zeros.
// VERSION_MISMATCH: a whole block of another version of the format; names both. CORRUPTION: not a block of a redo log, a damaged one that says
// another version, or a whole one that no writer has written here. After an error nobody may remove the file, or write to it: it was not understood.
// kWhole fills `header`.
Result<FirstBlock> UnderstandFirstBlock(const char* bytes, size_t size, uint64_t number, BlockHeader* header);

// What must outlive trimming (D3): repeated in every segment header as of the segment's first LSN, changed by records.
struct LogState {
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;
  SipHashKey key;       // of the log, in all its lives. Secret: it leaves the log's files for nobody
  Timestamp reserved;   // all below may have been drawn
  Timestamp low_water;  // the highest logged
  RedoStart redo_start;
  std::vector<DcId> known_dcs;  // ascending

  // Takes over what `record` says. Commits and chunks change nothing.
  void Apply(const LogRecord& record);
};

// Fills the 4 KiB of a segment's header block and returns its checksum. `header.kind`, sizes and offset are set here; sealed by state.key.
uint32_t EncodeSegmentHeader(BlockHeader header, const LogState& state, uint64_t segment_bytes, char* block);
// REQUIRES: a verified block of kind kSegmentHeader.
Status DecodeSegmentHeader(const char* block, const BlockHeader& header, LogState* state, uint64_t* segment_bytes);

// Behind the name of a segment that is kept, though it is none of the log, because its first block is damaged. Another number may follow.
constexpr std::string_view kDamagedSuffix = ".damaged";

// "log-" and the segment's number in 20 digits.
std::string SegmentName(uint64_t number);
// False if `name` is no segment's.
bool ParseSegmentName(std::string_view name, uint64_t* number);

}  // namespace deut::tc

#endif  // TC_REDO_LOG_BLOCK_FORMAT_H_
