// LogReader: reads the durable records of the redo log in LSN order, across segments, and follows the log as it
// grows. It takes recent records from the ring and older ones from the segment files. It serves shipping, redo after
// a DC restart, and reading chunks back.
// Thread-safety: one thread at a time per reader; any number of readers. Ownership: ends before its RedoLog.
#ifndef TC_REDO_LOG_LOG_READER_H_
#define TC_REDO_LOG_LOG_READER_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/time.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {

class LogReader {
 public:
  virtual ~LogReader() = default;

  // Returns the record at position(), and waits until it is durable. `record` and its views live until the next call
  // on this reader.
  //   DEADLINE_EXCEEDED: nothing more is durable yet; call again. CANCELLED: the log was stopped.
  //   IO_ERROR: the log failed, or a read did. NOT_FOUND: the position was trimmed.
  //   CORRUPTION: names file and offset; position() stays.
  virtual Status Next(LogRecord* record, Deadline deadline) = 0;

  // LSN of the record that Next returns next.
  virtual Lsn position() const = 0;

  // Continues at `lsn`, a record's LSN.
  virtual void Seek(Lsn lsn) = 0;

  // Reads back one chunk of `commit`; `lsn` is one of its list. position() does not matter and does not change.
  // CORRUPTION if no chunk of that transaction is there. `commit` stays valid; `chunk` and its views live until the
  // next ReadChunk on this reader.
  virtual Status ReadChunk(const LogRecord& commit, Lsn lsn, LogRecord* chunk) = 0;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_READER_H_
