// CheckpointBlocks: the verified blocks of one checkpoint file, read in groups that several threads may read at once.
// Internal to the page store.
// Thread-safety: all methods from any thread. Ownership: owns the open file. Errors: CORRUPTION, with file and offset;
// VERSION_MISMATCH; those of the storage.
#ifndef DC_PAGE_STORE_CHECKPOINT_BLOCKS_H_
#define DC_PAGE_STORE_CHECKPOINT_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_number.h"

namespace deut::dc {

class CheckpointBlocks {
 public:
  static Result<CheckpointBlocks> Open(Storage& storage, std::string path, CheckpointNumber number, DcId dc);

  // At least 1; the last one may be cut off, which Read refuses.
  uint64_t count() const;
  const std::string& path() const { return path_; }

  // Checksums that connect a group with its neighbours: what its first block names as the checksum of the block before
  // it, and the checksum of its last block. The caller compares them.
  struct Links {
    uint32_t before = 0;
    uint32_t last = 0;
  };
  // The payload of a block, its offset in the file, its format version. An error ends the reading.
  using Use = absl::FunctionRef<Status(std::string_view payload, uint64_t offset, uint16_t version)>;
  // Reads `count` blocks from number `first` on, with one transfer, and verifies each before `use` sees it. Only the
  // last block of the file is marked as the last one.
  Result<Links> Read(uint64_t first, uint64_t count, Use use) const;

  Status ExpectBlocks(uint64_t expected) const;
  Status ExpectChecksum(uint32_t last, uint32_t expected) const;
  // The error that names this offset and the reason.
  Status Refuse(uint64_t offset, std::string_view reason) const;

 private:
  CheckpointBlocks(std::unique_ptr<File> file, std::string path, CheckpointNumber number, DcId dc, uint64_t bytes)
      : file_(std::move(file)), path_(std::move(path)), number_(number), dc_(dc), bytes_(bytes) {}

  std::unique_ptr<File> file_;
  std::string path_;
  CheckpointNumber number_;
  DcId dc_;
  uint64_t bytes_;  // length of the file
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_BLOCKS_H_
