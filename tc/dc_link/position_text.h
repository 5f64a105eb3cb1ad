// Text of positions for messages. "120/4" is update 4 of the commit whose record is at LSN 120. "120/end" is behind all
// updates of that commit. Thread-safety: a pure function.
#ifndef TC_DC_LINK_POSITION_TEXT_H_
#define TC_DC_LINK_POSITION_TEXT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"

namespace deut::tc {

inline std::string ToString(Position position) {
  if (position.sequence == UINT32_MAX) return absl::StrCat(position.commit.value, "/end");
  return absl::StrCat(position.commit.value, "/", position.sequence);
}

}  // namespace deut::tc

#endif  // TC_DC_LINK_POSITION_TEXT_H_
