#include "dc/verify/inspect.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_store/hot_page_list.h"
#include "dc/page_store/part_compression.h"
#include "dc/page_store/part_scanner.h"
#include "dc/page_store/segment_store.h"
#include "dc/verify/checkpoint_contents.h"
#include "dc/verify/data_directory.h"
#include "dc/verify/tree_walk.h"

namespace deut::dc {
namespace {

constexpr size_t kShownBytes = 40;

std::string_view NameOf(SegmentKind kind) { return kind == SegmentKind::kBase ? "base" : "delta"; }
std::string_view NameOf(PartKind kind) { return kind == PartKind::kBase ? "base" : "delta"; }
std::string Place(PageAddress address) { return Concat("segment ", address.segment(), " offset ", address.offset()); }
// `part`: as it lies on storage, or unpacked.
std::string CompressionText(const PartView& part) {
  if (part.compression == Compression::kNone) return "";
  const Result<PackedHeader> packed = part.header.packed ? ReadPackedHeader(part.payload) : PackedHeader();
  const uint64_t bytes = part.header.packed && packed.ok() ? packed->content_bytes : part.payload.size();
  return Concat(", compressed with ", NameOf(part.compression), " from ", bytes);
}
std::string Show(Position position) { return Concat(position.commit.value, "/", position.sequence); }

class Inspection {
 public:
  Inspection(DataDirectory& directory, Runtime& runtime, const InspectRequest& request,
             const std::function<void(std::string_view)>& out)
      : directory_(directory), runtime_(runtime), request_(request), out_(out) {}

  Status Run() {
    switch (request_.what) {
      case Inspected::kDirectory:
        return ShowDirectory();
      case Inspected::kCheckpoint:
        return ShowCheckpoint();
      case Inspected::kSegment:
        return ShowSegment();
      case Inspected::kPage:
        return ShowPage();
      case Inspected::kTable:
        return ShowTable();
    }
    return Status::Ok();
  }

 private:
  template <typename... Pieces>
  void Line(const Pieces&... pieces) {
    out_(Concat(pieces..., "\n"));
  }
  std::string Cut(std::string_view bytes) const {
    if (bytes.size() <= kShownBytes) return request_.show(bytes);
    return Concat(request_.show(bytes.substr(0, kShownBytes)), "... (", bytes.size(), " bytes)");
  }

  Result<CheckpointContents> Read(CheckpointNumber number) const;
  Result<CheckpointContents> Newest() const;
  // Opens the segments that contain the parts; all segments if `parts` is empty.
  Result<std::unique_ptr<SegmentStore>> OpenStore(const CheckpointContents& contents,
                                                  std::span<const PageAddress> parts) const;

  Status ShowDirectory();
  Status ShowCheckpoint();
  Status ShowSegment();
  Status ShowPage();
  void ShowParts(PageId page, std::span<const PageAddress> parts, SegmentStore& store);
  void ShowEntries(const BasePage& page);
  Status ShowTable();

  DataDirectory& directory_;
  Runtime& runtime_;
  const InspectRequest& request_;
  const std::function<void(std::string_view)>& out_;
};

Result<CheckpointContents> Inspection::Read(CheckpointNumber number) const {
  if (!directory_.dc().has_value()) {
    return DEUT_ERROR(kCorruption, directory_.pages(),
                      ": the owner is unknown: neither dc_state nor a segment names it");
  }
  return ReadContents(directory_.storage(), directory_.pages(), number, *directory_.dc(), WithImages::kYes);
}

Result<CheckpointContents> Inspection::Newest() const {
  Status first;
  for (const CheckpointNumber number : directory_.checkpoints()) {
    // Damaged folders are inspected, too: what an older checkpoint names is better than nothing.
    Result<CheckpointContents> contents = Read(number);
    if (contents.ok()) return contents;
    if (first.ok()) first = contents.status();
  }
  if (!first.ok()) return first;
  return DEUT_ERROR(kNotFound, directory_.pages(), ": there is no checkpoint");
}

Result<std::unique_ptr<SegmentStore>> Inspection::OpenStore(const CheckpointContents& contents,
                                                            std::span<const PageAddress> parts) const {
  DEUT_CHECK(directory_.dc().has_value());  // Read has refused without it
  std::vector<SegmentExtent> extents;
  for (const SegmentExtent& extent : contents.segments) {
    const bool wanted =
        parts.empty() || std::ranges::any_of(parts, [&](PageAddress part) { return part.segment() == extent.number; });
    if (wanted) extents.push_back(extent);
  }
  return SegmentStore::Open(directory_.storage(), runtime_, directory_.pages(), *directory_.dc(), {},
                            contents.head.number, extents, contents.head.next_segment);
}

Status Inspection::ShowDirectory() {
  if (directory_.state().ok()) {
    const DcState& state = *directory_.state();
    Line("data component ", state.dc.value, ", incarnation ", state.number.value);
    if (state.fence.epoch.value == 0) {
      Line("no transaction component has said Hello");
    } else {
      Line("obeys transaction component ", state.fence.tc.value, ", epoch ", state.fence.epoch.value);
    }
  } else {
    Line("dc_state: ", directory_.state().status().message());
  }
  std::set<CheckpointNumber> ancestors;
  for (const CheckpointNumber number : directory_.checkpoints()) {
    if (ancestors.contains(number)) {
      Line("checkpoint ", number.value, ": a newer one needs its file");
      continue;
    }
    const Result<CheckpointContents> contents = Read(number);
    if (!contents.ok()) {
      Line("checkpoint ", number.value, ": ", contents.status().message());
      continue;
    }
    for (const CheckpointAncestor& file : contents->head.ancestors) ancestors.insert(file.number);
    Line("checkpoint ", number.value, ": position ", Show(contents->head.position), ", ", contents->tables.size(),
         " tables, ", contents->pages, " pages, ", contents->segments.size(), " segments",
         contents->head.ancestors.empty() ? "" : Concat(", in ", contents->head.ancestors.size() + 1, " files"));
  }
  for (const SegmentKind kind : {SegmentKind::kBase, SegmentKind::kDelta}) {
    uint64_t files = 0, bytes = 0;
    for (const SegmentFile& segment : directory_.segments()) {
      if (segment.kind != kind) continue;
      DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, directory_.storage().Open(segment.path, {}));
      DEUT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
      ++files;
      bytes += size;
    }
    Line(NameOf(kind), " segments: ", files, " of ", bytes, " bytes");
  }
  if (directory_.has_hot_pages()) {
    const Result<HotPageList> list = ReadHotPages(directory_.storage(), directory_.pages());
    if (list.ok()) {
      Line("hot pages: ", list->size(), ", ", list->used.size(), " of them used lately");
    } else {
      Line("hot pages: ", list.status().message());
    }
  }
  for (const std::string& path : directory_.left_over()) Line("left over from a crash: ", path);
  for (const std::string& path : directory_.foreign_files()) Line("does not belong to the data component: ", path);
  return Status::Ok();
}

Status Inspection::ShowCheckpoint() {
  Result<CheckpointContents> contents = request_.number == 0 ? Newest() : Read(CheckpointNumber(request_.number));
  DEUT_RETURN_IF_ERROR(contents.status());
  const CheckpointHead& head = contents->head;
  Line("checkpoint ", head.number.value, " of data component ", head.dc.value, ", written by incarnation ",
       head.incarnation.value);
  Line("position ", Show(head.position), ", stable ", Show(head.stable));
  Line("pages ", contents->pages, ", ids below ", head.next_page.value);
  for (const CheckpointAncestor& file : head.ancestors) {
    Line("file of checkpoint ", file.number.value, ": ", file.blocks, " blocks, complete for the pages from ",
         file.pages.first.value, " to ", std::min(file.pages.end, file.next_page).value - 1);
  }
  DEUT_CHECK(contents->images.size() == contents->pages);  // Read takes the images, too
  std::map<uint64_t, uint64_t> live;
  uint64_t deltas = 0;
  for (size_t i = 0; i < contents->images.size(); ++i) {
    const std::span<const PageAddress> parts = contents->images.parts(i);
    deltas += parts.size() - 1;
    for (const PageAddress part : parts) live[part.segment()] += part.length_bound();
  }
  Line("parts ", contents->pages + deltas, ", of which deltas ", deltas);
  for (const CheckpointContents::Table& table : contents->tables) {
    if (table.dropped()) {
      Line(DroppedText(table.id, table.last));
    } else {
      Line("table ", table.id.value, ": ", Cut(table.name), ", root page ", table.root.value,
           table.compression == Compression::kNone ? "" : Concat(", compressed with ", NameOf(table.compression)));
    }
  }
  for (const SegmentExtent& segment : contents->segments) {
    Line("segment ", segment.number, ": ", NameOf(segment.kind), ", ", segment.written_bytes, " bytes, ",
         live[segment.number], " named by pages");
  }
  return Status::Ok();
}

Status Inspection::ShowSegment() {
  const auto found = std::ranges::find(directory_.segments(), request_.number, &SegmentFile::number);
  if (found == directory_.segments().end()) {
    return DEUT_ERROR(kNotFound, directory_.pages(), ": there is no segment ", request_.number);
  }
  std::set<PageAddress> live;
  uint64_t named = 0;
  if (const Result<CheckpointContents> contents = Newest(); contents.ok()) {
    for (size_t i = 0; i < contents->images.size(); ++i) {
      for (const PageAddress part : contents->images.parts(i)) {
        if (part.segment() == request_.number) live.insert(part);
      }
    }
    const auto extent = std::ranges::find(contents->segments, request_.number, &SegmentExtent::number);
    if (extent != contents->segments.end()) named = extent->written_bytes;
  }
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, directory_.storage().Open(found->path, {.direct = true}));
  DEUT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  AlignedBuffer block(kSegmentHeaderBytes);
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(0, block.data(), block.size()));
  DEUT_ASSIGN_OR_RETURN(const SegmentHeader header,
                        DecodeSegmentHeader(std::string_view(block.data(), read), found->path));
  Line("segment ", header.number, ": ", NameOf(header.kind), " parts, data component ", header.dc.value, ", ", size,
       " bytes of at most ", header.capacity_bytes, "; the newest checkpoint names ", named);
  // A segment is written in whole blocks, so a crash may have left a piece of one at the end, which holds no part.
  PartScanner scanner(*file, header.number, kSegmentHeaderBytes, RoundDownToIo(size));
  for (;;) {
    const auto part = scanner.Next();
    if (part.status() == ErrorCode::kCorruption) {
      Line("offset ", scanner.position(),
           scanner.position() >= named ? ": tail: " : ": DAMAGED: ", part.status().message());
      DEUT_RETURN_IF_ERROR(scanner.SkipDamage().status());
      continue;
    }
    DEUT_RETURN_IF_ERROR(part.status());
    if (!part->has_value()) return Status::Ok();
    const PartHeader& of = (*part)->header;
    Line("offset ", (*part)->address.offset(), ": ", NameOf(of.kind), " part of page ", of.page.value, ", table ",
         of.table.value, ", level ", int{of.level}, ", ", of.payload_bytes, " bytes", CompressionText(**part),
         of.previous.is_none() ? "" : Concat(", after ", Place(of.previous)),
         live.contains((*part)->address) ? ", live" : "");
  }
}

Status Inspection::ShowPage() {
  const Result<CheckpointContents> contents = Newest();
  DEUT_RETURN_IF_ERROR(contents.status());
  const PageId page(static_cast<uint32_t>(std::min<uint64_t>(request_.number, UINT32_MAX)));
  const std::optional<size_t> place = contents->images.Find(page);
  if (!place.has_value()) {
    return DEUT_ERROR(kNotFound, "checkpoint ", contents->head.number.value, " has no image of page ", request_.number);
  }
  const std::span<const PageAddress> parts = contents->images.parts(*place);
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<SegmentStore> store, OpenStore(*contents, parts));
  Line("page ", page.value, " in checkpoint ", contents->head.number.value, ": ", parts.size(), " parts");
  ShowParts(page, parts, *store);
  PageLoad load;
  load.id = page;
  for (const PageAddress part : parts) load.parts.Append(part);
  DEUT_RETURN_IF_ERROR(load.ReadImage(*store));
  const BasePage& image = *load.page;
  Line("table ", load.table.value, ", level ", int{image.level}, ", flat ", image.flat().value);
  Line("keys from ", image.low().empty() ? "the first" : Cut(image.low()), " to ",
       image.fence->bounded() ? Concat(Cut(image.fence->high_key()), ", then page ", image.fence->sibling.value)
                              : "the last");
  ShowEntries(image);
  return Status::Ok();
}

void Inspection::ShowParts(PageId page, std::span<const PageAddress> parts, SegmentStore& store) {
  PartBuffer buffer;
  for (const PageAddress part : parts) {
    if (const Status read = store.Read(part, page, &buffer); !read.ok()) {
      Line("part in ", Place(part), ": DAMAGED: ", read.message());
      continue;
    }
    const PartHeader& header = buffer.part().header;
    Line(NameOf(header.kind), " part in ", Place(part), ", ", header.payload_bytes, " bytes",
         CompressionText(buffer.part()));
  }
}

void Inspection::ShowEntries(const BasePage& page) {
  if (!page.is_leaf()) {
    Line(page.count(), " children");
    for (size_t i = 0; i < page.count(); ++i) {
      Line("  ", page.key(i).empty() ? "the first key" : Cut(page.key(i)), " -> page ", page.child(i).value);
    }
    return;
  }
  Line(page.live_records(), " records, ", page.tombstones(), " tombstones");
  for (size_t i = 0; i < page.count(); ++i) {
    const PageEntry entry = page.record(i);
    const std::string version = Concat(entry.version.timestamp.value, "/", entry.version.sequence);
    if (page.tombstone(i)) {
      Line("  ", Cut(entry.key()), " @", version, " deleted");
    } else {
      Line("  ", Cut(entry.key()), " @", version, " = ", Cut(entry.value()));
    }
  }
}

// Counts the pages of a table by level.
class Levels final : public TreeWalkVisitor {
 public:
  struct Level {
    uint64_t pages = 0, entries = 0, deltas = 0, bytes = 0;
  };
  void OnPage(TableId /*table*/, const PageLoad& load) override {
    const uint8_t level = load.page->level;
    if (levels.size() <= level) levels.resize(level + size_t{1});
    ++levels[level].pages;
    levels[level].entries += load.page->count();
    levels[level].deltas += load.parts.count() - 1;
    for (const PageAddress part : load.parts.all()) levels[level].bytes += part.length_bound();
  }
  void OnDamage(TableId /*table*/, const NamedPage& /*named*/, const Status& damage) override {
    if (first_damage.ok()) first_damage = damage;
  }
  std::vector<Level> levels;
  Status first_damage;
};

Status Inspection::ShowTable() {
  const Result<CheckpointContents> contents = Newest();
  DEUT_RETURN_IF_ERROR(contents.status());
  const auto table = std::ranges::find_if(contents->tables, [&](const CheckpointContents::Table& each) {
    return each.id.value <= request_.number && request_.number <= each.last.value;
  });
  if (table == contents->tables.end()) {
    return DEUT_ERROR(kNotFound, "checkpoint ", contents->head.number.value, " has no table ", request_.number);
  }
  if (table->dropped()) {
    Line("table ", request_.number, ": dropped");
    return Status::Ok();
  }
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<SegmentStore> store, OpenStore(*contents, {}));
  Levels counted;
  TreeWalk walk(contents->images, *store, counted);
  walk.Walk(*table);
  Line("table ", table->id.value, " in checkpoint ", contents->head.number.value, ": ", Cut(table->name),
       ", root page ", table->root.value, ", ", counted.levels.size(), " levels");
  for (size_t i = counted.levels.size(); i > 0; --i) {
    const Levels::Level& level = counted.levels[i - 1];
    Line("level ", i - 1, ": ", level.pages, " pages, ", level.entries,
         i == 1 ? " records and tombstones, " : " children, ", level.deltas, " delta parts, ", level.bytes, " bytes");
  }
  return counted.first_damage;
}

}  // namespace

Status Inspect(Storage& storage, Runtime& runtime, const std::string& directory, const InspectRequest& request,
               const std::function<void(std::string_view text)>& out) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<DataDirectory> opened, DataDirectory::Open(storage, directory));
  return Inspection(*opened, runtime, request, out).Run();
}

}  // namespace deut::dc
