// ScanParts: all parts of a segment's file, from its start. For the cleaner and for offline checks; internal to the page store and its tools.
// Thread-safety: the file may grow meanwhile. Memory: a megabyte, or the largest part.
// Errors: CORRUPTION naming file and offset for anything in the first `written_bytes` that is neither a right part nor zeros up to the next
//   multiple of 4 KiB; what the file answers; what the callback answers.
#ifndef DC_PAGE_STORE_PART_SCANNER_H_
#define DC_PAGE_STORE_PART_SCANNER_H_

#include <cstdint>
#include <functional>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/part_format.h"

namespace deut::dc {

// The file is opened direct; `written_bytes` is a multiple of kIoAlignment. Does not look at the header block.
Status ScanParts(File& file, uint64_t segment, uint64_t written_bytes,
                 const std::function<Status(const PartView&)>& callback);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_SCANNER_H_
