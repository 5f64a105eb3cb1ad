// DiskReserve: the part of the disk's free space that is reserved for work that frees space (space_use.h). It decides
// whether an appender may append, and logs when the disk is too full for ordinary parts. Internal to the page store.
// The reserve consists of `reserve_bytes` and of room for the next checkpoint's file.
// An appender asks before each `segment_bytes` that it appends (a step): for a new segment, and again within a long
// one. So it is at most one step beyond its last look, whatever the length of its segment, and no room need be set
// aside for the rest of segments that are being written.
// Thread-safety: all methods from any thread. Ownership: borrows storage and runtime.
// Errors: RESOURCE_EXHAUSTED names the folder, its free bytes and the reserved ones.
#ifndef DC_PAGE_STORE_DISK_RESERVE_H_
#define DC_PAGE_STORE_DISK_RESERVE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/observe/episode_log.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {

class DiskReserve {
 public:
  // `reserve_bytes` 0: nothing is reserved, and every segment may be made. `segment_bytes`: length of a short segment.
  DiskReserve(Storage& storage, Runtime& runtime, std::string directory, uint64_t reserve_bytes,
              uint64_t segment_bytes);
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  // Checks whether `segment_bytes` may be appended for this use. `has_dead_segment`: whether some segment is dead, so
  // that the next checkpoints will free space; it is called only if that matters.
  Status Check(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment);
  // The free bytes that this use may take; UINT64_MAX without a reserve, 0 if the disk does not tell its free bytes.
  // For kReclaim it always calls `has_dead_segment`.
  uint64_t RoomFor(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment) const;
  // The length of a new segment: `longest`, halved until kSegmentsBegun of them have room beyond the reserve, or it is
  // that of a short one. So the appenders' segments shrink together as the disk becomes full, and the bytes that die in
  // open segments stay few. REQUIRES: `longest` is `segment_bytes` times a power of two.
  uint64_t LengthWithRoom(uint64_t longest) const;
  // True if ordinary parts are refused, or will be after a few more steps.
  bool IsShort() const;

  // Reserves room for the next checkpoint's file, of about this size.
  void ReserveForCheckpoint(uint64_t bytes) { checkpoint_bytes_.store(bytes, std::memory_order_relaxed); }
  // All reserved bytes.
  uint64_t bytes() const {
    return reserve_bytes_ == 0 ? 0 : reserve_bytes_ + checkpoint_bytes_.load(std::memory_order_relaxed);
  }

 private:
  // The data component has six appenders (two each of the page evictor, the checkpointer and the cleaner), and may
  // begin its next segments before the last ones are full.
  static constexpr uint64_t kSegmentsBegun = 8;

  // Bytes of the reserve that this use leaves free.
  uint64_t BytesKept(SpaceUse use, bool some_segment_is_dead) const;

  Storage& storage_;
  const std::string directory_;
  const uint64_t reserve_bytes_;
  const uint64_t segment_bytes_;
  std::atomic<uint64_t> checkpoint_bytes_{0};
  EpisodeLog full_log_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_DISK_RESERVE_H_
