// MemoryBudget: the bytes that the pages of a data component may take, and the levels at which the evictor and other
// threads act.
//
//   level         of the limit   above it
//   low mark      13/16          a round of the evictor continues
//   high mark     7/8            the evictor works
//   apply limit   15/16          threads that apply the log wait
//   limit         1              all threads that bring in data wait
//
// Thread-safety: all methods from any thread, as `used`. Ownership: a value.
#ifndef DC_PAGE_CACHE_MEMORY_BUDGET_H_
#define DC_PAGE_CACHE_MEMORY_BUDGET_H_

#include <cstdint>
#include <functional>
#include <utility>

namespace deut::dc {

class MemoryBudget {
 public:
  // `used`: returns the bytes that count against `limit`. `limit` 0: there is none.
  MemoryBudget(std::function<uint64_t()> used, uint64_t limit)
      : used_(std::move(used)), limit_(limit), high_mark_(limit / 8 * 7), low_mark_(limit / 16 * 13) {}

  bool unlimited() const { return limit_ == 0; }
  uint64_t limit() const { return limit_; }
  uint64_t apply_limit() const { return limit_ - limit_ / 16; }

  uint64_t used() const { return used_(); }
  // Both are false without a limit.
  // `pending`: those of the used bytes that are retired. They become free without the evictor.
  bool IsExceededWithout(uint64_t pending) const { return !unlimited() && used_() > limit_ + pending; }
  bool IsOverHighMark() const { return !unlimited() && used_() > high_mark_; }
  // REQUIRES: a limit.
  bool IsOverLowMark() const { return used_() > low_mark_; }

 private:
  const std::function<uint64_t()> used_;
  const uint64_t limit_;
  const uint64_t high_mark_;
  const uint64_t low_mark_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_MEMORY_BUDGET_H_
