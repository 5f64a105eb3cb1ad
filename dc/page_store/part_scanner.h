// PartScanner: iterates over all parts of a segment's file, in order of their offsets. For the cleaner, the scrubber
// and offline checks; internal to the page store and its tools.
// Packed parts stay packed (UnpackPart).
// Thread-safety: one thread; the file may grow meanwhile. Ownership: borrows the file. Memory: 1 MiB, or the largest
// part.
// Errors: CORRUPTION naming file and offset for bytes that are neither a valid part nor zeros up to the next multiple
//   of 4 KiB; errors of the file.
#ifndef DC_PAGE_STORE_PART_SCANNER_H_
#define DC_PAGE_STORE_PART_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "dc/page_store/part_format.h"

namespace deut::dc {

class PartScanner {
 public:
  // Scans [begin, end) of the file, which is opened direct. `begin`: an offset where a part may begin; `end`: a
  // multiple of kIoAlignment.
  PartScanner(File& file, uint64_t segment, uint64_t begin, uint64_t end);

  // Returns the next part, valid until the next call; no value at the end. After an error, position() is that of the
  // error.
  Result<std::optional<PartView>> Next();
  // After CORRUPTION: advances to the next offset where a valid part begins, or to the end. Returns the number of
  // bytes skipped.
  Result<uint64_t> SkipDamage();
  // Everything before this offset has been scanned.
  uint64_t position() const { return position_; }

 private:
  // Returns bytes [at, at + bytes) of the file; all of them, or an error. REQUIRES: they lie before the end.
  Result<std::string_view> Get(uint64_t at, uint64_t bytes);
  Status Fill(uint64_t at, uint64_t bytes);
  // Decodes the part that should begin at `at`.
  Result<PartView> PartAt(uint64_t at, std::string_view start);

  File& file_;
  const uint64_t segment_;
  const uint64_t end_;
  uint64_t position_;
  // The window of the file that is in memory: `held_` bytes from `held_from_`.
  AlignedBuffer memory_;
  uint64_t held_from_ = 0;
  uint64_t held_ = 0;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_SCANNER_H_
