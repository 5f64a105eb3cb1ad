#include "dc/verify/tree_walk.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "dc/bwtree/image_parts.h"

namespace deut::dc {

TreeWalk::TreeWalk(const ImageIndex& images, SegmentStore& store, TreeWalkVisitor& visitor)
    : images_(images), store_(store), visitor_(visitor), reached_(images.size()) {}

void TreeWalk::Walk(const CheckpointContents::Table& table) {
  DEUT_CHECK(!table.dropped() && frames_.empty());
  table_ = table.id;
  left_ = {};
  Enter(NamedRoot(table.root), PageId());
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (frame.next == frame.page->count()) {
      frames_.pop_back();
      continue;
    }
    const NamedPage child = NamedChild(*frame.page, frame.next++);
    Enter(child, frame.id);
  }
}

void TreeWalk::Enter(const NamedPage& named, PageId parent) {
  CheckNeighbour(named);
  PageLoad load;
  if (const Status read = Read(named, parent, &load); !read.ok()) {
    visitor_.OnDamage(table_, named, read);
    // The pages below a damaged page are unknown, so the next pages on these levels have no left neighbour to
    // compare.
    if (named.level != NamedPage::kAnyLevel) ForgetNeighbours(named.level);
    return;
  }
  visitor_.OnPage(table_, load);
  const uint8_t level = load.page->level;
  left_[level] = LeftNeighbour{named, load.parts[load.parts.count() - 1], load.page->fence->sibling};
  if (level != 0) frames_.push_back(Frame{.id = named.id, .page = std::move(load.page)});
}

Status TreeWalk::Read(const NamedPage& named, PageId parent, PageLoad* load) {
  const std::string page = Concat("page ", named.id.value);
  const std::optional<size_t> place = images_.Find(named.id);
  if (!place.has_value()) {
    return DEUT_ERROR(kCorruption, page, ": is named by page ", parent.value, " and has no image in the checkpoint");
  }
  // Each page is visited once, so a cycle in damaged pages cannot make the walk endless.
  if (reached_[*place]) {
    return DEUT_ERROR(kCorruption, page, ": is named by page ", parent.value, " and was named by another one");
  }
  DEUT_CHECK(images_.page(*place) == named.id);
  reached_[*place] = true;
  load->id = named.id;
  for (const PageAddress part : images_.parts(*place)) load->parts.Append(part);
  DEUT_RETURN_IF_ERROR(load->ReadImage(store_));
  const PageAddress at = load->parts.newest();
  const std::string where = Concat(page, " in segment ", at.segment(), " at ", at.offset(), ": ");
  if (load->table != table_) {
    return DEUT_ERROR(kCorruption, where, "it says that it is of table ", load->table.value, ", and page ",
                      parent.value, " of table ", table_.value, " names it");
  }
  if (const char* what = DescribeMismatch(*load->page, named)) return DEUT_ERROR(kCorruption, where, what);
  return Status::Ok();
}

void TreeWalk::CheckNeighbour(const NamedPage& named) {
  if (named.level >= kLevels || !left_[named.level].has_value() || left_[named.level]->sibling == named.id) return;
  const LeftNeighbour& left = *left_[named.level];
  visitor_.OnDamage(table_, left.named,
                    DEUT_ERROR(kCorruption, "page ", left.named.id.value, " in segment ", left.base.segment(), " at ",
                               left.base.offset(), ": ", DescribeWrongSibling(left.sibling, named.id)));
}

void TreeWalk::ForgetNeighbours(uint8_t level) {
  for (size_t below = 0; below <= level && below < kLevels; ++below) left_[below].reset();
}

}  // namespace deut::dc
