// LogWriter: writes the log. It takes complete records from the ring in order, forms blocks, and submits them. It
// advances the durable LSN in order as they complete (D2). It never waits for one block before it submits the next,
// and never rewrites a submitted one.
//
// Positions: durable <= consumed <= tail (watermarks.h).
// Batches: a record that a thread waits for is submitted as soon as it is complete and a place in flight is free.
// While some small blocks are in flight, a further one waits until it is larger or one of them completes. So batches
// arise from load alone. Records that no thread waits for go along with these, or within `linger`.
// Blocks do not cross segments. A segment's header is its first block, in the same chain and order, so records of a
// segment are durable only after its header.
// Which thread writes: one thread at a time has the writer role (writer_role.h), usually the log thread. A committer
// leads if it waits for its record while nothing is in flight and the log thread sleeps. It forms one block of all
// complete records, writes it synchronously, and answers the waiters whose records are durable now. So a lone commit
// costs one write and no thread switch.
//   During a led write other threads only append. If one of them waits, the log thread is woken at the end of the led
//   write and takes all records. Then no committer leads for a while: with several committers many blocks in flight
//   are worth more than a saved thread switch.
// After a failure the log thread goes on taking records, so that no appender hangs on the ring. It writes nothing and
// answers waiters with the failure.
// Thread-safety: Start and Stop by the owner; the other public methods from any thread. Ownership: owns the thread
// and its buffers; everything else outlives it.
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
#include "tc/log_format/block_format.h"
#include "tc/redo_log/block_window.h"
#include "tc/redo_log/durability_queue.h"
#include "tc/redo_log/linger_policy.h"
#include "tc/redo_log/log_failure.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/segment_set.h"
#include "tc/redo_log/watermarks.h"
#include "tc/redo_log/writer_role.h"

namespace deut::tc {

struct LogWriterOptions {
  size_t block_bytes = 0;
  size_t max_in_flight = 0;
  size_t max_small_in_flight = 0;
  Duration device_timeout{};
  Duration slow_after = seconds(5);  // a write that takes longer is logged
  Duration linger{};
};

// Where the log continues: the end of what recovery kept, and the checksum of the last block.
struct LogEnd {
  Lsn lsn;
  uint32_t checksum = 0;
};

class LogWriter {
 public:
  // The objects that the log thread works with. All outlive it.
  struct Parts {
    Runtime& runtime;
    IoQueue& queue;
    WriterRole& role;
    LogRing& ring;
    SegmentSet& segments;
    DurabilityQueue& durability_queue;
    LogFailure& failure;
  };

  // `state` has the TC id, the TC epoch and the nonce of this start. The first block goes to a new segment.
  LogWriter(const LogWriterOptions& options, const Parts& parts, LogState state, LogEnd end);
  ~LogWriter();

  void Start();
  // Writes all appended records, then ends the thread and closes the waiters. REQUIRES: as RedoLog::Stop.
  void Stop();

  Lsn durable() const { return watermarks_.durable(); }
  Lsn consumed() const { return watermarks_.consumed(); }
  Watermarks& watermarks() { return watermarks_; }
  // As RedoLog::NotifyWhenDurable.
  bool NotifyWhenDurable(Lsn lsn, DurabilityCallback* waiter, Urgency urgency);
  // If no other thread writes, writes the record at `lsn` on the calling thread, with all complete records. True: it
  // is durable. False: it may not be. Waits for the device. REQUIRES: the record was appended.
  bool Lead(Lsn lsn);
  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }
  // Room left in the open segment. Acquire: a thread that sees the room of a new segment, and then counts the spares,
  // no longer counts that segment as a spare. With an older count it would count that segment twice.
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
    bool slow = false;  // it was slow, and a warning was logged
  };
  static std::string Describe(const Block& block);

  void Loop();
  void Sleep();
  void SleepWithNothingInFlight();
  bool WorkWaits() const;
  bool SomethingElseWaits() const;
  bool MaySubmit() const;
  // A thread waits for a record that was not taken yet.
  bool UrgentRecordWaits() const { return urgent_below_.load(std::memory_order_seq_cst) > consumed().value; }
  // The scanned records may not wait any longer.
  bool Due();
  // Records wait for a segment, and there may never be one.
  bool NoSpace() const { return stalled_ && parts_.segments.disk_full(); }
  // Each returns true if it made progress.
  bool HandleCompletions();
  bool SubmitBlocks();
  bool DiscardRecordsAfterFailure();
  void ReleaseRing();
  Lsn ReleaseTarget() const;
  void CheckDevice();

  // Extends [consumed, scanned_) over complete records, up to the bytes of one block.
  void Scan();
  // Returns the end of the longest sequence of records from consumed that fits the open segment; consumed if not even
  // one fits.
  Lsn RunThatFits() const;
  bool OpenNextSegment();
  void LeadOneBlock(Lsn lsn, bool* took_all);
  Block* FormRecords(Lsn end);
  Block* NewBlock();
  void Prepare(Block* block);
  void Submit(Block* block);
  void ApplyToState(Lsn lsn, const char* payload, size_t bytes);
  void Fail(const Status& status);
  Status EndStatus() const;  // the answer for records that will never be reported durable

  const LogWriterOptions options_;
  const Parts parts_;

  // State of the log thread.
  Deadline due_ = kNoDeadline;  // when complete records must be submitted; kNoDeadline: not set
  LingerPolicy linger_policy_;
  bool stalled_ = false;  // records wait for a spare segment
  bool failure_seen_ = false;

  // State of the writer role.
  LogState state_;        // state as of consumed
  uint32_t predecessor_;  // checksum of the block submitted last
  Lsn scanned_;
  std::shared_ptr<Segment> segment_;              // the open segment
  uint64_t offset_ = 0;                           // offset of the next block in it
  std::deque<std::unique_ptr<Block>> in_flight_;  // in order of submission
  std::vector<std::unique_ptr<Block>> free_blocks_;
  std::vector<IoRequest*> completed_;

  Watermarks watermarks_;
  std::atomic<uint64_t> urgent_below_{0};  // one past the highest LSN of an urgent record
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> segment_room_{0};
  std::atomic<uint64_t> records_{0}, blocks_{0}, block_bytes_{0}, led_blocks_{0}, sleeps_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_WRITER_H_
