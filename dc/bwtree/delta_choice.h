// DeltaChoice: whether a flush of a leaf writes a delta part, and which one. Otherwise it writes the whole page.
//
// A delta part with what the image lacks costs the fewest bytes now. But each one makes later reads of the page
// longer, and takes room on the disk. So an image of a page in memory has at most kMaxDeltaParts of them, and their
// bytes are at most half of the base part. After that they are merged: one delta part with all that the base part lacks
// replaces them. Most bytes, those of the base part, stay where they are. This is also done when it costs nothing,
// because the same records have changed again.
// A merge writes again what earlier ones have written. The oldest delta part is what the last merge has written. The
// others and what is new are the growth since. With the same `growth` each time, a merged part of `all` bytes is the
// last of about all / growth ones, of all / 2 bytes on average. When their sum reaches the bytes of the base part, a
// new base part costs no more, and the sum begins anew.
// Pages that are read again. A load takes a device read for each part. So a page that a reader had to load leaves
// memory with at most kMaxDeltaPartsOfRead delta parts. The next load saves at least one read, and the merge writes at
// most kWrittenForARead bytes. Larger pages are left as they are.
// Pages in memory need no such limit, as their parts are not read. Pages that are only written need none, as their next
// flush would have to pay for a merge again.
// The page is not made one base part each time. With one delta part a load takes one short read more. To save that one
// would cost about three times the bytes of the merged delta part.
// Where the disk is short of space, delta parts take at most an eighth of the base part. The records that they replace
// take room in the base part until the page is written as a whole, and the cleaner cannot reclaim that.
// All bytes are those on the disk: of whole units, with headers. How well the content can be compressed is not known
// yet. So it counts as it is, and a compressed page is written as a whole somewhat earlier.
// The parts of a page that is not in memory are not merged: what the base part lacks is not known. Its updates become
// delta parts up to ImageParts::kMax.
// Pure functions. [LLAMA, PVLDB 6(10), 2013, section 4, appends delta parts, and has no merges. O'Neil et al.: "The
// Log-Structured Merge-Tree", Acta Informatica 33(4), 1996, for the cost of merges]
#ifndef DC_BWTREE_DELTA_CHOICE_H_
#define DC_BWTREE_DELTA_CHOICE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "dc/bwtree/image_parts.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {

// Largest number of delta parts that are appended to the image of a page in memory.
constexpr size_t kMaxDeltaParts = 3;
// The same for a page that leaves memory and that readers load.
constexpr size_t kMaxDeltaPartsOfRead = 1;
// Bytes that take a device as long to write as one read of a part takes, with what the cleaner copies for them. This is
// an estimate for NVMe, which answers about 45,000 reads of 4 to 16 KiB in a second.
constexpr uint64_t kWrittenForARead = 32 << 10;
// Delta parts with at most these bytes together are not too large, however small the base part is.
constexpr uint64_t kMinDeltaBytes = 4 * PageAddress::kUnitBytes;
// Delta parts have at most this part of the base part's bytes: one half, or one eighth if the disk is short of space.
constexpr uint64_t kBaseBytesPerDeltaByte = 2;
constexpr uint64_t kBaseBytesPerDeltaByteIfShort = 8;

// The bytes on the disk that decide. REQUIRES: the page has an image.
struct DeltaChoice {
  // `most_parts`: kMaxDeltaParts or kMaxDeltaPartsOfRead.
  DeltaChoice(const ImageParts& image, uint64_t whole_bytes, bool short_of_space = false,
              size_t most_parts = kMaxDeltaParts)
      : max_parts(most_parts), delta_parts(image.count() - 1), whole(whole_bytes) {
    DEUT_DCHECK(!image.empty());
    base = image[delta_parts].length_bound();
    for (const PageAddress part : image.all().first(delta_parts)) deltas += part.length_bound();
    if (delta_parts != 0) newer = deltas - image[delta_parts - 1].length_bound();
    max_deltas =
        short_of_space ? base / kBaseBytesPerDeltaByteIfShort : std::max(base / kBaseBytesPerDeltaByte, kMinDeltaBytes);
  }

  // A delta part of `changed` bytes, with what the image lacks, is appended to the image.
  bool AppendPays(uint64_t changed) const { return delta_parts < max_parts && IsSmall(changed, deltas + changed); }
  // A delta part of `all` bytes, with what the base part lacks, replaces the delta parts. `changed`: as above; 0: the
  // image lacks nothing. REQUIRES: there are delta parts.
  bool MergePays(uint64_t changed, uint64_t all) const {
    if (!IsSmall(all, all)) return false;
    return AppendPays(changed) ? all <= changed : all * all <= 2 * (changed + newer) * base;
  }

  size_t max_parts;     // that an append may leave
  size_t delta_parts;   // that the image has
  uint64_t base = 0;    // of the base part
  uint64_t deltas = 0;  // of the delta parts
  uint64_t newer = 0;   // of the delta parts but the oldest
  uint64_t max_deltas;  // that delta parts may have
  uint64_t whole;       // of the whole page, if it were written now

 private:
  // `written`: bytes of the new part; `together`: of all delta parts with it. A page that has shrunk to half is written
  // as a whole, so that the disk gets its bytes back.
  bool IsSmall(uint64_t written, uint64_t together) const {
    return base <= 2 * whole && written <= whole / 2 && together <= max_deltas;
  }
};

}  // namespace deut::dc

#endif  // DC_BWTREE_DELTA_CHOICE_H_
