// PageImage: how a page lies on storage, inside the parts of the page store. Grammar: dc/docs/page_image.md.
//
//   base image   the page as a whole: bounds, flat timestamp, entries
//   delta image  updates of a leaf since its image before, newest first
//
// What a page has applied is in its image and nowhere else (versions, tombstones, flat timestamp; rules X1, X2).
// Decoding believes nothing: CORRUPTION says what is wrong. Thread-safety: pure functions. Ownership: results own their bytes.
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

// Appends the record deltas from `head` down to the first node that is written. False: there is more than records among them;
// *out is as before. REQUIRES: a leaf, a guard.
bool EncodeDeltaImage(const Node* head, std::string* out);
// The deltas, not linked yet, newest first.
Result<std::vector<Owned<RecordDelta>>> DecodeDeltaImage(std::string_view image);

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_IMAGE_H_
