// TreeWalk: all pages of the tables of a checkpoint, from their images alone: each page before those below it, those from the left to the right.
//
// What is checked of each page: its image can be read (page_load.h: every part verified, each delta part naming the one before it, all of
//   one table and level; keys ascending and within bounds); its level and bounds are exactly what its parent says (named_page.h); it is
//   named once; its left neighbour on its level names it as its sibling. With the root's bounds, which are all keys, it follows that each
//   level covers all keys without a gap or an overlap.
// Memory: an inner page for each level and one leaf; a bit for each page of the checkpoint.
// Damage is told, and the walk goes on beside it.
// Thread-safety: one thread. Ownership: borrows all.
#ifndef DC_VERIFY_TREE_WALK_H_
#define DC_VERIFY_TREE_WALK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "dc/bwtree/named_page.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_store/segment_store.h"
#include "dc/verify/checkpoint_contents.h"

namespace deut::dc {

class TreeWalkVisitor {
 public:
  virtual ~TreeWalkVisitor() = default;
  // A page whose image is right. `load` as ReadImage left it.
  virtual void OnPage(TableId table, const PageLoad& load) = 0;
  // `named`: the page, its keys, and its level, which of the root is kAnyLevel.
  virtual void OnDamage(TableId table, const NamedPage& named, const Status& damage) = 0;
};

class TreeWalk {
 public:
  TreeWalk(const ImageIndex& images, SegmentStore& store, TreeWalkVisitor& visitor);

  // REQUIRES: not dropped.
  void Walk(const CheckpointContents::Table& table);
  // True if a table walked so far names the page at this place of the index.
  bool reached(size_t place) const { return reached_[place]; }

 private:
  static constexpr size_t kLevels = 64;  // page_image.h refuses more

  // An inner page whose children are being walked.
  struct Frame {
    PageId id;
    Owned<BasePage> page;
    size_t next = 0;
  };
  // What the last page of a level says of what is right of it.
  struct LeftNeighbour {
    PageId id;
    PageId sibling;
  };

  void Enter(const NamedPage& named, PageId parent);
  Status Read(const NamedPage& named, PageId parent, PageLoad* load);
  Status CheckNeighbour(const NamedPage& named) const;
  // What lies left of whatever comes next on these levels is not known.
  void ForgetNeighbours(uint8_t level);

  const ImageIndex& images_;
  SegmentStore& store_;
  TreeWalkVisitor& visitor_;
  std::vector<bool> reached_;
  TableId table_;
  std::vector<Frame> frames_;
  std::array<std::optional<LeftNeighbour>, kLevels> left_;
};

}  // namespace deut::dc

#endif  // DC_VERIFY_TREE_WALK_H_
