// Reading a checkpoint: its own file, then its ancestors from the newest to the oldest. Each file is read in two steps:
// the index, which is all before the first page, in order; then the pages, in groups of blocks, several at once. In one
// file no page comes twice. So the threads that read one file need no order among themselves, and the next file is
// begun when they have ended.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/sync/parallel.h"
#include "dc/page_store/checkpoint_blocks.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/checkpoint_rules.h"
#include "dc/page_store/known_pages.h"
#include "dc/page_store/named_segments.h"

namespace deut::dc {
namespace {

// Blocks that are read with one transfer: 1 MiB.
constexpr uint64_t kGroupBlocks = 16;

struct PageRecord {
  uint64_t at = 0;  // its offset in the file
  PageId page;
  bool recent = false;
  size_t count = 0;
  std::array<PageAddress, kMaxPartsOfImage> addresses;
  std::span<const PageAddress> parts() const { return {addresses.data(), count}; }
};

using Violation = CheckpointRules::Violation;
// Takes a page. `thread`: the number of the calling thread (ForEachByThread).
using OnPageRecord = absl::FunctionRef<Status(const PageRecord&, size_t thread)>;

// The number of threads that read the pages of a file.
size_t Threads(const CheckpointReadOptions& options) {
  return options.threads > 1 && options.runtime != nullptr ? static_cast<size_t>(options.threads) : 1;
}

// One file. The visitor, which may be null, receives the index; the pages go to the function.
class FileReader {
 public:
  FileReader(CheckpointBlocks blocks, CheckpointNumber number, DcId dc, CheckpointVisitor* visitor)
      : blocks_(std::move(blocks)), visitor_(visitor), head_{.number = number, .dc = dc} {}

  Status ReadIndex(const CheckpointReadOptions& options);
  Status ReadPages(const CheckpointReadOptions& options, OnPageRecord on_page);

  const CheckpointBlocks& blocks() const { return blocks_; }
  // The error for a violation at this offset; OK if there is none.
  Status Refused(uint64_t at, const Violation& wrong) const {
    if (!wrong) [[likely]]
      return Status::Ok();
    return Refuse(at, *wrong);
  }
  CheckpointRules& rules() { return rules_; }
  const CheckpointHead& head() const { return head_; }
  CheckpointAncestor AsAncestor() const {
    return {.number = head_.number,
            .blocks = static_cast<uint32_t>(blocks_.count()),
            .checksum = last_checksum_,
            .next_page = head_.next_page,
            .pages = head_.pages};
  }

 private:
  // The relations of a group of blocks to its neighbours.
  struct Group {
    CheckpointBlocks::Links links;
    PageId first_page, last_page;
    uint64_t records = 0;
  };

  // Tells the caller of ReadCheckpoint about a transfer of this number of blocks.
  Status OnRead(const CheckpointReadOptions& options, uint64_t blocks) const {
    return options.on_read ? options.on_read(blocks_.path(), blocks * kCheckpointBlockBytes) : Status::Ok();
  }
  Status Refuse(uint64_t at, std::string_view what) const { return blocks_.Refuse(at, what); }

  // Reads records until the first page, which it leaves, or the end of the payload.
  Status ReadIndexBlock(std::string_view payload, uint64_t offset);
  Status ReadIndexRecord(CheckpointRecordType type, RecordCursor& cursor, uint64_t at);
  Status ReadHead(RecordCursor& cursor, uint64_t at);
  Status ReadLineage(CheckpointRecordType type, RecordCursor& cursor, uint64_t at);
  Status EndHead(uint64_t at);
  Status ReadTable(RecordCursor& cursor, uint64_t at);
  Status ReadDropped(RecordCursor& cursor, uint64_t at);
  Status ReadSegment(RecordCursor& cursor, uint64_t at);
  Status ReadFooter(RecordCursor& cursor, uint64_t at);

  Status ReadPageBlock(std::string_view payload, uint64_t offset, uint16_t version,
                       absl::FunctionRef<Status(const PageRecord&)> on_page, Group* group);
  Status ReadPage(RecordCursor& cursor, uint16_t version, PageRecord* record) const;

  const CheckpointBlocks blocks_;
  CheckpointVisitor* const visitor_;
  CheckpointRules rules_;
  CheckpointHead head_;
  uint16_t version_ = 0;  // of the index
  bool head_read_ = false, head_ended_ = false;
  // The first block with a page, and where that begins in its payload. At the end: there are no pages.
  uint64_t pages_block_ = 0;
  size_t pages_at_ = 0;
  bool pages_begun_ = false;
  uint32_t before_pages_ = 0;  // checksum of the block before that one
  uint32_t last_checksum_ = 0;
  // The last group sets them.
  std::optional<CheckpointCounts> footer_;
  uint64_t footer_at_ = 0;
};

Status FileReader::ReadIndex(const CheckpointReadOptions& options) {
  uint32_t checksum = 0;
  for (uint64_t block = 0; block < blocks_.count() && !pages_begun_; ++block) {
    DEUT_ASSIGN_OR_RETURN(const CheckpointBlocks::Links links,
                          blocks_.Read(block, 1, [&](std::string_view payload, uint64_t offset, uint16_t version) {
                            version_ = version;
                            pages_block_ = block;
                            return ReadIndexBlock(payload, offset);
                          }));
    DEUT_RETURN_IF_ERROR(OnRead(options, 1));
    const uint64_t at = block * kCheckpointBlockBytes;
    if (links.before != checksum) return Refuse(at, "the block does not continue the one before");
    before_pages_ = checksum;
    checksum = links.last;
  }
  last_checksum_ = checksum;
  const uint64_t end = blocks_.count() * kCheckpointBlockBytes;
  if (!pages_begun_ && !footer_) return Refuse(end, "the footer is missing");
  DEUT_RETURN_IF_ERROR(EndHead(pages_block_ * kCheckpointBlockBytes + kCheckpointBlockHeaderBytes));
  return Status::Ok();
}

Status FileReader::ReadIndexBlock(std::string_view payload, uint64_t offset) {
  RecordCursor cursor(payload);
  while (!cursor.done()) {
    const size_t position = cursor.position();
    const uint64_t at = offset + kCheckpointBlockHeaderBytes + position;
    if (footer_) return Refuse(at, "records behind the footer");
    const auto type = static_cast<CheckpointRecordType>(cursor.U8());
    if (type == CheckpointRecordType::kPage) {
      pages_begun_ = true;
      pages_at_ = position;
      return Status::Ok();
    }
    const Status taken = ReadIndexRecord(type, cursor, at);
    if (cursor.failed()) return Refuse(at, "a record is cut off");
    DEUT_RETURN_IF_ERROR(taken);
  }
  return Status::Ok();
}

Status FileReader::ReadIndexRecord(CheckpointRecordType type, RecordCursor& cursor, uint64_t at) {
  switch (type) {
    case CheckpointRecordType::kHead:
      return ReadHead(cursor, at);
    case CheckpointRecordType::kAncestor:
    case CheckpointRecordType::kRange:
      return ReadLineage(type, cursor, at);
    case CheckpointRecordType::kTable:
      return ReadTable(cursor, at);
    case CheckpointRecordType::kDropped:
      return ReadDropped(cursor, at);
    case CheckpointRecordType::kSegment:
      return ReadSegment(cursor, at);
    case CheckpointRecordType::kFooter:
      return ReadFooter(cursor, at);
    case CheckpointRecordType::kPage:
      break;
  }
  return Refuse(at, Concat("a record of type ", static_cast<int>(type)));
}

Status FileReader::ReadHead(RecordCursor& cursor, uint64_t at) {
  if (head_read_) return Refuse(at, "a second head");
  head_.incarnation = DcIncarnation(cursor.U64());
  head_.position.commit = Lsn(cursor.U64());
  head_.position.sequence = cursor.U32();
  head_.stable.commit = Lsn(cursor.U64());
  head_.stable.sequence = cursor.U32();
  head_.next_page = PageId(cursor.U32());
  head_.next_segment = cursor.U64();
  head_.has_table_options = HasTableOptions(version_);
  head_read_ = !cursor.failed();
  return Status::Ok();
}

Status FileReader::ReadLineage(CheckpointRecordType type, RecordCursor& cursor, uint64_t at) {
  if (!HasAncestors(version_) || !head_read_ || head_ended_) {
    return Refuse(at, Concat("a record of type ", static_cast<int>(type)));
  }
  PageRange range;
  if (type == CheckpointRecordType::kRange) {
    range = {.first = PageId(cursor.U32()), .end = PageId(cursor.U32())};
    if (cursor.failed()) return Status::Ok();
    // One content has one encoding.
    if (head_.pages != PageRange() || range == PageRange()) return Refuse(at, "a range of pages");
    head_.pages = range;
    return Status::Ok();
  }
  const auto of = static_cast<LineageOf>(cursor.U8());
  CheckpointAncestor file;
  file.number = CheckpointNumber(cursor.U64());
  file.blocks = cursor.U32();
  file.checksum = cursor.U32();
  file.next_page = PageId(cursor.U32());
  file.pages.first = PageId(cursor.U32());
  file.pages.end = PageId(cursor.U32());
  if (cursor.failed()) return Status::Ok();
  // Lineages come one after the other, and before the range.
  const bool in_order = head_.pages == PageRange() && (of == LineageOf::kPrevious || head_.previous.empty());
  if (!in_order || (of != LineageOf::kThis && of != LineageOf::kPrevious)) return Refuse(at, "a file of a lineage");
  CheckpointLineage& lineage = of == LineageOf::kThis ? head_.ancestors : head_.previous;
  if (lineage.size() == kMaxAncestors) return Refuse(at, "too many files in a lineage");
  lineage.push_back(file);
  return Status::Ok();
}

// The head is complete with the first record that is not of it.
Status FileReader::EndHead(uint64_t at) {
  if (std::exchange(head_ended_, true)) return Status::Ok();
  if (!head_read_) return Refuse(at, "a record before the head");
  if (const auto wrong = rules_.Head(head_)) return Refuse(at, *wrong);
  return visitor_ == nullptr ? Status::Ok() : visitor_->OnHead(head_);
}

Status FileReader::ReadTable(RecordCursor& cursor, uint64_t at) {
  DEUT_RETURN_IF_ERROR(EndHead(at));
  CheckpointTable table;
  table.id = TableId(cursor.U32());
  table.root = PageId(cursor.U32());
  const size_t name_bytes = cursor.U8();
  table.name = cursor.Bytes(name_bytes);
  const uint8_t compression = HasTableOptions(version_) ? cursor.U8() : static_cast<uint8_t>(Compression::kNone);
  if (cursor.failed()) return Status::Ok();
  if (!IsKnownCompression(compression)) {
    return Refuse(at, Concat("table ", table.id.value, " with the unknown compression ", int{compression}));
  }
  table.compression = Compression(compression);
  if (table.dropped() && !HasTableRecordsOfDroppedTables(version_)) {
    return Refuse(at, Concat("table ", table.id.value, " without a root"));
  }
  DEUT_RETURN_IF_ERROR(Refused(at, rules_.Table(table)));
  return visitor_ == nullptr ? Status::Ok() : visitor_->OnTable(table);
}

Status FileReader::ReadDropped(RecordCursor& cursor, uint64_t at) {
  DEUT_RETURN_IF_ERROR(EndHead(at));
  const uint32_t first = cursor.U32();
  const uint32_t last = cursor.U32();
  if (cursor.failed()) return Status::Ok();
  if (last < first) return Refuse(at, Concat("dropped tables ", first, " to ", last));
  const CheckpointTable dropped{.id = TableId(first), .dropped_ids_behind = last - first};
  DEUT_RETURN_IF_ERROR(Refused(at, rules_.Table(dropped)));
  return visitor_ == nullptr ? Status::Ok() : visitor_->OnTable(dropped);
}

Status FileReader::ReadSegment(RecordCursor& cursor, uint64_t at) {
  DEUT_RETURN_IF_ERROR(EndHead(at));
  SegmentExtent segment;
  segment.kind = static_cast<SegmentKind>(cursor.U8());
  segment.number = cursor.U64();
  segment.written_bytes = cursor.U64();
  if (cursor.failed()) return Status::Ok();
  DEUT_RETURN_IF_ERROR(Refused(at, rules_.Segment(segment)));
  return visitor_ == nullptr ? Status::Ok() : visitor_->OnSegment(segment);
}

Status FileReader::ReadFooter(RecordCursor& cursor, uint64_t at) {
  CheckpointCounts claimed;
  claimed.tables = cursor.U64();
  claimed.segments = cursor.U64();
  claimed.pages = cursor.U64();
  if (cursor.failed()) return Status::Ok();
  footer_ = claimed;
  footer_at_ = at;
  return Status::Ok();
}

Status FileReader::ReadPages(const CheckpointReadOptions& options, OnPageRecord on_page) {
  rules_.BeginPages();
  const uint64_t blocks = pages_begun_ ? blocks_.count() - pages_block_ : 0;
  std::vector<Group> groups((blocks + kGroupBlocks - 1) / kGroupBlocks);
  const auto read = [&](size_t i, size_t thread) {
    const uint64_t first = pages_block_ + i * kGroupBlocks;
    const uint64_t count = std::min(kGroupBlocks, blocks_.count() - first);
    const auto take = [&](const PageRecord& record) { return on_page(record, thread); };
    Group group;  // on this thread's stack: neighbours in the vector are of other threads
    DEUT_ASSIGN_OR_RETURN(group.links,
                          blocks_.Read(first, count, [&](std::string_view payload, uint64_t offset, uint16_t version) {
                            return ReadPageBlock(payload, offset, version, take, &group);
                          }));
    groups[i] = group;
    return OnRead(options, count);
  };
  if (const size_t threads = Threads(options); threads > 1) {
    DEUT_RETURN_IF_ERROR(ForEachByThread(*options.runtime, options.threads, groups.size(), read));
  } else {
    for (size_t i = 0; i < groups.size(); ++i) DEUT_RETURN_IF_ERROR(read(i, 0));
  }
  uint32_t checksum = pages_begun_ ? before_pages_ : last_checksum_;
  uint64_t records = 0;
  PageId last;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    const uint64_t at = (pages_block_ + i * kGroupBlocks) * kCheckpointBlockBytes;
    if (group.links.before != checksum) return Refuse(at, "the block does not continue the one before");
    if (group.records > 0 && group.first_page <= last) {
      return Refuse(at, Concat("page ", group.first_page.value, " after ", last.value));
    }
    if (group.records > 0) last = group.last_page;
    checksum = group.links.last;
    records += group.records;
  }
  last_checksum_ = checksum;
  const uint64_t end = blocks_.count() * kCheckpointBlockBytes;
  if (!footer_) return Refuse(end, "the footer is missing");
  DEUT_RETURN_IF_ERROR(Refused(footer_at_, rules_.PagesOfReader(records)));
  return Refused(footer_at_, rules_.End(*footer_));
}

Status FileReader::ReadPageBlock(std::string_view payload, uint64_t offset, uint16_t version,
                                 absl::FunctionRef<Status(const PageRecord&)> on_page, Group* group) {
  PageRecord record;
  const bool last_block = offset / kCheckpointBlockBytes + 1 == blocks_.count();
  const size_t begin = offset / kCheckpointBlockBytes == pages_block_ ? pages_at_ : 0;
  RecordCursor cursor(payload.substr(begin));
  while (!cursor.done()) {
    const uint64_t at = offset + kCheckpointBlockHeaderBytes + begin + cursor.position();
    const auto type = static_cast<CheckpointRecordType>(cursor.U8());
    if (type == CheckpointRecordType::kFooter) {
      // Only the thread that reads the last block comes here without an error.
      if (!last_block) return Refuse(at, "records behind the footer");
      DEUT_RETURN_IF_ERROR(ReadFooter(cursor, at));
      if (cursor.failed()) return Refuse(at, "a record is cut off");
      if (!cursor.done()) return Refuse(at, "records behind the footer");
      break;
    }
    if (type != CheckpointRecordType::kPage) {
      return Refuse(at, Concat("a record of type ", static_cast<int>(type), " among the pages"));
    }
    record.at = at;
    DEUT_RETURN_IF_ERROR(ReadPage(cursor, version, &record));
    if (record.page <= group->last_page) {
      return Refuse(at, Concat("page ", record.page.value, " after ", group->last_page.value));
    }
    if (group->records++ == 0) group->first_page = record.page;
    group->last_page = record.page;
    DEUT_RETURN_IF_ERROR(on_page(record));
  }
  return Status::Ok();
}

Status FileReader::ReadPage(RecordCursor& cursor, uint16_t version, PageRecord* record) const {
  record->count = cursor.U8();
  record->recent = HasAncestors(version) && (record->count & kRecentChange) != 0;
  if (HasAncestors(version)) record->count &= kRecentChange - 1u;
  record->page = PageId(cursor.U32());
  if (record->count > kMaxPartsOfImage) {
    return Refuse(record->at, Concat("page ", record->page.value, " with ", record->count, " parts"));
  }
  for (size_t i = 0; i < record->count; ++i) record->addresses[i] = CheckpointAddress(version, cursor.U64());
  if (cursor.failed()) return Refuse(record->at, "a record is cut off");
  return Status::Ok();
}

// A checkpoint with its ancestors.
class CheckpointReading {
 public:
  CheckpointReading(Storage& storage, std::string_view directory, CheckpointVisitor* visitor,
                    const CheckpointReadOptions& options, FileReader* newest)
      : storage_(storage), directory_(directory), visitor_(visitor), options_(options), newest_(*newest) {}

  Result<CheckpointCounts> Read() {
    DEUT_RETURN_IF_ERROR(newest_.ReadIndex(options_));
    if (visitor_ != nullptr) DEUT_RETURN_IF_ERROR(visitor_->BeforePages());
    // The visitor has refused a checkpoint that names more segments than there are, so their number may decide on memory.
    sums_.resize(Threads(options_));
    if (visitor_ != nullptr) {
      for (Sums& sums : sums_) sums.live_bytes.resize(newest_.rules().segments().size());
    }
    const CheckpointLineage& ancestors = newest_.head().ancestors;
    if (!ancestors.empty()) known_.emplace(newest_.head().next_page);
    DEUT_RETURN_IF_ERROR(newest_.ReadPages(options_, [this](const PageRecord& record, size_t thread) {
      DEUT_RETURN_IF_ERROR(Take(newest_, record, &sums_[thread]));
      // The visitor may use the id as an index, so only an id that Take has accepted reaches it.
      if (record.recent && visitor_ != nullptr) visitor_->OnRecentChange(record.page);
      return Status::Ok();
    }));
    if (!ancestors.empty()) known_->AddRange(newest_.head().pages);
    for (size_t i = ancestors.size(); i > 0; --i) DEUT_RETURN_IF_ERROR(ReadAncestor(ancestors[i - 1]));
    if (const auto wrong = newest_.rules().Roots()) return newest_.blocks().Refuse(0, *wrong);
    if (visitor_ != nullptr) DEUT_RETURN_IF_ERROR(TellLiveBytes());
    if (visitor_ != nullptr) visitor_->OnFile(newest_.AsAncestor());
    CheckpointCounts counts = newest_.rules().counts();
    counts.pages = 0;
    for (const Sums& sums : sums_) counts.pages += sums.pages;
    return counts;
  }

 private:
  // One thread adds up the pages that it has taken. The threads share no counter that changes with each page.
  struct alignas(64) Sums {
    uint64_t pages = 0;
    std::vector<uint64_t> live_bytes;  // by the segments' places
  };

  Status TellLiveBytes() {
    const NamedSegments& segments = newest_.rules().segments();
    for (size_t place = 0; place < segments.size(); ++place) {
      uint64_t bytes = 0;
      for (const Sums& sums : sums_) bytes += sums.live_bytes[place];
      DEUT_RETURN_IF_ERROR(visitor_->OnLiveBytes(segments[place].number, bytes));
    }
    return Status::Ok();
  }

  Status ReadAncestor(const CheckpointAncestor& ancestor) {
    const CheckpointHead& head = newest_.head();
    const std::string path = Concat(directory_, "/", CheckpointName(ancestor.number));
    auto blocks = CheckpointBlocks::Open(storage_, path, ancestor.number, head.dc);
    if (blocks.status() == ErrorCode::kNotFound) {
      return DEUT_ERROR(kCorruption, path, ": checkpoint ", head.number.value, " needs it and it is not there");
    }
    DEUT_RETURN_IF_ERROR(blocks.status());
    DEUT_RETURN_IF_ERROR(blocks->ExpectBlocks(ancestor.blocks));
    FileReader file(std::move(*blocks), ancestor.number, head.dc, /*visitor=*/nullptr);
    DEUT_RETURN_IF_ERROR(file.ReadIndex(options_));
    DEUT_RETURN_IF_ERROR(file.ReadPages(options_, [&](const PageRecord& record, size_t thread) {
      // A file without ancestors has an image of every root of its own.
      if (record.count > 0) file.rules().NotePage(record.page);
      return Take(file, record, &sums_[thread]);
    }));
    DEUT_RETURN_IF_ERROR(file.blocks().ExpectChecksum(file.AsAncestor().checksum, ancestor.checksum));
    if (file.AsAncestor() != ancestor) {
      return file.blocks().Refuse(0, Concat("checkpoint ", head.number.value, " names another range of pages in it"));
    }
    known_->AddRange(ancestor.pages);
    return Status::Ok();
  }

  // Any thread. Older files say nothing that counts about a page that a newer file has.
  Status Take(const FileReader& file, const PageRecord& record, Sums* sums) {
    if (record.page.value == 0 || record.page >= newest_.head().next_page) {
      return file.blocks().Refuse(record.at,
                                  Concat("page ", record.page.value, ", below ", newest_.head().next_page.value));
    }
    if (known_ && !known_->Add(record.page)) return Status::Ok();
    DEUT_RETURN_IF_ERROR(file.Refused(
        record.at, newest_.rules().Contents(record.page, record.parts(), record.recent, sums->live_bytes)));
    if (record.count == 0) return Status::Ok();
    newest_.rules().NotePage(record.page);
    ++sums->pages;
    return visitor_ == nullptr ? Status::Ok() : visitor_->OnPage(record.page, record.parts());
  }

  Storage& storage_;
  const std::string_view directory_;
  CheckpointVisitor* const visitor_;
  const CheckpointReadOptions& options_;
  FileReader& newest_;
  std::optional<KnownPages> known_;  // if there are ancestors
  std::vector<Sums> sums_;           // by the numbers of the threads
};

}  // namespace

Result<CheckpointCounts> ReadCheckpoint(Storage& storage, std::string_view directory, CheckpointNumber number, DcId dc,
                                        CheckpointVisitor* visitor, const CheckpointReadOptions& options) {
  DEUT_ASSIGN_OR_RETURN(CheckpointBlocks blocks,
                        CheckpointBlocks::Open(storage, Concat(directory, "/", CheckpointName(number)), number, dc));
  FileReader newest(std::move(blocks), number, dc, visitor);
  return CheckpointReading(storage, directory, visitor, options, &newest).Read();
}

Result<CheckpointCounts> VerifyCheckpointFile(Storage& storage, const std::string& path, const CheckpointHead& head) {
  DEUT_ASSIGN_OR_RETURN(CheckpointBlocks blocks, CheckpointBlocks::Open(storage, path, head.number, head.dc));
  FileReader file(std::move(blocks), head.number, head.dc, /*visitor=*/nullptr);
  DEUT_RETURN_IF_ERROR(file.ReadIndex({}));
  if (file.head() != head) return file.blocks().Refuse(0, "the head reads back as another one");
  CheckpointRules& rules = file.rules();
  DEUT_RETURN_IF_ERROR(file.ReadPages({}, [&](const PageRecord& record, size_t /*thread*/) {
    if (record.count > 0) rules.NotePage(record.page);
    return file.Refused(record.at, rules.Contents(record.page, record.parts(), record.recent));
  }));
  return rules.counts();
}

}  // namespace deut::dc
