#include "dc/page_cache/transient_pages.h"

#include <utility>

#include "common/base/check.h"

namespace deut::dc {

void TransientPages::Add(Place place) {
  const MutexLock lock(mutex_);
  if (!parents_.insert(place.parent).second) return;
  places_.push_back(std::move(place));
  if (places_.size() > kMaxPlaces) (void)TakeFirst();
}

std::optional<TransientPages::Place> TransientPages::Take() {
  const MutexLock lock(mutex_);
  return TakeFirst();
}

std::optional<TransientPages::Place> TransientPages::TakeFirst() {
  if (places_.empty()) return std::nullopt;
  Place place = std::move(places_.front());
  places_.pop_front();
  parents_.erase(place.parent);
  DEUT_DCHECK(parents_.size() == places_.size());
  return place;
}

size_t TransientPages::size() const {
  const MutexLock lock(mutex_);
  return places_.size();
}

}  // namespace deut::dc
