#include "dc/page_cache/load_queue.h"

#include <deque>

#include "common/base/check.h"

namespace deut::dc {

LoadQueue::Lane LoadQueue::LaneOf(const LeafLoad& load) {
  if (load.urgency == LoadUrgency::kNow) return Lane::kUrgent;
  return load.waiters.empty() ? Lane::kAhead : Lane::kPatient;
}

void LoadQueue::Push(LeafLoad* load) {
  load->waiting = true;
  LoadsOf(LaneOf(*load)).push_back(load);
}

void LoadQueue::PutBack(LeafLoad* load) {
  load->waiting = true;
  LoadsOf(LaneOf(*load)).push_front(load);
}

void LoadQueue::Move(LeafLoad* load, Lane from) {
  DEUT_DCHECK(load->waiting);
  if (LaneOf(*load) == from) return;
  const size_t removed = std::erase(LoadsOf(from), load);
  DEUT_CHECK(removed == 1);
  Push(load);
}

LeafLoad* LoadQueue::PopFrom(std::deque<LeafLoad*>& loads) {
  LeafLoad* const load = loads.front();
  loads.pop_front();
  load->waiting = false;
  return load;
}

LeafLoad* LoadQueue::Next(absl::FunctionRef<bool(LoadAdmission)> has_memory) {
  if (patient_.empty()) urgent_in_a_row_ = 0;
  if (!urgent_.empty()) {
    if (urgent_in_a_row_ >= kUrgentPerPatient) {
      urgent_in_a_row_ = 0;
      if (has_memory(LoadAdmission::kOverdue)) return PopFrom(patient_);
    }
    ++urgent_in_a_row_;
    return PopFrom(urgent_);
  }
  if (!patient_.empty()) {
    if (!has_memory(LoadAdmission::kOrdinary)) return nullptr;
    urgent_in_a_row_ = 0;
    return PopFrom(patient_);
  }
  if (ahead_.empty() || !has_memory(LoadAdmission::kSpeculative)) return nullptr;
  return PopFrom(ahead_);
}

LeafLoad* LoadQueue::TakeAhead() { return ahead_.empty() ? nullptr : PopFrom(ahead_); }

}  // namespace deut::dc
