// TreeWalk: visits all pages of the tables of a checkpoint, from their images alone: each page before its children,
// and children from left to right.
//
// For each page it checks:
// - Its image can be read (page_load.h: every part is verified, each delta part names the one before it, all parts
//   have one table and level, keys are ascending and within bounds).
// - Its level and bounds are exactly those that its parent states (named_page.h).
// - It is named once.
// - Its left neighbour on its level names it as its right sibling.
// The root's bounds are all keys. So each level covers all keys without a gap or an overlap.
// Memory: an inner page for each level and one leaf; a bit for each page of the checkpoint. Errors: damage is
// reported to the visitor, and the walk continues beside it. Thread-safety: one thread. Ownership: borrows all.
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
#include "dc/page_store/page_address.h"
#include "dc/page_store/segment_store.h"
#include "dc/verify/checkpoint_contents.h"

namespace deut::dc {

class TreeWalkVisitor {
 public:
  virtual ~TreeWalkVisitor() = default;
  // Called for a page with an intact image. `load`: as ReadImage left it.
  virtual void OnPage(TableId table, const PageLoad& load) = 0;
  // Called for a damaged page. `named`: the page, its keys and its level (kAnyLevel for a root).
  virtual void OnDamage(TableId table, const NamedPage& named, const Status& damage) = 0;
};

class TreeWalk {
 public:
  TreeWalk(const ImageIndex& images, SegmentStore& store, TreeWalkVisitor& visitor);

  // Walks over one table. REQUIRES: the table is not dropped.
  void Walk(const CheckpointContents::Table& table);
  // True if a walked table names the page at this place of the index.
  bool reached(size_t place) const { return reached_[place]; }

 private:
  static constexpr size_t kLevels = 64;  // page_image.h refuses more

  // An inner page whose children are being visited.
  struct Frame {
    PageId id;
    Owned<BasePage> page;
    size_t next = 0;
  };
  // The last page of a level, its base part, and the right sibling that it names.
  struct LeftNeighbour {
    NamedPage named;
    PageAddress base;
    PageId sibling;
  };

  void Enter(const NamedPage& named, PageId parent);
  Status Read(const NamedPage& named, PageId parent, PageLoad* load);
  // Reports the left neighbour of the page as damaged if it names another right sibling.
  void CheckNeighbour(const NamedPage& named);
  // Marks the left neighbours of the next pages on these levels as unknown.
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
