// PageImage: the format of a page on storage, inside the parts of the page store. Grammar: dc/docs/page_image.md.
//
//   base image   the whole page: bounds, flat timestamp, entries
//   delta image  the updates of a leaf since its previous image, newest first
//
// The image is the only record of the updates that a page has applied (versions, tombstones, flat timestamp; rules
// X1, X2).
// Errors: decoding trusts no byte; CORRUPTION states the fault. Thread-safety: pure functions. Ownership: results own
// their bytes.
// [Levandoski, Lomet, Sengupta: "LLAMA", PVLDB 6(10), 2013, section 4]
#ifndef DC_BWTREE_PAGE_IMAGE_H_
#define DC_BWTREE_PAGE_IMAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// Appends the image to *out. REQUIRES: no stub.
void EncodeBaseImage(const BasePage& page, std::string* out);
Result<Owned<BasePage>> DecodeBaseImage(std::string_view image);

// Appends the record deltas from `head` down to the first node that is written. False: the chain also contains nodes
// that are not records; *out is unchanged. REQUIRES: a leaf, a guard.
bool EncodeDeltaImage(const Node* head, std::string* out);
// Returns the deltas, not linked yet, newest first.
Result<std::vector<Owned<RecordDelta>>> DecodeDeltaImage(std::string_view image);

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_IMAGE_H_
