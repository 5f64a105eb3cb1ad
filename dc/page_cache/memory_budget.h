// MemoryBudget: the bytes that the pages of a data component may take, and the levels at which the evictor and other
// threads act.
//
//   level         of the limit   above it
//   low mark      13/16          a round of the evictor continues
//   high mark     7/8            the evictor works
//   apply limit   15/16          threads that apply the log wait
//   limit         1              all threads that bring in data wait
//
// The used bytes are the accounted ones, which the component counts exactly, and the counted room. Room is the free
// bytes of the slabs in which pages lie (bwtree/page_memory.h). They are resident, but new pages may fill them. So room
// counts only beyond tolerated_room(). Two things follow, where R is accounted bytes and room together:
//   - Used bytes are the accounted ones or R - tolerated_room(), whichever is more. So R exceeds the limit by at most
//     an eighth (small budgets: kLeastToleratedRoom) while the used bytes keep it, and not at all while the evictor
//     keeps them below the high mark.
//   - To evict a page lowers the accounted bytes, and raises the room by as much. So what evictions leave behind for
//     the next pages, a sixteenth of the limit, does not count. Once room counts, evicting gains nothing before slabs
//     become empty. The evictor then empties slabs (page_evictor.h): BytesToDrain().
//
// Thread-safety: all methods from any thread, as the functions. Ownership: a value.
#ifndef DC_PAGE_CACHE_MEMORY_BUDGET_H_
#define DC_PAGE_CACHE_MEMORY_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

namespace deut::dc {

class MemoryBudget {
 public:
  // Each size class of pages has one span that is not full yet, and each kind of span one slab. That room cannot be
  // emptied, however small the budget is.
  static constexpr uint64_t kLeastToleratedRoom = 32 << 20;

  // `accounted`: returns the bytes that the component counts. `room`: returns the room that belongs to this number of
  // accounted bytes; none: there is none. `limit` 0: there is no limit, and no room counts.
  MemoryBudget(std::function<uint64_t()> accounted, uint64_t limit, std::function<uint64_t(uint64_t)> room = nullptr)
      : accounted_(std::move(accounted)),
        room_(std::move(room)),
        limit_(limit),
        high_mark_(limit / 8 * 7),
        low_mark_(limit / 16 * 13) {}

  bool unlimited() const { return limit_ == 0; }
  uint64_t limit() const { return limit_; }
  uint64_t apply_limit() const { return limit_ - limit_ / 16; }
  uint64_t low_mark() const { return low_mark_; }
  uint64_t tolerated_room() const { return std::max(limit_ / 8, kLeastToleratedRoom); }

  uint64_t accounted() const { return accounted_(); }
  uint64_t used() const {
    const uint64_t accounted = accounted_();
    return accounted + CountedRoom(accounted);
  }
  // Both are false without a limit.
  // `pending`: those of the accounted bytes that are retired. They become free without the evictor.
  bool IsExceededWithout(uint64_t pending) const { return !unlimited() && used() > limit_ + pending; }
  bool IsOverHighMark() const { return !unlimited() && used() > high_mark_; }
  // Bytes that may be brought in before the evictor works; without a limit, any number.
  uint64_t room_below_high_mark() const {
    return unlimited() ? UINT64_MAX : high_mark_ - std::min(high_mark_, used());
  }
  // Bytes of slabs that must be emptied so that the used bytes fall to the low mark. 0: no room counts. At least half
  // the tolerated room is left: to fill that as well would move many bytes for few.
  uint64_t BytesToDrain() const {
    const uint64_t accounted = accounted_();
    const uint64_t counted = CountedRoom(accounted);
    const uint64_t used = accounted + counted;
    return counted == 0 || used <= low_mark_ ? 0 : std::min(used - low_mark_, counted + tolerated_room() / 2);
  }

 private:
  uint64_t CountedRoom(uint64_t accounted) const {
    if (unlimited() || room_ == nullptr) return 0;
    const uint64_t room = room_(accounted);
    return room - std::min(room, tolerated_room());
  }

  const std::function<uint64_t()> accounted_;
  const std::function<uint64_t(uint64_t)> room_;
  const uint64_t limit_;
  const uint64_t high_mark_;
  const uint64_t low_mark_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_MEMORY_BUDGET_H_
