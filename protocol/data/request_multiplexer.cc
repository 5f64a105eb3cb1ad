#include "protocol/data/request_multiplexer.h"

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

bool SameSender(const wire::Sender& wire, const Sender& sender) {
  return wire.incarnation() == sender.incarnation.value && wire.epoch() == sender.epoch.value &&
         wire.nonce() == sender.nonce && wire.tc() == sender.tc.value;
}

}  // namespace

RequestMultiplexer::Next RequestMultiplexer::Submit(absl::Span<DataRequest* const> requests) {
  size_t accepted = 0;
  Next next = Next::kNotSender;
  {
    MutexLock lock(mutex_);
    for (; accepted < requests.size() && pending_.size() < limits_.outstanding_requests; ++accepted) {
      const uint64_t id = next_id_++;
      requests[accepted]->id = id;
      pending_.emplace(id, requests[accepted]);
      QueueLocked(*requests[accepted], id);
    }
    if (!up_) {
      next = Next::kWakeStream;
    } else if (!sending_ && accepted != 0) {
      sending_ = true;
      next = Next::kSend;
    }
  }
  for (DataRequest* refused : requests.subspan(accepted)) {
    refused->status = DEUT_ERROR(kResourceExhausted, limits_.outstanding_requests,
                                 " requests to the data component are waiting for an answer already")
                          .WithRetryAfter(1);
    refused->Finish(runtime_);
  }
  return next;
}

wire::DataRequests* RequestMultiplexer::OpenMessageLocked(const Sender& sender, size_t bytes) {
  if (!queue_.empty()) {
    wire::DataRequests& last = queue_.back();
    if (last.items_size() < limits_.message_requests && last_bytes_ + bytes <= limits_.message_bytes &&
        SameSender(last.sender(), sender)) {
      last_bytes_ += bytes;
      return &last;
    }
  }
  if (spare_.empty()) {
    queue_.emplace_back();
  } else {
    queue_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  ToWire(sender, queue_.back().mutable_sender());
  last_bytes_ = bytes;
  return &queue_.back();
}

void RequestMultiplexer::QueueLocked(const DataRequest& request, uint64_t id) {
  ToWire(request, id, OpenMessageLocked(request.sender, WireBytes(request))->add_items());
}

bool RequestMultiplexer::TakeMessage(wire::DataRequests* message) {
  message->Clear();
  MutexLock lock(mutex_);
  DEUT_CHECK(sending_);
  if (queue_.empty()) {
    sending_ = false;
    return false;
  }
  message->Swap(&queue_.front());
  if (spare_.size() < 4) spare_.push_back(std::move(queue_.front()));
  queue_.pop_front();
  return true;
}

RequestMultiplexer::Next RequestMultiplexer::Up() {
  MutexLock lock(mutex_);
  DEUT_CHECK(!up_ && !sending_);
  up_ = true;
  if (queue_.empty()) return Next::kNotSender;
  sending_ = true;
  return Next::kSend;
}

bool RequestMultiplexer::StopSending() {
  MutexLock lock(mutex_);
  up_ = false;
  return sending_;
}

void RequestMultiplexer::ReleaseSenderRole() {
  MutexLock lock(mutex_);
  DEUT_CHECK(!up_ && sending_);
  sending_ = false;
}

void RequestMultiplexer::FailAll(const Status& status) {
  completions_.clear();
  {
    MutexLock lock(mutex_);
    DEUT_CHECK(!up_ && !sending_);
    for (const auto& [id, request] : pending_) completions_.emplace_back(request, 0);
    pending_.clear();
    queue_.clear();
    completing_.fetch_add(1, std::memory_order_seq_cst);
  }
  for (const auto& [request, index] : completions_) {
    request->answer.Clear();
    request->status = status;
    request->Finish(runtime_);
  }
  EndCompleting();
}

void RequestMultiplexer::Answered(wire::DataAnswers* answers) {
  completions_.clear();
  {
    MutexLock lock(mutex_);
    for (int i = 0; i < answers->items_size(); ++i) {
      const auto found = pending_.find(answers->items(i).id());
      if (found == pending_.end()) continue;
      completions_.emplace_back(found->second, i);
      pending_.erase(found);
    }
    completing_.fetch_add(1, std::memory_order_seq_cst);
  }
  DEUT_POINT("request_multiplexer.completing");
  const DcIncarnation answered_by(answers->incarnation());
  for (const auto& [request, index] : completions_) {
    FromWire(answers->mutable_items(index), answered_by, request);
    request->Finish(runtime_);
  }
  EndCompleting();
}

void RequestMultiplexer::EndCompleting() {
  // This thread raises completing_, then reads abandoners_. Abandon does it in the other order. So either this thread
  // sees the abandoner and wakes it, or the abandoner sees the new number.
  completing_.fetch_add(1, std::memory_order_seq_cst);
  if (abandoners_.load(std::memory_order_seq_cst) != 0) runtime_.WakeAll(completing_);
}

void RequestMultiplexer::Abandon(DataRequest* request) {
  uint32_t completing = 0;
  {
    MutexLock lock(mutex_);
    // The id is that of the last Submit, perhaps to another multiplexer, or 0.
    if (const auto found = pending_.find(request->id); found != pending_.end() && found->second == request) {
      pending_.erase(found);
      return;
    }
    completing = completing_.load(std::memory_order_seq_cst);
  }
  if (completing % 2 == 0) return;
  abandoners_.fetch_add(1, std::memory_order_seq_cst);
  while (completing_.load(std::memory_order_seq_cst) == completing) runtime_.Wait(completing_, completing, kNoDeadline);
  abandoners_.fetch_sub(1, std::memory_order_seq_cst);
}

bool RequestMultiplexer::HasQueued() {
  MutexLock lock(mutex_);
  return !queue_.empty();
}

size_t RequestMultiplexer::outstanding() {
  MutexLock lock(mutex_);
  return pending_.size();
}

}  // namespace deut
