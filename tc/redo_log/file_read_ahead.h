// FileReadAhead: reads a file from its beginning to its end with several large reads in flight, for a reader that
// takes it in order.
//
// Read-ahead begins at the second read of a file, if it continues where the first one ended. From then on the file is
// read in pieces, of which `depth` are in flight or not consumed yet. Any other read (another file, a jump) is an
// ordinary one, and nothing is read ahead behind it.
// Thread-safety: one thread at a time. Ownership: owns its buffers and its queue. A file must outlive its reads in
// flight: until the next read of another file, Clear, or the destructor, each of which waits for them.
// Errors: those of the file's reads, when the bytes concerned are asked for. A failed read ahead that is never asked
// for is not reported.
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
  // Drops the pieces and waits for reads in flight: the file may have changed, or be about to be closed.
  void Clear();

 private:
  struct Piece {
    IoRequest request;
    AlignedBuffer buffer;
    bool done = false;
    uint64_t end() const { return request.offset + request.bytes; }
  };

  // Submits the read of the next piece.
  Status Submit(uint64_t limit);
  void Reap();
  void DropFirst();

  const size_t piece_bytes_;
  const size_t depth_;
  File* file_ = nullptr;                       // the file of the last read
  uint64_t read_ = 0;                          // offset at which it ended
  uint64_t next_ = 0;                          // offset at which the next piece begins
  std::deque<std::unique_ptr<Piece>> pieces_;  // pieces of file_, adjacent, in order
  std::vector<AlignedBuffer> spare_;
  std::vector<IoRequest*> completed_;
  std::unique_ptr<IoQueue> queue_;  // destroyed first, so that the buffers outlive the reads in flight
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_FILE_READ_AHEAD_H_
