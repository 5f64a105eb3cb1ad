// RecoveredOutcomes: the commits with ids that recovery finds in the log: the last `limit` of them.
// Thread-safety: as ChainVisitor.
#ifndef TC_REDO_LOG_RECOVERED_OUTCOMES_H_
#define TC_REDO_LOG_RECOVERED_OUTCOMES_H_

#include <algorithm>
#include <cstddef>
#include <deque>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/redo_log/block_format.h"
#include "tc/redo_log/chain_visitor.h"
#include "tc/redo_log/log_record.h"

namespace deut::tc {

class RecoveredOutcomes final : public ChainVisitor {
 public:
  explicit RecoveredOutcomes(size_t limit) : limit_(limit) {}

  void OnSegment(const BlockHeader&, const LogState&) override {}
  void OnBlock(const BlockHeader&) override {}
  void OnEnd(const Cut&, const Status&) override {}
  void OnBehind(const BlockHeader&) override {}
  void OnRecord(const LogRecord& record) override {
    if (record.type == RecordType::kOutcomeHorizon) horizon = std::max(horizon, record.timestamp);
    if (record.type != RecordType::kCommit || !record.id.given()) return;
    commits.push_back({.id = record.id, .timestamp = record.timestamp, .commit_lsn = record.lsn});
    if (commits.size() <= limit_) return;
    horizon = std::max(horizon, Timestamp(commits.front().timestamp.value + 1));
    commits.pop_front();
  }

  std::deque<CommitOutcome> commits;  // oldest first
  Timestamp horizon;                  // ids of commits with earlier timestamps may be missing

 private:
  const size_t limit_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_RECOVERED_OUTCOMES_H_
