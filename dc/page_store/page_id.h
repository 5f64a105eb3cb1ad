// PageId: the permanent name of a page. 0 names none.
#ifndef DC_PAGE_STORE_PAGE_ID_H_
#define DC_PAGE_STORE_PAGE_ID_H_

#include <cstdint>

#include "common/base/ids.h"

namespace deut::dc {

using PageId = StrongNumber<struct PageIdTag, uint32_t>;

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PAGE_ID_H_
