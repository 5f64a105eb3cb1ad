#include "dc/verify/segment_check.h"

#include <algorithm>
#include <memory>

#include "common/base/check.h"
#include "common/io/aligned_buffer.h"
#include "dc/page_store/part_scanner.h"

namespace deut::dc {
namespace {

class Checking {
 public:
  Checking(const SegmentFile& segment, uint64_t named_bytes, const std::function<void(const Status&)>& on_damage)
      : segment_(segment), on_damage_(on_damage) {
    report_.kind = segment.kind;
    report_.number = segment.number;
    report_.named_bytes = named_bytes;
  }

  Status Check(Storage& storage, std::optional<DcId> dc) {
    auto file = storage.Open(segment_.path, {.direct = true});
    if (!file.ok()) return Damage(file.status());
    const Result<uint64_t> size = (*file)->Size();
    if (!size.ok()) return Damage(size.status());
    report_.file_bytes = *size;
    DEUT_RETURN_IF_ERROR(CheckHeader(**file, dc));
    const uint64_t blocks = RoundDownToIo(report_.file_bytes);
    if (report_.file_bytes < report_.named_bytes) {
      (void)Damage(DEUT_ERROR(kCorruption, segment_.path, ": offset ", report_.file_bytes,
                              ": the file ends, a checkpoint names ", report_.named_bytes, " bytes"));
    }
    const uint64_t named = std::min(report_.named_bytes, blocks);
    if (named > kSegmentHeaderBytes) ScanNamed(**file, named);
    ScanTail(**file, std::max<uint64_t>(named, kSegmentHeaderBytes), blocks);
    return Status::Ok();
  }
  const SegmentReport& report() const { return report_; }

 private:
  // A segment that no checkpoint names cannot be damaged.
  Status Damage(const Status& damage) {
    if (report_.named_bytes == 0) return Status::Ok();
    ++report_.damages;
    on_damage_(damage);
    return Status::Ok();
  }

  Status CheckHeader(File& file, std::optional<DcId> dc) {
    AlignedBuffer block(kSegmentHeaderBytes);
    const Result<size_t> read = file.Read(0, block.data(), block.size());
    if (!read.ok()) return Damage(read.status());
    const auto header = DecodeSegmentHeader(std::string_view(block.data(), *read), segment_.path);
    if (header.status() == ErrorCode::kVersionMismatch) return header.status();
    if (!header.ok()) return Damage(header.status());
    if (header->number != segment_.number || header->kind != segment_.kind || (dc.has_value() && header->dc != *dc)) {
      return Damage(DEUT_ERROR(kCorruption, segment_.path, ": offset 0: the header is of segment ", header->number,
                               " of data component ", header->dc.value, ", or of another kind than the name says"));
    }
    if (report_.named_bytes > header->capacity_bytes) {
      return Damage(DEUT_ERROR(kCorruption, segment_.path, ": offset 0: a checkpoint names ", report_.named_bytes,
                               " bytes, the header says that there are at most ", header->capacity_bytes));
    }
    report_.header_intact = true;
    may_have_packed_ = header->packed_parts;
    return Status::Ok();
  }

  void Count(const PartView& part) {
    ++report_.parts;
    report_.part_bytes += PartBytesInUnits(part.payload.size());
  }

  void ScanNamed(File& file, uint64_t end) {
    PartScanner scanner(file, segment_.number, kSegmentHeaderBytes, end);
    for (;;) {
      const auto part = scanner.Next();
      if (part.ok() && !part->has_value()) return;
      if (part.ok()) {
        CheckKind(**part);
        CheckPacked(**part);
        if (const auto content = UnpackPart(**part, &content_, segment_.path); !content.ok()) {
          (void)Damage(content.status());
        }
        Count(**part);
        continue;
      }
      (void)Damage(part.status());
      // A file that cannot be read here may be unreadable further on, too; one message is enough.
      if (part.status() != ErrorCode::kCorruption || !scanner.SkipDamage().ok()) return;
    }
  }

  void CheckKind(const PartView& part) {
    if ((part.header.kind == PartKind::kBase) == (segment_.kind == SegmentKind::kBase)) return;
    (void)Damage(DEUT_ERROR(kCorruption, segment_.path, ": offset ", part.address.offset(), ": a part of page ",
                            part.header.page.value, " of the other kind than the segment's"));
  }

  // An earlier program would open such a segment, and then take the part for damage.
  void CheckPacked(const PartView& part) {
    if (!part.header.packed || may_have_packed_ || !report_.header_intact) return;
    (void)Damage(DEUT_ERROR(kCorruption, segment_.path, ": offset ", part.address.offset(),
                            ": a compressed part of page ", part.header.page.value,
                            ", but the segment's header says that there is none"));
  }

  void ScanTail(File& file, uint64_t begin, uint64_t end) {
    uint64_t used = report_.named_bytes != 0 || report_.header_intact ? std::min(begin, report_.file_bytes) : 0;
    if (report_.header_intact && begin < end) {
      PartScanner scanner(file, segment_.number, begin, end);
      for (;;) {
        const auto part = scanner.Next();
        if (!part.ok() || !part->has_value()) break;
        Count(**part);
        used = scanner.position();
      }
    }
    DEUT_CHECK(used <= report_.file_bytes);
    report_.tail_bytes = report_.file_bytes - used;
  }

  const SegmentFile& segment_;
  const std::function<void(const Status&)>& on_damage_;
  SegmentReport report_;
  bool may_have_packed_ = false;  // as the segment's header says
  AlignedBuffer content_;         // of a packed part
};

}  // namespace

Result<SegmentReport> CheckSegment(Storage& storage, const SegmentFile& segment, uint64_t named_bytes,
                                   std::optional<DcId> dc, const std::function<void(const Status&)>& on_damage) {
  Checking checking(segment, named_bytes, on_damage);
  DEUT_RETURN_IF_ERROR(checking.Check(storage, dc));
  return checking.report();
}

}  // namespace deut::dc
