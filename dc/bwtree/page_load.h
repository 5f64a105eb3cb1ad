// PageLoad: one page on its way from storage into memory.
//
// Steps (BwTree::BeginLoad, then ReadImage without a guard, then BwTree::FinishLoad; the tree may be dropped in
// between):
//   begin    records the parts of the page's image
//   read     reads them and builds the page
//   finish   storage word -> page, or stub's chain -> the same chain on the page: one compare-and-swap. The loser
//            frees the page that it built.
// Why the page that was read is still the image when it is installed: FinishLoad first loads the page's word. Then it
// compares the recorded parts with the image again. From then on, any new image has the content of the word's chain.
// If the page is evicted after that, its word is another one and the compare-and-swap fails.
// Thread-safety: one thread. Ownership: owns the page until it is installed.
#ifndef DC_BWTREE_PAGE_LOAD_H_
#define DC_BWTREE_PAGE_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/base/compression.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_word.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

// The reason why a page is loaded. If there are several, the smallest value counts.
enum class PageStay : uint8_t {
  kLasting,    // a reader's access says that the page may be used again
  kToWrite,    // the page is updated, written or merged, and no reader waits for it. It stays like a lasting page
  kTransient,  // a long scan may read it once, or a checkpoint has to write it: it is the first to leave memory
};

struct PageLoad {
  PageId id;
  ImageParts parts;
  // The page that ReadImage built.
  Owned<BasePage> page;
  TableId table;  // the table that the parts state
  // The compression of the base part, or else of the newest packed delta part; kNone: no part is packed.
  Compression compression = Compression::kNone;
  // Set by FinishLoad: this load's page is the one in memory. False: another thread was first.
  bool installed = false;
  // Set by the caller before FinishLoad.
  PageStay stay = PageStay::kLasting;
  // Set by FinishLoad if it has installed a transient page: its parent, and the parent's upper bound. kNoPage: the page
  // was reached from its left neighbour.
  PageId parent = kNoPage;
  std::string parent_high;

  // Returns CORRUPTION or IO_ERROR with page, segment and offset. NOT_FOUND: the page has moved, and the caller
  // begins again.
  Status ReadImage(SegmentStore& store);
  // The same for a caller that reads the parts itself. `part(i)` returns parts[i], or the error of its read. The part
  // stays valid until the next call. Parts are asked for in the order in which they are needed: the base part first.
  Status BuildImage(absl::FunctionRef<Result<PartView>(size_t i)> part);
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_LOAD_H_
