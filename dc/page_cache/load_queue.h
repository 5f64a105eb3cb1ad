// LoadQueue: the loads of a LoadThread that wait to begin, and their order. Internal to PageLoader.
//
//   lane       loads                                   they wait for
//   urgent     LoadUrgency::kNow                       a place
//   patient    a continuation waits for them           a place, no urgent load, memory
//   ahead      nobody waits for them                   a place, no load of the other lanes. They never wait for memory
// First in, first out within a lane.
// Fairness. Urgent loads could pass a patient one for ever: each takes the room that the patient one waits for. So
//   after kUrgentPerPatient of them, the first patient load goes next. It is admitted as kOverdue, which counts memory
//   as the callers of urgent loads do. If there is none, it waits for as many again. So loads that free memory are
//   delayed by one read in kUrgentPerPatient at most.
// Thread-safety: none. Ownership: borrows the loads.
#ifndef DC_PAGE_CACHE_LOAD_QUEUE_H_
#define DC_PAGE_CACHE_LOAD_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/functional/function_ref.h"
#include "dc/page_cache/leaf_load.h"
#include "dc/page_cache/load_waiter.h"

namespace deut::dc {

class LoadQueue {
 public:
  enum class Lane : uint8_t { kUrgent, kPatient, kAhead };
  static constexpr size_t kUrgentPerPatient = 16;

  static Lane LaneOf(const LeafLoad& load);
  void Push(LeafLoad* load);
  // For a load that was taken and cannot begin yet.
  void PutBack(LeafLoad* load);
  // The load has got a waiter, or has become urgent. `from`: the lane in which it is.
  void Move(LeafLoad* load, Lane from);
  // Removes and returns the load that begins next. Null: there is none, or it waits for memory.
  LeafLoad* Next(absl::FunctionRef<bool(LoadAdmission)> has_memory);
  // Removes and returns a load that nobody waits for. Null: there is none.
  LeafLoad* TakeAhead();

 private:
  std::deque<LeafLoad*>& LoadsOf(Lane lane) {
    return lane == Lane::kUrgent ? urgent_ : lane == Lane::kPatient ? patient_ : ahead_;
  }
  static LeafLoad* PopFrom(std::deque<LeafLoad*>& loads);

  std::deque<LeafLoad*> urgent_;
  std::deque<LeafLoad*> patient_;
  std::deque<LeafLoad*> ahead_;
  size_t urgent_in_a_row_ = 0;  // taken while a patient load was waiting, and none was taken
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_QUEUE_H_
