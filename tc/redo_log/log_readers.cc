#include "tc/redo_log/log_readers.h"

#include <utility>

#include "common/base/status.h"
#include "tc/redo_log/blocking_durability_wait.h"

namespace deut::tc {
namespace {

class Reader final : public LogReader {
 public:
  Reader(Runtime& runtime, LogWriter& writer, RecordSource sequential, RecordSource chunks, Lsn from)
      : writer_(writer),
        wait_(runtime, writer, Urgency::kNotUrgent),
        sequential_(std::move(sequential)),
        chunks_(std::move(chunks)),
        position_(from) {}

  Status Next(LogRecord* record, Deadline deadline) override {
    if (position_ >= writer_.durable()) DEUT_RETURN_IF_ERROR(wait_.Wait(position_, deadline));
    DEUT_RETURN_IF_ERROR(sequential_.Fetch(position_, record));
    position_ = record->end;
    return Status::Ok();
  }

  Lsn position() const override { return position_; }
  void Seek(Lsn lsn) override { position_ = lsn; }

  Status ReadChunk(const LogRecord& commit, Lsn lsn, LogRecord* chunk) override {
    DEUT_RETURN_IF_ERROR(chunks_.Fetch(lsn, chunk));
    if (chunk->type != RecordType::kChunk || chunk->epoch != commit.epoch || chunk->timestamp != commit.timestamp) {
      return DEUT_ERROR(kCorruption, "the commit at LSN ", commit.lsn.value, " names LSN ", lsn.value,
                        ", where no chunk of its transaction is");
    }
    return Status::Ok();
  }

 private:
  LogWriter& writer_;
  BlockingDurabilityWait wait_;
  RecordSource sequential_;
  RecordSource chunks_;
  Lsn position_;
};

}  // namespace

std::unique_ptr<LogReader> LogReaders::NewReader(Lsn from) {
  return std::make_unique<Reader>(runtime_, writer_, NewSource(), NewSource(), from);
}

}  // namespace deut::tc
