// RequestMultiplexer: the bookkeeping of one client-side Data stream, without the stream: requests of many threads go into few
// messages, and answers, in any order, find their request again.
//
// Combining. Submit copies requests into the message that is being gathered and gives them ids. Whoever finds the sender's role free
//   takes it and sends; what others submit meanwhile goes into the next message. The role is given up only when nothing is queued.
// States of the stream: down (requests queue up until Up, or until Down fails them) and up.
// States of a request: queued or sent (`pending_` has it, by id), completing (taken out of `pending_` by the one completing thread, which
//   fills it in outside the lock), finished. Abandon takes it out of `pending_`, or waits until the completing thread is through.
// Thread-safety: Submit and Abandon from any thread; TakeMessage by the role's holder; Up, StopSending, Answered and Down by the stream's
//   one thread. The lock is held for look-ups and for copying keys, never while bytes are sent, parsed or answers filled in.
// Ownership: borrows requests, as DataComponent::Submit does. REQUIRES: Down was called before it is destroyed.
#ifndef PROTOCOL_REQUEST_MULTIPLEXER_H_
#define PROTOCOL_REQUEST_MULTIPLEXER_H_

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
#include "protocol/data_component.pb.h"
#include "protocol/limits.h"

namespace deut {

class RequestMultiplexer {
 public:
  struct Limits {
    int message_requests = kMaxRequestsPerMessage;
    size_t message_bytes = kRequestMessageBytes;
    size_t outstanding_requests = kMaxOutstandingRequests;
  };

  // What the submitter has to do next.
  enum class Next : uint8_t {
    kNothing,     // somebody else sends
    kSend,        // the caller has the sender's role: TakeMessage and send until it returns false
    kWakeStream,  // the stream is down: wake its thread
  };

  RequestMultiplexer(Runtime& runtime, Limits limits) : runtime_(runtime), limits_(limits), mutex_(runtime) {}
  RequestMultiplexer(const RequestMultiplexer&) = delete;
  RequestMultiplexer& operator=(const RequestMultiplexer&) = delete;

  // Requests beyond the limit are finished with RESOURCE_EXHAUSTED.
  Next Submit(absl::Span<DataRequest* const> requests);
  // After it returns the request is not touched any more. REQUIRES: not called by a DataRequestListener.
  void Abandon(DataRequest* request);

  // The next message to send. False: nothing is queued, and the role is given up.
  // REQUIRES: the caller has the sender's role.
  bool TakeMessage(wire::DataRequests* message);

  // A stream is there. kSend: something is queued, and the caller has the sender's role.
  Next Up();
  // No new sender from now on. True: somebody holds the role; what it sends will fail, and GiveUpRole must follow.
  bool StopSending();
  void GiveUpRole();
  // The stream is gone: everything that was queued or sent is finished with `status`.
  // REQUIRES: StopSending was called, and nobody holds the role.
  void Down(const Status& status);
  // Fills in and finishes what the message answers; moves bytes out of it. Answers to unknown ids (abandoned) are dropped.
  void Answered(wire::DataAnswers* answers);

  bool HasQueued();
  size_t outstanding();

 private:
  using Completion = std::pair<DataRequest*, int>;  // and the index of its answer

  void QueueLocked(const DataRequest& request, uint64_t id) DEUT_REQUIRES(mutex_);
  wire::DataRequests* OpenMessageLocked(const Sender& sender, size_t bytes) DEUT_REQUIRES(mutex_);
  void EndCompleting();

  Runtime& runtime_;
  const Limits limits_;
  Mutex mutex_;
  bool up_ DEUT_GUARDED_BY(mutex_) = false;
  bool sending_ DEUT_GUARDED_BY(mutex_) = false;  // the role is taken
  uint64_t next_id_ DEUT_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, DataRequest*> pending_ DEUT_GUARDED_BY(mutex_);
  // The same the other way round: Abandon looks for one of very many under the lock that answers need, too.
  absl::flat_hash_map<const DataRequest*, uint64_t> ids_ DEUT_GUARDED_BY(mutex_);
  std::deque<wire::DataRequests> queue_ DEUT_GUARDED_BY(mutex_);
  size_t last_bytes_ DEUT_GUARDED_BY(mutex_) = 0;                  // of the last message of queue_
  std::vector<wire::DataRequests> spare_ DEUT_GUARDED_BY(mutex_);  // empty messages that keep their memory
  std::atomic<uint32_t> completing_{0};                            // odd while the completing thread fills in answers
  std::atomic<uint32_t> abandoners_{0};                            // threads that wait for completing_ to change
  std::vector<Completion> completions_;                            // the completing thread's own
};

}  // namespace deut

#endif  // PROTOCOL_REQUEST_MULTIPLEXER_H_
