// FloorWord: what a hash bucket remembers of reads of keys without an entry (rule R6), in one word: the latest read of one key, or of any.
//
// Forms.   0                                  nothing was read.
//          0 | tag: 24 | timestamp: 39        the latest read of the keys with this tag. The tag is the top of the key's hash; the timestamp is
//                                             what its low 39 bits are.
//          1 | timestamp: 63                  the latest read of any key of the bucket.
// Tags. A writer conflicts with a word of its own key's tag and with one of any key. Two keys of a bucket have the same tag once in 2^24; the
//   hash counts the table in, and its seed is drawn at random, so no client can search for two such keys.
// Low bits. A timestamp is found by its distance to another one, which is right if the two are less than 2^38 apart. A word of a key is
//   therefore written only for a timestamp less than `kSpan` = 2^37 above low-water. It is compared with open transactions alone, and these are
//   above low-water, too. A word that was not replaced for more timestamps than that shows a wrong one. A thread that takes such a word for a
//   later read only does more work than needed: a reader makes an entry, and a writer looks at the counter, which is above every read
//   (write_path.cc).
// Thread-safety: a value; the table changes it by compare-and-swap.
#ifndef TC_MVCC_FLOOR_WORD_H_
#define TC_MVCC_FLOOR_WORD_H_

#include <cstdint>

#include "common/base/ids.h"

namespace deut::tc {

class FloorWord {
 public:
  static constexpr uint32_t kTimestampBits = 39;
  // A word of one key holds only timestamps that are less than this above low-water.
  static constexpr uint64_t kSpan = uint64_t{1} << (kTimestampBits - 2);

  explicit constexpr FloorWord(uint64_t bits) : bits_(bits) {}
  static constexpr FloorWord OfKey(uint64_t hash, Timestamp timestamp) {
    return FloorWord(Tag(hash) << kTimestampBits | (timestamp.value & kLow));
  }
  static constexpr FloorWord OfAnyKey(Timestamp timestamp) { return FloorWord(kAny | timestamp.value); }

  constexpr uint64_t bits() const { return bits_; }
  constexpr bool any() const { return (bits_ & kAny) != 0; }
  // Whether it remembers only the key with this hash, or another key with the same tag.
  constexpr bool OfTag(uint64_t hash) const { return bits_ >> kTimestampBits == Tag(hash); }
  // Whether it counts for the key with this hash.
  constexpr bool Concerns(uint64_t hash) const { return any() || OfTag(hash); }

  // The distance of its timestamp from `timestamp`; negative if it is below. REQUIRES: the word is not 0.
  constexpr int64_t Above(Timestamp timestamp) const {
    if (any()) return static_cast<int64_t>((bits_ & ~kAny) - timestamp.value);
    constexpr uint32_t kShift = 64 - kTimestampBits;
    return static_cast<int64_t>((bits_ - timestamp.value) << kShift) >> kShift;
  }
  // Its timestamp, as it is seen from this one; 0 for nothing.
  constexpr Timestamp SeenFrom(Timestamp timestamp) const {
    return Timestamp{bits_ == 0 ? 0 : timestamp.value + static_cast<uint64_t>(Above(timestamp))};
  }
  // Whether the word already covers a read at `timestamp`.
  constexpr bool Covers(uint64_t hash, Timestamp timestamp) const {
    if (bits_ == 0 || !Concerns(hash)) return false;
    const int64_t above = Above(timestamp);
    // A distance that no open transactions can have shows that the word is old, and not a later read.
    return above >= 0 && (any() || above < static_cast<int64_t>(kSpan));
  }

 private:
  static constexpr uint64_t kAny = uint64_t{1} << 63;
  static constexpr uint64_t kLow = (uint64_t{1} << kTimestampBits) - 1;

  // Never 0, as a whole word of zeros is nothing.
  static constexpr uint64_t Tag(uint64_t hash) {
    const uint64_t top = hash >> (kTimestampBits + 1);
    return top == 0 ? 1 : top;
  }

  uint64_t bits_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_FLOOR_WORD_H_
