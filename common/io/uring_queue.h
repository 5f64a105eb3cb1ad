// UringQueue: the queue of io_uring: one ring, its kernel threads and completions. Wake writes to an eventfd that the
// ring polls.
// Thread-safety: one thread at a time, except Wake. Ownership: owns the ring and the eventfd; the destructor waits
// for the requests in flight.
#ifndef COMMON_IO_URING_QUEUE_H_
#define COMMON_IO_URING_QUEUE_H_

#include <liburing.h>

#include <atomic>
#include <memory>
#include <vector>

#include "common/io/storage.h"
#include "common/io/transfer.h"

namespace deut {

class UringQueue final : public IoQueue {
 public:
  // IO_ERROR where the kernel refuses a ring (a container's seccomp profile, kernel.io_uring_disabled, an old kernel).
  // REQUIRES: depth > 0; files are SystemFiles.
  static Result<std::unique_ptr<IoQueue>> Create(size_t depth, Runtime& runtime);
  ~UringQueue() override;

  Status Submit(IoRequest* request) override;
  Status SubmitLater(IoRequest* request) override;
  void Reap(std::vector<IoRequest*>* completed, Deadline deadline) override;
  void Wake() override;
  size_t in_flight() const override { return in_flight_; }

 private:
  // One request that the kernel holds. ThreadSanitizer cannot see the kernel's accesses to the buffer. `handed` is
  // released before submission and acquired after completion, which states the order for it; nothing else needs that.
  struct Operation {
    IoRequest* request = nullptr;
    TransferRetries retries;
    std::atomic<uint32_t> handed{0};
    Operation* next_free = nullptr;
  };
  // An operation that waits until a shortage has passed.
  struct Paused {
    Operation* operation;
    MonotonicTime until;
  };

  UringQueue(size_t depth, int event_descriptor, Runtime& runtime);

  // Puts the rest of the operation's transfer into the submission ring.
  void Prepare(Operation* operation);
  // Prepares the paused operations whose pause is over.
  void Resume();
  // Submits the entries of the submission ring to the kernel; those that it cannot take now stay for the next call.
  // Any other failure of the ring ends the process, because the state of its requests is unknown then.
  void Flush();
  void ArmWake();
  // Waits for a completion, Wake or the deadline. False: the caller need not wait again.
  bool WaitForCompletion(Deadline deadline);
  // Takes all completions that are in the ring.
  void Drain(std::vector<IoRequest*>* completed);
  void Complete(void* data, int32_t result, std::vector<IoRequest*>* completed);

  Runtime& runtime_;
  const size_t depth_;
  const int event_descriptor_;
  io_uring ring_{};
  std::unique_ptr<Operation[]> operations_;
  Operation* free_ = nullptr;
  std::vector<Paused> paused_;
  size_t in_flight_ = 0;
  bool wake_armed_ = false;
  // Dekker: Wake sets woken_, then reads waiting_; Reap sets waiting_, then reads woken_ (both sequentially
  // consistent). So at least one of the two sees the other's store, and no Wake is lost.
  std::atomic<bool> woken_{false};
  std::atomic<bool> waiting_{false};
};

}  // namespace deut

#endif  // COMMON_IO_URING_QUEUE_H_
