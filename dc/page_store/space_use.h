// SpaceUse: the purpose for which an appender takes free space on the disk, and so how much of the reserve it must
// leave. On a full disk the reserve lets work go on that frees space. It consists of room for a checkpoint's file,
// which no appender takes, and of some segments.
#ifndef DC_PAGE_STORE_SPACE_USE_H_
#define DC_PAGE_STORE_SPACE_USE_H_

#include <cstdint>

namespace deut::dc {

enum class SpaceUse : uint8_t {
  kOrdinary,    // leaves the whole reserve
  kCheckpoint,  // pages of a checkpoint: leaves three quarters of the reserved segments
  // Copies that free more space: leaves half of the reserved segments while some segment is dead. While none is dead,
  // only copying can free space, and kStructure may have taken some of that half. Then it leaves an eighth, until the
  // first segment is dead.
  kReclaim,
  kStructure,  // the trees' structure, without which no checkpoint can be taken and no space be freed: leaves none
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SPACE_USE_H_
