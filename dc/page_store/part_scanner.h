// PartScanner: all parts of a segment's file, in order of their offsets. For the cleaner, for scrubbing and for offline checks; internal to the
// page store and its tools.
// Thread-safety: one thread; the file may grow meanwhile. Ownership: borrows the file. Memory: a megabyte, or the largest part.
// Errors: CORRUPTION naming file and offset for anything that is neither a right part nor zeros up to the next multiple of 4 KiB; what the
//   file answers.
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
  // Looks at [begin, end) of the file, which is opened direct. `begin`: where a part may begin; `end`: a multiple of kIoAlignment.
  PartScanner(File& file, uint64_t segment, uint64_t begin, uint64_t end);

  // The next part, valid until the next call; nothing at the end. After an error it stands where that is.
  Result<std::optional<PartView>> Next();
  // After CORRUPTION: goes on to the next place where a right part begins, or to the end. Answers how many bytes were left out.
  Result<uint64_t> SkipDamage();
  // Everything before it was looked at.
  uint64_t position() const { return position_; }

 private:
  // Bytes [at, at + bytes) of the file; all of them, or an error. REQUIRES: they lie before the end.
  Result<std::string_view> Get(uint64_t at, uint64_t bytes);
  Status Fill(uint64_t at, uint64_t bytes);
  // The part that should begin at `at`.
  Result<PartView> PartAt(uint64_t at, std::string_view start);

  File& file_;
  const uint64_t segment_;
  const uint64_t end_;
  uint64_t position_;
  // What of the file is in memory.
  AlignedBuffer memory_;
  uint64_t held_from_ = 0;
  uint64_t held_ = 0;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_SCANNER_H_
