#include "protocol/transactions/one_shot_multiplexer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

// Memory that is kept for reuse: the number of messages, and the most bytes of a call in them.
constexpr size_t kSpareMessages = 4;
constexpr size_t kKeptBytes = 4 << 10;

}  // namespace

bool OneShotMultiplexer::DoneLocked(OneShotCall* call) {
  call->done = true;
  return --call->group->left == 0;
}

OneShotMultiplexer::Next OneShotMultiplexer::Submit(absl::Span<OneShotCall> calls) {
  Next next = Next::kNotSender;
  OneShotGroup* done = nullptr;
  {
    MutexLock lock(mutex_);
    if (!up_) return Next::kDown;
    for (OneShotCall& call : calls) {
      if (calls_.size() < limits_.outstanding_calls && queued_ < limits_.outstanding_calls) {
        QueueLocked(&call);
        continue;
      }
      call.lost = DEUT_ERROR(kResourceExhausted, limits_.outstanding_calls,
                             " transactions of this client are waiting for an answer already")
                      .WithRetryAfter(1);
      if (DoneLocked(&call)) done = call.group;
    }
    next = BecomeSenderLocked();
  }
  if (done != nullptr) done->all_done.Set();  // The caller is its only waiter, so no thread sleeps on it.
  return next;
}

bool OneShotMultiplexer::MaySendLocked() const {
  if (queue_.empty()) return false;
  const wire::OneShotCalls& first = queue_.front().calls;
  return unanswered_.size() < limits_.unanswered_messages || queue_.size() > 1 ||
         queue_.front().bytes >= limits_.message_bytes || first.calls_size() >= limits_.message_calls ||
         first.calls(0).id() < not_held_before_;
}

OneShotMultiplexer::Next OneShotMultiplexer::BecomeSenderLocked() {
  if (!up_ || sending_ || !MaySendLocked()) return Next::kNotSender;
  sending_ = true;
  return Next::kSend;
}

OneShotMultiplexer::Next OneShotMultiplexer::StopHoldingBack(absl::Span<const OneShotCall> calls) {
  MutexLock lock(mutex_);
  for (const OneShotCall& call : calls) {
    if (call.done || call.sent) continue;
    not_held_before_ = std::max(not_held_before_, call.id + 1);
    // Messages that were sent before this call was submitted are slow. They must not hold back calls that come now.
    while (!unanswered_.empty() && unanswered_.front().last < call.id) unanswered_.pop_front();
  }
  return BecomeSenderLocked();
}

void OneShotMultiplexer::QueueLocked(OneShotCall* call) {
  call->id = next_id_++;
  call->message.set_id(call->id);
  calls_.emplace(call->id, call);
  if (queue_.empty() || queue_.back().calls.calls_size() >= limits_.message_calls ||
      queue_.back().bytes + call->bytes > limits_.message_bytes) {
    queue_.emplace_back();
    ++messages_;
    if (!spare_.empty()) {
      queue_.back().calls.Swap(&spare_.back());
      spare_.pop_back();
    }
  }
  call->group->word = &words_[messages_ % kWords];
  Message& message = queue_.back();
  message.bytes += call->bytes;
  message.largest = std::max(message.largest, call->bytes);
  message.calls.add_calls()->Swap(&call->message);
  ++queued_;
}

bool OneShotMultiplexer::TakeMessage(wire::OneShotCalls* message) {
  message->Clear();
  MutexLock lock(mutex_);
  DEUT_CHECK(sending_);
  // Checked once: a message whose calls were all abandoned is skipped, and the next one may be sent in its place.
  const bool may = MaySendLocked();
  while (may && !queue_.empty()) {
    Message& next = queue_.front();
    message->Swap(&next.calls);
    // `next.calls` is now the caller's previous message, cleared. Its memory serves a later message, whose submitters swap their calls into it.
    if (sent_largest_ <= kKeptBytes && spare_.size() < kSpareMessages) spare_.push_back(std::move(next.calls));
    sent_largest_ = next.largest;
    queue_.pop_front();
    queued_ -= static_cast<size_t>(message->calls_size());
    // Abandoned calls are left out: their callers already know that nothing was done.
    int kept = 0;
    for (int i = 0; i < message->calls_size(); ++i) {
      const auto found = calls_.find(message->calls(i).id());
      if (found == calls_.end()) continue;
      found->second->sent = true;
      if (kept != i) message->mutable_calls()->SwapElements(kept, i);
      ++kept;
    }
    message->mutable_calls()->DeleteSubrange(kept, message->calls_size() - kept);
    if (kept == 0) continue;
    unanswered_.push_back({.first = message->calls(0).id(), .last = message->calls(kept - 1).id()});
    return true;
  }
  sending_ = false;
  return false;
}

void OneShotMultiplexer::Up() {
  MutexLock lock(mutex_);
  DEUT_CHECK(!up_ && !sending_);
  up_ = true;
}

bool OneShotMultiplexer::StopSending() {
  MutexLock lock(mutex_);
  up_ = false;
  return sending_;
}

void OneShotMultiplexer::ReleaseSenderRole() {
  MutexLock lock(mutex_);
  DEUT_CHECK(!up_ && sending_);
  sending_ = false;
}

void OneShotMultiplexer::FailAll(const Status& status) {
  finished_.clear();
  {
    MutexLock lock(mutex_);
    DEUT_CHECK(!up_ && !sending_);
    for (const auto& [id, call] : calls_) {
      call->lost = status;
      if (DoneLocked(call)) finished_.push_back(call->group);
    }
    calls_.clear();
    queue_.clear();
    queued_ = 0;
    unanswered_.clear();
  }
  WakeFinished();
}

OneShotMultiplexer::Next OneShotMultiplexer::Answered(wire::OneShotAnswers* answers) {
  finished_.clear();
  {
    MutexLock lock(mutex_);
    for (wire::OneShotAnswer& answer : *answers->mutable_answers()) {
      const auto found = calls_.find(answer.id());
      if (found == calls_.end()) continue;
      OneShotCall* const call = found->second;
      if (call->answered == call->parts.size()) call->parts.emplace_back();
      wire::SessionAnswer& part = call->parts[call->answered++];
      part.Swap(answer.mutable_answer());
      if (part.more()) continue;
      calls_.erase(found);
      if (DoneLocked(call)) finished_.push_back(call->group);
    }
  }
  WakeFinished();
  // The next message is released only after the callers were woken: their next calls then go into that message.
  MutexLock lock(mutex_);
  for (const wire::OneShotAnswer& answer : answers->answers()) {
    const auto found =
        std::ranges::partition_point(unanswered_, [&](const Ids& ids) { return ids.last < answer.id(); });
    if (found != unanswered_.end() && found->first <= answer.id()) unanswered_.erase(found);
  }
  return BecomeSenderLocked();
}

void OneShotMultiplexer::WakeFinished() {
  BatchedEvent::Word* to_wake = nullptr;
  for (OneShotGroup* group : finished_) {
    BatchedEvent::Word* const word = group->word;  // Once it is set the group may be gone.
    if (to_wake != nullptr && word != to_wake) to_wake->Wake(runtime_);
    to_wake = word;
    group->all_done.Set();
  }
  if (to_wake != nullptr) to_wake->Wake(runtime_);
}

bool OneShotMultiplexer::Abandon(absl::Span<OneShotCall> calls, const Status& lost) {
  bool last = false;
  MutexLock lock(mutex_);
  for (OneShotCall& call : calls) {
    if (call.done) continue;
    calls_.erase(call.id);
    call.lost = lost;
    last = DoneLocked(&call);
  }
  return last;
}

size_t OneShotMultiplexer::outstanding() {
  MutexLock lock(mutex_);
  return calls_.size();
}

}  // namespace deut
