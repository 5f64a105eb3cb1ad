// Limits of streams of one-shot transactions (OneShots of transaction_service.proto). Limits of all messages: limits.h.
#ifndef PROTOCOL_ONE_SHOT_LIMITS_H_
#define PROTOCOL_ONE_SHOT_LIMITS_H_

#include <cstddef>

#include "common/runtime/runtime.h"

namespace deut {

// The most calls in a message, and the bytes at which a sender starts the next message.
constexpr int kMaxOneShotsPerMessage = 256;
constexpr size_t kOneShotMessageBytes = 64 << 10;
// The most bytes of a call on a stream that others share. Larger calls use a session.
constexpr size_t kMaxSharedOneShotBytes = 128 << 10;
// The most calls of one stream that are sent and not yet answered.
constexpr size_t kMaxOutstandingOneShots = 8192;

// While this many messages are in flight without any answer, a client holds back calls until they fill a message. With
// two, the client builds one while the server runs the other. kHoldBack bounds the time that a caller lets its call be
// held back.
constexpr size_t kUnansweredMessages = 2;
constexpr Duration kHoldBack = milliseconds(2);

}  // namespace deut

#endif  // PROTOCOL_ONE_SHOT_LIMITS_H_
