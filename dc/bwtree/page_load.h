// PageLoad: one page on its way from storage into memory.
//
// Steps (BwTree::BeginLoad, then ReadImage without a guard, then BwTree::FinishLoad; the tree may be dropped in between):
//   begin    notes of what parts the page's image consists
//   read     reads them; builds the page
//   finish   storage word -> page, or stub's chain -> the same chain on the page: one compare-and-swap. Loser: frees what it built.
// Why what was read still is the image when it is put in: the notes are compared with the image again, after the page's word was
//   loaded. From then on the image can only become one that says what the word's chain says, too; and if the page is swapped out
//   after that, the word is another one and the compare-and-swap fails.
// Thread-safety: one thread. Ownership: of the page until it is put in.
#ifndef DC_BWTREE_PAGE_LOAD_H_
#define DC_BWTREE_PAGE_LOAD_H_

#include "common/base/ids.h"
#include "common/base/status.h"
#include "dc/bwtree/base_page.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_word.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

struct PageLoad {
  PageId id;
  ImageParts parts;
  // Of what was read.
  Owned<BasePage> page;
  TableId table;  // whose page the parts say it is

  // CORRUPTION, IO_ERROR naming page, segment and offset. NOT_FOUND: the page has moved; begin again.
  Status ReadImage(SegmentStore& store);
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_LOAD_H_
