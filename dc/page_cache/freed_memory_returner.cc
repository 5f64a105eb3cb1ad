#include "dc/page_cache/freed_memory_returner.h"

#include <algorithm>
#include <utility>

namespace deut::dc {

FreedMemoryReturner::FreedMemoryReturner(Runtime& runtime, const MemoryBudget& budget,
                                         std::function<uint64_t()> resident_bytes, std::function<void()> return_freed)
    : runtime_(runtime),
      budget_(budget),
      resident_bytes_(std::move(resident_bytes)),
      return_freed_(std::move(return_freed)) {}

uint64_t FreedMemoryReturner::Unaccounted() const {
  const uint64_t accounted = budget_.accounted();
  const uint64_t resident = resident_bytes_();
  return resident > accounted ? resident - accounted : 0;
}

void FreedMemoryReturner::RunIfDue() {
  const MonotonicTime now = runtime_.Now();
  if (now < next_) return;
  next_ = now + kInterval;
  const uint64_t unaccounted = Unaccounted();
  least_unaccounted_ = std::min(least_unaccounted_, unaccounted);
  if (unaccounted < least_unaccounted_ + std::max(kMinReturnedBytes, budget_.limit() / 16)) return;
  return_freed_();
  // The rest belongs to other parts of the process, or is held by fragments: to return memory again would not help.
  least_unaccounted_ = Unaccounted();
}

}  // namespace deut::dc
