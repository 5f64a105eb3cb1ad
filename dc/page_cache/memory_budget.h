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
//   - To evict a page lowers the accounted bytes, and raises the room by as much. So the room that evictions leave
//     for the next pages, a sixteenth of the limit, does not count. Once room counts, evicting gains nothing before
//     slabs become empty. The evictor then empties slabs (page_evictor.h): BytesToDrain().
//
// The limit is a constant, or changes with what other parts of the process leave (common/sync/process_budget.h). So a
// caller that compares with a level twice asks for it twice, and each method uses one value of it.
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

  // However little other parts of the process leave, a component has this much.
  static constexpr uint64_t kLeastLimit = 8 << 20;

  // `accounted`: returns the bytes that the component counts. `room`: returns the room that belongs to this number of
  // accounted bytes; none: there is none. `limit` 0: there is no limit, and no room counts.
  MemoryBudget(std::function<uint64_t()> accounted, uint64_t limit, std::function<uint64_t(uint64_t)> room = nullptr)
      : accounted_(std::move(accounted)), room_(std::move(room)), limit_(limit) {}
  // `limit`: returns the limit of this moment, which is not 0.
  MemoryBudget(std::function<uint64_t()> accounted, std::function<uint64_t()> limit,
               std::function<uint64_t(uint64_t)> room = nullptr)
      : accounted_(std::move(accounted)), room_(std::move(room)), limit_(0), moving_limit_(std::move(limit)) {}

  // The limit with which accounted bytes, room, and a sixteenth of pages that are being moved (page_evictor.h) take at
  // most `bytes` together. Where the tolerated room is more than its least, accounted bytes and room take at most a
  // twentieth more. (Small figures: unless kLeastLimit and the least room exceed that.) A small budget has no twentieth
  // to give away: what other parts take between two measurements is of the same size.
  static uint64_t LimitWithin(uint64_t bytes) {
    const uint64_t beside_room = bytes - std::min(bytes, kLeastToleratedRoom);
    return std::max(std::min(bytes / 15 * 14, beside_room / 17 * 16), kLeastLimit);
  }

  bool unlimited() const { return limit_ == 0 && moving_limit_ == nullptr; }
  uint64_t limit() const { return moving_limit_ == nullptr ? limit_ : moving_limit_(); }
  uint64_t apply_limit() const {
    const uint64_t limit = this->limit();
    return limit - limit / 16;
  }
  uint64_t low_mark() const { return limit() / 16 * 13; }
  uint64_t tolerated_room() const { return ToleratedRoom(limit()); }

  uint64_t accounted() const { return accounted_(); }
  uint64_t used() const { return Used(limit()); }
  // Both are false without a limit.
  // `pending`: those of the accounted bytes that are retired. They become free without the evictor.
  bool IsExceededWithout(uint64_t pending) const {
    const uint64_t limit = this->limit();
    return !unlimited() && Used(limit) > limit + pending;
  }
  bool IsOverHighMark() const {
    const uint64_t limit = this->limit();
    return !unlimited() && Used(limit) > limit / 8 * 7;
  }
  // Bytes that may be brought in before the evictor works; without a limit, any number.
  uint64_t room_below_high_mark() const {
    const uint64_t limit = this->limit();
    const uint64_t high_mark = limit / 8 * 7;
    return unlimited() ? UINT64_MAX : high_mark - std::min(high_mark, Used(limit));
  }
  // Bytes of slabs that must be emptied so that the used bytes fall to the low mark. 0: no room counts. At least half
  // the tolerated room is left: to fill that as well would move many bytes for few.
  uint64_t BytesToDrain() const {
    const uint64_t limit = this->limit();
    const uint64_t low_mark = limit / 16 * 13;
    const uint64_t accounted = accounted_();
    const uint64_t counted = CountedRoom(accounted, limit);
    const uint64_t used = accounted + counted;
    return counted == 0 || used <= low_mark ? 0 : std::min(used - low_mark, counted + ToleratedRoom(limit) / 2);
  }

 private:
  static uint64_t ToleratedRoom(uint64_t limit) { return std::max(limit / 8, kLeastToleratedRoom); }
  uint64_t Used(uint64_t limit) const {
    const uint64_t accounted = accounted_();
    return accounted + CountedRoom(accounted, limit);
  }
  uint64_t CountedRoom(uint64_t accounted, uint64_t limit) const {
    if (unlimited() || room_ == nullptr) return 0;
    const uint64_t room = room_(accounted);
    return room - std::min(room, ToleratedRoom(limit));
  }

  const std::function<uint64_t()> accounted_;
  const std::function<uint64_t(uint64_t)> room_;
  const uint64_t limit_;
  const std::function<uint64_t()> moving_limit_;  // empty: limit_ is the limit
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_MEMORY_BUDGET_H_
