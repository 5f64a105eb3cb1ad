// The bytes of a checkpoint file: a chain of blocks of 64 KiB, each with its own offset and checksum; and the records
// in them. Format with grammar: dc/docs/page_store.md. Internal to the page store.
// Thread-safety: pure functions. Errors: CORRUPTION naming file and offset; VERSION_MISMATCH for a format that this
// program does not know.
// This program writes version 5 if a table has options, and version 4 if none has. So an earlier program reads the
// checkpoints of a store without them, and refuses the others by name. It also reads version 3, which has no ancestors
// (checkpoint_lineage.h); version 2, whose addresses besides have the earlier layout (page_address.h); and version 1,
// which besides has one `table` record for each dropped table, and no `dropped` records.
#ifndef DC_PAGE_STORE_CHECKPOINT_FORMAT_H_
#define DC_PAGE_STORE_CHECKPOINT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/fixed.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {

constexpr size_t kCheckpointBlockBytes = 64 << 10;
constexpr size_t kCheckpointBlockHeaderBytes = 48;
constexpr size_t kCheckpointBlockRoom = kCheckpointBlockBytes - kCheckpointBlockHeaderBytes;

struct CheckpointBlock {
  CheckpointNumber checkpoint = {};
  DcId dc = {};
  uint64_t offset = 0;       // the block's offset in the file
  uint32_t predecessor = 0;  // checksum of the previous block; 0 for the first
  bool last = false;
  uint32_t payload_bytes = 0;
  uint16_t version = 0;  // of a block that was opened; to seal a block, 0 or kCheckpointVersionWithOptions
};

// True if a dropped table may have a `table` record in a block of this version. Version 1 writes one for each. The
// reader of version 2 accepts them, too, although no program wrote them; today every content has one encoding.
constexpr bool HasTableRecordsOfDroppedTables(uint16_t version) { return version <= 2; }
// True if a block of this version may have `ancestor` and `range` records, pages without parts, and kRecentChange.
constexpr bool HasAncestors(uint16_t version) { return version >= 4; }
constexpr uint16_t kCheckpointVersionWithOptions = 5;
// True if the `table` records of a block of this version have the table's options.
constexpr bool HasTableOptions(uint16_t version) { return version >= kCheckpointVersionWithOptions; }
// Set in the number of parts of a `page` record: the image is not that of the previous checkpoint.
constexpr uint8_t kRecentChange = 0x80;
// The newest version whose addresses have the earlier layout.
constexpr uint16_t kNewestNarrowCheckpointVersion = 2;
// Returns the address that a block of this version has as `raw`.
inline PageAddress CheckpointAddress(uint16_t version, uint64_t raw) {
  return version <= kNewestNarrowCheckpointVersion ? PageAddress::FromNarrow(raw) : PageAddress::FromRaw(raw);
}

// Writes the header before the payload, which is in its place already, zeroes the bytes behind it, and returns the
// checksum.
uint32_t SealCheckpointBlock(const CheckpointBlock& block, char* bytes);

// Verifies the whole block against `expected`, and sets `last`, `payload_bytes` and `version` in it. Returns the
// checksum.
Result<uint32_t> OpenCheckpointBlock(std::string_view bytes, CheckpointBlock* expected, std::string_view path);

enum class CheckpointStart {
  kWhole,    // an undamaged block of a version that this program reads
  kTorn,     // nothing was written, or a block of such a version in part
  kUnknown,  // anything else
};
// Classifies the beginning of a file with a checkpoint's name, up to one block of it, by the fields that every
// version has: magic, checksum, version. VERSION_MISMATCH, naming both, for an undamaged block of another version.
Result<CheckpointStart> ClassifyCheckpointStart(std::string_view bytes, std::string_view path);

struct CheckpointOwner {
  DcId dc = {};
  CheckpointNumber checkpoint = {};
};
// Returns the checksum that the block at the beginning of `bytes`, perhaps a damaged one, names as that of the block
// before it.
uint32_t PredecessorOfCheckpointBlock(std::string_view bytes);
// Returns the DC and the checkpoint to which a block belongs. REQUIRES: ClassifyCheckpointStart returned kWhole.
CheckpointOwner OwnerOfCheckpointBlock(std::string_view bytes);

enum class CheckpointRecordType : uint8_t {
  kHead = 1,
  kTable = 2,
  kSegment = 3,
  kPage = 4,
  kFooter = 5,
  kDropped = 6,
  kAncestor = 7,
  kRange = 8,
};
// The lineage whose file an `ancestor` record names: that of this checkpoint, or that of the one before it.
enum class LineageOf : uint8_t { kThis = 1, kPrevious = 2 };

// Takes numbers off the front of a block's payload, and remembers if there were too few bytes. A start takes those of
// all pages, so the methods are inline.
class RecordCursor {
 public:
  explicit RecordCursor(std::string_view payload) : rest_(payload), size_(payload.size()) {}

  bool done() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  size_t position() const { return size_ - rest_.size(); }

  uint8_t U8() {
    const std::string_view bytes = Bytes(sizeof(uint8_t));
    return bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
  }
  uint32_t U32() {
    const std::string_view bytes = Bytes(sizeof(uint32_t));
    return bytes.empty() ? 0 : LoadU32(bytes.data());
  }
  uint64_t U64() {
    const std::string_view bytes = Bytes(sizeof(uint64_t));
    return bytes.empty() ? 0 : LoadU64(bytes.data());
  }
  std::string_view Bytes(size_t count) {
    if (failed_ || rest_.size() < count) [[unlikely]] {
      failed_ = true;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

 private:
  std::string_view rest_;
  size_t size_;
  bool failed_ = false;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_FORMAT_H_
