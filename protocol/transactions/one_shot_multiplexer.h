// OneShotMultiplexer: the bookkeeping of a client-side stream of one-shot transactions, without the stream itself. It packs the calls of many threads
// into few messages, and assigns answers, which come in any order, to their calls.
//
// Combining, as in request_multiplexer.h: a thread that finds the sender's role free takes it and sends. Calls that other threads submit meanwhile go
//   into the next message. The sender gives up the role when no queued call may be sent.
// Gathering. A message costs much more than a call in it. So while `unanswered_messages` messages are in flight without a first answer, the
//   multiplexer holds new calls back until:
//   - an answer comes; or
//   - the message is full; or
//   - a caller has waited long enough for it (StopHoldingBack).
//   Where answers come fast many calls share a message; where they are slow a call waits little more. A message counts as unanswered from TakeMessage
//   to its first answer, also to an abandoned call, or until StopHoldingBack names a later call. So a slow message holds back one caller once.
//   Nothing is held back for ever: each call has a caller that waits for it and calls StopHoldingBack.
// States of the stream: down (Submit refuses) and up.
// States of a call: queued (in a message; `calls_` has it by id), sent, done. A call is sent when its message is taken. It becomes done under the
//   lock, when it is answered or FailAll gives it up. If it is not done its waiter may take it out of `calls_` (Abandon); from then on no other
//   thread touches it.
// A group's count changes under the lock. The thread that brings it to 0 wakes the waiter outside of the lock, after which the group may be
//   destroyed. Only Abandon wakes nobody, because its caller is the waiter. The callers of a message sleep on one word, and one system call wakes
//   them (batched_event.h). With 16 callers on two processors that gives 12 % more transactions a second than a wake for each.
// Thread-safety: any thread calls Submit, StopHoldingBack and Abandon; the role's holder calls TakeMessage; the stream's thread calls Up,
// StopSending, ReleaseSenderRole, FailAll and Answered. Ownership: borrows calls from Submit until they are done or abandoned. REQUIRES: FailAll was
// called before destruction.
#ifndef PROTOCOL_TRANSACTIONS_ONE_SHOT_MULTIPLEXER_H_
#define PROTOCOL_TRANSACTIONS_ONE_SHOT_MULTIPLEXER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/batched_event.h"
#include "common/sync/mutex.h"
#include "protocol/one_shot_limits.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.pb.h"

namespace deut {

// Calls that one caller waits for together. The thread that finishes the last one wakes the waiter, once, and does not touch the group afterwards.
struct OneShotGroup {
  bool IsDone() const { return all_done.IsSet(); }
  // REQUIRES: the calls were submitted. As BatchedEvent::Wait.
  bool Wait(Runtime& runtime, Deadline deadline) { return all_done.IsSet() || all_done.Wait(runtime, *word, deadline); }

  int left = 0;  // calls that are not done; guarded by the multiplexer's lock
  // Set by the multiplexer. Calls of one message share a word, because their answers mostly come together.
  BatchedEvent::Word* word = nullptr;
  BatchedEvent all_done;
};

struct OneShotCall {
  wire::OneShotCall message;  // exchanged for an empty one when it is submitted
  OneShotGroup* group = nullptr;
  size_t bytes = 0;  // about the size of the message

  // The multiplexer's fields, until the call is done.
  uint64_t id = 0;
  bool sent = false;
  bool done = false;
  size_t answered = 0;  // the number of `parts` in use
  std::vector<wire::SessionAnswer>
      parts;    // the first `answered` are the answer; `more` is set in all of them but the last
  Status lost;  // not OK: why there is no answer

  absl::Span<wire::SessionAnswer> answer() { return absl::MakeSpan(parts).subspan(0, answered); }
  // Clears the call, so that it can be submitted again. Messages keep their memory.
  void Reset() {
    message.Clear();
    bytes = answered = 0;
    sent = done = false;
    lost = Status();
  }
};

class OneShotMultiplexer {
 public:
  struct Limits {
    int message_calls = kMaxOneShotsPerMessage;
    size_t message_bytes = kOneShotMessageBytes;
    size_t outstanding_calls = kMaxOutstandingOneShots;
    size_t unanswered_messages = kUnansweredMessages;
  };

  enum class Next : uint8_t {
    kNotSender,  // another thread sends, or the calls are held back
    kSend,       // the caller has the sender's role: TakeMessage and send until it returns false
    kDown,       // the stream is down; nothing was submitted
  };

  OneShotMultiplexer(Runtime& runtime, Limits limits) : runtime_(runtime), limits_(limits), mutex_(runtime) {}
  OneShotMultiplexer(const OneShotMultiplexer&) = delete;
  OneShotMultiplexer& operator=(const OneShotMultiplexer&) = delete;

  // Submits all calls, which are of one group; or none, if the stream is down. Calls beyond the limit are done at once, with RESOURCE_EXHAUSTED.
  Next Submit(absl::Span<OneShotCall> calls);
  // Stops holding back those of these calls that are queued, and all calls queued before them.
  Next StopHoldingBack(absl::Span<const OneShotCall> calls);
  // Ends those of these calls that are not done, with `lost`. True: no other thread touches the calls, or their group, any more. False: all were done
  // already, and their group is about to be set; the caller must wait for that. REQUIRES: `calls` are all that were submitted of their group.
  bool Abandon(absl::Span<OneShotCall> calls, const Status& lost);

  // Replaces the content of `message` by the next message to send, without abandoned calls. False: nothing is queued, or all of it is held back or
  // abandoned, and the role is given up. Never false for a caller that has just had kSend from Submit or StopHoldingBack. REQUIRES: the caller has
  // the sender's role.
  bool TakeMessage(wire::OneShotCalls* message);

  void Up();
  // Lets no thread become the sender from now on. True: a thread holds the role; its write will fail, and ReleaseSenderRole must follow.
  bool StopSending();
  void ReleaseSenderRole();
  // The stream is gone: ends all calls that were queued or sent, with `status`. REQUIRES: StopSending was called, and no thread holds the role.
  void FailAll(const Status& status);
  // Moves the answers out of the message into their calls. Drops answers to unknown ids, whose calls were abandoned. kSend: calls that were held back
  // may be sent now, and the caller has the role.
  Next Answered(wire::OneShotAnswers* answers);

  size_t outstanding();

 private:
  struct Message {
    wire::OneShotCalls calls;
    size_t bytes = 0;
    size_t largest = 0;  // bytes of its largest call
  };
  struct Ids {
    uint64_t first, last;
  };

  void QueueLocked(OneShotCall* call) DEUT_REQUIRES(mutex_);
  bool MaySendLocked() const DEUT_REQUIRES(mutex_);
  // Takes the role (kSend) if a message may be sent and no thread sends.
  Next BecomeSenderLocked() DEUT_REQUIRES(mutex_);
  // True: the call was the last of its group, so the waiter has to be woken.
  static bool DoneLocked(OneShotCall* call);
  // Wakes the waiters of `finished_`.
  void WakeFinished();

  Runtime& runtime_;
  const Limits limits_;
  Mutex mutex_;
  bool up_ DEUT_GUARDED_BY(mutex_) = false;
  bool sending_ DEUT_GUARDED_BY(mutex_) = false;  // the role is taken
  uint64_t next_id_ DEUT_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, OneShotCall*> calls_ DEUT_GUARDED_BY(mutex_);
  std::deque<Message> queue_ DEUT_GUARDED_BY(mutex_);
  std::vector<wire::OneShotCalls> spare_
      DEUT_GUARDED_BY(mutex_);                            // empty messages, which keep their and their calls' memory
  size_t sent_largest_ DEUT_GUARDED_BY(mutex_) = 0;       // bytes of the largest call of the last taken message
  size_t queued_ DEUT_GUARDED_BY(mutex_) = 0;             // calls in `queue_`, abandoned ones included
  std::deque<Ids> unanswered_ DEUT_GUARDED_BY(mutex_);    // call ids of unanswered messages, ascending
  uint64_t not_held_before_ DEUT_GUARDED_BY(mutex_) = 0;  // calls with a lower id are not held back
  // More words than messages are usually in flight, so that a wake seldom reaches another message's callers, too.
  static constexpr size_t kWords = 64;
  BatchedEvent::Word words_[kWords];
  uint64_t messages_ DEUT_GUARDED_BY(mutex_) = 0;  // messages begun so far
  std::vector<OneShotGroup*> finished_;            // accessed only by the stream's thread
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_ONE_SHOT_MULTIPLEXER_H_
