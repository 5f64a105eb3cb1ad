#include "dc/page_store/checkpoint_rules.h"

#include <algorithm>

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
  // A root names one table only. It is erased from `roots_without_image_` when its page appears, so that End finds
  // the missing ones.
  if (!table.dropped() && (table.root >= next_page_ || !roots_without_image_.insert(table.root).second)) {
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
  const uint64_t last = segments_.empty() ? 0 : segments_.back().number;
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
  segments_.push_back(segment);
  ++counts_.segments;
  return std::nullopt;
}

CheckpointRules::Violation CheckpointRules::CheckAddress(PageAddress address, SegmentKind kind) const {
  // The segments were added in ascending order, so a binary search finds them.
  const auto place = std::ranges::lower_bound(segments_, address.segment(), {}, &SegmentExtent::number);
  const bool named = address.valid() && place != segments_.end() && place->number == address.segment();
  if (named && place->kind == kind && address.offset() >= kSegmentHeaderBytes &&
      address.offset() < place->written_bytes) {
    return std::nullopt;
  }
  return Concat(kind == SegmentKind::kBase ? "a base part" : "a delta part", " at offset ", address.offset(),
                " of segment ", address.segment(), ", where no such part is");
}

CheckpointRules::Violation CheckpointRules::Page(PageId page, std::span<const PageAddress> newest_first) {
  if (section_ == Section::kStart || section_ == Section::kEnd)
    return Concat("page ", page.value, " stands out of order");
  section_ = Section::kPages;
  if (page <= last_page_ || page >= next_page_) {
    return Concat("page ", page.value, " after ", last_page_.value, ", below ", next_page_.value);
  }
  if (newest_first.empty() || newest_first.size() > kMaxPartsOfImage) {
    return Concat("page ", page.value, " with ", newest_first.size(), " parts");
  }
  for (size_t i = 0; i < newest_first.size(); ++i) {
    // An image ends with its base part; all newer parts are delta parts.
    const bool oldest = i + 1 == newest_first.size();
    if (const Violation wrong = CheckAddress(newest_first[i], oldest ? SegmentKind::kBase : SegmentKind::kDelta)) {
      return Concat("page ", page.value, ": ", *wrong);
    }
  }
  last_page_ = page;
  roots_without_image_.erase(page);
  ++counts_.pages;
  return std::nullopt;
}

CheckpointRules::Violation CheckpointRules::End(const CheckpointCounts& claimed) {
  if (section_ == Section::kStart || section_ == Section::kEnd) return "a footer out of order";
  section_ = Section::kEnd;
  if (claimed != counts_) {
    return Concat("the footer says ", claimed.tables, " tables, ", claimed.segments, " segments, ", claimed.pages,
                  " pages; there are ", counts_.tables, ", ", counts_.segments, ", ", counts_.pages);
  }
  if (!roots_without_image_.empty()) return Concat("root ", roots_without_image_.begin()->value, " has no image");
  return std::nullopt;
}

}  // namespace deut::dc
