// RecordSource: finds the bytes of a durable record and decodes them. It takes them from the ring while they are
// there, otherwise from the segment files. It reads ahead, so that reading in LSN order is cheap.
// Thread-safety: one thread at a time. Ownership: a record's views live until the next Fetch; all constructor
// arguments outlive it.
// Errors: as LogReader.
#ifndef TC_REDO_LOG_RECORD_SOURCE_H_
#define TC_REDO_LOG_RECORD_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/block_window.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_writer.h"
#include "tc/redo_log/segment_set.h"

namespace deut::tc {

struct RecordSourceCounters {
  std::atomic<uint64_t> from_ring{0}, from_disk{0};  // fills, not records
};

class RecordSource {
 public:
  RecordSource(const LogRing& ring, const LogWriter& writer, SegmentSet& segments, RecordSourceCounters& counters)
      : ring_(ring), writer_(writer), segments_(segments), counters_(counters) {}

  // REQUIRES: `lsn` is below the durable LSN.
  Status Fetch(Lsn lsn, LogRecord* record);

 private:
  // Makes `bytes_` begin at `lsn` and hold at least `needed` bytes (of the durable log).
  Status Fill(Lsn lsn, size_t needed);
  bool FillFromRing(Lsn lsn, size_t needed);
  Status FillFromDisk(Lsn lsn, size_t needed);
  Result<BlockWindow::Block> ReadBlock(Lsn lsn);

  const LogRing& ring_;
  const LogWriter& writer_;
  SegmentSet& segments_;
  RecordSourceCounters& counters_;

  Lsn begin_;               // LSN of the first byte of bytes_
  std::string_view bytes_;  // in ring_copy_ or window_
  AlignedBuffer ring_copy_;
  BlockWindow window_;
  std::shared_ptr<Segment> segment_;  // the segment that window_ reads
  Lsn next_lsn_;                      // first LSN of the block behind the one read last
  uint64_t next_offset_ = 0;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_RECORD_SOURCE_H_
