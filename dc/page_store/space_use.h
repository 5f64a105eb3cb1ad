// SpaceUse: what an appender may do with the last room on the disk. Some of it is a reserve, so that on a full disk what gives space back can go on:
// the file of a checkpoint, which nobody takes, and some segments.
#ifndef DC_PAGE_STORE_SPACE_USE_H_
#define DC_PAGE_STORE_SPACE_USE_H_

#include <cstdint>

namespace deut::dc {

enum class SpaceUse : uint8_t {
  kOrdinary,    // leaves the reserve alone
  kCheckpoint,  // pages of a checkpoint: leaves three quarters of its segments
  // Copies, in order to free more: leaves half of them. While no segment is dead nobody but who copies can give anything back, and structure may
  // have taken of that half before: then it leaves an eighth, until the first segment is dead.
  kReclaim,
  kStructure,  // without which no checkpoint can be taken, and nothing is given back: leaves none
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SPACE_USE_H_
