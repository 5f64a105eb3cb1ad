// A segment store on a faulty disk, and parts with verifiable content. For tests.
#ifndef DC_PAGE_STORE_STORE_FIXTURE_H_
#define DC_PAGE_STORE_STORE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

constexpr DcId kTestDc{0xDC};
inline const std::string kTestPages = "/dc/pages";

// Returns `bytes` bytes that belong to (page, salt) alone.
std::string PayloadOf(PageId page, uint64_t salt, size_t bytes);

inline PartHeader BaseHeader(PageId page) {
  return {.kind = PartKind::kBase, .level = 0, .page = page, .table = TableId(1)};
}
inline PartHeader DeltaHeader(PageId page, PageAddress previous) {
  return {.kind = PartKind::kDelta, .level = 0, .page = page, .table = TableId(1), .previous = previous};
}

// Segments of 16 blocks and a buffer of 4, so that few parts fill them.
inline SegmentStoreOptions SmallSegments() {
  return {.segment_bytes = 64 << 10,
          .append_buffer_bytes = 16 << 10,
          .max_open_files = 4,
          .max_unsynced_segments = 3,
          .reserve_bytes = 0};
}

struct StoreFixture {
  explicit StoreFixture(uint64_t seed = 1, const SegmentStoreOptions& options = SmallSegments())
      : disk(RealRuntime(), seed), storage(disk.Mount()) {
    auto created = SegmentStore::Create(*storage, RealRuntime(), kTestPages, kTestDc, options);
    if (created.ok()) store = std::move(*created);
  }

  FaultyDisk disk;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<SegmentStore> store;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_STORE_FIXTURE_H_
