#include "dc/page_store/part_scanner.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/io/aligned_buffer.h"
#include "dc/page_store/segment_format.h"

namespace deut::dc {
namespace {

constexpr size_t kWindowBytes = 1 << 20;

// What of the file is in memory.
class Window {
 public:
  Window(File& file, uint64_t end) : file_(file), end_(end), memory_(std::min<uint64_t>(kWindowBytes, end)) {}

  // Bytes [at, at + bytes) of the file; all of them, or an error. REQUIRES: they lie before the end.
  Result<std::string_view> Get(uint64_t at, uint64_t bytes) {
    if (at < begin_ || at + bytes > begin_ + held_) DEUT_RETURN_IF_ERROR(Fill(at, bytes));
    return std::string_view(memory_.data() + (at - begin_), bytes);
  }

 private:
  Status Fill(uint64_t at, uint64_t bytes) {
    const uint64_t begin = RoundDownToIo(at);
    const uint64_t needed = RoundUpToIo(at + bytes) - begin;
    if (memory_.size() < needed) memory_ = AlignedBuffer(needed);
    const uint64_t wanted = std::min<uint64_t>(memory_.size(), end_ - begin);
    held_ = 0;
    DEUT_ASSIGN_OR_RETURN(const size_t read, file_.Read(begin, memory_.data(), wanted));
    if (read < wanted) {
      return DEUT_ERROR(kCorruption, file_.path(), ": offset ", begin + read, ": the file ends, ", end_,
                        " bytes were written");
    }
    begin_ = begin;
    held_ = wanted;
    return Status::Ok();
  }

  File& file_;
  const uint64_t end_;
  AlignedBuffer memory_;
  uint64_t begin_ = 0;
  uint64_t held_ = 0;
};

}  // namespace

Status ScanParts(File& file, uint64_t segment, uint64_t written_bytes,
                 const std::function<Status(const PartView&)>& callback) {
  Window window(file, written_bytes);
  uint64_t at = kSegmentHeaderBytes;
  while (at < written_bytes) {
    DEUT_ASSIGN_OR_RETURN(const std::string_view start, window.Get(at, PageAddress::kUnitBytes));
    if (!PartBeginsAt(start)) {
      const uint64_t next = RoundUpToIo(at + 1);
      DEUT_ASSIGN_OR_RETURN(const std::string_view filling, window.Get(at, next - at));
      if (std::ranges::any_of(filling, [](char c) { return c != 0; })) {
        return DEUT_ERROR(kCorruption, file.path(), ": offset ", at, ": neither a page part nor zeros");
      }
      at = next;
      continue;
    }
    const uint64_t bytes = std::min(ClaimedBytesInUnits(start), written_bytes - at);
    DEUT_ASSIGN_OR_RETURN(const std::string_view whole, window.Get(at, bytes));
    DEUT_ASSIGN_OR_RETURN(const PartView part, DecodePartAt(whole, segment, at, file.path()));
    DEUT_RETURN_IF_ERROR(callback(part));
    at += PartBytesInUnits(part.header.payload_bytes);
  }
  return Status::Ok();
}

}  // namespace deut::dc
