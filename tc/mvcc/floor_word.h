// FloorWord: one word in which a hash bucket remembers reads of keys without an entry (rule R6): the latest read of one key, or of any key.
//
// Forms.   0                                  nothing was read.
//          0 | tag: 24 | timestamp: 39        the latest read of the keys with this tag. The tag is the top of the key's hash. The timestamp
//                                             field holds the timestamp's low 39 bits.
//          1 | timestamp: 63                  the latest read of any key of the bucket.
// Tags. A writer conflicts with a word of its own key's tag and with a word of any key. Two keys of a bucket have the same tag once in 2^24. The
//   hash includes the table, and its seed is drawn at random, so no client can search for two such keys.
// Low bits. The distance of two timestamps follows from their low bits if they are less than 2^38 apart. So every word of a key is less than `kSpan`
//   = 2^37 above the table's origin, which is at or below low-water and not above the word. The collector removes older words before it raises the
//   origin (record_table.h). *Else:* a word that nothing replaces for 2^39 timestamps looks like a later read, and hides a read that is made then.
// Thread-safety: a value; the table changes it by compare-and-swap.
#ifndef TC_MVCC_FLOOR_WORD_H_
#define TC_MVCC_FLOOR_WORD_H_

#include <cstdint>

#include "common/base/ids.h"

namespace deut::tc {

class FloorWord {
 public:
  static constexpr uint32_t kTimestampBits = 39;
  // A word of one key holds only timestamps that are less than this value above the origin.
  static constexpr uint64_t kSpan = uint64_t{1} << (kTimestampBits - 2);

  explicit constexpr FloorWord(uint64_t bits) : bits_(bits) {}
  static constexpr FloorWord OfKey(uint64_t hash, Timestamp timestamp) {
    return FloorWord(Tag(hash) << kTimestampBits | (timestamp.value & kLow));
  }
  static constexpr FloorWord OfAnyKey(Timestamp timestamp) { return FloorWord(kAny | timestamp.value); }

  constexpr uint64_t bits() const { return bits_; }
  constexpr bool any() const { return (bits_ & kAny) != 0; }
  // Whether it remembers only the key with this hash, or another key with the same tag.
  constexpr bool HasTagOf(uint64_t hash) const { return bits_ >> kTimestampBits == Tag(hash); }
  // Whether it counts for the key with this hash.
  constexpr bool AppliesTo(uint64_t hash) const { return any() || HasTagOf(hash); }

  // The distance of its timestamp from `timestamp`; negative if it is below. REQUIRES: the word is not 0, and the two are less than 2^38 apart, or it
  // is of any key.
  constexpr int64_t DistanceFrom(Timestamp timestamp) const {
    if (any()) return static_cast<int64_t>((bits_ & ~kAny) - timestamp.value);
    constexpr uint32_t kShift = 64 - kTimestampBits;
    return static_cast<int64_t>((bits_ - timestamp.value) << kShift) >> kShift;
  }
  // Its timestamp. REQUIRES: as for DistanceFrom.
  constexpr Timestamp TimestampNear(Timestamp timestamp) const {
    return Timestamp{timestamp.value + static_cast<uint64_t>(DistanceFrom(timestamp))};
  }
  // Whether it covers a read of the key with this hash at `timestamp`, which is less than kSpan above the origin.
  constexpr bool Covers(uint64_t hash, Timestamp timestamp) const {
    return bits_ != 0 && AppliesTo(hash) && DistanceFrom(timestamp) >= 0;
  }

 private:
  static constexpr uint64_t kAny = uint64_t{1} << 63;
  static constexpr uint64_t kLow = (uint64_t{1} << kTimestampBits) - 1;

  // Never 0, because a word of zeros means that nothing was read.
  static constexpr uint64_t Tag(uint64_t hash) {
    const uint64_t top = hash >> (kTimestampBits + 1);
    return top == 0 ? 1 : top;
  }

  uint64_t bits_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_FLOOR_WORD_H_
