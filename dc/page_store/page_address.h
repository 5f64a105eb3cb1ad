// PageAddress: the place of a page part on storage, in 62 bits, so that it fits a word of the mapping table beside a
// tag.
//
//   bits    meaning
//   0..7    length: mantissa (low 4 bits) << exponent (high 4 bits), in units, rounded up
//   8..30   unit: the offset at which the part begins in its segment, in units of 128 bytes
//   31..61  segment: its number, from 1; no number is ever used twice, so no address is
//
// Range. 23 bits of units of 128 bytes are 1 GiB, the longest segment. A device of 64 TiB holds 65,536 of these, so the
// 31 bits of numbers are enough to write it 32,768 times over. A store whose segments stay at 4 MiB uses up its numbers
// when it has written 8 PiB. Then no segment can be begun (RESOURCE_EXHAUSTED).
// Until format version 1 of parts, and 2 of checkpoints, the unit had 15 bits and the segment 36: FromNarrow.
// The length is an upper bound: it is the size of the one transfer that reads the part, and its share in the
// accounting of live bytes. It is exact up to 15 units and at most 1/7 too large above. Each length has only one
// encoding (exponent 0, or mantissa 8 to 15).
// A value; thread-safe as such. [LLAMA: Levandoski, Lomet, Sengupta, PVLDB 6(10), 2013, section 3.1: "flash offset"]
#ifndef DC_PAGE_STORE_PAGE_ADDRESS_H_
#define DC_PAGE_STORE_PAGE_ADDRESS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/check.h"

namespace deut::dc {

class PageAddress {
 public:
  static constexpr uint64_t kUnitBytes = 128;
  static constexpr uint64_t kMaxSegment = (uint64_t{1} << 31) - 1;
  // Parts begin below this offset in a segment: 1 GiB.
  static constexpr uint64_t kMaxOffset = (uint64_t{1} << 23) * kUnitBytes;
  // The longest part: 60 MiB.
  static constexpr uint64_t kMaxPartBytes = (uint64_t{15} << 15) * kUnitBytes;

  constexpr PageAddress() = default;
  static constexpr PageAddress none() { return PageAddress(); }
  // REQUIRES: 1 <= segment <= kMaxSegment; offset a multiple of the unit below kMaxOffset; 1 <= part_bytes <= kMaxPartBytes.
  static constexpr PageAddress Make(uint64_t segment, uint64_t offset, uint64_t part_bytes) {
    DEUT_CHECK(segment >= 1 && segment <= kMaxSegment && offset % kUnitBytes == 0 && offset < kMaxOffset);
    return PageAddress((segment << kSegmentShift) | (offset / kUnitBytes << kUnitShift) | PackLength(part_bytes));
  }
  // Takes any bits; code that read them from a disk must check valid().
  static constexpr PageAddress FromRaw(uint64_t raw) { return PageAddress(raw); }
  // Takes the bits of an address of the earlier layout: `length:8 unit:15 segment:36` and zeros. The result is not
  // valid, and not none, if a bit above the segment is set, or if the number has no place in today's layout.
  static constexpr PageAddress FromNarrow(uint64_t raw) {
    const uint64_t segment = raw >> kNarrowSegmentShift;
    if (segment > kMaxSegment) return PageAddress(UINT64_MAX);
    const uint64_t unit = (raw >> kUnitShift) & kNarrowUnitMask;
    return PageAddress((segment << kSegmentShift) | (unit << kUnitShift) | (raw & kLengthMask));
  }

  constexpr uint64_t raw() const { return raw_; }
  constexpr bool is_none() const { return raw_ == 0; }
  constexpr uint64_t segment() const { return raw_ >> kSegmentShift; }
  // In bytes from the start of the segment's file.
  constexpr uint64_t offset() const { return ((raw_ >> kUnitShift) & kUnitMask) * kUnitBytes; }
  // In bytes; at least the part's own length.
  constexpr uint64_t length_bound() const { return (raw_ & 15) << ((raw_ >> 4) & 15) << kUnitLog; }
  // True if Make could have made it.
  constexpr bool valid() const {
    const uint64_t mantissa = raw_ & 15, exponent = (raw_ >> 4) & 15;
    return segment() >= 1 && segment() <= kMaxSegment && mantissa != 0 && (exponent == 0 || mantissa >= 8);
  }

  friend constexpr auto operator<=>(const PageAddress&, const PageAddress&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PageAddress& address) {
    return H::combine(std::move(h), address.raw_);
  }

 private:
  static constexpr int kUnitLog = 7;
  static constexpr int kUnitShift = 8;
  static constexpr int kSegmentShift = 31;
  static constexpr uint64_t kLengthMask = (1 << kUnitShift) - 1;
  static constexpr uint64_t kUnitMask = (1 << (kSegmentShift - kUnitShift)) - 1;
  static constexpr int kNarrowSegmentShift = 23;
  static constexpr uint64_t kNarrowUnitMask = (1 << (kNarrowSegmentShift - kUnitShift)) - 1;
  static_assert(kUnitBytes == 1 << kUnitLog);
  static_assert(kMaxOffset == (kUnitMask + 1) * kUnitBytes);
  // Two bits of the word are left for the tags of the mapping table.
  static_assert(kMaxSegment <= UINT64_MAX >> (kSegmentShift + 2));

  constexpr explicit PageAddress(uint64_t raw) : raw_(raw) {}

  static constexpr uint64_t PackLength(uint64_t bytes) {
    DEUT_CHECK(bytes >= 1 && bytes <= kMaxPartBytes);
    uint64_t mantissa = (bytes + kUnitBytes - 1) / kUnitBytes;
    uint64_t exponent = 0;
    while (mantissa > 15) {
      mantissa = (mantissa + 1) / 2;
      ++exponent;
    }
    return (exponent << 4) | mantissa;
  }

  uint64_t raw_ = 0;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PAGE_ADDRESS_H_
