// CheckpointNumber: the number of a mapping-table checkpoint. It rises with each attempt. 0: none.
#ifndef DC_PAGE_STORE_CHECKPOINT_NUMBER_H_
#define DC_PAGE_STORE_CHECKPOINT_NUMBER_H_

#include <cstdint>

#include "common/base/ids.h"

namespace deut::dc {

using CheckpointNumber = StrongNumber<struct CheckpointNumberTag, uint64_t>;

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_NUMBER_H_
