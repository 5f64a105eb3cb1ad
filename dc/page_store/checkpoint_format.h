// The bytes of a checkpoint file: blocks of 64 KiB, each with its own place and checksum, chained; and the records in them.
// Format with grammar: dc/docs/page_store.md. Internal to the page store.
// Thread-safety: pure functions. Errors: CORRUPTION naming file and offset; VERSION_MISMATCH for a format this program does not know.
// Version 2 is written. Version 1 is read, too: it has one `table` record for each dropped table, and no `dropped` records.
#ifndef DC_PAGE_STORE_CHECKPOINT_FORMAT_H_
#define DC_PAGE_STORE_CHECKPOINT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "dc/page_store/checkpoint_number.h"

namespace deut::dc {

constexpr size_t kCheckpointBlockBytes = 64 << 10;
constexpr size_t kCheckpointBlockHeaderBytes = 48;
constexpr size_t kCheckpointBlockRoom = kCheckpointBlockBytes - kCheckpointBlockHeaderBytes;

struct CheckpointBlock {
  CheckpointNumber checkpoint = {};
  DcId dc = {};
  uint64_t offset = 0;       // its own place in the file
  uint32_t predecessor = 0;  // checksum of the block before it; 0 for the first
  bool last = false;
  uint32_t payload_bytes = 0;
};

// Writes the header in front of the payload that is in its place already, zeroes what is behind it, and returns the checksum.
uint32_t SealCheckpointBlock(const CheckpointBlock& block, char* bytes);

// Checks the whole block; `expected` says everything but `last` and `payload_bytes`, which are set. Returns the checksum.
Result<uint32_t> OpenCheckpointBlock(std::string_view bytes, CheckpointBlock* expected, std::string_view path);

enum class CheckpointStart {
  kWhole,    // an undamaged block of a version that this program reads
  kTorn,     // nothing was written, or a block of such a version in part
  kStrange,  // anything else
};
// Judges what a file under a checkpoint's name begins with, up to one block of it, by what holds in every version: magic, checksum, version.
// VERSION_MISMATCH, naming both, for an undamaged block of another version.
Result<CheckpointStart> JudgeCheckpointStart(std::string_view bytes, std::string_view path);

struct CheckpointOwner {
  DcId dc = {};
  CheckpointNumber checkpoint = {};
};
// Whose checkpoint a block is of. REQUIRES: JudgeCheckpointStart has called it whole.
CheckpointOwner OwnerOfCheckpointBlock(std::string_view bytes);

enum class CheckpointRecordType : uint8_t { kHead = 1, kTable = 2, kSegment = 3, kPage = 4, kFooter = 5, kDropped = 6 };

// Takes numbers off the front of a block's payload; remembers if there was too little.
class RecordCursor {
 public:
  explicit RecordCursor(std::string_view payload) : rest_(payload), size_(payload.size()) {}

  bool done() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  size_t position() const { return size_ - rest_.size(); }

  uint8_t U8();
  uint32_t U32();
  uint64_t U64();
  std::string_view Bytes(size_t count);

 private:
  std::string_view rest_;
  size_t size_;
  bool failed_ = false;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_FORMAT_H_
