// The queue of io_uring: one ring, its kernel threads and completions. Wake is an eventfd that the ring polls.
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
  void Reap(std::vector<IoRequest*>* completed, Deadline deadline) override;
  void Wake() override;
  size_t in_flight() const override { return in_flight_; }

 private:
  // One request in the kernel's hands. The kernel's reads and writes of the buffer are invisible to ThreadSanitizer; `handed`
  // is released before submission and acquired after completion, which tells it (and nobody else needs) the order.
  struct Operation {
    IoRequest* request = nullptr;
    TransferRetries retries;
    std::atomic<uint32_t> handed{0};
    Operation* next_free = nullptr;
  };
  // An operation that waits for a shortage to pass.
  struct Paused {
    Operation* operation;
    MonotonicTime until;
  };

  UringQueue(size_t depth, int event_descriptor, Runtime& runtime);

  // Puts the rest of the operation's transfer into the submission ring.
  void Prepare(Operation* operation);
  // Prepares the paused operations whose pause is over.
  void Resume();
  // Hands what is in the submission ring to the kernel; what it cannot take now stays for the next call. A ring that fails
  // otherwise ends the process: nobody can tell what became of the requests in it.
  void Flush();
  void ArmWake();
  // Waits for a completion, Wake or the deadline. False: there is nothing more to wait for.
  bool WaitForCompletion(Deadline deadline);
  // Takes all completions that are there.
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
  // Dekker: Wake sets woken, then looks at waiting; Reap sets waiting, then looks at woken (both sequentially consistent).
  std::atomic<bool> woken_{false};
  std::atomic<bool> waiting_{false};
};

}  // namespace deut

#endif  // COMMON_IO_URING_QUEUE_H_
