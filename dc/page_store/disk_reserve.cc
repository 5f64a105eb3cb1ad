#include "dc/page_store/disk_reserve.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"

namespace deut::dc {

DiskReserve::DiskReserve(Storage& storage, Runtime& runtime, std::string directory, uint64_t reserve_bytes,
                         uint64_t segment_bytes)
    : storage_(storage),
      directory_(std::move(directory)),
      reserve_bytes_(reserve_bytes),
      segment_bytes_(segment_bytes),
      full_log_(runtime) {}

uint64_t DiskReserve::BytesKept(SpaceUse use, bool some_segment_is_dead) const {
  const uint64_t eighth = reserve_bytes_ / 8;
  const uint64_t reserved = bytes();
  uint64_t kept = reserved;
  if (use == SpaceUse::kCheckpoint) kept -= 2 * eighth;
  if (use == SpaceUse::kReclaim) kept -= (some_segment_is_dead ? 4 : 7) * eighth;
  if (use == SpaceUse::kStructure) kept -= reserve_bytes_;
  // No use may take the room for the checkpoint's file, without which nothing can be freed.
  DEUT_CHECK(kept >= reserved - reserve_bytes_ && kept <= reserved);
  return kept;
}

Status DiskReserve::Check(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment) {
  if (reserve_bytes_ == 0) return Status::Ok();
  DEUT_ASSIGN_OR_RETURN(const uint64_t free_bytes, storage_.FreeBytes(directory_));
  uint64_t kept = BytesKept(use, /*some_segment_is_dead=*/true);
  // The search is a pass over all segments, so it is made only if its result matters.
  if (use == SpaceUse::kReclaim && free_bytes < kept + segment_bytes_) kept = BytesKept(use, has_dead_segment());
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

uint64_t DiskReserve::RoomFor(SpaceUse use, absl::FunctionRef<bool()> has_dead_segment) const {
  if (reserve_bytes_ == 0) return UINT64_MAX;
  const Result<uint64_t> free_bytes = storage_.FreeBytes(directory_);
  if (!free_bytes.ok()) return 0;
  return *free_bytes - std::min(*free_bytes, BytesKept(use, use != SpaceUse::kReclaim || has_dead_segment()));
}

uint64_t DiskReserve::LengthWithRoom(uint64_t longest) const {
  if (longest <= segment_bytes_) return segment_bytes_;
  const uint64_t room = RoomFor(SpaceUse::kOrdinary, [] { return false; });
  uint64_t length = longest;
  while (length > segment_bytes_ && length > room / kSegmentsBegun) length /= 2;
  DEUT_CHECK(length >= segment_bytes_);
  return length;
}

bool DiskReserve::IsShort() const {
  if (reserve_bytes_ == 0) return false;
  const Result<uint64_t> free_bytes = storage_.FreeBytes(directory_);
  return free_bytes.ok() && *free_bytes < bytes() + 4 * segment_bytes_;
}

}  // namespace deut::dc
