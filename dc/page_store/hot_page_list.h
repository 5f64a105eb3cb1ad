// HotPageList: the ids of the leaves that are in memory, as the file `hot_pages` in the directory of the checkpoints.
// The next start reads these pages ahead (dc/page_cache/hot_pages.h).
//
// The list is a hint, and belongs to no checkpoint. Its ids may be free by now, or name other pages. So a reader takes
// nothing from it but the order in which pages are worth to be read. A list that is missing, damaged or of another
// version only makes a start cold.
// Format: dc/docs/page_store.md. The file is replaced as a whole: NAME.tmp is written, synced and renamed. The
// directory is not synced, so after a loss of power the list may be the one before.
// Thread-safety: pure functions; one thread at a time writes. Ownership: a list owns its ids.
#ifndef DC_PAGE_STORE_HOT_PAGE_LIST_H_
#define DC_PAGE_STORE_HOT_PAGE_LIST_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

constexpr std::string_view kHotPagesName = "hot_pages";
// The suffix of a list that is being written.
constexpr std::string_view kHotPagesTemporaryName = "hot_pages.tmp";

struct HotPageList {
  // More ids are not written. With pages of 32 KiB these fill half a terabyte of memory, and the file has 64 MiB.
  static constexpr size_t kMaxPages = size_t{1} << 24;

  std::vector<PageId> used;    // used since the evictor's clock has passed them
  std::vector<PageId> others;  // also in memory
  size_t size() const { return used.size() + others.size(); }
  friend bool operator==(const HotPageList&, const HotPageList&) = default;
};

// The first kMaxPages pages, the used ones first.
std::string EncodeHotPages(const HotPageList& list);
// CORRUPTION, with the offset: the bytes are damaged. VERSION_MISMATCH: they are of a format that this program does not
// know, and must stay as they are (rule V). `path` appears in the message.
Result<HotPageList> DecodeHotPages(std::string_view bytes, std::string_view path);

// NOT_FOUND: there is no list. Errors also as DecodeHotPages, and those of the storage.
Result<HotPageList> ReadHotPages(Storage& storage, const std::string& directory);
// Replaces the list. After an error the file holds the old list or the new one.
Status WriteHotPages(Storage& storage, const std::string& directory, const HotPageList& list);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_HOT_PAGE_LIST_H_
