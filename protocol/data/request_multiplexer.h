// RequestMultiplexer: the bookkeeping of one client-side Data stream, without the stream itself. It gathers requests of
// many threads into few messages, and finds the request of each answer, in any order.
//
// Combining: Submit copies requests into the last queued message and gives them ids. A thread that finds the sender's
// role free takes it and sends. Requests that others submit meanwhile go into the next message. The holder gives the
// role up only when nothing is queued.
// States of the stream: down (requests queue up until Up, or until FailAll fails them) and up.
// States of a request:
// - queued or sent: `pending_` has it, by id, and the request has the id.
// - completing: the completing thread has taken it out of `pending_`, and fills it in outside the lock.
// - finished.
// Abandon takes a request out of `pending_`, or waits until the completing thread is done.
// Thread-safety: any thread may call Submit and Abandon. The role's holder calls TakeMessage; the stream's one thread
// calls Up, StopSending, Answered and FailAll. The lock is held to look up requests and to copy keys, never while bytes
// are sent or parsed, or answers filled in.
// Ownership: borrows requests, as DataComponent::Submit does. REQUIRES: FailAll was called before the object is destroyed.
#ifndef PROTOCOL_DATA_REQUEST_MULTIPLEXER_H_
#define PROTOCOL_DATA_REQUEST_MULTIPLEXER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "protocol/data_component.h"
#include "protocol/limits.h"
#include "protocol/wire/data_component.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

class RequestMultiplexer {
 public:
  struct Limits {
    int message_requests = kMaxRequestsPerMessage;
    size_t message_bytes = kRequestMessageBytes;
    size_t outstanding_requests = kMaxOutstandingRequests;
  };

  // The submitter's next step.
  enum class Next : uint8_t {
    kNotSender,   // another thread sends
    kSend,        // the caller has the sender's role: it calls TakeMessage and sends until TakeMessage returns false
    kWakeStream,  // the stream is down: the caller wakes its thread
  };

  RequestMultiplexer(Runtime& runtime, Limits limits) : runtime_(runtime), limits_(limits), mutex_(runtime) {}
  RequestMultiplexer(const RequestMultiplexer&) = delete;
  RequestMultiplexer& operator=(const RequestMultiplexer&) = delete;

  // Requests beyond the limit finish with RESOURCE_EXHAUSTED.
  Next Submit(absl::Span<DataRequest* const> requests);
  // After it has returned, the request is not touched any more. REQUIRES: the caller is not a DataRequestListener.
  void Abandon(DataRequest* request);

  // Returns the next message to send. False: nothing is queued, and the role is given up. REQUIRES: the caller has the
  // sender's role.
  bool TakeMessage(wire::DataRequests* message);

  // A stream is open. kSend: requests are queued, and the caller has the sender's role.
  Next Up();
  // No sender starts from now on. True: a thread holds the role. Its write will fail, and ReleaseSenderRole must follow.
  bool StopSending();
  void ReleaseSenderRole();
  // The stream has ended. All requests queued or sent finish with `status`. REQUIRES: StopSending was called, and no
  // thread holds the role.
  void FailAll(const Status& status);
  // Fills in and finishes the requests that the message answers, and moves bytes out of it. Answers to unknown
  // (abandoned) ids are dropped.
  void Answered(wire::DataAnswers* answers);

  bool HasQueued();
  size_t outstanding();

 private:
  using Completion = std::pair<DataRequest*, int>;  // the request and the index of its answer

  void QueueLocked(const DataRequest& request, uint64_t id) DEUT_REQUIRES(mutex_);
  wire::DataRequests* OpenMessageLocked(const Sender& sender, size_t bytes) DEUT_REQUIRES(mutex_);
  void EndCompleting();

  Runtime& runtime_;
  const Limits limits_;
  Mutex mutex_;
  bool up_ DEUT_GUARDED_BY(mutex_) = false;
  bool sending_ DEUT_GUARDED_BY(mutex_) = false;  // the sender's role is taken
  uint64_t next_id_ DEUT_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, DataRequest*> pending_ DEUT_GUARDED_BY(mutex_);
  std::deque<wire::DataRequests> queue_ DEUT_GUARDED_BY(mutex_);
  size_t last_bytes_ DEUT_GUARDED_BY(mutex_) = 0;                  // bytes of the last message of queue_
  std::vector<wire::DataRequests> spare_ DEUT_GUARDED_BY(mutex_);  // empty messages that keep their memory
  std::atomic<uint32_t> completing_{0};                            // odd while the completing thread fills in answers
  std::atomic<uint32_t> abandoners_{0};                            // threads that wait for completing_ to change
  std::vector<Completion> completions_;                            // used only by the completing thread
};

}  // namespace deut

#endif  // PROTOCOL_DATA_REQUEST_MULTIPLEXER_H_
