// Changes of a tree's pages, and checks of their images, for the tests of the page flusher.
#ifndef DC_BWTREE_PAGE_FLUSHER_FIXTURE_H_
#define DC_BWTREE_PAGE_FLUSHER_FIXTURE_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/bwtree/page_state.h"
#include "dc/bwtree/stored_tree_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {

inline PageFlusher::Added AddOk(StoredTree& t, PageId id) {
  const auto added = t.Add(id);
  EXPECT_TRUE(added.ok()) << added.status().ToString();
  return added.ok() ? *added : PageFlusher::Added::kBusy;
}

// Adds a clean page so that its parts become fewer.
inline bool AddMergedParts(StoredTree& t, PageId id) {
  const ReclamationDomain::Guard guard(t.domain());
  return t.flusher().AddMergedParts(t.tree(), id);
}

inline bool IsCleanPage(StoredTree& t, PageId id) {
  const Node* const head = t.HeadOf(id);
  return head != nullptr && IsClean(head);
}

// Checks that every written part is named by an image, or is dead.
inline void ExpectNothingIsLost(StoredTree& t) { EXPECT_EQ(t.LiveBytes(), t.BytesOfImages()); }

inline void ExpectRestores(StoredTree& t, const StoredTree::Records& records) {
  StoredTree::Records found;
  const Status restored = t.Restore(&found);
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_TRUE(found == records);
}

// Updates all records of the record's page without making it larger, so that the page is written as a whole.
inline void Rewrite(StoredTree& t, uint64_t number) {
  const PageId leaf = t.LeafOf(number);
  for (uint64_t i = 0; i < t.records().size(); ++i) {
    if (t.LeafOf(i) == leaf) t.Put(i, std::string(StoredTree::kValue.size(), 'r'));
  }
}

// A value that fills the units of its delta part so far that the next one has no room for it.
inline std::string LongValue(char letter) { return std::string(90, letter); }

// A page between others: written, in memory, without updates since.
class FlushedLeaf : public ::testing::Test {
 protected:
  FlushedLeaf() {
    t_.FillSettled(60);
    leaf_ = t_.LeafOf(20);
  }

  StoredTree t_;
  PageId leaf_;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_FLUSHER_FIXTURE_H_
