#include "tc/server/one_shot_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/testing/test_points.h"

namespace deut::tc {

void OneShotQueue::Add(OneShotBatch* batch) {
  batch->left = batch->size();
  for (int i = 0; i < batch->left; ++i) calls_.push_back(QueuedOneShot{.batch = batch, .index = i});
}

QueuedOneShot OneShotQueue::TakeFirst() {
  QueuedOneShot call = std::move(calls_.front());
  calls_.pop_front();
  return call;
}

std::vector<QueuedOneShot> OneShotQueue::TakeUnexamined(size_t most) {
  std::vector<QueuedOneShot> taken;
  while (!calls_.empty() && !calls_.front().examined && taken.size() < most) {
    taken.push_back(TakeFirst());
    taken.back().examined = true;
  }
  return taken;
}

void OneShotQueue::PutFirst(absl::Span<QueuedOneShot> calls) {
  const auto behind =
      std::ranges::stable_partition(calls, [](const QueuedOneShot& call) { return call.begun != nullptr; });
  const auto begun_end = std::ranges::find_if(calls_, [](const QueuedOneShot& call) { return call.begun == nullptr; });
  calls_.insert(begun_end, std::move_iterator(behind.begin()), std::move_iterator(behind.end()));
  calls_.insert(calls_.begin(), std::move_iterator(calls.begin()), std::move_iterator(behind.begin()));
}

void OneShotQueue::EndBegun() {
  for (QueuedOneShot& call : calls_) {
    if (call.begun == nullptr || DEUT_OMITTED("L1.begun_ends_before_writing")) return;
    call.begun.reset();
  }
}

void OneShotQueue::Drop(absl::Span<const QueuedOneShot> calls) {
  for (const QueuedOneShot& call : calls) --call.batch->left;
}

void OneShotQueue::DropAll() {
  for (const QueuedOneShot& call : calls_) --call.batch->left;
  calls_.clear();
}

}  // namespace deut::tc
