#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/coding/fixed.h"
#include "common/io/aligned_buffer.h"
#include "common/testing/test_points.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/checkpoint_rules.h"
#include "dc/page_store/hex_name.h"

namespace deut::dc {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";

uint8_t Byte(CheckpointRecordType type) { return static_cast<uint8_t>(type); }
void AppendU8(std::string* to, uint8_t number) { to->push_back(static_cast<char>(number)); }

}  // namespace

std::string CheckpointName(CheckpointNumber number) { return HexName(kPrefix, number.value, ""); }

bool ParseCheckpointName(std::string_view name, CheckpointNumber* number) {
  return ParseHexName(name, kPrefix, "", &number->value) && number->value != 0;
}

struct CheckpointWriter::Core {
  Core(Storage& to, std::string where, const CheckpointHead& of)
      : storage(to),
        directory(std::move(where)),
        path(Concat(directory, "/", CheckpointName(of.number))),
        temporary_path(Concat(path, kTemporarySuffix)),
        head(of) {}

  Status Create();
  Status AddLineage(LineageOf of, const CheckpointLineage& files);
  // Records the rule violation `wrong`, or else appends the bytes in `record`, to the next block if this one has no
  // room.
  Status Add(const CheckpointRules::Violation& wrong);
  Status WriteBlock(bool last);
  Status Verify();
  Status Finish();
  Status Failed(Status error) {
    failed = error;
    return error;
  }

  Storage& storage;
  const std::string directory;
  const std::string path;
  const std::string temporary_path;
  const CheckpointHead head;

  std::unique_ptr<File> file;
  CheckpointRules rules;
  AlignedBuffer block{kCheckpointBlockBytes};
  uint32_t payload_bytes = 0;
  uint64_t offset = 0;
  uint32_t predecessor = 0;
  std::string record;
  Status failed;  // the first error
  bool finished = false;
};

Status CheckpointWriter::Core::Create() {
  DEUT_ASSIGN_OR_RETURN(file, storage.Open(temporary_path, {.create = true, .writable = true, .direct = true}));
  DEUT_RETURN_IF_ERROR(file->Truncate(0));
  AppendU8(&record, Byte(CheckpointRecordType::kHead));
  AppendU64(&record, head.incarnation.value);
  AppendU64(&record, head.position.commit.value);
  AppendU32(&record, head.position.sequence);
  AppendU64(&record, head.stable.commit.value);
  AppendU32(&record, head.stable.sequence);
  AppendU32(&record, head.next_page.value);
  AppendU64(&record, head.next_segment);
  DEUT_RETURN_IF_ERROR(Add(rules.Head(head)));
  DEUT_RETURN_IF_ERROR(AddLineage(LineageOf::kThis, head.ancestors));
  DEUT_RETURN_IF_ERROR(AddLineage(LineageOf::kPrevious, head.previous));
  if (head.pages == PageRange()) return Status::Ok();
  AppendU8(&record, Byte(CheckpointRecordType::kRange));
  AppendU32(&record, head.pages.first.value);
  AppendU32(&record, head.pages.end.value);
  return Add(std::nullopt);
}

Status CheckpointWriter::Core::AddLineage(LineageOf of, const CheckpointLineage& files) {
  for (const CheckpointAncestor& each : files) {
    AppendU8(&record, Byte(CheckpointRecordType::kAncestor));
    AppendU8(&record, static_cast<uint8_t>(of));
    AppendU64(&record, each.number.value);
    AppendU32(&record, each.blocks);
    AppendU32(&record, each.checksum);
    AppendU32(&record, each.next_page.value);
    AppendU32(&record, each.pages.first.value);
    AppendU32(&record, each.pages.end.value);
    DEUT_RETURN_IF_ERROR(Add(std::nullopt));
  }
  return Status::Ok();
}

Status CheckpointWriter::Core::Add(const CheckpointRules::Violation& wrong) {
  if (wrong) return Failed(DEUT_ERROR(kInternal, temporary_path, ": ", *wrong));
  DEUT_CHECK(record.size() <= kCheckpointBlockRoom);
  if (payload_bytes + record.size() > kCheckpointBlockRoom) DEUT_RETURN_IF_ERROR(WriteBlock(/*last=*/false));
  std::memcpy(block.data() + kCheckpointBlockHeaderBytes + payload_bytes, record.data(), record.size());
  payload_bytes += static_cast<uint32_t>(record.size());
  record.clear();
  return Status::Ok();
}

Status CheckpointWriter::Core::WriteBlock(bool last) {
  DEUT_CHECK(payload_bytes > 0 && !finished);
  predecessor = SealCheckpointBlock({.checkpoint = head.number,
                                     .dc = head.dc,
                                     .offset = offset,
                                     .predecessor = predecessor,
                                     .last = last,
                                     .payload_bytes = payload_bytes,
                                     .version = head.has_table_options ? kCheckpointVersionWithOptions : uint16_t{0}},
                                    block.data());
  if (Status written = file->Write(offset, block.data(), kCheckpointBlockBytes); !written.ok()) {
    return Failed(std::move(written));
  }
  offset += kCheckpointBlockBytes;
  payload_bytes = 0;
  return Status::Ok();
}

Status CheckpointWriter::Core::Verify() {
  DEUT_ASSIGN_OR_RETURN(const CheckpointCounts counts, VerifyCheckpointFile(storage, temporary_path, head));
  if (counts != rules.counts()) return DEUT_ERROR(kCorruption, temporary_path, ": reads back with other counts");
  return Status::Ok();
}

Status CheckpointWriter::Core::Finish() {
  AppendU8(&record, Byte(CheckpointRecordType::kFooter));
  AppendU64(&record, rules.counts().tables);
  AppendU64(&record, rules.counts().segments);
  AppendU64(&record, rules.counts().pages);
  DEUT_RETURN_IF_ERROR(Add(rules.End(rules.counts())));
  // The order matters at a crash. The bytes are durable and verified before the rename, so a file under NAME is
  // always complete. The name is durable before Finish returns OK, so a completed checkpoint is never lost.
  DEUT_RETURN_IF_ERROR(WriteBlock(/*last=*/true));
  if (DEUT_STEP("X6.sync_checkpoint")) DEUT_RETURN_IF_ERROR(file->Sync());
  file.reset();
  if (DEUT_STEP("S2.verify_checkpoint")) DEUT_RETURN_IF_ERROR(Verify());
  DEUT_RETURN_IF_ERROR(storage.Rename(temporary_path, path));
  return DEUT_OMITTED("X6.sync_checkpoint_name") ? Status::Ok() : storage.SyncDirectory(directory);
}

CheckpointWriter::CheckpointWriter(std::unique_ptr<Core> core) : core_(std::move(core)) {}

CheckpointWriter::~CheckpointWriter() {
  if (core_->finished) return;
  core_->file.reset();
  (void)core_->storage.Remove(core_->temporary_path);  // else CheckpointSet removes it later
}

Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Create(Storage& storage, std::string directory,
                                                                   const CheckpointHead& head) {
  DEUT_CHECK(head.number.value >= 1 && head.number.value <= kMaxHexName);
  std::unique_ptr<CheckpointWriter> writer(
      new CheckpointWriter(std::make_unique<Core>(storage, std::move(directory), head)));
  DEUT_RETURN_IF_ERROR(writer->core_->Create());
  return writer;
}

Status CheckpointWriter::AddTable(const CheckpointTable& table) {
  if (!core_->failed.ok()) return core_->failed;
  const CheckpointRules::Violation wrong = core_->rules.Table(table);
  std::string& record = core_->record;
  if (table.dropped()) {
    AppendU8(&record, Byte(CheckpointRecordType::kDropped));
    AppendU32(&record, table.id.value);
    AppendU32(&record, table.last().value);
    return core_->Add(wrong);
  }
  AppendU8(&record, Byte(CheckpointRecordType::kTable));
  AppendU32(&record, table.id.value);
  AppendU32(&record, table.root.value);
  AppendU8(&record, static_cast<uint8_t>(table.name.size()));
  record.append(table.name);
  if (core_->head.has_table_options) AppendU8(&record, static_cast<uint8_t>(table.compression));
  return core_->Add(wrong);
}

Status CheckpointWriter::AddSegment(const SegmentExtent& segment) {
  if (!core_->failed.ok()) return core_->failed;
  std::string& record = core_->record;
  AppendU8(&record, Byte(CheckpointRecordType::kSegment));
  AppendU8(&record, static_cast<uint8_t>(segment.kind));
  AppendU64(&record, segment.number);
  AppendU64(&record, segment.written_bytes);
  return core_->Add(core_->rules.Segment(segment));
}

Status CheckpointWriter::AddPage(PageId page, std::span<const PageAddress> newest_first, bool recent) {
  if (!core_->failed.ok()) return core_->failed;
  const CheckpointRules::Violation wrong = core_->rules.Page(page, newest_first, recent);
  if (wrong) return core_->Add(wrong);
  std::string& record = core_->record;
  AppendU8(&record, Byte(CheckpointRecordType::kPage));
  AppendU8(&record, static_cast<uint8_t>(newest_first.size() | (recent ? kRecentChange : 0)));
  AppendU32(&record, page.value);
  for (const PageAddress address : newest_first) AppendU64(&record, address.raw());
  return core_->Add(wrong);
}

Status CheckpointWriter::Finish() {
  if (!core_->failed.ok()) return core_->failed;
  if (Status done = core_->Finish(); !done.ok()) return core_->Failed(std::move(done));
  core_->finished = true;
  return Status::Ok();
}

const CheckpointHead& CheckpointWriter::head() const { return core_->head; }
uint64_t CheckpointWriter::bytes_written() const { return core_->offset; }

CheckpointAncestor CheckpointWriter::AsAncestor() const {
  DEUT_CHECK(core_->finished);
  return {.number = core_->head.number,
          .blocks = static_cast<uint32_t>(core_->offset / kCheckpointBlockBytes),
          .checksum = core_->predecessor,
          .next_page = core_->head.next_page,
          .pages = core_->head.pages};
}

}  // namespace deut::dc
