// RecoveredOutcomes: the last `limit` commits with ids that recovery finds in the log.
//
// Redo needs nothing from files below the redo start, so a log opens even if its oldest files are missing. But these
// files hold ids, and no horizon was logged for them. A client that asks for one would be told "not committed", and
// might repeat the transaction. So the horizon is raised over all timestamps that the missing files may hold. The
// oldest header that is left says which timestamps may have been drawn before it.
// Thread-safety: as ChainVisitor. Ownership: owns what it collects.
#ifndef TC_REDO_LOG_RECOVERED_OUTCOMES_H_
#define TC_REDO_LOG_RECOVERED_OUTCOMES_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/testing/test_points.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/chain_visitor.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {

class RecoveredOutcomes final : public ChainVisitor {
 public:
  explicit RecoveredOutcomes(size_t limit) : limit_(limit) {}

  void OnSegment(const BlockHeader& header, const LogState& state) override {
    if (!oldest_) oldest_ = Oldest{header.first_lsn, state.reserved};
  }
  void OnBlock(const BlockHeader&) override {}
  void OnEnd(const Cut&, const Status&) override {
    if (files_missing() && DEUT_STEP("outcome.missing_files")) horizon = std::max(horizon, oldest_->maybe_drawn_below);
  }
  void OnBlockBehindEnd(const BlockHeader&) override {}
  void OnRecord(const LogRecord& record) override {
    if (record.type == RecordType::kOutcomeHorizon) horizon = std::max(horizon, record.timestamp);
    if (record.type == RecordType::kTrimmed) trimmed_ = std::max(trimmed_, record.trimmed);
    if (record.type != RecordType::kCommit || !record.id.given()) return;
    commits.push_back({.id = record.id, .timestamp = record.timestamp, .commit_lsn = record.lsn});
    if (commits.size() <= limit_) return;
    horizon = std::max(horizon, Timestamp(commits.front().timestamp.value + 1));
    commits.pop_front();
  }

  std::deque<CommitOutcome> commits;  // oldest first
  Timestamp horizon;                  // ids of commits with earlier timestamps may be missing

  // After all records were seen: true if the log begins above every LSN that it was trimmed to. (It may also be a log
  // from before trims were logged.)
  bool files_missing() const { return oldest_ && oldest_->first_lsn > trimmed_; }
  // The highest LSN that the log was trimmed to.
  Lsn trimmed() const { return trimmed_; }

 private:
  struct Oldest {
    Lsn first_lsn;
    Timestamp maybe_drawn_below;  // all timestamps below it may have been drawn before first_lsn
  };

  const size_t limit_;
  std::optional<Oldest> oldest_;
  Lsn trimmed_ = kFirstLsn;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_RECOVERED_OUTCOMES_H_
