#include "dc/page_store/part_scanner.h"

#include <algorithm>

namespace deut::dc {
namespace {

constexpr uint64_t kWindowBytes = 1 << 20;

}  // namespace

PartScanner::PartScanner(File& file, uint64_t segment, uint64_t begin, uint64_t end)
    : file_(file), segment_(segment), end_(end), position_(begin), memory_(std::min(kWindowBytes, end)) {}

Result<std::string_view> PartScanner::Get(uint64_t at, uint64_t bytes) {
  if (at < held_from_ || at + bytes > held_from_ + held_) DEUT_RETURN_IF_ERROR(Fill(at, bytes));
  return std::string_view(memory_.data() + (at - held_from_), bytes);
}

Status PartScanner::Fill(uint64_t at, uint64_t bytes) {
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
  held_from_ = begin;
  held_ = wanted;
  return Status::Ok();
}

Result<PartView> PartScanner::PartAt(uint64_t at, std::string_view start) {
  // The header alone refuses a length that no part can have.
  const uint64_t claimed = std::min(ClaimedBytesInUnits(start), PageAddress::kMaxPartBytes);
  DEUT_ASSIGN_OR_RETURN(const std::string_view whole, Get(at, std::min(claimed, end_ - at)));
  return DecodePartAt(whole, segment_, at, file_.path());
}

Result<std::optional<PartView>> PartScanner::Next() {
  while (position_ < end_) {
    const uint64_t at = position_;
    DEUT_ASSIGN_OR_RETURN(const std::string_view start, Get(at, PageAddress::kUnitBytes));
    if (!PartBeginsAt(start)) {
      const uint64_t next = RoundUpToIo(at + 1);
      DEUT_ASSIGN_OR_RETURN(const std::string_view filling, Get(at, next - at));
      if (std::ranges::any_of(filling, [](char c) { return c != 0; })) {
        return DEUT_ERROR(kCorruption, file_.path(), ": offset ", at, ": neither a page part nor zeros");
      }
      position_ = next;
      continue;
    }
    DEUT_ASSIGN_OR_RETURN(const PartView part, PartAt(at, start));
    position_ += PartBytesInUnits(part.header.payload_bytes);
    return std::optional<PartView>(part);
  }
  return std::optional<PartView>();
}

Result<uint64_t> PartScanner::SkipDamage() {
  const uint64_t begin = position_;
  while (position_ < end_) {
    position_ += PageAddress::kUnitBytes;
    if (position_ >= end_) break;
    DEUT_ASSIGN_OR_RETURN(const std::string_view start, Get(position_, PageAddress::kUnitBytes));
    // The first bytes rule out most offsets. The whole part is read only if its header claims this place.
    if (!ClaimsPlace(start, segment_, position_)) continue;
    const Result<PartView> part = PartAt(position_, start);
    if (part.ok()) break;
    if (part.status() != ErrorCode::kCorruption) return part.status();
  }
  position_ = std::min(position_, end_);
  return position_ - begin;
}

}  // namespace deut::dc
