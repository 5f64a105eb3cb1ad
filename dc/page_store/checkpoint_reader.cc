#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/checkpoint_rules.h"

namespace deut::dc {
namespace {

// Reads records one after the other and passes each on to the visitor when it is valid.
class Reader {
 public:
  Reader(CheckpointNumber number, DcId dc, std::string_view path, CheckpointVisitor* visitor)
      : number_(number), dc_(dc), path_(path), visitor_(visitor) {}

  // Reads all records of the block at `offset`, which is of format version `version`.
  Status ReadBlock(std::string_view payload, uint64_t offset, uint16_t version) {
    RecordCursor cursor(payload);
    version_ = version;
    while (!cursor.done()) {
      const uint64_t at = offset + kCheckpointBlockHeaderBytes + cursor.position();
      if (ended_) return Refuse(at, "records behind the footer");
      Status taken = ReadRecord(cursor, at);
      if (cursor.failed()) return Refuse(at, "a record is cut off");
      DEUT_RETURN_IF_ERROR(taken);
    }
    return Status::Ok();
  }

  bool ended() const { return ended_; }
  const CheckpointCounts& counts() const { return rules_.counts(); }

 private:
  Status Refuse(uint64_t at, std::string_view what) const {
    return DEUT_ERROR(kCorruption, path_, ": offset ", at, ": ", what);
  }

  Status ReadRecord(RecordCursor& cursor, uint64_t at) {
    const uint8_t type = cursor.U8();
    switch (static_cast<CheckpointRecordType>(type)) {
      case CheckpointRecordType::kHead:
        return ReadHead(cursor, at);
      case CheckpointRecordType::kTable:
        return ReadTable(cursor, at);
      case CheckpointRecordType::kDropped:
        return ReadDropped(cursor, at);
      case CheckpointRecordType::kSegment:
        return ReadSegment(cursor, at);
      case CheckpointRecordType::kPage:
        return ReadPage(cursor, at);
      case CheckpointRecordType::kFooter:
        return ReadFooter(cursor, at);
    }
    return Refuse(at, Concat("a record of type ", int{type}));
  }

  Status ReadHead(RecordCursor& cursor, uint64_t at) {
    CheckpointHead head{.number = number_, .dc = dc_};
    head.incarnation = DcIncarnation(cursor.U64());
    head.position.commit = Lsn(cursor.U64());
    head.position.sequence = cursor.U32();
    head.stable.commit = Lsn(cursor.U64());
    head.stable.sequence = cursor.U32();
    head.next_page = PageId(cursor.U32());
    head.next_segment = cursor.U64();
    if (cursor.failed()) return Status::Ok();
    if (const auto wrong = rules_.Head(head)) return Refuse(at, *wrong);
    return visitor_ == nullptr ? Status::Ok() : visitor_->OnHead(head);
  }

  Status ReadTable(RecordCursor& cursor, uint64_t at) {
    CheckpointTable table;
    table.id = TableId(cursor.U32());
    table.root = PageId(cursor.U32());
    const size_t name_bytes = cursor.U8();
    table.name = cursor.Bytes(name_bytes);
    if (cursor.failed()) return Status::Ok();
    if (table.dropped() && !HasTableRecordsOfDroppedTables(version_)) {
      return Refuse(at, Concat("table ", table.id.value, " without a root"));
    }
    if (const auto wrong = rules_.Table(table)) return Refuse(at, *wrong);
    return visitor_ == nullptr ? Status::Ok() : visitor_->OnTable(table);
  }

  Status ReadDropped(RecordCursor& cursor, uint64_t at) {
    const uint32_t first = cursor.U32();
    const uint32_t last = cursor.U32();
    if (cursor.failed()) return Status::Ok();
    if (last < first) return Refuse(at, Concat("dropped tables ", first, " to ", last));
    const CheckpointTable dropped{.id = TableId(first), .dropped_ids_behind = last - first};
    if (const auto wrong = rules_.Table(dropped)) return Refuse(at, *wrong);
    return visitor_ == nullptr ? Status::Ok() : visitor_->OnTable(dropped);
  }

  Status ReadSegment(RecordCursor& cursor, uint64_t at) {
    SegmentExtent segment;
    segment.kind = static_cast<SegmentKind>(cursor.U8());
    segment.number = cursor.U64();
    segment.written_bytes = cursor.U64();
    if (cursor.failed()) return Status::Ok();
    if (const auto wrong = rules_.Segment(segment)) return Refuse(at, *wrong);
    return visitor_ == nullptr ? Status::Ok() : visitor_->OnSegment(segment);
  }

  Status ReadPage(RecordCursor& cursor, uint64_t at) {
    const size_t count = cursor.U8();
    const PageId page(cursor.U32());
    if (count > kMaxPartsOfImage) return Refuse(at, Concat("page ", page.value, " with ", count, " parts"));
    std::array<PageAddress, kMaxPartsOfImage> addresses;
    for (size_t i = 0; i < count; ++i) addresses[i] = CheckpointAddress(version_, cursor.U64());
    if (cursor.failed()) return Status::Ok();
    const std::span<const PageAddress> newest_first(addresses.data(), count);
    if (const auto wrong = rules_.Page(page, newest_first)) return Refuse(at, *wrong);
    return visitor_ == nullptr ? Status::Ok() : visitor_->OnPage(page, newest_first);
  }

  Status ReadFooter(RecordCursor& cursor, uint64_t at) {
    CheckpointCounts claimed;
    claimed.tables = cursor.U64();
    claimed.segments = cursor.U64();
    claimed.pages = cursor.U64();
    if (cursor.failed()) return Status::Ok();
    if (const auto wrong = rules_.End(claimed)) return Refuse(at, *wrong);
    ended_ = true;
    return Status::Ok();
  }

  const CheckpointNumber number_;
  const DcId dc_;
  const std::string_view path_;
  CheckpointVisitor* const visitor_;
  CheckpointRules rules_;
  uint16_t version_ = 0;  // of the block that is being read
  bool ended_ = false;
};

}  // namespace

Result<CheckpointCounts> ReadCheckpoint(Storage& storage, std::string_view directory, CheckpointNumber number, DcId dc,
                                        CheckpointVisitor* visitor) {
  return ReadCheckpointFile(storage, Concat(directory, "/", CheckpointName(number)), number, dc, visitor);
}

Result<CheckpointCounts> ReadCheckpointFile(Storage& storage, const std::string& path, CheckpointNumber number, DcId dc,
                                            CheckpointVisitor* visitor) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage.Open(path, {.direct = true}));
  AlignedBuffer bytes(kCheckpointBlockBytes);
  Reader reader(number, dc, path, visitor);
  CheckpointBlock block{.checkpoint = number, .dc = dc};
  // Each block names the checksum of the one before, so a block of another attempt is refused.
  while (!block.last) {
    DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(block.offset, bytes.data(), kCheckpointBlockBytes));
    DEUT_ASSIGN_OR_RETURN(block.predecessor, OpenCheckpointBlock(std::string_view(bytes.data(), read), &block, path));
    DEUT_RETURN_IF_ERROR(
        reader.ReadBlock(std::string_view(bytes.data() + kCheckpointBlockHeaderBytes, block.payload_bytes),
                         block.offset, block.version));
    block.offset += kCheckpointBlockBytes;
  }
  if (!reader.ended()) return DEUT_ERROR(kCorruption, path, ": offset ", block.offset, ": the footer is missing");
  DEUT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size != block.offset) {
    return DEUT_ERROR(kCorruption, path, ": offset ", block.offset, ": the checkpoint ends, the file has ", size,
                      " bytes");
  }
  return reader.counts();
}

}  // namespace deut::dc
