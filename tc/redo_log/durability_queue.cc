#include "tc/redo_log/durability_queue.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

class DurabilityQueue::Closed final : public DurabilityCallback {
 public:
  void OnDurable(const Status& /*status*/) override {}
};

DurabilityCallback* DurabilityQueue::ClosedMark() {
  static Closed* const closed = new Closed;  // never destroyed: a log may outlive a static object
  return closed;
}

bool DurabilityQueue::Register(Lsn lsn, DurabilityCallback* waiter) {
  waiter->lsn_ = lsn;
  DurabilityCallback* top = top_.load(std::memory_order_seq_cst);
  for (;;) {
    if (top == ClosedMark()) return false;
    waiter->next_ = top;
    DEUT_POINT("redo_log.waiters.before_cas");
    if (DEUT_CAS_FAILS("redo_log.waiters.cas")) {
      top = top_.load(std::memory_order_seq_cst);
      continue;
    }
    if (top_.compare_exchange_strong(top, waiter, std::memory_order_seq_cst)) return true;
  }
}

void DurabilityQueue::MoveToHeap(DurabilityCallback* list) {
  const auto later = [](const DurabilityCallback* a, const DurabilityCallback* b) { return a->lsn_ > b->lsn_; };
  while (list != nullptr) {
    DurabilityCallback* const next = list->next_;
    heap_.push_back(list);
    std::push_heap(heap_.begin(), heap_.end(), later);
    list = next;
  }
}

size_t DurabilityQueue::Answer(Lsn durable, const Status& others) {
  const auto later = [](const DurabilityCallback* a, const DurabilityCallback* b) { return a->lsn_ > b->lsn_; };
  size_t answered = 0;
  Lsn last;
  while (!heap_.empty()) {
    DurabilityCallback* const first = heap_.front();
    const bool reached = first->lsn_ < durable;
    if (!reached && others.ok()) break;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    DEUT_DCHECK(last <= first->lsn_);  // earlier commits are answered first
    last = first->lsn_;
    first->OnDurable(reached ? Status::Ok() : others);  // may destroy it
    ++answered;
  }
  return answered;
}

size_t DurabilityQueue::CollectAndAnswer(Lsn durable, const Status& others) {
  if (HasNew()) MoveToHeap(top_.exchange(nullptr, std::memory_order_seq_cst));
  return Answer(durable, others);
}

void DurabilityQueue::Close(Lsn durable, const Status& others) {
  DurabilityCallback* const list = top_.exchange(ClosedMark(), std::memory_order_seq_cst);
  if (list != ClosedMark()) MoveToHeap(list);
  Answer(durable, others);
  DEUT_CHECK(heap_.empty());  // nobody would ever answer a waiter that is left
}

}  // namespace deut::tc
