// OneShotMultiplexer: the bookkeeping of a client-side stream of one-shot transactions, without the stream: calls of many threads go into few
// messages, and answers, in any order, find their call again.
//
// Combining, as in request_multiplexer.h: whoever finds the sender's role free takes it and sends; what others submit meanwhile goes into the next
//   message. The role is given up when nothing is queued that may go.
// Gathering. A message costs much more than a call in it. So while `unanswered_messages` are under way of which nothing is answered yet, what is
//   submitted is held back, until an answer comes, the message is full, or a caller has waited long enough for it (Hurry): where answers come fast
//   many calls share a message, and where they take long a call waits little more. A message counts from TakeMessage to its first answer, also to
//   a call that was abandoned, or until a call that came after it was hurried: what is slow holds back one caller once. Nothing is held for ever:
//   each call has a caller who waits for it, and hurries it.
// States of the stream: down (Submit refuses) and up.
// States of a call: queued (in a message, `calls_` has it by id), sent, done. Sent when its message is taken; done under the lock: answered, or
//   given up by Down. Whoever waits for it takes it out of `calls_` (Abandon) if it is not done; from then on nobody else touches it.
// A group's count changes under the lock; whoever brings it to 0 tells the waiter outside of it, after which the group may be gone. Only Abandon,
//   which is the waiter, does not. The callers of a message sleep on one word and are woken by one system call (batched_event.h): with 16 callers
//   on two processors that gives 12 % more transactions a second than a wake for each.
// Thread-safety: Submit, Abandon from any thread; TakeMessage by the role's holder; Up, StopSending, GiveUpRole, Down, Answered by the stream's
// thread. Ownership: borrows calls from Submit until they are done or abandoned. REQUIRES: Down was called before it is destroyed.
#ifndef PROTOCOL_ONE_SHOT_MULTIPLEXER_H_
#define PROTOCOL_ONE_SHOT_MULTIPLEXER_H_

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
#include "protocol/transaction_service.pb.h"

namespace deut {

// Calls that are waited for together. Whoever finishes the last one tells the waiter, once, and does not touch the group afterwards.
struct OneShotGroup {
  bool IsDone() const { return all_done.IsSet(); }
  // REQUIRES: the calls were submitted. As BatchedEvent::Wait.
  bool Wait(Runtime& runtime, Deadline deadline) { return all_done.IsSet() || all_done.Wait(runtime, *word, deadline); }

  int left = 0;  // not done; the multiplexer's, under its lock
  // The multiplexer's: calls of one message have one word, because their answers mostly come together.
  BatchedEvent::Word* word = nullptr;
  BatchedEvent all_done;
};

struct OneShotCall {
  wire::OneShotCall message;  // exchanged for an empty one when it is submitted
  OneShotGroup* group = nullptr;
  size_t bytes = 0;  // about as many as the message has

  // Of the multiplexer, until it is done.
  uint64_t id = 0;
  bool sent = false;
  bool done = false;
  size_t answered = 0;  // of parts
  std::vector<wire::SessionAnswer>
      parts;    // the first `answered` are the answer; `more` is set in all of them but the last
  Status lost;  // not OK: there is no answer, and why

  absl::Span<wire::SessionAnswer> answer() { return absl::MakeSpan(parts).subspan(0, answered); }
  // Before it is submitted again. Messages keep their memory.
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
    kNothing,  // somebody else sends, or it is held back
    kSend,     // the caller has the sender's role: TakeMessage and send until it returns false
    kDown,     // the stream is down; nothing was submitted
  };

  OneShotMultiplexer(Runtime& runtime, Limits limits) : runtime_(runtime), limits_(limits), mutex_(runtime) {}
  OneShotMultiplexer(const OneShotMultiplexer&) = delete;
  OneShotMultiplexer& operator=(const OneShotMultiplexer&) = delete;

  // All of them, which are of one group, or, if the stream is down, none. Beyond the limit they are done with RESOURCE_EXHAUSTED.
  Next Submit(absl::Span<OneShotCall> calls);
  // What is queued of these calls, and before them, is no longer held back.
  Next Hurry(absl::Span<const OneShotCall> calls);
  // What is not done of these calls is done now, with `lost`. True: nobody touches them, or their group, any more. False: all were done, and
  // their group is about to be told, which is to be waited for. REQUIRES: `calls` are all that were submitted of their group.
  bool Abandon(absl::Span<OneShotCall> calls, const Status& lost);

  // The next message to send in place of what is in `message`, without what was abandoned. False: nothing is queued or all is held back, and the
  // role is given up; never to who has just had kSend from Submit or Hurry. REQUIRES: the caller has the sender's role.
  bool TakeMessage(wire::OneShotCalls* message);

  void Up();
  // No new sender from now on. True: somebody holds the role; what it sends will fail, and GiveUpRole must follow.
  bool StopSending();
  void GiveUpRole();
  // The stream is gone: everything that was queued or sent is done with `status`. REQUIRES: StopSending was called, and nobody holds the role.
  void Down(const Status& status);
  // Takes the answers out of the message; those to unknown ids (abandoned) are dropped. kSend: what was held back may go.
  Next Answered(wire::OneShotAnswers* answers);

  size_t outstanding();

 private:
  struct Message {
    wire::OneShotCalls calls;
    size_t bytes = 0;
    size_t largest = 0;  // of a call
  };
  struct Ids {
    uint64_t first, last;
  };

  void QueueLocked(OneShotCall* call) DEUT_REQUIRES(mutex_);
  bool MaySendLocked() const DEUT_REQUIRES(mutex_);
  // kSend if there is something that may go and nobody who sends.
  Next TakeRoleLocked() DEUT_REQUIRES(mutex_);
  // True: it was the last of its group, which is to be told.
  static bool DoneLocked(OneShotCall* call);
  // Wakes the waiters of `finished_`.
  void TellFinished();

  Runtime& runtime_;
  const Limits limits_;
  Mutex mutex_;
  bool up_ DEUT_GUARDED_BY(mutex_) = false;
  bool sending_ DEUT_GUARDED_BY(mutex_) = false;  // the role is taken
  uint64_t next_id_ DEUT_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, OneShotCall*> calls_ DEUT_GUARDED_BY(mutex_);
  std::deque<Message> queue_ DEUT_GUARDED_BY(mutex_);
  std::vector<wire::OneShotCalls> spare_
      DEUT_GUARDED_BY(mutex_);                           // empty messages that keep their memory, and their calls'
  size_t sent_largest_ DEUT_GUARDED_BY(mutex_) = 0;      // of the message that was taken last, the largest call
  size_t queued_ DEUT_GUARDED_BY(mutex_) = 0;            // calls in there, also those that were abandoned
  std::deque<Ids> unanswered_ DEUT_GUARDED_BY(mutex_);   // of messages under way, ascending
  uint64_t hurried_before_ DEUT_GUARDED_BY(mutex_) = 0;  // calls with a lower id are not held back
  // More words than messages are under way as a rule, so that a wake is seldom for another message's callers, too.
  static constexpr size_t kWords = 64;
  BatchedEvent::Word words_[kWords];
  uint64_t messages_ DEUT_GUARDED_BY(mutex_) = 0;  // ever begun
  std::vector<OneShotGroup*> finished_;            // the stream's thread's own
};

}  // namespace deut

#endif  // PROTOCOL_ONE_SHOT_MULTIPLEXER_H_
