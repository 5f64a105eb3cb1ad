// LogWriter: writes the log. Takes complete records from the ring in order, forms blocks, submits them, and advances the durable LSN in
// order as they complete (D2). It never waits for one block before submitting the next, and never rewrites a submitted one.
//
// Positions: durable <= consumed <= tail. Records that somebody waits for are submitted as soon as they are complete and there is a place
// in flight; once some small blocks are in flight a further one waits until it is larger or one of them has completed. So batches arise
// from load alone. Records that nobody waits for go along, or else within `linger`.
// Blocks do not cross segments. A segment's header is the first block of it, in the same chain and order: records in a segment are
// durable only after its header.
// Who writes: one thread at a time has the log's end, and what is called "the role's" below (log_signal.h). That is the log thread; but a
// committer that waits for its record while nothing is in flight and the log thread sleeps leads: it forms one block of all that is complete,
// writes it itself, synchronously, and answers whom that made durable. So a lone commit costs one write and no change of threads.
// Meanwhile the others only append; if one of them waits, the log thread is woken when the led write has ended, takes them together, and
// lets nobody lead for a while: where several commit at a time, many blocks in flight are worth more than a change of threads less.
// After a failure the log thread goes on taking records, so that no appender hangs on the ring, but writes nothing and answers waiters with
// the failure.
// Thread-safety: Start, Stop by the owner; the rest of the public methods from any thread. Ownership: owns the thread and its buffers; all
// else outlives it.
#ifndef TC_REDO_LOG_LOG_WRITER_H_
#define TC_REDO_LOG_LOG_WRITER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/block_format.h"
#include "tc/redo_log/block_window.h"
#include "tc/redo_log/durability_waiters.h"
#include "tc/redo_log/log_failure.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_signal.h"
#include "tc/redo_log/segment_set.h"

namespace deut::tc {

struct LogWriterOptions {
  size_t block_bytes = 0;
  size_t max_in_flight = 0;
  size_t max_small_in_flight = 0;
  Duration device_timeout{};
  Duration slow_after = seconds(5);  // a write that takes longer is logged
  Duration linger{};
};

// Where the log goes on: the end of what recovery kept, and the checksum of the block before.
struct LogEnd {
  Lsn lsn;
  uint32_t checksum = 0;
};

class LogWriter {
 public:
  // What the thread works with. All outlive it.
  struct Parts {
    Runtime& runtime;
    IoQueue& queue;
    LogSignal& signal;
    LogRing& ring;
    SegmentSet& segments;
    DurabilityWaiters& waiters;
    LogFailure& failure;
  };

  // `state` has the new life's TC id, epoch and nonce. The first block goes to a new segment.
  LogWriter(const LogWriterOptions& options, const Parts& parts, LogState state, LogEnd end);
  ~LogWriter();

  void Start();
  // Writes all that was appended, then ends the thread and closes the waiters. REQUIRES: as RedoLog::Stop.
  void Stop();

  Lsn durable() const { return Lsn(durable_.load(std::memory_order_seq_cst)); }
  Lsn consumed() const { return Lsn(consumed_.load(std::memory_order_acquire)); }
  // As RedoLog::NotifyWhenDurable.
  bool NotifyWhenDurable(Lsn lsn, DurabilityWaiter* waiter, Hurry hurry);
  // Writes the record at `lsn` on the calling thread, with all that is complete, if nobody else writes. True if it is durable then. False: it
  // may not be; nothing is promised. Waits for the device. REQUIRES: it was appended.
  bool Lead(Lsn lsn);
  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }
  // Room left in the open segment. Acquire: a thread that sees the room of a new segment also sees, if it looks afterwards, that this is
  // no spare any more. With an older count of spares it would count that segment twice.
  uint64_t segment_room() const { return segment_room_.load(std::memory_order_acquire); }
  uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  uint64_t block_bytes() const { return block_bytes_.load(std::memory_order_relaxed); }
  uint64_t led_blocks() const { return led_blocks_.load(std::memory_order_relaxed); }
  uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

 private:
  struct Block {
    IoRequest request;
    AlignedBuffer buffer;
    std::shared_ptr<Segment> segment;
    BlockHeader header;
    MonotonicTime submitted;
    bool completed = false;
    bool slow = false;  // and people were told
  };
  static std::string Describe(const Block& block);

  void Loop();
  void Sleep();
  void Rest();
  bool WorkWaits() const;
  bool SomethingElseWaits() const;
  bool MaySubmit() const;
  // Somebody waits for a record that was not taken yet.
  bool Hurried() const { return hurried_.load(std::memory_order_seq_cst) > consumed().value; }
  // What was scanned may not wait any longer.
  bool Due();
  // Records wait for a segment, and there may never be one.
  bool NoSpace() const { return stalled_ && parts_.segments.disk_full(); }
  // Each returns true if it got something done.
  bool TakeCompletions();
  bool SubmitBlocks();
  bool TakeWithoutWriting();
  void ReleaseRing();
  Lsn ReleaseTarget() const;
  void CheckDevice();

  // Extends [consumed, scanned_) over complete records, up to one block's worth.
  void Scan();
  // The end of the longest run of records from consumed that fits the open segment; consumed if not even one does.
  Lsn RunThatFits() const;
  bool OpenNextSegment();
  void LeadOneBlock(Lsn lsn, bool* took_all);
  Block* FormRecords(Lsn end);
  Block* NewBlock();
  void Prepare(Block* block);
  void Submit(Block* block);
  void ApplyToState(Lsn lsn, const char* payload, size_t bytes);
  void Fail(const Status& status);
  Status EndStatus() const;  // what is said to those whose record will never be reported durable

  const LogWriterOptions options_;
  const Parts parts_;

  // The log thread's own.
  Deadline due_ = kNoDeadline;  // when what is complete must be submitted; kNoDeadline: not set
  int quiet_ = 0;               // lingers in a row that have found nothing
  int crowd_ = 0;               // rests to come in which nobody may lead
  uint64_t crowded_ = 0;        // of the signal, as seen last
  bool stalled_ = false;        // records wait for a spare segment
  bool failure_seen_ = false;

  // The role's.
  LogState state_;        // as of consumed
  uint32_t predecessor_;  // checksum of the block submitted last
  Lsn scanned_;
  std::shared_ptr<Segment> segment_;              // open
  uint64_t offset_ = 0;                           // of the next block in it
  std::deque<std::unique_ptr<Block>> in_flight_;  // in order of submission
  std::vector<std::unique_ptr<Block>> free_blocks_;
  std::vector<IoRequest*> completed_;

  std::atomic<uint64_t> durable_;
  std::atomic<uint64_t> consumed_;
  std::atomic<uint64_t> hurried_{0};  // one past the highest LSN that somebody waits for
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> segment_room_{0};
  std::atomic<uint64_t> records_{0}, blocks_{0}, block_bytes_{0}, led_blocks_{0}, sleeps_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_WRITER_H_
