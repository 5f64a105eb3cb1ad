// RedoLog: the transaction component's redo log: latch-free appends, ordered durability, recovery, reading back (rules D1-D5, S2, S10, X1,
// X4; architecture section 5). After the log buffers of "High Performance Transactions in Deuteronomy", CIDR 2015, section 3.
//
// Positions:  first_lsn <= redo start <= durable <= tail. An LSN is a byte position in the stream of records; block headers and padding
//   do not count. A record at `lsn` is durable once durable() > lsn (durability advances by whole records, in order).
// Appending reserves with one fetch-and-add and copies. It allocates nothing, locks nothing and makes no system call, save to wake
//   the log thread when that sleeps. It waits in one case: the ring is full behind an unfinished append or a slow device.
// Durability: one log thread writes complete records with many blocks in flight. On the first failed write the failure callback is called
//   once (default: fail-stop); nothing is retried, nothing after it is reported durable.
// Thread-safety: all methods from any thread, except Open, Stop and destruction. Ownership: the runtime and storage outlive the
//   log; readers and registered waiters end before it. The directory is locked exclusively for the life of the object (X5).
// Errors: each call names its own; everything read from disk may give CORRUPTION with file and offset.
#ifndef TC_REDO_LOG_REDO_LOG_H_
#define TC_REDO_LOG_REDO_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/transaction_id.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/durability_waiter.h"
#include "tc/redo_log/log_reader.h"
#include "tc/redo_log/log_record.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/space_claim.h"

namespace deut::tc {

struct RedoLogOptions {
  std::string directory;
  TcId
      tc;  // identity of a new log; 0 = drawn at random. An existing log keeps its own; another one given here is refused
  // Memory of the appended, not yet written, and of the most recent written log. A power of two, at least 4 * max_record_bytes.
  size_t ring_bytes = size_t{64} << 20;
  // A multiple of 4 KiB, at least 4 * max_record_bytes.
  size_t segment_bytes = size_t{64} << 20;
  // A transaction with more updates than this is logged in chunks of about this size. At most max_record_bytes / 2.
  size_t chunk_bytes = size_t{1} << 20;
  // At least one update of the largest key and value that is to be logged.
  size_t max_record_bytes = size_t{4} << 20;
  // A block takes complete records up to about this many bytes (at least one record).
  size_t block_bytes = size_t{1} << 20;
  // Blocks in flight at most; and how many of these may be small (a fuller one is worth waiting for once so many are under way).
  size_t max_in_flight = 16;
  size_t max_small_in_flight = 4;
  // Segments kept allocated ahead of need, and how much of that is not given to commits (ReserveSpace).
  size_t spare_segments = 2;
  uint64_t space_reserve_bytes = uint64_t{16} << 20;
  // What nobody waits for is written out within about this time, or when 64 KiB of it are there.
  Duration linger = milliseconds(2);
  // Timestamps are reserved in blocks of this many (D3).
  uint64_t timestamp_block = uint64_t{1} << 32;
  // Stretches of the log from which values were read back are kept, up to so many bytes (ReadValue).
  size_t read_back_bytes = size_t{8} << 20;
  // Ids of the last so many commits with an id are read back when the log is opened. For their sake the log is kept beyond the redo start: so
  // long, and so many bytes of it, at most.
  size_t max_outcomes = 0;
  Duration keep_time{0};
  uint64_t keep_bytes = 0;
  // A write that does not complete for this long is a failed device.
  Duration device_timeout = seconds(60);
  // One that takes longer is logged, with its bytes.
  Duration slow_after = seconds(5);
  // Called once, on a thread of the log, with file, offset and error. Where it returns (tests), the log stays failed.
  std::function<void(const Status&)> on_failure = [](const Status& status) { FailStop(status.ToString()); };
};

// What Open found and decided.
struct RecoveredLog {
  bool created = false;  // there was no log
  TcId tc;
  TcEpoch epoch;                    // this life's: above every earlier one, durable
  uint64_t nonce = 0;               // this life's (X5), durable
  Timestamp first_timestamp;        // draw from here on: no earlier life has drawn it (D3)
  Lsn first_lsn;                    // of the oldest record kept
  std::vector<LogLife> lives = {};  // before this one; the oldest ones went with the log that was trimmed
  Lsn end_lsn;                      // end of what was recovered
  // LSN of the last record that a DC may have been sent (a commit, or low-water); below first_lsn if there is none. A DC that has applied a later
  // one must be refused (X4). Starts that serve nobody leave it as it is, however much they append.
  Lsn last_shipped;
  RedoStart redo_start;  // the last one logged; a new log: first_lsn, no positions
  std::vector<DcId> known_dcs;
  Timestamp low_water;         // the highest logged (X1); 0 = none
  Cut cut;                     // as logged in END_OF_EPOCH
  uint64_t dropped_bytes = 0;  // of whole, never acknowledged blocks behind the cut; 0 after a clean stop
  // Commits with ids, oldest first; those of commits with timestamps below `outcome_horizon` may be missing.
  std::deque<CommitOutcome> outcomes;
  Timestamp outcome_horizon;
};

struct AppendResult {
  Lsn lsn;    // a transaction: of its COMMIT record, its place in commit-record order
  Lsn first;  // of its earliest record (S2); equal to lsn unless there are chunks
  Lsn end;
};

struct RedoLogCounters {
  uint64_t records = 0, record_bytes = 0;  // taken by the log thread; appended
  uint64_t blocks = 0, block_bytes = 0;    // written, with headers and padding
  uint64_t led_blocks = 0;                 // of these by committers themselves
  uint64_t ring_waits = 0;                 // appends that have waited for the ring
  uint64_t ring_waiters = 0;               // appends that wait for it now
  uint64_t log_thread_sleeps = 0;
  uint64_t segments = 0, spare_segments = 0;  // files now
  uint64_t segments_recycled = 0, segments_removed = 0;
  uint64_t free_bytes = 0;                            // preallocated and unwritten
  uint64_t untaken_bytes = 0;                         // tail - what the log thread has taken
  uint64_t undurable_bytes = 0;                       // tail - durable: the loss window of buffered commits
  uint64_t fills_from_ring = 0, fills_from_disk = 0;  // by readers; a fill serves many records
  // Values read back (ReadValue): from the ring, from stretches that were kept, from the disk.
  uint64_t values_from_ring = 0, values_from_kept = 0, values_from_disk = 0;
};

class RedoLog {
 public:
  // Locks the directory (created if absent) and recovers. Changes no file of the log: what was found can be compared with what others know (X4), and
  // a refusal leaves the folder as it was, because a lock file that is made here goes with this object unless it has begun. Before Begin nothing may
  // be appended; what waits for durability gets UNAVAILABLE.
  //   UNAVAILABLE: another process has the directory. CORRUPTION: damage that is not a torn tail, with file and offset.
  //   VERSION_MISMATCH: a file is of another version of the format. INVALID_ARGUMENT: options.
  static Result<std::unique_ptr<RedoLog>> Recover(const RedoLogOptions& options, Runtime& runtime, Storage& storage,
                                                  RecoveredLog* recovered);
  // Begins the new life: removes what lies behind the chain, logs the cut, the new epoch and the first reservation of timestamps durably, and starts
  // the log thread. By one thread. RESOURCE_EXHAUSTED: there is no space for the first segment; it may be called again. After other errors not.
  Status Begin();
  bool begun() const;
  // Both.
  static Result<std::unique_ptr<RedoLog>> Open(const RedoLogOptions& options, Runtime& runtime, Storage& storage,
                                               RecoveredLog* recovered);
  ~RedoLog();
  RedoLog(const RedoLog&) = delete;
  RedoLog& operator=(const RedoLog&) = delete;

  // Writes what was appended, waits for it, answers all waiters and ends the log's threads. What found no space on a full disk is given up
  // (CANCELLED). REQUIRES: no append is under way or follows.
  void Stop();

  Lsn tail() const;
  // At or beyond the tail, by what was claimed and is not appended yet (D5).
  Lsn claimed() const;
  Lsn durable() const;
  Lsn first_lsn() const;  // of the oldest record that can be read back
  TcId tc() const;
  TcEpoch epoch() const;
  uint64_t nonce() const;

  // --- Appending. When a call returns, LSN and bytes are in the buffer: the commit may become visible (D4). Waits only for ring space.
  // `updates` in ascending sequence; `chunks` are LSNs of earlier AppendChunk calls of the same transaction (usually none: what is
  // too large for one record is cut into chunks here).
  // `places`, unless empty, has one for each of `updates`: where it stands (LoggedPut).
  // `claim`, if given, is of ReserveSpace for the same updates and id, and is used up. Without one nothing is asked: for tests.
  AppendResult AppendCommit(Timestamp timestamp, absl::Span<const Update> updates, absl::Span<const Lsn> chunks = {},
                            TransactionId id = {}, absl::Span<Lsn> places = {}, SpaceClaim* claim = nullptr);
  // Updates ahead of their commit, for a transaction that does not want to keep them all. REQUIRES: at most chunk_bytes of them.
  AppendResult AppendChunk(Timestamp timestamp, absl::Span<const Update> updates, bool claimed = false);
  // X1. REQUIRES: every commit below L has been appended.
  AppendResult AppendLowWater(Timestamp low_water);

  // --- Admission (rule D5, log_space.h). Room for the whole commit of `updates`, before it appends anything: what is appended always has its place.
  // A commit of one record never waits. A larger one waits until segments are allocated for it, if the disk has room for them.
  //   RESOURCE_EXHAUSTED, with the figures and a retry hint: allocated space has run down to the reserve because the disk is full (or to a quarter
  //   of it, and the next segment is not there yet), or the disk has no room for what a large one needs. Ends by itself.
  //   DEADLINE_EXCEEDED: allocation took longer. INVALID_ARGUMENT: more chunks than a commit record can name. UNAVAILABLE after a failure or Stop.
  Result<SpaceClaim> ReserveSpace(absl::Span<const Update> updates, TransactionId id, Deadline deadline);
  // What an update takes in a record.
  static constexpr uint64_t kBytesBesideKeyAndValue = 16;
  static uint64_t UpdateBytes(std::string_view key, std::string_view value) {
    return kBytesBesideKeyAndValue + key.size() + value.size();
  }
  // Whether so many bytes would find room now.
  Status CheckSpace(size_t bytes) const;
  bool accepting() const { return CheckSpace(0).ok(); }

  // --- Durability (D1).
  // Waits until the record at `lsn` is durable. DEADLINE_EXCEEDED, or IO_ERROR after a failure (then it may or may not be durable).
  // Where nobody else writes, and the deadline is not near, the calling thread writes it itself (LogWriter::Lead): it may then miss the
  // deadline by as much as the device takes.
  Status WaitDurable(Lsn lsn, Deadline deadline);
  // True: the record at `lsn` is durable, and the waiter was not taken. False: its OnDurable is called once, on a thread that writes the log.
  bool NotifyWhenDurable(Lsn lsn, DurabilityWaiter* waiter, Hurry hurry = Hurry::kNow);

  // --- Timestamps (D3). A timestamp may be used only after this returned OK for it; nearly always one load and one compare.
  // Asks for the next block when half of the present one is used.
  Status EnsureReserved(Timestamp timestamp, Deadline deadline);
  // EnsureReserved is OK at once for all timestamps below this. Never goes back.
  Timestamp reserved_below() const;

  // --- Redo start (S2). Logs it with its positions, waits until that is durable, then lets go of the segments wholly below, but for those that
  // are kept for their commits' ids (keep_time, keep_bytes).
  // INVALID_ARGUMENT if it goes back, lies beyond the durable log, or names more than 64 positions.
  Status AdvanceRedoStart(const RedoStart& redo_start, Deadline deadline);
  RedoStart redo_start() const;  // the last durable one
  // Lets go of what was kept and need not be any longer: by time, by size, or because the disk is full. The shipper calls it every now and then.
  Status LetGoOfKept(Deadline deadline);
  // `forget(cut)` is called before commits below `cut` are let go; the horizon that it answers is logged before. REQUIRES: set before the first
  // AdvanceRedoStart.
  void set_forget(std::function<Timestamp(Lsn cut)> forget);
  // X4. Logs that this DC belongs to the TC, and waits until that is durable, also where another call has logged it.
  // RESOURCE_EXHAUSTED beyond 64 of them.
  Status AddKnownDc(DcId dc, Deadline deadline);

  // --- Reading back. A reader of the durable records from `from` (a record's LSN), which follows the log as it grows. CORRUPTION from the
  // reader if `from` is no record boundary, NOT_FOUND if it was trimmed.
  std::unique_ptr<LogReader> NewReader(Lsn from);

  // The value of one put, whose commit is durable. Any thread; waits for the disk where the ring does not have it any more.
  // NOT_FOUND if the log was trimmed there: then the commit is stable at the DCs (S2). IO_ERROR, or CORRUPTION where that put is not found whole.
  Status ReadValue(const LoggedPut& put, std::string* value);

  RedoLogCounters counters() const;
  Status failure() const;  // OK, or why the log has failed

 private:
  struct Parts;
  explicit RedoLog(std::unique_ptr<Parts> parts);
  Status StartLife();
  const std::unique_ptr<Parts> parts_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_REDO_LOG_H_
