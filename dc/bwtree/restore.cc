// Recovery of a tree: its inner pages are read into memory, each checked against its parent's description of it, and
// its right sibling against the level.
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "dc/bwtree/bwtree.h"

namespace deut::dc {
namespace {

// Children of an inner page whose entries of the mapping table are on their way.
constexpr size_t kIdsAhead = 8;

Status Wrong(PageId id, PageAddress at, std::string_view what) {
  return DEUT_ERROR(kCorruption, "page ", id.value, " in segment ", at.segment(), " at ", at.offset(), ": ", what);
}

}  // namespace

Status BwTree::RestorePage(const NamedPage& named, absl::FunctionRef<Status(PageLoad*)> read, NamedPages* below) {
  const ReclamationDomain::Guard guard(domain_);  // the mapping table requires it; no other thread changes this page
  PageLoad load;
  load.id = named.id;
  load.parts = pages_.Image(named.id);
  if (load.parts.empty()) {
    return DEUT_ERROR(kCorruption, "page ", named.id.value,
                      " is named by an inner page, but has no image in the checkpoint");
  }
  DEUT_RETURN_IF_ERROR(read(&load));
  const BasePage& page = *load.page;
  const auto wrong = [&](std::string_view what) { return Wrong(named.id, load.parts.newest(), what); };
  if (load.table != table_) return wrong(Concat("it says that it is of table ", load.table.value));
  if (const char* what = DescribeMismatch(page, named)) return wrong(what);
  if (page.level == 1) below->leaves.reserve(below->leaves.size() + page.count());
  for (size_t i = 0; page.level != 0 && i < page.count(); ++i) {
    // The ids of neighbours may lie anywhere in the mapping table, and MarkNamed lets no two cache misses overlap.
    if (i + kIdsAhead < page.count()) pages_.PrefetchRestored(page.child(i + kIdsAhead));
    const PageId child = page.child(i);
    if (!pages_.MayBeRestored(child)) return wrong("it names a page that has no image in the checkpoint");
    // The child is named before any thread can reach it from here: the pages that are freed in the end must form a
    // tree.
    if (!pages_.MarkNamed(child)) return wrong("it names a page that another one names, too");
    if (page.level == 1) {
      below->leaves.push_back(child);
      continue;
    }
    below->inner.push_back(NamedChild(page, i));
  }
  DEUT_CHECK(pages_.Replace(named.id, PageWord::Storage(load.parts.newest()), PageWord::Memory(load.page.get())));
  if (page.is_leaf()) CountRecords(named.id, page.live_records());
  CountPublished(load.page.release()->block_bytes());
  return Status::Ok();
}

// A flusher looks up the image of the right sibling, and a descent may step to it. Both trust the number: one that is
// no page's id leads out of the mapping table, and that of another page to other keys, or in a circle.
Status BwTree::CheckSibling(PageId id, PageId next) const {
  const ReclamationDomain::Guard guard(domain_);  // as in RestorePage
  const PageId sibling = pages_.Load(id)->fence->sibling;
  if (sibling == next) return Status::Ok();
  return Wrong(id, pages_.Image(id).newest(), DescribeWrongSibling(sibling, next));
}

Result<uint32_t> BwTree::RecordsOfStored(PageId id, SegmentStore& store) {
  const ReclamationDomain::Guard guard(domain_);  // as in RestorePage
  PageLoad load;
  load.id = id;
  load.parts = pages_.Image(id);
  DEUT_RETURN_IF_ERROR(load.ReadImage(store));
  return load.page->live_records();
}

}  // namespace deut::dc
