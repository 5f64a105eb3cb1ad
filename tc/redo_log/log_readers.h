// LogReaders: makes the readers of a redo log (log_reader.h), and counts how often they fetch bytes.
// Thread-safety: all methods from any thread; a reader by one thread at a time.
// Ownership: all constructor arguments outlive it, and it outlives its readers.
#ifndef TC_REDO_LOG_LOG_READERS_H_
#define TC_REDO_LOG_LOG_READERS_H_

#include <cstdint>
#include <memory>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/log_reader.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_writer.h"
#include "tc/redo_log/record_source.h"
#include "tc/redo_log/segment_set.h"

namespace deut::tc {

class LogReaders {
 public:
  LogReaders(Runtime& runtime, const LogRing& ring, LogWriter& writer, SegmentSet& segments)
      : runtime_(runtime), ring_(ring), writer_(writer), segments_(segments) {}
  LogReaders(const LogReaders&) = delete;
  LogReaders& operator=(const LogReaders&) = delete;

  // As RedoLog::NewReader.
  std::unique_ptr<LogReader> NewReader(Lsn from);

  // Fetches of all readers. Each serves many records.
  uint64_t fills_from_ring() const { return counters_.from_ring.load(std::memory_order_relaxed); }
  uint64_t fills_from_disk() const { return counters_.from_disk.load(std::memory_order_relaxed); }

 private:
  RecordSource NewSource() { return RecordSource(ring_, writer_, segments_, counters_); }

  Runtime& runtime_;
  const LogRing& ring_;
  LogWriter& writer_;
  SegmentSet& segments_;
  RecordSourceCounters counters_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_READERS_H_
