#include "tc/verify/dump.h"

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/transaction_id.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/chain_visitor.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/recovery.h"
#include "tc/verify/log_directory.h"

namespace deut::tc {
namespace {

// Longer values and keys are cut to these lengths.
constexpr size_t kShownValueBytes = 64;
constexpr size_t kShownKeyBytes = 256;
// `out` gets text in pieces of about this many bytes.
constexpr size_t kPieceBytes = 64 << 10;

std::string Abbreviated(std::string_view bytes, size_t limit,
                        const std::function<std::string(std::string_view)>& show) {
  if (bytes.size() <= limit) return show(bytes);
  return Concat(show(bytes.substr(0, limit)), "... (", bytes.size(), " bytes)");
}

std::string_view NameOf(LogEntryKind kind) {
  switch (kind) {
    case LogEntryKind::kPut:
      return "put";
    case LogEntryKind::kDelete:
      return "delete";
    case LogEntryKind::kCreateTable:
      return "create table";
    case LogEntryKind::kDropTable:
      return "drop table";
    case LogEntryKind::kLowWater:
      break;
  }
  return "";
}

class Dump final : public ChainVisitor {
 public:
  Dump(const DumpRequest& request, const std::function<void(std::string_view text)>& out)
      : request_(request), out_(out) {}

  void OnSegment(const BlockHeader& header, const LogState& /*repeated*/) override {
    // The segment begins after the last requested record, so none of its records is printed.
    if (header.first_lsn >= request_.to) return;
    segment_line_ = Concat("segment ", SegmentName(header.segment), " of epoch ", header.epoch.value, ", from LSN ",
                           header.first_lsn.value, " on\n");
    segment_ = SegmentName(header.segment);
  }
  void OnBlock(const BlockHeader& header) override { offset_ = header.offset; }
  void OnRecord(const LogRecord& record) override;
  void OnEnd(const Cut& end, const Status& why) override {
    ConcatTo(&text_, "the log ends at LSN ", end.lsn.value, ": ", why.message(), "\n");
  }
  void OnBlockBehindEnd(const BlockHeader& header) override {
    ConcatTo(&text_, "behind its end: a block of epoch ", header.epoch.value, " at ", SegmentName(header.segment), ":",
             header.offset, ", LSN ", header.first_lsn.value, " to ", header.end_lsn().value,
             ", written when the log was durable up to LSN ", header.durable.value, "\n");
  }

  void Flush() {
    if (!text_.empty()) out_(text_);
    text_.clear();
  }

 private:
  bool filtered() const { return request_.table.has_value() || request_.key.has_value(); }
  bool Wanted(const Update& update) const {
    return (!request_.table || update.table == *request_.table) && (!request_.key || update.key == *request_.key);
  }
  bool AnyWanted(const UpdateList& updates) const {
    for (const Update& update : updates) {
      if (Wanted(update)) return true;
    }
    return false;
  }
  void Say(const LogRecord& record);
  void SayTransaction(const LogRecord& record);
  void SayRedoStart(const LogRecord& record);

  const DumpRequest& request_;
  const std::function<void(std::string_view text)>& out_;
  std::string text_;
  std::string segment_line_;  // not yet printed
  std::string segment_;
  uint64_t offset_ = 0;
};

void Dump::OnRecord(const LogRecord& record) {
  if (record.lsn < request_.from || record.lsn >= request_.to) return;
  const bool transaction = record.type == RecordType::kCommit || record.type == RecordType::kChunk;
  if (filtered() && (!transaction || !AnyWanted(record.updates))) return;
  DEUT_CHECK(!segment_.empty());  // a segment with a record in the range begins before the end of the range
  // A segment's line waits for its first printed record. So a filter does not leave lines of segments alone.
  text_ += segment_line_;
  segment_line_.clear();
  ConcatTo(&text_, record.lsn.value, " ", segment_, ":", offset_, " ");
  Say(record);
  if (text_.size() >= kPieceBytes) Flush();  // a log may be larger than the memory
}

void Dump::Say(const LogRecord& record) {
  switch (record.type) {
    case RecordType::kCommit:
    case RecordType::kNamedCommit:
    case RecordType::kChunk:
      return SayTransaction(record);
    case RecordType::kLowWater:
      return ConcatTo(&text_, "low-water ", record.timestamp.value, "\n");
    case RecordType::kReserveTimestamps:
      return ConcatTo(&text_, "timestamps below ", record.timestamp.value, " are reserved\n");
    case RecordType::kEpochStart:
      return ConcatTo(&text_, "epoch ", record.epoch.value, " of transaction component ", record.tc.value,
                      " starts, nonce ", record.nonce, "\n");
    case RecordType::kEndOfEpoch:
      return ConcatTo(&text_, "end of epoch: the log before it ends in ", SegmentName(record.cut.segment),
                      " at offset ", record.cut.offset, "\n");
    case RecordType::kRedoStart:
      return SayRedoStart(record);
    case RecordType::kOutcomeHorizon:
      return ConcatTo(&text_, "ids of commits below timestamp ", record.timestamp.value, " may be gone\n");
    case RecordType::kTrimmed:
      return ConcatTo(&text_, "files of the log before LSN ", record.trimmed.value, " may be gone\n");
    case RecordType::kKnownDc:
      return ConcatTo(&text_, "data component ", record.dc.value, " belongs to this log\n");
  }
}

void Dump::SayTransaction(const LogRecord& record) {
  const bool commit = record.type == RecordType::kCommit;
  ConcatTo(&text_, commit ? "commit" : "chunk", " of epoch ", record.epoch.value, ", timestamp ",
           record.timestamp.value, ", ", record.updates.size(), record.updates.size() == 1 ? " update" : " updates");
  if (record.id.given()) ConcatTo(&text_, ", id ", TransactionIdText(record.id));
  for (size_t i = 0; i < record.chunks.size(); ++i) {
    ConcatTo(&text_, i == 0 ? ", after those of the chunks at LSN " : ", ", record.chunks[i].value);
  }
  text_ += "\n";
  for (const Update& update : record.updates) {
    if (filtered() && !Wanted(update)) continue;
    ConcatTo(&text_, "  ", record.lsn.value, "/", update.sequence, " ", NameOf(update.kind), ", timestamp ",
             record.timestamp.value, ", table ", update.table.value, ", key ",
             Abbreviated(update.key, kShownKeyBytes, request_.show_key));
    if (update.kind == LogEntryKind::kPut) {
      ConcatTo(&text_, " = ", Abbreviated(update.value, kShownValueBytes, request_.show_value));
    }
    text_ += "\n";
  }
}

void Dump::SayRedoStart(const LogRecord& record) {
  ConcatTo(&text_, "redo starts at LSN ", record.redo_start.lsn.value);
  for (const DcPosition& position : record.redo_start.stable) {
    ConcatTo(&text_, ", data component ", position.dc.value, " was stable at ", position.stable.commit.value, "/",
             position.stable.sequence);
  }
  text_ += "\n";
}

}  // namespace

Status DumpLog(Storage& storage, const std::string& directory, const DumpRequest& request,
               const std::function<void(std::string_view text)>& out) {
  DEUT_ASSIGN_OR_RETURN(const LogDirectory opened, LogDirectory::Open(storage, directory));
  Dump dump(request, out);
  const Status status = RecoverChain(storage, directory, &dump).status();
  dump.Flush();
  return status;
}

}  // namespace deut::tc
