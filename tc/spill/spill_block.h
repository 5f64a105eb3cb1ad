// SpillBlock: the bytes of one block of a spilled run: some versions in the order of runs, with a checksum.
//
// Grammar (little-endian). block = magic:4 crc:4 bytes:4 versions:4 offset:8 version{versions}; `crc` is CRC-32C of all bytes behind it, `bytes` the
//   length of the whole block, `offset` its place in the file. version = table:4 key_bytes:4 timestamp:8 commit:8 place:8 sequence:4
//   value_bytes:4 tombstone:1 key. The magic is "SPB" and the version of the format as a digit, "1"; every version begins with magic, checksum and
//   length as this one does. No process reads the files of an earlier one; a start removes a file whose format it understands.
// Errors: CORRUPTION naming file and offset. Damaged bytes never fail a DEUT_CHECK and are never read out of bounds.
// Thread-safety: a builder by one thread; a decoded block by any.
// Ownership: a block owns its bytes; the keys of its versions are views into them.
#ifndef TC_SPILL_SPILL_BLOCK_H_
#define TC_SPILL_SPILL_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "tc/spill/spilled_version.h"

namespace deut::tc {

// Checks the first bytes of a file that has the name of a spilled run. `bytes`: at most kFormatCheckBytes from its beginning. OK: the file is of this
// format version, or has no content yet, so it may be removed. VERSION_MISMATCH: another version, naming both; CORRUPTION: no spilled run. Both name
// `path`.
constexpr size_t kFormatCheckBytes = 512;
Status CheckSpillFileFormat(std::string_view bytes, std::string_view path);

class SpillBlockBuilder {
 public:
  // REQUIRES: `version` is behind the last one in the order of runs.
  void Add(const SpilledVersion& version);
  size_t bytes() const { return bytes_.size(); }
  bool empty() const { return versions_ == 0; }
  // Returns the block for this place in the file, and empties the builder.
  std::string Finish(uint64_t offset);

 private:
  std::string bytes_;
  uint32_t versions_ = 0;
};

class SpillBlock {
 public:
  // `bytes`: the content of the file at `offset`.
  static Result<SpillBlock> Decode(std::string bytes, std::string_view path, uint64_t offset);

  SpillBlock(SpillBlock&&) = default;
  SpillBlock& operator=(SpillBlock&&) = default;

  // In the order of runs; the keys are views into the block.
  const std::vector<SpilledVersion>& versions() const { return versions_; }

 private:
  SpillBlock() = default;
  std::vector<char> bytes_;  // a vector, because its content keeps its address when the block is moved
  std::vector<SpilledVersion> versions_;
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_BLOCK_H_
