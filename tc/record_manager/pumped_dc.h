// PumpedDc: the smallest correct DC for tests of the record manager. It is a single-version map that applies the redo
//   log when the test says so. It does so in commit-record order, and only for commits that are durable and below
//   low-water (rule S1).
// Restart forgets everything and begins a new incarnation. That one answers reads only after it has applied again
//   everything that was ever applied (X3).
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

  // Adds a table that the DC has held since before the log began.
  void AddTable(TableId table);
  // Applies the commits that may be applied now, at most `commits` of them. Returns how many it has applied.
  uint64_t Pump(uint64_t commits = UINT64_MAX);
  void Restart();
  // Trims the log up to the last applied commit. Must not be followed by Restart.
  void TrimLog();
  // Makes every request fail with `error`, until it is OK again.
  void set_error(const Status& error);
  void set_has_space(bool has_space);
  void set_knows_table_options(bool knows_table_options);
  // Returns the options with which the table was created, as they stand in the log.
  std::string OptionsOf(TableId table);
  // If `lose`, requests asked in two steps (TrySubmitReads) are not answered in time.
  void LoseAsked(bool lose);
  // Scans return at most `records` records, even if asked for more. 0: no such limit.
  void set_scan_records(uint32_t records);

  // Has `alter` change the answers to scans, also to answers that no correct DC gives.
  void AlterScans(std::function<void(DataRequest*)> alter);

  // If true, a bulk scan reads all that a grant allows as soon as it gets it (ScanStream::ReadsAhead); else it reads
  // on Next.
  void set_reads_ahead(bool reads_ahead);
  // Makes the next `times` calls of bulk scans fail with `error`.
  void FailScans(const Status& error, uint64_t times);
  // If true, no bulk scan can be opened: RESOURCE_EXHAUSTED.
  void set_refuses_scans(bool refuses_scans);
  // Changes the timestamp of an existing record, as a DC that breaks S1 would.
  void SetTimestamp(TableId table, const std::string& key, Timestamp timestamp);

  uint64_t requests();
  uint64_t open_scans();        // bulk scans
  uint64_t scans_opened();      // bulk scans, ever
  uint64_t granted_bytes();     // to all bulk scans
  std::string granted_bound();  // of the last grant
  size_t records();

  Status Read(absl::Span<DataRequest* const> requests, Deadline deadline) override;
  // Answers at once.
  bool TrySubmitReads(absl::Span<DataRequest* const> requests) override { return Read(requests, kNoDeadline).ok(); }
  void CollectReads(absl::Span<DataRequest* const> requests, Deadline deadline) override;
  Result<std::unique_ptr<ScanStream>> OpenScan(const ScanSpec& spec, Deadline deadline) override;
  Position applied() const override;
  bool HasSpace(uint64_t bytes) const override;
  bool KnowsTableOptions() const override;

 private:
  struct Record {
    Version version;
    std::string value;
  };
  using Key = std::pair<uint32_t, std::string>;
  class Scan;
  // The behaviour that the test has asked for.
  struct Behaviour {
    Status error;  // of every request
    bool has_space = true;
    bool knows_table_options = true;
    bool loses_asked = false;
    uint32_t scan_records = 0;
    std::function<void(DataRequest*)> alter_scans;
    bool reads_ahead = true;
    bool refuses_scans = false;
    Status scan_error;  // of the next scan_errors calls of bulk scans
    uint64_t scan_errors = 0;
  };
  // Counts of its requests, and the last grant.
  struct Seen {
    uint64_t requests = 0;
    uint64_t open_scans = 0;
    uint64_t scans_opened = 0;
    uint64_t granted_bytes = 0;
    std::string granted_bound;
  };

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
  std::map<uint32_t, std::string> options_ DEUT_GUARDED_BY(mutex_);  // of the tables that the log has created
  std::set<uint32_t> old_tables_ DEUT_GUARDED_BY(mutex_);
  std::set<uint32_t> dropped_ DEUT_GUARDED_BY(mutex_);
  Position applied_ DEUT_GUARDED_BY(mutex_);
  Position ever_applied_ DEUT_GUARDED_BY(mutex_);
  Behaviour behaviour_ DEUT_GUARDED_BY(mutex_);
  Seen seen_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_PUMPED_DC_H_
