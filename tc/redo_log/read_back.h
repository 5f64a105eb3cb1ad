// ReadBack: reads single values out of the durable log, for an owner that keeps their places instead of the values
// (rule S9). It takes them from the ring while they are there, otherwise from the segment files, whose blocks it
// verifies. It caches file content in pieces of consecutive blocks, so that neighbouring values are read once. The
// least recently used piece is evicted first.
//
// S2. The files hold everything from the redo start on. A place before that is NOT_FOUND, also if its file is reused
// during the read: then the commit is stable at the DCs.
// Thread-safety: any thread. The mutex is held to look a piece up or to insert one, never over input. Two threads
// that miss the same piece both read it.
// Ownership: all constructor arguments outlive it.
#ifndef TC_REDO_LOG_READ_BACK_H_
#define TC_REDO_LOG_READ_BACK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_writer.h"
#include "tc/redo_log/segment_set.h"

namespace deut::tc {

class ReadBack {
 public:
  // Caches at most `max_cached_bytes`, or a single piece that is larger.
  ReadBack(size_t max_cached_bytes, Runtime& runtime, const LogRing& ring, const LogWriter& writer,
           SegmentSet& segments)
      : max_cached_bytes_(max_cached_bytes), ring_(ring), writer_(writer), segments_(segments), mutex_(runtime) {}

  // As RedoLog::ReadValue.
  Status Read(const LoggedPut& put, std::string* value);

  uint64_t from_ring() const { return from_ring_.load(std::memory_order_relaxed); }
  uint64_t from_cache() const { return from_cache_.load(std::memory_order_relaxed); }
  uint64_t from_disk() const { return from_disk_.load(std::memory_order_relaxed); }

 private:
  // Payloads of successive blocks of one file.
  struct Piece {
    Lsn first;
    std::string bytes;
    Lsn end() const { return Lsn(first.value + bytes.size()); }
  };
  using PiecePointer = std::shared_ptr<const Piece>;
  struct CachedPiece {
    PiecePointer piece;
    uint64_t used = 0;
  };

  bool ReadRing(const LoggedPut& put, Lsn end, std::string* bytes) const;
  // Returns the cached piece with [from, end), or null.
  PiecePointer Find(Lsn from, Lsn end);
  void Insert(PiecePointer piece);
  // Reads a piece with [from, end) from its file.
  Result<PiecePointer> Load(Lsn from, Lsn end);

  const size_t max_cached_bytes_;
  const LogRing& ring_;
  const LogWriter& writer_;
  SegmentSet& segments_;
  std::atomic<uint64_t> from_ring_{0}, from_cache_{0}, from_disk_{0};

  Mutex mutex_;
  std::map<uint64_t, CachedPiece> pieces_ DEUT_GUARDED_BY(mutex_);  // by first LSN
  size_t cached_bytes_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t uses_ DEUT_GUARDED_BY(mutex_) = 0;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_READ_BACK_H_
