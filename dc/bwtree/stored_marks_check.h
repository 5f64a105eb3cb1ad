// Compares what a leaf in memory says of its image (StoredIn in node.h, RemovalsOf in page_state.h) with the image.
// For tests. Thread-safety: one thread, while no other thread changes the page.
#ifndef DC_BWTREE_STORED_MARKS_CHECK_H_
#define DC_BWTREE_STORED_MARKS_CHECK_H_

#include "dc/bwtree/page_word.h"
#include "dc/bwtree/stored_tree_fixture.h"

namespace deut::dc {

// Fails the test if a flush could leave out something that the image lacks, whatever kind of part the flush chooses:
// - Where a delta part may be appended, the image with the records in no part has the content of the page.
// - Where delta parts may be replaced, the base part with the records that it lacks has it, too.
// - A page whose bounds are not those of its image, or that has no image, must be written as a whole.
// A tombstone counts as the same as no record where the flat timestamp covers it (rule X1).
// A page on storage says nothing.
void ExpectMarksRight(StoredTree& t, PageId leaf);

}  // namespace deut::dc

#endif  // DC_BWTREE_STORED_MARKS_CHECK_H_
