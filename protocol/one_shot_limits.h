// Limits of streams of one-shot transactions (OneShots of transaction_service.proto); those of all messages: limits.h.
#ifndef PROTOCOL_ONE_SHOT_LIMITS_H_
#define PROTOCOL_ONE_SHOT_LIMITS_H_

#include <cstddef>

#include "common/runtime/runtime.h"

namespace deut {

// Calls of a message, and the bytes at which a sender starts the next message.
constexpr int kMaxOneShotsPerMessage = 256;
constexpr size_t kOneShotMessageBytes = 64 << 10;
// What one call may hold to travel on a stream that others share; larger ones go by session.
constexpr size_t kMaxSharedOneShotBytes = 128 << 10;
// Calls of one stream that are sent and not yet answered.
constexpr size_t kMaxOutstandingOneShots = 8192;

// Messages under way, of which nothing is answered, beyond which a client holds back what is not a whole message: with two, one is made while the
// other is in work. And how long a caller lets his call be held back.
constexpr size_t kUnansweredMessages = 2;
constexpr Duration kHoldBack = milliseconds(2);

}  // namespace deut

#endif  // PROTOCOL_ONE_SHOT_LIMITS_H_
