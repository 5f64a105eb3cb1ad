#include "common/io/uring_queue.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/check.h"
#include "common/io/shortage.h"
#include "common/io/system_file.h"
#include "common/io/transfer.h"
#include "common/testing/test_points.h"

namespace deut {

UringQueue::UringQueue(size_t depth, int event_descriptor, Runtime& runtime)
    : runtime_(runtime), depth_(depth), event_descriptor_(event_descriptor), operations_(new Operation[depth]) {
  for (size_t i = 0; i < depth; ++i) {
    operations_[i].next_free = free_;
    free_ = &operations_[i];
  }
  ring_.ring_fd = -1;
}

Result<std::unique_ptr<IoQueue>> UringQueue::Create(size_t depth, Runtime& runtime) {
  DEUT_CHECK(depth > 0);
  const int event_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_descriptor < 0) return ErrnoStatus("creating", "an eventfd", errno);
  std::unique_ptr<UringQueue> queue(new UringQueue(depth, event_descriptor, runtime));
  if (DEUT_CAS_FAILS("uring.create")) return DEUT_ERROR(kIoError, "creating an io_uring: refused by a test");
  io_uring_params params{};
  params.flags = IORING_SETUP_CLAMP;
  // One more entry for the poll. The completion ring is twice as large, so it cannot overflow.
  const int result = io_uring_queue_init_params(static_cast<unsigned>(depth + 1), &queue->ring_, &params);
  if (result < 0) {
    queue->ring_.ring_fd = -1;
    return DEUT_ERROR(kIoError, ErrnoStatus("creating", "an io_uring", -result).message());
  }
  if (params.sq_entries < depth + 1) {
    return DEUT_ERROR(kInvalidArgument, "a depth of ", depth, " is more than an io_uring holds (",
                      params.sq_entries - 1, ")");
  }
  return std::unique_ptr<IoQueue>(std::move(queue));
}

UringQueue::~UringQueue() {
  if (ring_.ring_fd >= 0) {
    std::vector<IoRequest*> dropped;
    while (in_flight_ > 0) Reap(&dropped, kNoDeadline);
    io_uring_queue_exit(&ring_);
  }
  close(event_descriptor_);
}

void UringQueue::Prepare(Operation* operation) {
  const IoRequest& request = *operation->request;
  const int descriptor = static_cast<const SystemFile*>(request.file)->descriptor();
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  DEUT_CHECK(entry != nullptr);  // the ring has an entry for each operation and one for the poll
  char* data = static_cast<char*>(request.data) + request.transferred;
  const auto rest = static_cast<unsigned>(std::min(request.bytes - request.transferred, kMaxTransferBytes));
  switch (request.kind) {
    case IoRequest::Kind::kRead:
      io_uring_prep_read(entry, descriptor, data, rest, request.offset + request.transferred);
      break;
    case IoRequest::Kind::kWrite:
      io_uring_prep_write(entry, descriptor, data, rest, request.offset + request.transferred);
      break;
    case IoRequest::Kind::kSync:
      io_uring_prep_fsync(entry, descriptor, IORING_FSYNC_DATASYNC);
      break;
  }
  io_uring_sqe_set_data(entry, operation);
  operation->handed.store(1, std::memory_order_release);
}

void UringQueue::Flush() {
  while (io_uring_sq_ready(&ring_) > 0) {
    const int result = io_uring_submit(&ring_);
    if (result > 0 || result == -EINTR) continue;
    // The kernel lacks a resource for the moment; WaitForCompletion submits again within a millisecond.
    if (result == 0 || result == -EAGAIN || result == -EBUSY || result == -ENOMEM) break;
    FailStop(ErrnoStatus("submitting to", "an io_uring", -result).ToString());
  }
}

Status UringQueue::Submit(IoRequest* request) {
  Status submitted = SubmitLater(request);
  // A refused request ends no batch silently: those that were submitted before it start all the same.
  Flush();
  return submitted;
}

Status UringQueue::SubmitLater(IoRequest* request) {
  const auto* file = static_cast<const SystemFile*>(request->file);
  DEUT_RETURN_IF_ERROR(
      CheckTransfer(file->options(), file->path(), request->kind, request->offset, request->data, request->bytes));
  if (in_flight_ == depth_) return DEUT_ERROR(kResourceExhausted, depth_, " requests are in flight, the queue's depth");
  request->status = Status::Ok();
  request->transferred = 0;
  Operation* operation = free_;
  free_ = operation->next_free;
  operation->request = request;
  operation->retries = {};
  Prepare(operation);
  ++in_flight_;
  return Status::Ok();
}

void UringQueue::Complete(void* data, int32_t result, std::vector<IoRequest*>* completed) {
  if (data == &event_descriptor_) {  // the poll
    wake_armed_ = false;
    uint64_t wakes;
    (void)!read(event_descriptor_, &wakes, sizeof(wakes));
    return;
  }
  auto* operation = static_cast<Operation*>(data);
  (void)operation->handed.load(std::memory_order_acquire);
  const bool direct = static_cast<const SystemFile*>(operation->request->file)->options().direct;
  if (DEUT_CAS_FAILS("transfer.shortage")) result = -ENOMEM;
  switch (AdvanceTransfer(operation->request, direct, result, &operation->retries)) {
    case TransferStep::kDone:
      break;
    case TransferStep::kRetryNow:
      Prepare(operation);
      Flush();
      return;
    case TransferStep::kRetryAfterPause:
      RecordShortage(runtime_, NameOf(operation->request->kind), operation->request->file->path(), -result);
      paused_.push_back({.operation = operation, .until = runtime_.Now() + RetryPause(operation->retries)});
      return;
  }
  completed->push_back(operation->request);
  operation->next_free = free_;
  free_ = operation;
  --in_flight_;
}

void UringQueue::Resume() {
  if (paused_.empty()) return;
  const MonotonicTime now = runtime_.Now();
  std::erase_if(paused_, [&](const Paused& paused) {
    if (paused.until > now) return false;
    Prepare(paused.operation);
    return true;
  });
}

void UringQueue::Drain(std::vector<IoRequest*>* completed) {
  io_uring_cqe* completion = nullptr;
  while (io_uring_peek_cqe(&ring_, &completion) == 0) {
    const uint64_t data = completion->user_data;
    const int32_t result = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    if (data != LIBURING_UDATA_TIMEOUT) Complete(reinterpret_cast<void*>(data), result, completed);
  }
}

void UringQueue::ArmWake() {
  if (wake_armed_) return;
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  DEUT_CHECK(entry != nullptr);
  io_uring_prep_poll_add(entry, event_descriptor_, POLLIN);
  io_uring_sqe_set_data(entry, const_cast<int*>(&event_descriptor_));
  wake_armed_ = true;
}

bool UringQueue::WaitForCompletion(Deadline deadline) {
  ArmWake();
  Flush();
  // Entries that the kernel could not take yet must not wait for a completion that may never come.
  if (io_uring_sq_ready(&ring_) > 0) deadline = std::min(deadline, runtime_.Now() + milliseconds(1));
  for (const Paused& paused : paused_) deadline = std::min(deadline, paused.until);
  waiting_.store(true, std::memory_order_seq_cst);
  int result = -ECANCELED;
  if (!woken_.exchange(false, std::memory_order_seq_cst)) {
    io_uring_cqe* completion = nullptr;
    if (deadline == kNoDeadline) {
      result = io_uring_wait_cqe(&ring_, &completion);
    } else {
      // Compares first, because the distance from a deadline in the far past cannot be represented.
      const MonotonicTime now = runtime_.Now();
      const Duration left = deadline <= now ? Duration(0) : deadline - now;
      __kernel_timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
      result = io_uring_wait_cqe_timeout(&ring_, &completion, &timeout);
    }
  }
  waiting_.store(false, std::memory_order_seq_cst);
  switch (result) {
    case 0:
      return !woken_.exchange(false, std::memory_order_seq_cst);
    case -ECANCELED:
      return false;
    case -EINTR:
    case -EAGAIN:
      return true;
    case -ETIME:
      return io_uring_sq_ready(&ring_) > 0 || !paused_.empty();
    default:
      FailStop(ErrnoStatus("waiting for", "an io_uring", -result).ToString());
  }
}

void UringQueue::Reap(std::vector<IoRequest*>* completed, Deadline deadline) {
  const size_t before = completed->size();
  for (bool wait = true;;) {
    Resume();
    Flush();
    Drain(completed);
    if (!wait || completed->size() > before || in_flight_ == 0) return;
    if (deadline != kNoDeadline && runtime_.Now() >= deadline) return;
    wait = WaitForCompletion(deadline) && runtime_.Now() < deadline;
  }
}

void UringQueue::Wake() {
  woken_.store(true, std::memory_order_seq_cst);
  if (!waiting_.load(std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  (void)!write(event_descriptor_, &one, sizeof(one));
}

}  // namespace deut
