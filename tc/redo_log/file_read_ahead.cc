#include "tc/redo_log/file_read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace deut::tc {

Result<size_t> FileReadAhead::Read(File& file, uint64_t offset, char* data, size_t bytes, uint64_t limit) {
  DEUT_DCHECK(offset + bytes <= limit);
  const bool goes_on =
      file_ == &file && offset <= read_ && (pieces_.empty() ? read_ > 0 : offset >= pieces_.front()->request.offset);
  if (!goes_on) {
    Clear();
    file_ = &file;
    read_ = offset + bytes;
    return file.Read(offset, data, bytes);
  }
  read_ = offset + bytes;
  // Pieces before `offset` are dropped: they are not read again. Later pieces may be.
  while (!pieces_.empty() && pieces_.front()->end() <= offset) DropFirst();
  if (pieces_.empty()) next_ = offset;
  size_t copied = 0;
  for (size_t i = 0; copied < bytes; ++i) {
    while (next_ < limit && pieces_.size() - i < depth_) DEUT_RETURN_IF_ERROR(Submit(limit));
    if (i == pieces_.size()) break;
    const Piece& piece = *pieces_[i];
    while (!piece.done) Reap();
    DEUT_RETURN_IF_ERROR(piece.request.status);
    const size_t skip = offset + copied - piece.request.offset;
    const size_t there = piece.request.transferred;
    const size_t some = std::min(there - std::min(there, skip), bytes - copied);
    std::memcpy(data + copied, piece.buffer.data() + skip, some);
    copied += some;
    if (there < piece.request.bytes) break;  // the end of the file
  }
  return copied;
}

Status FileReadAhead::Submit(uint64_t limit) {
  auto piece = std::make_unique<Piece>();
  if (!spare_.empty()) {
    piece->buffer = std::move(spare_.back());
    spare_.pop_back();
  } else {
    piece->buffer = AlignedBuffer(piece_bytes_);
  }
  piece->request = IoRequest{.kind = IoRequest::Kind::kRead,
                             .file = file_,
                             .offset = next_,
                             .data = piece->buffer.data(),
                             .bytes = std::min<uint64_t>(piece_bytes_, limit - next_),
                             .context = piece.get()};
  DEUT_RETURN_IF_ERROR(queue_->Submit(&piece->request));
  DEUT_DCHECK(pieces_.empty() || pieces_.back()->end() == piece->request.offset);
  next_ = piece->end();
  pieces_.push_back(std::move(piece));
  return Status::Ok();
}

void FileReadAhead::Reap() {
  completed_.clear();
  queue_->Reap(&completed_, kNoDeadline);
  for (IoRequest* request : completed_) static_cast<Piece*>(request->context)->done = true;
}

void FileReadAhead::DropFirst() {
  while (!pieces_.front()->done) Reap();
  spare_.push_back(std::move(pieces_.front()->buffer));
  pieces_.pop_front();
}

void FileReadAhead::Clear() {
  while (!pieces_.empty()) DropFirst();
  file_ = nullptr;
  read_ = 0;
}

}  // namespace deut::tc
