#include "dc/page_store/checkpoint_rules.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/ids.h"

namespace deut::dc {

CheckpointRules::Violation CheckpointRules::Head(const CheckpointHead& head) {
  if (section_ != Section::kStart) return "a second head";
  if (head.next_page.value == 0 || head.next_segment == 0 || head.next_segment > PageAddress::kMaxSegment + 1) {
    return Concat("the head names next page ", head.next_page.value, " and next segment ", head.next_segment);
  }
  section_ = Section::kTables;
  if (head.stable > head.position) return std::string("the stable position lies behind the position");
  next_page_ = head.next_page;
  next_segment_ = head.next_segment;
  has_ancestors_ = !head.ancestors.empty();
  names_previous_ = !head.previous.empty();
  has_table_options_ = head.has_table_options;
  if (!has_ancestors_ && head.pages != PageRange()) {
    return Concat("the complete range of page ids is ", head.pages.first.value, " to ", head.pages.end.value);
  }
  CheckpointLineage own = head.ancestors;
  own.push_back({.number = head.number, .blocks = 1, .next_page = head.next_page, .pages = head.pages});
  if (const Violation wrong = Lineage(own, head)) return wrong;
  if (head.previous.empty()) return std::nullopt;
  if (head.previous.back().number >= head.number) return std::string("the checkpoint before has a later number");
  // Damage of such a file would leave none of the two checkpoints whole.
  for (const CheckpointAncestor& file : head.previous) {
    if (std::ranges::find(head.ancestors, file.number, &CheckpointAncestor::number) != head.ancestors.end()) {
      return Concat("both lineages have the file of checkpoint ", file.number.value);
    }
  }
  return Lineage(head.previous, head);
}

CheckpointRules::Violation CheckpointRules::Lineage(std::span<const CheckpointAncestor> files,
                                                    const CheckpointHead& head) const {
  if (files.size() > kMaxAncestors) return Concat(files.size(), " files in a lineage");
  for (size_t i = 0; i < files.size(); ++i) {
    const CheckpointAncestor& file = files[i];
    const bool ascends = i == 0 ? file.number.value > 0 || files.size() == 1 : file.number > files[i - 1].number;
    const bool has_range = file.pages.first.value > 0 && file.pages.first <= file.pages.end;
    if (!ascends || !has_range || file.blocks == 0 || file.next_page > head.next_page) {
      return Concat("checkpoint ", file.number.value, " with ", file.blocks, " blocks and next page ",
                    file.next_page.value, " in a lineage");
    }
  }
  if (!IsCompleteLineage(files)) return std::string("the files of a lineage do not have all pages");
  return std::nullopt;
}

CheckpointRules::Violation CheckpointRules::Table(const CheckpointTable& table) {
  if (section_ != Section::kTables) return Concat("table ", table.id.value, " stands out of order");
  if (counts_.tables > 0 && table.id <= last_table_)
    return Concat("table ", table.id.value, " after ", last_table_.value);
  if (table.dropped() != table.name.empty() || table.name.size() > kMaxTableNameBytes) {
    return Concat("table ", table.id.value, " with root ", table.root.value, " and a name of ", table.name.size(),
                  " bytes");
  }
  if (table.last() < table.id || (!table.dropped() && table.dropped_ids_behind != 0)) {
    return Concat("table ", table.id.value, " with ", table.dropped_ids_behind, " dropped ids behind it");
  }
  if (table.compression != Compression::kNone && (table.dropped() || !has_table_options_)) {
    return Concat("table ", table.id.value, " with the compression ", NameOf(table.compression));
  }
  // A root names one table only.
  if (!table.dropped() && (table.root >= next_page_ || !roots_.try_emplace(table.root, false).second)) {
    return Concat("table ", table.id.value, " with root ", table.root.value, ", which is above all pages or another's");
  }
  last_table_ = table.last();
  ++counts_.tables;
  return std::nullopt;
}

CheckpointRules::Violation CheckpointRules::Segment(const SegmentExtent& segment) {
  if (section_ != Section::kTables && section_ != Section::kSegments) {
    return Concat("segment ", segment.number, " stands out of order");
  }
  section_ = Section::kSegments;
  const uint64_t last = segments_.last_number();
  if (segment.number <= last || segment.number >= next_segment_) {
    return Concat("segment ", segment.number, " after ", last, ", below ", next_segment_);
  }
  if (segment.kind != SegmentKind::kBase && segment.kind != SegmentKind::kDelta) {
    return Concat("segment ", segment.number, " is of kind ", static_cast<int>(segment.kind));
  }
  if (segment.written_bytes <= kSegmentHeaderBytes || segment.written_bytes % kIoAlignment != 0 ||
      segment.written_bytes > PageAddress::kMaxOffset) {
    return Concat("segment ", segment.number, " with ", segment.written_bytes, " bytes");
  }
  segments_.Add(segment);
  ++counts_.segments;
  return std::nullopt;
}

void CheckpointRules::BeginPages() {
  DEUT_CHECK(section_ == Section::kTables || section_ == Section::kSegments);
  section_ = Section::kPages;
  segments_.EndAdding();
  constexpr size_t kBitsPerRoot = 16;
  may_be_root_.assign(std::bit_ceil(roots_.size() * kBitsPerRoot / 64 + 1), 0);
  for (const auto& [root, has_image] : roots_) {
    may_be_root_[WordOfBit(root)] |= uint64_t{1} << (root.value % 64);
  }
}

CheckpointRules::Violation CheckpointRules::CheckAddress(PageAddress address, SegmentKind kind, size_t* place) const {
  *place = segments_.Find(address.segment());
  if (address.valid() && *place != segments_.size()) [[likely]] {
    const SegmentExtent& segment = segments_[*place];
    if (segment.kind == kind && address.offset() >= kSegmentHeaderBytes && address.offset() < segment.written_bytes)
        [[likely]] {
      return std::nullopt;
    }
  }
  return Concat(kind == SegmentKind::kBase ? "a base part" : "a delta part", " at offset ", address.offset(),
                " of segment ", address.segment(), ", where no such part is");
}

CheckpointRules::Violation CheckpointRules::Page(PageId page, std::span<const PageAddress> newest_first, bool recent) {
  if (section_ == Section::kStart || section_ == Section::kEnd)
    return Concat("page ", page.value, " stands out of order");
  if (section_ != Section::kPages) BeginPages();
  if (page <= last_page_) return Concat("page ", page.value, " after ", last_page_.value);
  if (const Violation wrong = Contents(page, newest_first, recent)) return wrong;
  last_page_ = page;
  if (!newest_first.empty()) NotePage(page);
  ++counts_.pages;
  return std::nullopt;
}

CheckpointRules::Violation CheckpointRules::Contents(PageId page, std::span<const PageAddress> newest_first,
                                                     bool recent, std::span<uint64_t> live_bytes) const {
  if (page.value == 0 || page >= next_page_) return Concat("page ", page.value, ", below ", next_page_.value);
  const bool may_have_none = has_ancestors_ || (names_previous_ && recent);
  if ((newest_first.empty() && !may_have_none) || newest_first.size() > kMaxPartsOfImage) {
    return Concat("page ", page.value, " with ", newest_first.size(), " parts");
  }
  for (size_t i = 0; i < newest_first.size(); ++i) {
    // An image ends with its base part; all newer parts are delta parts.
    const bool oldest = i + 1 == newest_first.size();
    size_t place = 0;
    if (const Violation wrong =
            CheckAddress(newest_first[i], oldest ? SegmentKind::kBase : SegmentKind::kDelta, &place)) {
      return Concat("page ", page.value, ": ", *wrong);
    }
    if (!live_bytes.empty()) live_bytes[place] += newest_first[i].length_bound();
  }
  return std::nullopt;
}

void CheckpointRules::NoteRoot(PageId page) {
  if (const auto root = roots_.find(page); root != roots_.end()) root->second.store(true, std::memory_order_relaxed);
}

CheckpointRules::Violation CheckpointRules::PagesOfReader(uint64_t records) {
  if (section_ == Section::kStart || section_ == Section::kEnd) return "pages stand out of order";
  section_ = Section::kPages;
  counts_.pages = records;
  return std::nullopt;
}

CheckpointRules::Violation CheckpointRules::End(const CheckpointCounts& claimed) {
  if (section_ == Section::kStart || section_ == Section::kEnd) return "a footer out of order";
  section_ = Section::kEnd;
  if (claimed != counts_) {
    return Concat("the footer says ", claimed.tables, " tables, ", claimed.segments, " segments, ", claimed.pages,
                  " pages; there are ", counts_.tables, ", ", counts_.segments, ", ", counts_.pages);
  }
  return has_ancestors_ ? std::nullopt : Roots();
}

CheckpointRules::Violation CheckpointRules::Roots() const {
  for (const auto& [root, has_image] : roots_) {
    if (!has_image.load(std::memory_order_relaxed)) return Concat("root ", root.value, " has no image");
  }
  return std::nullopt;
}

}  // namespace deut::dc
