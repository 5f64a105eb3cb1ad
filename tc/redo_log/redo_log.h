// RedoLog: the transaction component's redo log: latch-free appends, ordered durability, recovery, reading back (rules D1-D5, S2, S10, X1,
// X4; tc/redo_log/README.md). After the log buffers of "High Performance Transactions in Deuteronomy", CIDR 2015, section 3.
//
// Positions:  first_lsn <= redo start <= durable <= tail (watermarks.h). An LSN is a byte position in the sequence of records;
//   block headers and padding do not count. A record at `lsn` is durable once durable() > lsn. Durability advances by whole records, in order.
// Appending reserves its place with one fetch-and-add, and copies the record there. It allocates nothing, locks nothing and makes no system call,
//   except to wake a sleeping log thread. It waits in one case: the ring is full behind an unfinished append or a slow device.
// Durability: one log thread writes complete records, with many blocks in flight. On the first failed write the log calls the failure callback
//   once (default: fail-stop). It retries nothing, and reports no later record durable.
// Thread-safety: all methods from any thread, except Open, Stop and destruction. Ownership: the runtime and storage outlive the
//   log; readers and registered waiters end before it. The directory is locked exclusively while the object lives (X5).
// Errors: each call names its own. Every read from disk may give CORRUPTION with file and offset.
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
#include "tc/log_format/log_record.h"
#include "tc/redo_log/durability_callback.h"
#include "tc/redo_log/log_reader.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/space_claim.h"
#include "tc/redo_log/watermarks.h"

namespace deut::tc {

struct RedoLogOptions {
  std::string directory;
  TcId
      tc;  // identity of a new log; 0 = drawn at random. An existing log keeps its own, and another one given here is refused
  // Size of the ring, which holds the log that is appended and not yet written, and the latest written log. A power of two, at least
  // 4 * max_record_bytes.
  size_t ring_bytes = size_t{64} << 20;
  // A multiple of 4 KiB, at least 4 * max_record_bytes.
  size_t segment_bytes = size_t{64} << 20;
  // A transaction with more updates than this is logged in chunks of about this size. At most max_record_bytes / 2.
  size_t chunk_bytes = size_t{1} << 20;
  // Large enough for one update with the largest key and value that is to be logged.
  size_t max_record_bytes = size_t{4} << 20;
  // A block takes complete records up to about this many bytes, and at least one record.
  size_t block_bytes = size_t{1} << 20;
  // The most blocks in flight. Once max_small_in_flight are in flight, a further one is written only when it is large enough, because a fuller
  // block is worth the wait.
  size_t max_in_flight = 16;
  size_t max_small_in_flight = 4;
  // Segments that are kept allocated ahead of need, and the part of their space that commits cannot claim (ReserveSpace).
  size_t spare_segments = 2;
  uint64_t space_reserve_bytes = uint64_t{16} << 20;
  // A record that no thread waits for is written after about this time at the latest, or when 64 KiB of records are there.
  Duration linger = milliseconds(2);
  // Timestamps are reserved in blocks of this many (D3).
  uint64_t timestamp_block = uint64_t{1} << 32;
  // The most bytes of the cache of log pieces from which values were read back (ReadValue).
  size_t read_back_bytes = size_t{8} << 20;
  // The number of commits with an id, the latest ones, whose ids are read back when the log is opened. For that, the log before the redo start is
  // kept: for at most keep_time, and at most keep_bytes of log.
  size_t max_outcomes = 0;
  Duration keep_time{0};
  uint64_t keep_bytes = 0;
  // A write that does not complete for this long is a failed device.
  Duration device_timeout = seconds(60);
  // A write that takes longer than this is logged, with its bytes.
  Duration slow_after = seconds(5);
  // Called once, on a thread of the log, with file, offset and error. If it returns, as in tests, the log stays failed.
  std::function<void(const Status&)> on_failure = [](const Status& status) { FailStop(status.ToString()); };
};

// The result of recovery: the content of the log, and the identity of this start.
struct RecoveredLog {
  bool created = false;  // there was no log
  TcId tc;
  TcEpoch epoch;              // the epoch of this start: above every earlier one, durable once begun
  uint64_t nonce = 0;         // the nonce of this start (X5), durable once begun
  Timestamp first_timestamp;  // the first timestamp to draw: no earlier process has drawn it or a later one (D3)
  Lsn first_lsn;              // LSN of the oldest record that is kept
  std::vector<LogStart> starts = {};  // earlier starts; the oldest ones may have been trimmed with their log
  Lsn end_lsn;                        // end of the recovered log
  // LSN of the last record that a DC may have been sent (a commit, or low-water); below first_lsn if there is none. A DC that has applied a later
  // record must be refused (X4). A start that serves no client does not change it, however much it appends.
  Lsn last_shipped;
  RedoStart redo_start;  // the last one that was logged; in a new log: first_lsn, without positions
  std::vector<DcId> known_dcs;
  Timestamp low_water;         // the highest one that was logged (X1); 0 = none
  Cut cut;                     // as logged in END_OF_EPOCH
  uint64_t dropped_bytes = 0;  // size of complete blocks behind the cut, never acknowledged; 0 after a clean stop
  // Commits with ids, oldest first. Commits with timestamps below `outcome_horizon` may be missing.
  std::deque<CommitOutcome> outcomes;
  Timestamp outcome_horizon;
};

struct AppendResult {
  Lsn lsn;    // the record; of a transaction the COMMIT record, which is its place in commit-record order
  Lsn first;  // the transaction's earliest record (S2); equal to lsn unless there are chunks
  Lsn end;
};

struct RedoLogCounters {
  uint64_t records = 0, record_bytes = 0;  // records that the log thread has taken; bytes that were appended
  uint64_t blocks = 0, block_bytes = 0;    // blocks that were written, and their bytes with headers and padding
  uint64_t led_blocks = 0;                 // blocks among them that committers have written themselves
  uint64_t ring_waits = 0;                 // appends that have waited for room in the ring
  uint64_t ring_waiters = 0;               // appends that wait for room in the ring now
  uint64_t log_thread_sleeps = 0;
  uint64_t segments = 0, spare_segments = 0;  // present number of files
  uint64_t segments_recycled = 0, segments_removed = 0;
  uint64_t free_bytes = 0;                            // allocated and unwritten space
  uint64_t untaken_bytes = 0;                         // bytes between the tail and the log thread's position
  uint64_t undurable_bytes = 0;                       // tail - durable: the loss window of buffered commits
  uint64_t fills_from_ring = 0, fills_from_disk = 0;  // reads of log readers; each serves many records
  // Values read back (ReadValue): from the ring, from cached pieces of the log, from the disk.
  uint64_t values_from_ring = 0, values_from_kept = 0, values_from_disk = 0;
};

class RedoLog {
 public:
  // Locks the directory (created if absent) and recovers the log. Changes no file of the log, so that the caller can compare the result with the DC's
  // state (X4), and a refusal leaves the folder as it was. A lock file that is made here is removed with this object, unless it has begun. Before
  // Begin nothing may be appended, and waits for durability get UNAVAILABLE.
  //   UNAVAILABLE: another process has the directory. CORRUPTION: damage that is not a torn tail, with file and offset.
  //   VERSION_MISMATCH: a file is of another version of the format. INVALID_ARGUMENT: options.
  static Result<std::unique_ptr<RedoLog>> Recover(const RedoLogOptions& options, Runtime& runtime, Storage& storage,
                                                  RecoveredLog* recovered);
  // Begins to write: removes the files behind the chain, starts the log thread, and logs the cut, the new epoch and the first reservation of
  // timestamps durably. Called by one thread. RESOURCE_EXHAUSTED: there is no space for the first segment, and Begin may be called again. After other
  // errors it may not.
  Status Begin();
  bool begun() const;
  // Recover and Begin in one call.
  static Result<std::unique_ptr<RedoLog>> Open(const RedoLogOptions& options, Runtime& runtime, Storage& storage,
                                               RecoveredLog* recovered);
  ~RedoLog();
  RedoLog(const RedoLog&) = delete;
  RedoLog& operator=(const RedoLog&) = delete;

  // Writes all appended records, waits until they are durable, answers all waiters and ends the log's threads. Records that find no space on a full
  // disk are given up, and their waiters get CANCELLED. REQUIRES: no append is in flight or follows.
  void Stop();

  Lsn tail() const;
  // The tail plus the bytes that were claimed and are not appended yet (D5).
  Lsn claimed() const;
  Lsn durable() const;
  Lsn first_lsn() const;  // LSN of the oldest record that can be read back
  TcId tc() const;
  TcEpoch epoch() const;
  uint64_t nonce() const;

  // --- Appending. When a call returns, the record is in the ring and has its LSN, so the commit may become visible (D4). Waits only for ring space.
  // `updates`: in ascending sequence. `chunks`: LSNs of earlier AppendChunk calls of the same transaction. There are usually none, because a
  // transaction that is too large for one record is cut into chunks here.
  // `places`, unless empty, has one element for each update and receives the update's place in the log (LoggedPut).
  // `claim`, if given, comes from ReserveSpace for the same updates and id, and is used up. Without a claim the room is not checked: for tests.
  AppendResult AppendCommit(Timestamp timestamp, absl::Span<const Update> updates, absl::Span<const Lsn> chunks = {},
                            TransactionId id = {}, absl::Span<Lsn> places = {}, SpaceClaim* claim = nullptr);
  // Appends updates ahead of their commit, for a transaction that does not want to keep them all. REQUIRES: they have at most chunk_bytes.
  AppendResult AppendChunk(Timestamp timestamp, absl::Span<const Update> updates, bool claimed = false);
  // X1. REQUIRES: every commit below `low_water` has been appended.
  AppendResult AppendLowWater(Timestamp low_water);

  // --- Admission (rule D5, log_space.h). Claims room for the whole commit of `updates` before it appends anything, so that appended records always
  // have their place. A commit of one record never waits. A larger one waits until segments are allocated for it, if the disk has room for them.
  //   RESOURCE_EXHAUSTED, with the figures and a retry hint. It passes by itself. Either allocated space has run down to the reserve because the disk
  //   is full, or to a quarter of the reserve while the next segment is not there yet; or the disk has no room for the segments of a large commit.
  //   DEADLINE_EXCEEDED: allocation took longer. INVALID_ARGUMENT: more chunks than a commit record can name, an update that no
  //   record can hold, or more than the whole disk holds.
  //   UNAVAILABLE: before Begin, and after a failure or Stop.
  Result<SpaceClaim> ReserveSpace(absl::Span<const Update> updates, TransactionId id, Deadline deadline);
  // The bytes that an update takes in a record.
  static constexpr uint64_t kBytesBesideKeyAndValue = 16;
  static uint64_t UpdateBytes(std::string_view key, std::string_view value) {
    return kBytesBesideKeyAndValue + key.size() + value.size();
  }
  // Whether a commit of this size would find room now.
  Status CheckSpace(size_t bytes) const;
  bool accepting() const { return CheckSpace(0).ok(); }

  // --- Durability (D1).
  // Waits until the record at `lsn` is durable. DEADLINE_EXCEEDED, or IO_ERROR after a failure: then the record may or may not be durable.
  // If no other thread writes, and the deadline is not near, the calling thread writes the record itself (LogWriter::Lead). It may then miss the
  // deadline by the time that the device takes.
  Status WaitDurable(Lsn lsn, Deadline deadline);
  // True: the record at `lsn` is durable, and the waiter was not registered. False: its OnDurable is called once, on a thread that writes the log.
  bool NotifyWhenDurable(Lsn lsn, DurabilityCallback* waiter, Urgency urgency = Urgency::kUrgent);

  // --- Timestamps (D3). A timestamp may be used only after EnsureReserved has returned OK for it. The call is nearly always one load and one
  // compare. Beyond the present block it reserves the next one, and waits until that is durable.
  Status EnsureReserved(Timestamp timestamp, Deadline deadline);
  // EnsureReserved returns OK at once for all timestamps below this one, which never decreases.
  Timestamp reserved_below() const;

  // --- Redo start (S2). Logs the redo start with its positions and waits until that is durable. Then removes or recycles the segments wholly below
  // it, except those that are kept for the ids of their commits (keep_time, keep_bytes).
  // INVALID_ARGUMENT: the redo start goes back, lies beyond the durable log, or names more than 64 positions.
  Status AdvanceRedoStart(const RedoStart& redo_start, Deadline deadline);
  RedoStart redo_start() const;  // the last durable one
  // Removes or recycles segments that were kept for ids and need not be kept any longer: because of their age, their size, or a full disk. The
  // shipper calls it regularly.
  Status TrimKeptForOutcomes(Deadline deadline);
  // The log calls `before_trim(cut)` before it removes commits below `cut`, and logs the outcome horizon that `before_trim` returns before they are
  // gone.
  // REQUIRES: set before the first AdvanceRedoStart.
  void set_before_trim(std::function<Timestamp(Lsn cut)> before_trim);
  // X4. Logs that this DC belongs to the TC, and waits until that is durable, also if another call has logged it.
  // RESOURCE_EXHAUSTED: the log knows 64 DCs already.
  Status AddKnownDc(DcId dc, Deadline deadline);

  // --- Reading back. Returns a reader of the durable records from `from` on, the LSN of a record. The reader follows the log as it grows. It answers
  // CORRUPTION if `from` is no record boundary, and NOT_FOUND if that place was trimmed.
  std::unique_ptr<LogReader> NewReader(Lsn from);

  // Reads the value of one put, whose commit is durable. Waits for the disk if the ring no longer has the value.
  // NOT_FOUND: the log was trimmed there, so the commit is stable at the DCs (S2). IO_ERROR. CORRUPTION: the put is not there, or not complete.
  Status ReadValue(const LoggedPut& put, std::string* value);

  RedoLogCounters counters() const;
  Status failure() const;  // OK, or the reason why the log has failed

 private:
  struct Parts;
  explicit RedoLog(std::unique_ptr<Parts> parts);
  Status StartWriting();
  const std::unique_ptr<Parts> parts_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_REDO_LOG_H_
