// A checkpoint with every kind of record, and a visitor that keeps what it receives. For tests.
#ifndef DC_PAGE_STORE_CHECKPOINT_FIXTURE_H_
#define DC_PAGE_STORE_CHECKPOINT_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/compression.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

struct CheckpointContent {
  CheckpointHead head;
  std::vector<std::pair<std::pair<TableId, PageId>, std::string>> tables;
  std::map<TableId, uint32_t> dropped_ids_behind;  // where it is not 0
  std::map<TableId, Compression> compression;      // where it is not kNone
  std::vector<SegmentExtent> segments;
  std::map<PageId, std::vector<PageAddress>> pages;
  std::set<PageId> recent;  // changed since the checkpoint before; those that are not in `pages` have no image
  friend bool operator==(const CheckpointContent&, const CheckpointContent&) = default;
};

class CheckpointKeeper : public CheckpointVisitor {
 public:
  Status OnHead(const CheckpointHead& head) override {
    content.head = head;
    return Status::Ok();
  }
  Status OnTable(const CheckpointTable& table) override {
    content.tables.push_back({{table.id, table.root}, std::string(table.name)});
    if (table.dropped_ids_behind != 0) content.dropped_ids_behind[table.id] = table.dropped_ids_behind;
    if (table.compression != Compression::kNone) content.compression[table.id] = table.compression;
    return Status::Ok();
  }
  Status OnSegment(const SegmentExtent& segment) override {
    content.segments.push_back(segment);
    return Status::Ok();
  }
  Status OnPage(PageId page, std::span<const PageAddress> newest_first) override {
    content.pages[page].assign(newest_first.begin(), newest_first.end());
    return Status::Ok();
  }
  void OnRecentChange(PageId page) override { content.recent.insert(page); }
  Status OnLiveBytes(uint64_t segment, uint64_t bytes) override {
    live_bytes[segment] += bytes;
    return Status::Ok();
  }
  void OnFile(const CheckpointAncestor& itself) override { file = itself; }

  CheckpointContent content;
  std::map<uint64_t, uint64_t> live_bytes;  // by segment
  CheckpointAncestor file;
};

// Returns the bytes of all parts in each segment, as OnLiveBytes has to state them.
inline std::map<uint64_t, uint64_t> LiveBytesOf(const CheckpointContent& content) {
  std::map<uint64_t, uint64_t> bytes;
  for (const SegmentExtent& segment : content.segments) bytes[segment.number] = 0;
  for (const auto& [page, addresses] : content.pages) {
    for (const PageAddress address : addresses) bytes[address.segment()] += address.length_bound();
  }
  return bytes;
}

inline Status AddAll(CheckpointWriter& writer, const CheckpointContent& content) {
  for (const auto& [ids, name] : content.tables) {
    const auto dropped = content.dropped_ids_behind.find(ids.first);
    const uint32_t after = dropped == content.dropped_ids_behind.end() ? 0 : dropped->second;
    const auto compression = content.compression.find(ids.first);
    DEUT_RETURN_IF_ERROR(writer.AddTable(
        {.id = ids.first,
         .root = ids.second,
         .name = name,
         .dropped_ids_behind = after,
         .compression = compression == content.compression.end() ? Compression::kNone : compression->second}));
  }
  for (const SegmentExtent& segment : content.segments) DEUT_RETURN_IF_ERROR(writer.AddSegment(segment));
  std::set<PageId> all = content.recent;
  for (const auto& [page, addresses] : content.pages) all.insert(page);
  for (const PageId page : all) {
    const auto image = content.pages.find(page);
    const std::vector<PageAddress> addresses =
        image == content.pages.end() ? std::vector<PageAddress>() : image->second;
    DEUT_RETURN_IF_ERROR(writer.AddPage(page, addresses, content.recent.contains(page)));
  }
  return Status::Ok();
}

// Returns two tables and a dropped one, a segment of either kind, and `pages` + 2 pages with 1 to 8 parts.
inline CheckpointContent ContentWith(uint64_t number, uint32_t pages) {
  CheckpointContent content;
  content.head = {.number = CheckpointNumber(number),
                  .dc = DcId(0xDC),
                  .incarnation = DcIncarnation(3),
                  .position = {.commit = Lsn(0x1234567890), .sequence = 77},
                  .next_page = PageId(10 * pages + 30),
                  .next_segment = 9};
  content.tables = {{{TableId(1), PageId(10)}, "accounts"},
                    {{TableId(4), PageId(0)}, ""},  // and table 5
                    {{TableId(7), PageId(20)}, std::string("z\0\xFF", 3)}};
  content.dropped_ids_behind[TableId(4)] = 1;
  content.segments = {{.number = 3, .kind = SegmentKind::kBase, .written_bytes = 4 << 20},
                      {.number = 8, .kind = SegmentKind::kDelta, .written_bytes = 1 << 20}};
  for (uint64_t page = 1; page <= pages + 2; ++page) {
    std::vector<PageAddress>& addresses = content.pages[PageId(static_cast<uint32_t>(10 * page))];
    for (uint64_t delta = 0; delta < page % 8; ++delta) {
      addresses.push_back(
          PageAddress::Make(8, kSegmentHeaderBytes + (page * 8 + delta) % 7000 * 128, 100 + page % 1000));
    }
    addresses.push_back(PageAddress::Make(3, kSegmentHeaderBytes + page % 30000 * 128, 5000 + page));
  }
  return content;
}

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_FIXTURE_H_
