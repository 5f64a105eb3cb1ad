#include "protocol/data_stream_handler.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "protocol/convert_data_component.h"
#include "protocol/limits.h"
#include "protocol/rpc_polling.h"
#include "protocol/rpc_status.h"

namespace deut {

DataStreamHandler::DataStreamHandler(Runtime& runtime, DataComponent& component, StreamWatchdog& watchdog,
                                     size_t max_requests, grpc::ServerContext* context, Stream* stream)
    : runtime_(runtime),
      component_(component),
      context_(context),
      stream_(stream),
      write_watch_(watchdog, [context] { context->TryCancel(); }),
      queue_(runtime, std::max(max_requests, kGroup)),
      mutex_(runtime) {}

DataStreamHandler::~DataStreamHandler() = default;

grpc::Status DataStreamHandler::Run() {
  const std::unique_ptr<Thread> writer = runtime_.StartThread("dc-answers", [this] {
    while (queue_.WaitForWork()) WriteReady();
  });
  Status status;
  for (;;) {
    std::unique_ptr<Batch> batch = TakeBatch();
    if (!stream_->Read(&batch->message)) break;
    CountStreamRead();
    status = CheckFigure("items", batch->message.items_size(), 1, kMaxRequestsPerMessage);
    if (!status.ok() || !Handle(std::move(batch))) break;
  }
  queue_.Close();
  writer->Join();
  AbandonAll();
  return ToRpcStatus(status);
}

std::unique_ptr<DataStreamHandler::Batch> DataStreamHandler::TakeBatch() {
  MutexLock lock(mutex_);
  if (free_.empty()) return std::make_unique<Batch>();
  std::unique_ptr<Batch> batch = std::move(free_.back());
  free_.pop_back();
  return batch;
}

bool DataStreamHandler::Handle(std::unique_ptr<Batch> owned) {
  Batch* batch = owned.get();
  const size_t n = batch->message.items_size();
  while (batch->items.size() < n) batch->items.emplace_back();
  batch->unwritten = n;
  {
    MutexLock lock(mutex_);
    used_.push_back(std::move(owned));
  }
  // The batch may be written, released and reused as soon as the last group is submitted.
  for (size_t first = 0; first < n; first += kGroup) {
    if (!SubmitGroup(batch, first, std::min(kGroup, n - first))) return false;
    if (queue_.ready_bytes() >= kAnswerMessageBytes) WriteReady();
  }
  WriteReady();
  return true;
}

bool DataStreamHandler::SubmitGroup(Batch* batch, size_t first, size_t n) {
  const Sender sender = FromWire(batch->message.sender());
  group_.clear();
  refused_.clear();
  for (size_t i = first; i < first + n; ++i) {
    const wire::DataItem& message = batch->message.items(static_cast<int>(i));
    Item& item = batch->items[i];
    item.id = message.id();
    item.batch = batch;
    item.listener = &queue_;
    item.answer.Clear();
    item.answered_by = DcIncarnation();
    item.complete = false;
    item.covered.clear();
    item.status = FromWire(message, sender, &item);
    (item.status.ok() ? group_ : refused_).push_back(&item);
  }
  for (;;) {
    // While it waits for room it does not read, and would not notice that the peer has gone.
    const AnswerQueue::Entered entered = queue_.Enter(n, runtime_.Now() + kLookForPeer);
    if (entered == AnswerQueue::Entered::kYes) break;
    if (entered == AnswerQueue::Entered::kClosed || context_->IsCancelled()) return false;
    if (entered == AnswerQueue::Entered::kWriteFirst) WriteReady();
  }
  for (DataRequest* request : refused_) queue_.OnAnswered(request);
  if (!group_.empty()) component_.Submit(group_);
  queue_.Submitted();
  return true;
}

void DataStreamHandler::WriteReady() {
  while (queue_.StartWriting(&answered_)) {
    size_t bytes = 0;
    for (DataRequest* request : answered_) {
      Item* item = static_cast<Item*>(request);
      const size_t more = item->answer.bytes().size() + item->status.message().size();
      const bool fits = outgoing_.incarnation() == item->answered_by.value && bytes + more <= kAnswerMessageBytes &&
                        outgoing_.items_size() < kMaxRequestsPerMessage;
      if (outgoing_.items_size() != 0 && !fits) {
        WriteMessage();
        bytes = 0;
      }
      outgoing_.set_incarnation(item->answered_by.value);
      ToWire(*item, item->id, outgoing_.add_items());
      bytes += more;
      Release(item);
    }
    WriteMessage();
    queue_.FinishWriting(answered_.size());
  }
}

void DataStreamHandler::WriteMessage() {
  write_watch_.Start();
  const bool written = stream_->Write(outgoing_);
  write_watch_.Stop();
  outgoing_.Clear();
  if (!written) queue_.Close();
}

// The item is written: the last one of its batch gives the batch back.
void DataStreamHandler::Release(Item* item) {
  Batch* batch = item->batch;
  MutexLock lock(mutex_);
  DEUT_CHECK(batch->unwritten != 0);
  if (--batch->unwritten != 0) return;
  const auto found =
      std::find_if(used_.begin(), used_.end(), [batch](const auto& used) { return used.get() == batch; });
  DEUT_CHECK(found != used_.end());
  constexpr size_t kKept = 4;
  if (free_.size() < kKept) free_.push_back(std::move(*found));
  used_.erase(found);
}

// Nobody submits or writes any more. Requests that are answered already are unknown to the component, which does not mind.
void DataStreamHandler::AbandonAll() {
  MutexLock lock(mutex_);
  for (const std::unique_ptr<Batch>& batch : used_) {
    for (int i = 0; i < batch->message.items_size(); ++i) component_.Abandon(&batch->items[i]);
  }
}

}  // namespace deut
