#include "dc/page_store/disk_reserve.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"

namespace deut::dc {

DiskReserve::DiskReserve(Storage& storage, Runtime& runtime, std::string directory, uint64_t reserve_bytes,
                         uint64_t segment_bytes)
    : storage_(storage),
      directory_(std::move(directory)),
      reserve_bytes_(reserve_bytes),
      segment_bytes_(segment_bytes),
      full_log_(runtime) {}

uint64_t DiskReserve::BytesKept(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment) const {
  const uint64_t eighth = reserve_bytes_ / 8;
  const uint64_t reserved = bytes();
  uint64_t kept = reserved;
  if (use == SpaceUse::kCheckpoint) kept -= 2 * eighth;
  if (use == SpaceUse::kReclaim) kept -= (has_dead_segment() ? 4 : 7) * eighth;
  if (use == SpaceUse::kStructure) kept -= reserve_bytes_;
  // No use may take the room for the checkpoint's file, without which nothing can be freed.
  DEUT_CHECK(kept >= reserved - reserve_bytes_ && kept <= reserved);
  // The uses that free space do not wait for room that others may never fill.
  return use == SpaceUse::kOrdinary ? kept + promised_bytes() : kept;
}

Status DiskReserve::Check(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment) {
  if (reserve_bytes_ == 0) return Status::Ok();
  const uint64_t kept = BytesKept(use, has_dead_segment);
  DEUT_ASSIGN_OR_RETURN(const uint64_t free_bytes, storage_.FreeBytes(directory_));
  if (free_bytes >= kept + segment_bytes_) {
    if (use == SpaceUse::kOrdinary) {
      full_log_.End(
          [&] { return Concat("disk: pages are written again to ", directory_, ", ", free_bytes, " bytes are free"); });
    }
    return Status::Ok();
  }
  if (use == SpaceUse::kOrdinary) {
    full_log_.Begin([&] {
      return Concat("disk: no room for pages in ", directory_, ": ", free_bytes, " bytes are free, of which ", kept,
                    " are reserved for work that frees space, and a segment takes ", segment_bytes_);
    });
  }
  return DEUT_ERROR(kResourceExhausted, directory_, ": ", free_bytes, " bytes are free, of which ", kept,
                    " are reserved for work that frees space");
}

bool DiskReserve::HasRoomForLong(uint64_t bytes_of_segment) const {
  if (reserve_bytes_ == 0) return true;
  const Result<uint64_t> free_bytes = storage_.FreeBytes(directory_);
  return free_bytes.ok() && *free_bytes >= bytes() + promised_bytes() + bytes_of_segment;
}

uint64_t DiskReserve::promised_bytes() const {
  // Without it, the data component reports room that its own appenders fill before the accepted updates come.
  return DEUT_STEP("X7.promised") ? promised_bytes_.load(std::memory_order_relaxed) : 0;
}

void DiskReserve::EndPromise(uint64_t bytes) {
  const uint64_t before = promised_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  DEUT_CHECK(before >= bytes);
}

bool DiskReserve::IsShort() const {
  if (reserve_bytes_ == 0) return false;
  const Result<uint64_t> free_bytes = storage_.FreeBytes(directory_);
  return free_bytes.ok() && *free_bytes < bytes() + promised_bytes() + 4 * segment_bytes_;
}

}  // namespace deut::dc
