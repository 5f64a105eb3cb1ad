// PumpedDc: the smallest honest DC for tests of the record manager: a single-version map that applies the redo log when the test says so, in
// commit-record order, and only what is durable and below low-water (rule S1).
// It lives several lives: Restart forgets everything; reads are then answered when all that was ever applied has been applied again (X3).
// Thread-safety: all methods from any thread. Ownership: borrows log and transactions.
#ifndef TC_RECORD_MANAGER_PUMPED_DC_H_
#define TC_RECORD_MANAGER_PUMPED_DC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"
#include "tc/record_manager/engine.h"
#include "tc/redo_log/redo_log.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {

class PumpedDc final : public DcReader {
 public:
  PumpedDc(Runtime& runtime, RedoLog& log, ActiveTransactions& active);

  // A table that the DC has held since before the log began.
  void AddTable(TableId table);
  // Applies all that may be applied now, at most `commits` transactions; answers how many it applied.
  uint64_t Pump(uint64_t commits = UINT64_MAX);
  void Restart();
  // Lets the log forget what has been applied. Not to be followed by Restart.
  void TrimLog();
  // Every request fails with it until it is OK again.
  void set_error(const Status& error);
  void set_has_space(bool has_space);
  // What is asked in two steps (TryAsk) is not answered in time.
  void LoseAsked(bool lose);
  // Scans answer at most so many records, whatever was asked. 0 = no such limit.
  void set_scan_records(uint32_t records);

  // What it answers to scans is changed by `alter`, which may say what no DC should.
  void AlterScans(std::function<void(DataRequest*)> alter);

  // Bulk scans read all that a grant allows when they get it, as if it took no time on the way (ScanStream::ReadsAhead); else on Next.
  void set_reads_ahead(bool reads_ahead);
  // The next `times` calls of a bulk scan fail with the error.
  void FailScans(const Status& error, uint64_t times);
  // No bulk scan can be opened: RESOURCE_EXHAUSTED.
  void set_refuses_scans(bool refuses_scans);
  // The record, which is there, has another timestamp: a DC that breaks S1.
  void SetTimestamp(TableId table, const std::string& key, Timestamp timestamp);

  uint64_t requests();
  uint64_t open_scans();        // bulk scans
  uint64_t scans_opened();      // ever
  uint64_t granted_bytes();     // to all of them
  std::string granted_bound();  // the last one
  size_t records();

  Status Read(absl::Span<DataRequest* const> requests, Deadline deadline) override;
  // Answers at once.
  bool TryAsk(absl::Span<DataRequest* const> requests) override { return Read(requests, kNoDeadline).ok(); }
  void Take(absl::Span<DataRequest* const> requests, Deadline deadline) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const ScanSpec& spec, Deadline deadline) override;
  Position applied() const override;
  bool HasSpace(uint64_t bytes) const override;

 private:
  struct Record {
    Version version;
    std::string value;
  };
  using Key = std::pair<uint32_t, std::string>;
  class Scan;

  uint64_t PumpLocked(uint64_t commits, Position at_least) DEUT_REQUIRES(mutex_);
  void ApplyLocked(const LogRecord& record, const UpdateList& updates) DEUT_REQUIRES(mutex_);
  void AnswerLocked(DataRequest* request) DEUT_REQUIRES(mutex_);
  void ScanLocked(DataRequest* request) DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  RedoLog& log_;
  ActiveTransactions& active_;
  const Lsn first_;
  mutable Mutex mutex_;
  std::unique_ptr<LogReader> reader_ DEUT_GUARDED_BY(mutex_);
  std::map<Key, Record> records_ DEUT_GUARDED_BY(mutex_);
  std::set<uint32_t> tables_ DEUT_GUARDED_BY(mutex_);
  std::set<uint32_t> old_tables_ DEUT_GUARDED_BY(mutex_);
  std::set<uint32_t> dropped_ DEUT_GUARDED_BY(mutex_);
  Position applied_ DEUT_GUARDED_BY(mutex_);
  Position ever_applied_ DEUT_GUARDED_BY(mutex_);
  Status error_ DEUT_GUARDED_BY(mutex_);
  bool has_space_ DEUT_GUARDED_BY(mutex_) = true;
  uint32_t scan_records_ DEUT_GUARDED_BY(mutex_) = 0;
  std::function<void(DataRequest*)> alter_scans_ DEUT_GUARDED_BY(mutex_);
  bool loses_asked_ DEUT_GUARDED_BY(mutex_) = false;
  uint64_t requests_ DEUT_GUARDED_BY(mutex_) = 0;
  bool reads_ahead_ DEUT_GUARDED_BY(mutex_) = true;
  Status scan_error_ DEUT_GUARDED_BY(mutex_);
  uint64_t scan_errors_ DEUT_GUARDED_BY(mutex_) = 0;
  bool refuses_scans_ DEUT_GUARDED_BY(mutex_) = false;
  uint64_t open_scans_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t scans_opened_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t granted_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  std::string granted_bound_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_PUMPED_DC_H_
