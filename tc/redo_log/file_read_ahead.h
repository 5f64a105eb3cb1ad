// FileReadAhead: reads a file from its beginning to its end with several large reads in flight, for a reader that takes it in order.
//
// The second read of a file that goes on where the first ended begins it: the file is then read in pieces, of which `depth` are in flight or
//   waiting to be taken. Anything else (another file, a jump) is an ordinary read, behind which nothing is read ahead.
// Thread-safety: one thread at a time. Ownership: owns its buffers and its queue; a file must outlive what is in flight: until the next read of
//   another file, Clear, or the end of this object, each of which waits for it.
// Errors: those of the file's reads, when the bytes concerned are asked for; what lies ahead and is never asked for fails nobody.
#ifndef TC_REDO_LOG_FILE_READ_AHEAD_H_
#define TC_REDO_LOG_FILE_READ_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"

namespace deut::tc {

class FileReadAhead {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr size_t kDepth = 8;

  // REQUIRES: `queue` takes `depth` requests; `piece_bytes` is a multiple of kIoAlignment.
  explicit FileReadAhead(std::unique_ptr<IoQueue> queue, size_t piece_bytes = kPieceBytes, size_t depth = kDepth)
      : piece_bytes_(piece_bytes), depth_(depth), queue_(std::move(queue)) {}

  // As File::Read. Nothing at or beyond `limit` is read ahead. REQUIRES: all aligned, offset + bytes <= limit.
  Result<size_t> Read(File& file, uint64_t offset, char* data, size_t bytes, uint64_t limit);
  // Forgets what was read: the file may have changed, or end.
  void Clear();

 private:
  struct Piece {
    IoRequest request;
    AlignedBuffer buffer;
    bool done = false;
    uint64_t end() const { return request.offset + request.bytes; }
  };

  // The next piece.
  Status Submit(uint64_t limit);
  void Reap();
  void DropFirst();

  const size_t piece_bytes_;
  const size_t depth_;
  File* file_ = nullptr;                       // of the last read
  uint64_t read_ = 0;                          // where it ended
  uint64_t next_ = 0;                          // where the next piece begins
  std::deque<std::unique_ptr<Piece>> pieces_;  // of file_, adjacent, in order
  std::vector<AlignedBuffer> spare_;
  std::vector<IoRequest*> completed_;
  std::unique_ptr<IoQueue> queue_;  // ends first, so that the buffers outlive what is in flight
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_FILE_READ_AHEAD_H_
