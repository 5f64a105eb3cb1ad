#include "protocol/data/data_stream_handler.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/runtime/blocking_hook.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_status.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {

void DataStreamHandler::RequestNextCall(const DataComponentHost& host, const Request& request) {
  auto* const call = new DataStreamHandler(host, request);
  request(&call->context(), call->stream(), call->accepted());
}

DataStreamHandler::DataStreamHandler(const DataComponentHost& host, const Request& request)
    : RpcCall(host.runtime, host.executor, host.writes),
      host_(host),
      request_(request),
      queue_(host.runtime, std::max(host.data_requests, kGroup)),
      batches_mutex_(host.runtime) {}

void DataStreamHandler::OnAccepted() {
  RequestNextCall(host_, request_);
  if (const Status entered = host_.streams.Enter(context(), &quota_slot_); !entered.ok())
    return End(ToRpcStatus(entered));
  Retain();
  StartRead();
}

void DataStreamHandler::OnRead(bool ok) {
  if (!ok) return Over(Status::Ok());
  const Status valid = CheckFigure("items", incoming().items_size(), 1, kMaxRequestsPerMessage);
  if (!valid.ok()) return Over(valid);
  StoreMessage();
  Work();
}

void DataStreamHandler::StoreMessage() {
  MutexLock lock(batches_mutex_);
  if (free_.empty()) free_.push_back(std::make_unique<Batch>());
  used_.push_back(std::move(free_.back()));
  free_.pop_back();
  batch_ = used_.back().get();
  batch_->message.Swap(&incoming());
  const size_t n = batch_->message.items_size();
  while (batch_->items.size() < n) batch_->items.emplace_back();
  batch_->unwritten = n;
  next_item_ = 0;
}

void DataStreamHandler::Work() {
  const MonotonicTime begin = runtime_.Now();
  const int64_t scans = ScansLeft();
  if (average_scan_time_ * scans > kShareEventLoopAfter) executor().BeforeLongEvent();
  Submitted submitted = Submitted::kAll;
  {
    const std::function<void()> hook = [this] { executor().BeforeBlocking(); };
    const BlockingHook blocking_hook(hook);
    submitted = SubmitAll(begin);
  }
  // The handler is parked, so another thread may already be running it.
  if (submitted == Submitted::kParked) return;
  if (submitted == Submitted::kClosed) return Over(Status::Ok());
  if (queue_.StartWriting(&answered_)) StartMessages();
  if (scans != 0) average_scan_time_ = (3 * average_scan_time_ + (runtime_.Now() - begin) / scans) / 4;
  StartRead();
}

int64_t DataStreamHandler::ScansLeft() const {
  const auto& items = batch_->message.items();
  return std::count_if(items.begin() + static_cast<ptrdiff_t>(next_item_), items.end(),
                       [](const wire::DataItem& item) { return item.kind() == wire::DATA_SCAN; });
}

DataStreamHandler::Submitted DataStreamHandler::SubmitAll(MonotonicTime begin) {
  // A copy, because the batch may be written and given back as soon as its last group is submitted.
  const size_t n = batch_->message.items_size();
  while (next_item_ < n) {
    const size_t group = std::min(kGroup, n - next_item_);
    switch (queue_.Enter(group)) {
      case AnswerQueue::Entered::kYes:
        SubmitGroup(group);
        if (queue_.ready_bytes() >= kAnswerMessageBytes && queue_.StartWriting(&answered_)) StartMessages();
        break;
      case AnswerQueue::Entered::kWriteFirst:
        if (queue_.StartWriting(&answered_)) StartMessages();
        break;
      case AnswerQueue::Entered::kParked:
        return Submitted::kParked;
      case AnswerQueue::Entered::kClosed:
        return Submitted::kClosed;
    }
    if (next_item_ < n && runtime_.Now() - begin > kLeaveEventLoopAfter) executor().BeforeBlocking();
  }
  return Submitted::kAll;
}

void DataStreamHandler::SubmitGroup(size_t n) {
  const Sender sender = FromWire(batch_->message.sender());
  group_.clear();
  refused_.clear();
  for (const size_t end = next_item_ + n; next_item_ < end; ++next_item_) {
    const wire::DataItem& message = batch_->message.items(static_cast<int>(next_item_));
    Item& item = batch_->items[next_item_];
    item.id = message.id();
    item.batch = batch_;
    item.listener = this;
    item.answer.Clear();
    item.answered_by = DcIncarnation();
    item.complete = false;
    item.covered.clear();
    item.status = FromWire(message, sender, &item);
    (item.status.ok() ? group_ : refused_).push_back(&item);
  }
  for (DataRequest* request : refused_) OnAnswered(request);
  if (!group_.empty()) host_.component.Submit(group_);
  queue_.Submitted();
}

void DataStreamHandler::Over(const Status& status) {
  over_ = true;
  status_ = status;
  if (queue_.Drained()) Finish();
}

void DataStreamHandler::Finish() {
  {
    const std::function<void()> hook = [this] { executor().BeforeBlocking(); };
    const BlockingHook blocking_hook(hook);
    queue_.Close();
    AbandonAll();
  }
  End(ToRpcStatus(status_));
  Release();
}

// The component ignores an Abandon of a request that it has already answered. No lock is held here: Abandon waits for
// threads of the component, and such a thread may be writing answers and giving back their batch.
void DataStreamHandler::AbandonAll() {
  std::vector<Batch*> left;
  {
    MutexLock lock(batches_mutex_);
    recycling_stopped_ = true;
    for (const std::unique_ptr<Batch>& batch : used_) left.push_back(batch.get());
  }
  for (Batch* batch : left) {
    for (int i = 0; i < batch->message.items_size(); ++i) host_.component.Abandon(&batch->items[i]);
  }
}

// The posted work holds a reference of its own: the next message may end the stream, on another thread, before Work
// returns. That end releases the handler's reference.
void DataStreamHandler::PostHandler() {
  Retain();
  executor().Post([this] {
    if (over_) {
      Finish();
    } else {
      Work();
    }
    Release();
  });
}

// A parked handler reads nothing, so only this call tells it that the peer has hung up.
void DataStreamHandler::OnPeerGone() {
  if (queue_.Close()) PostHandler();
}

void DataStreamHandler::OnAnswered(DataRequest* request) {
  if (!queue_.Answered(request, &answered_, [this] { Retain(); })) return;
  StartMessages();
  Release();
}

void DataStreamHandler::StartMessages() {
  next_answer_ = 0;
  WriteMessage();
}

void DataStreamHandler::WriteMessage() {
  outgoing_.Clear();
  size_t bytes = 0;
  for (; next_answer_ < answered_.size(); ++next_answer_) {
    Item* const item = static_cast<Item*>(answered_[next_answer_]);
    const size_t more = item->answer.bytes().size() + item->status.message().size();
    const bool fits = outgoing_.incarnation() == item->answered_by.value && bytes + more <= kAnswerMessageBytes &&
                      outgoing_.items_size() < kMaxRequestsPerMessage;
    if (outgoing_.items_size() != 0 && !fits) break;
    outgoing_.set_incarnation(item->answered_by.value);
    ToWire(*item, item->id, outgoing_.add_items());
    bytes += more;
    Recycle(item);
  }
  if (!Write(outgoing_, /*wait=*/false)) MessageOver(false);
}

void DataStreamHandler::OnWritten(bool ok) { MessageOver(ok); }

void DataStreamHandler::MessageOver(bool ok) {
  if (ok && next_answer_ < answered_.size()) return WriteMessage();
  const bool closed = !ok && queue_.Close();
  const bool room = queue_.FinishWriting(answered_.size());
  if (closed || room) PostHandler();
  if (queue_.StartWriting(&answered_)) StartMessages();
}

// The item is written. The last item of its batch gives the batch back.
void DataStreamHandler::Recycle(Item* item) {
  Batch* const batch = item->batch;
  MutexLock lock(batches_mutex_);
  DEUT_CHECK(batch->unwritten != 0);
  if (--batch->unwritten != 0 || recycling_stopped_) return;
  const auto found =
      std::find_if(used_.begin(), used_.end(), [batch](const auto& used) { return used.get() == batch; });
  DEUT_CHECK(found != used_.end());
  constexpr size_t kKept = 4;
  if (free_.size() < kKept) free_.push_back(std::move(*found));
  used_.erase(found);
}

}  // namespace deut
