// SpaceUse: what an appender may do with the last room on the disk. Some of it is a reserve, so that on a full disk what gives space back can go on:
// the file of a checkpoint, which nobody takes, and some segments.
#ifndef DC_PAGE_STORE_SPACE_USE_H_
#define DC_PAGE_STORE_SPACE_USE_H_

#include <cstdint>

namespace deut::dc {

enum class SpaceUse : uint8_t {
  kOrdinary,    // leaves the reserve alone
  kCheckpoint,  // pages of a checkpoint: leaves three quarters of its segments
  kReclaim,     // copies, in order to free more: leaves half of them
  kStructure,   // without which no checkpoint can be taken, and nothing is given back: leaves none
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SPACE_USE_H_
