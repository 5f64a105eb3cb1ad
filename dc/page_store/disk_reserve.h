// DiskReserve: the part of the disk's free space that is reserved for work that frees space (space_use.h). It decides
// whether a new segment may be made, and logs when the disk is too full for ordinary ones. Internal to the page store.
// The reserve consists of `reserve_bytes` and of room for the next checkpoint's file.
// Long segments (longer than `segment_bytes`) never take from the reserve, whatever their use. The room that open long
// segments may still fill is promised to their appenders. It is at the disposal of no other ordinary segment, and of no
// other long one. Otherwise the appenders would fill the reserve later, when nothing checks them.
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
  // `reserve_bytes` 0: nothing is reserved, and every segment may be made. `segment_bytes`: size of a short segment.
  DiskReserve(Storage& storage, Runtime& runtime, std::string directory, uint64_t reserve_bytes,
              uint64_t segment_bytes);
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  // Checks whether a short segment may be made for this use. `has_dead_segment`: whether some segment is dead, so that the
  // next checkpoints will free space; it is called only if that matters.
  Status Check(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment);
  // True if a long segment of this size may be made.
  bool HasRoomForLong(uint64_t bytes) const;
  // True if ordinary segments are refused, or will be after a few more.
  bool IsShort() const;

  // Reserves room for the next checkpoint's file, of about this size.
  void ReserveForCheckpoint(uint64_t bytes) { checkpoint_bytes_.store(bytes, std::memory_order_relaxed); }
  // Counts room that open long segments may still fill beyond the size of a short one.
  void Promise(uint64_t bytes) { promised_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void EndPromise(uint64_t bytes);
  uint64_t promised_bytes() const;
  // All reserved bytes, without the promised ones.
  uint64_t bytes() const {
    return reserve_bytes_ == 0 ? 0 : reserve_bytes_ + checkpoint_bytes_.load(std::memory_order_relaxed);
  }

 private:
  // Bytes of the reserve, and promised ones, that this use leaves free.
  uint64_t BytesKept(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment) const;

  Storage& storage_;
  const std::string directory_;
  const uint64_t reserve_bytes_;
  const uint64_t segment_bytes_;
  std::atomic<uint64_t> checkpoint_bytes_{0};
  std::atomic<uint64_t> promised_bytes_{0};
  EpisodeLog full_log_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_DISK_RESERVE_H_
