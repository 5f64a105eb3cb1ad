#include "tc/dc_link/commit_feed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

void CommitFeed::Restart(Position applied) {
  // Positions name records, so reading may begin at the record at `applied`. If that record was trimmed, no needed
  // record was: every record of a commit beyond the stable position, and so beyond the applied one, is kept (S2).
  reader_ = log_.NewReader(std::max(applied.commit, log_.first_lsn()));
  position_ = applied;
  has_record_ = false;
}

bool CommitFeed::Passed(Lsn end) const { return reader_->position() >= end && !(has_record_ && record_.lsn < end); }

Status CommitFeed::ReadRecord(bool* found) {
  *found = false;
  while (log_.durable() > reader_->position()) {
    Status status = reader_->Next(&record_, Deadline{});
    if (status == ErrorCode::kDeadlineExceeded) return Status::Ok();
    DEUT_RETURN_IF_ERROR(std::move(status));
    DEUT_DCHECK(reader_->position() <= log_.durable());  // X1: only durable records travel
    if (record_.type == RecordType::kCommit) {
      Lsn first = record_.lsn;
      for (size_t i = 0; i < record_.chunks.size(); ++i) first = std::min(first, record_.chunks[i]);
      tracker_.OnCommitRead(record_.lsn, first);
    } else if (record_.type != RecordType::kLowWater) {
      continue;
    }
    if (position_ >= Position{record_.lsn, UINT32_MAX}) continue;
    has_record_ = true;
    lists_taken_ = 0;
    here_.reset();
    *found = true;
    return Status::Ok();
  }
  return Status::Ok();
}

Status CommitFeed::Fill(LogBatch* batch, uint64_t batch_bytes, Limit* limit) {
  DEUT_CHECK(reader_ != nullptr);  // Restart was called
  for (;;) {
    if (batch->entries.size() >= batch_bytes) {
      *limit = Limit::kBatchFull;
      return Status::Ok();
    }
    if (!has_record_) {
      bool found;
      DEUT_RETURN_IF_ERROR(ReadRecord(&found));
      if (!found) {
        *limit = Limit::kNotDurable;
        return Status::Ok();
      }
    }
    const Position before = position_;
    if (record_.type == RecordType::kLowWater) {
      AppendLowWater(batch);
    } else if (record_.timestamp < low_water_.low_water() || DEUT_OMITTED("S1.below_low_water")) {
      DEUT_RETURN_IF_ERROR(AppendCommit(batch, batch_bytes));
    } else {
      *limit = Limit::kHeldBack;
      return Status::Ok();
    }
    DEUT_DCHECK(position_ >= before);
    batch->to = position_;
  }
}

void CommitFeed::AppendLowWater(LogBatch* batch) {
  LogEntryView entry;
  entry.kind = LogEntryKind::kLowWater;
  entry.position = Position{record_.lsn, 0};
  entry.timestamp = record_.timestamp;
  batch->Append(entry);
  position_ = Position{record_.lsn, UINT32_MAX};
  has_record_ = false;
}

Status CommitFeed::NextList(bool* found) {
  *found = false;
  while (lists_taken_ <= record_.chunks.size()) {
    const UpdateList* list = &record_.updates;
    if (lists_taken_ < record_.chunks.size()) {
      DEUT_RETURN_IF_ERROR(reader_->ReadChunk(record_, record_.chunks[lists_taken_], &chunk_));
      list = &chunk_.updates;
    }
    ++lists_taken_;
    if (list->empty()) continue;
    here_.emplace(list->begin());
    here_end_.emplace(list->end());
    *found = true;
    return Status::Ok();
  }
  return Status::Ok();
}

Status CommitFeed::AppendCommit(LogBatch* batch, uint64_t batch_bytes) {
  for (;;) {
    if (!here_ || *here_ == *here_end_) {
      bool found;
      DEUT_RETURN_IF_ERROR(NextList(&found));
      if (!found) {
        low_water_records_.NoteCommit(record_.timestamp);  // low-water has passed it (S1)
        position_ = Position{record_.lsn, UINT32_MAX};
        has_record_ = false;
        return Status::Ok();
      }
    }
    for (UpdateList::Iterator& at = *here_; !(at == *here_end_); ++at) {
      const Position position{record_.lsn, at->sequence};
      // The DC has applied this update of a commit that it holds in part.
      if (position <= position_) continue;
      if (batch->entries.size() >= batch_bytes) return Status::Ok();
      LogEntryView entry;
      entry.kind = at->kind;
      entry.position = position;
      entry.timestamp = record_.timestamp;
      entry.table = at->table;
      entry.key = at->key;
      entry.value = at->value;
      batch->Append(entry);
      position_ = position;
      ++updates_;
    }
  }
}

}  // namespace deut::tc
