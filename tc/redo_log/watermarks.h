// Watermarks: the positions that mark how far the redo log has come, and the order in which they stand. Each advance is
// checked against its neighbours.
//
// Order of a log, by LSN:  first LSN <= redo start <= durable <= consumed <= tail.
//   first LSN   where the oldest file begins (SegmentSet)
//   redo start  from here on the log is kept (S2), as logged last; that record may not be durable yet
//   durable     D2. It advances by whole records, in order
//   consumed    end of the records that the writer has taken out of the ring
//   tail        end of the appended records (LogRing)
// Order of a DC, in commit-record order:  stable <= applied <= shipped, and shipped lies below durable.
//   The TC ships only durable commits. So no DC has an update that a crash could take out of the log, not even one of
//   a buffered commit. The link keeps these positions, and checks them among themselves
//   (tc/dc_link/acknowledged_positions.h, read_target.h).
// Redo start and stable positions have no order as numbers: the log between a stable position and a redo start above
// it holds only records that no DC needs. RedoStartTracker ensures that, and tc/verify checks it record by record.
// Here each redo start is checked against the one before it: no DC's stable position goes back.
//
// Restart of the TC: durable, consumed and tail begin at the end of the recovered log.
// Failure of the log: durable stays for good. Consumed goes on to the tail, because the writer discards records.
// Restart of a DC: applied and stable are those of its present incarnation, so they may fall (X3). Shipped never falls.
//
// Concurrency. Each position has one writer at a time, named at its method. A check, or a reader, that compares two
// positions loads the smaller one first. The larger one had passed that place before, and has not fallen since. In the
// other order both could advance between the two loads, and the smaller one would seem too high.
// Cost: the advances of each block are checked in builds with assertions only, those of a redo start always.
// Thread-safety: as named; the accessors from any thread. Ownership: values.
#ifndef TC_REDO_LOG_WATERMARKS_H_
#define TC_REDO_LOG_WATERMARKS_H_

#include <atomic>
#include <cstdint>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {

class Watermarks {
 public:
  // `end`: end of the recovered log.
  Watermarks(Lsn redo_start, Lsn end);
  Watermarks(const Watermarks&) = delete;
  Watermarks& operator=(const Watermarks&) = delete;

  Lsn redo_start() const { return Lsn(redo_start_.load(std::memory_order_seq_cst)); }
  Lsn durable() const { return Lsn(durable_.load(std::memory_order_seq_cst)); }
  Lsn consumed() const { return Lsn(consumed_.load(std::memory_order_acquire)); }

  // --- The thread with the writer role (writer_role.h).
  // `tail()` returns the log's tail; it is called only in builds with assertions.
  template <typename Tail>
  void AdvanceConsumed(Lsn to, Tail tail) {
    DEUT_DCHECK(consumed() <= to);
    DEUT_DCHECK(to <= tail());
    consumed_.store(to.value, std::memory_order_seq_cst);
  }
  void AdvanceDurable(Lsn to) {
    DEUT_DCHECK(durable() <= to);
    DEUT_DCHECK(to <= consumed());
    durable_.store(to.value, std::memory_order_seq_cst);
  }

  // --- One thread at a time (LogRetention holds a mutex).
  // `from` is the redo start before `to`. REQUIRES: `to` lies in [from, durable].
  void AdvanceRedoStart(const RedoStart& from, const RedoStart& to);

  // Checks that the log below `cut` may go. Any thread.
  void CheckTrim(Lsn cut) const;

 private:
  // Committers load `durable_` and `consumed_` together with the word that stands behind this object in LogWriter.
  std::atomic<uint64_t> redo_start_;
  std::atomic<uint64_t> durable_;
  std::atomic<uint64_t> consumed_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_WATERMARKS_H_
