// IncarnationNumber: counts the starts of a DC's folder, from 1. It is for people and for the order of checkpoint
// files. Copies of a folder count alike, so it identifies nothing. A DcIncarnation (common/base/ids.h), drawn at
// random at each start, does (X3).
#ifndef COMMON_BASE_INCARNATION_NUMBER_H_
#define COMMON_BASE_INCARNATION_NUMBER_H_

#include <cstdint>

#include "common/base/ids.h"

namespace deut {

using IncarnationNumber = StrongNumber<struct IncarnationNumberTag, uint64_t>;

}  // namespace deut

#endif  // COMMON_BASE_INCARNATION_NUMBER_H_
