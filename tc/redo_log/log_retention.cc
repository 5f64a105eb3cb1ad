#include "tc/redo_log/log_retention.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {
namespace {

// The number of past tails of the log that are remembered for keep_time.
constexpr int kTailsKept = 64;

}  // namespace

LogRetention::LogRetention(const LogRetentionOptions& options, Runtime& runtime, LogRing& ring, SegmentSet& segments,
                           Watermarks& watermarks, RedoStart recovered)
    : options_(options),
      runtime_(runtime),
      ring_(ring),
      segments_(segments),
      watermarks_(watermarks),
      mutex_(runtime),
      durable_(recovered),
      appended_(std::move(recovered)) {}

Result<Lsn> LogRetention::AppendRedoStart(const RedoStart& redo_start) {
  if (redo_start.stable.size() > kMaxKnownDcs) {
    return DEUT_ERROR(kInvalidArgument, "redo start with ", redo_start.stable.size(), " positions, at most ",
                      kMaxKnownDcs, " are possible");
  }
  MutexLock lock(mutex_);
  if (redo_start.lsn < appended_.lsn || redo_start.lsn > watermarks_.durable()) {
    return DEUT_ERROR(kInvalidArgument, "redo start ", redo_start.lsn.value, " lies outside of the last one, ",
                      appended_.lsn.value, ", and the durable LSN, ", watermarks_.durable().value);
  }
  watermarks_.AdvanceRedoStart(appended_, redo_start);
  appended_ = redo_start;
  return ring_.AppendOwn(RecordType::kRedoStart, EncodeRedoStartBody(redo_start));
}

void LogRetention::NoteDurable(const RedoStart& redo_start) {
  MutexLock lock(mutex_);
  if (redo_start.lsn >= durable_.lsn) durable_ = redo_start;
}

RedoStart LogRetention::redo_start() const {
  MutexLock lock(mutex_);
  return durable_;
}

Lsn LogRetention::CutNow() {
  const MonotonicTime now = runtime_.Now();
  // Counts files, not records: a log that is written in small pieces takes more disk space than its records have bytes.
  const Lsn by_size = segments_.FirstLsnOfNewest(options_.keep_bytes / options_.segment_bytes);
  MutexLock lock(mutex_);
  if (options_.keep_bytes == 0 || segments_.disk_full()) return durable_.lsn;
  if (tails_.empty() || now - tails_.back().at >= options_.keep_time / kTailsKept)
    tails_.push_back({now, ring_.tail()});
  while (!tails_.empty() && now - tails_.front().at >= options_.keep_time) {
    DEUT_DCHECK(keep_from_ <= tails_.front().lsn);
    keep_from_ = tails_.front().lsn;
    tails_.pop_front();
  }
  return std::min(durable_.lsn, std::max(keep_from_, by_size));
}

}  // namespace deut::tc
