// PageImage: the format of a page on storage, inside the parts of the page store. Grammar: dc/docs/page_image.md.
//
//   base image   the whole page: bounds, flat timestamp, entries
//   delta image  records of a leaf that the older parts lack
//
// The image is the only record of the updates that a page has applied (versions, tombstones, flat timestamp; rules
// X1, X2).
// Errors: decoding trusts no byte; CORRUPTION states the fault. Thread-safety: pure functions. Ownership: results own
// their bytes.
// [Levandoski, Lomet, Sengupta: "LLAMA", PVLDB 6(10), 2013, section 4]
#ifndef DC_BWTREE_PAGE_IMAGE_H_
#define DC_BWTREE_PAGE_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// Appends the image to *out. REQUIRES: no stub.
void EncodeBaseImage(const BasePage& page, std::string* out);
// Returns the number of bytes that EncodeBaseImage appends.
size_t BaseImageBytes(const BasePage& page);
Result<Owned<BasePage>> DecodeBaseImage(std::string_view image);

// Appends the records and tombstones of the leaf that the image lacks (`lacked_by` kNoPart), or that its base part
// lacks (kDeltaPart), one for each key. Returns their number.
// REQUIRES: a leaf, a guard; RemovalsOf(head) < lacked_by (page_state.h).
uint32_t EncodeDeltaImage(const Node* head, StoredIn lacked_by, std::string* out);
// Returns the deltas, not linked yet, in their order.
Result<std::vector<Owned<RecordDelta>>> DecodeDeltaImage(std::string_view image);

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_IMAGE_H_
