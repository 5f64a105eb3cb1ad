// DcIdentity: the names by which a DC and its present incarnation are told apart (rule X3). Thread-safety: a plain
// value.
#ifndef TC_DC_LINK_DC_IDENTITY_H_
#define TC_DC_LINK_DC_IDENTITY_H_

#include "common/base/ids.h"
#include "common/base/incarnation_number.h"

namespace deut::tc {

struct DcIdentity {
  DcId dc;                    // of its folder; 0 = no DC has answered yet
  DcIncarnation incarnation;  // drawn at random at its start: no other incarnation has this one
  IncarnationNumber number;   // for people; a copy of the folder counts on from the same number
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_IDENTITY_H_
