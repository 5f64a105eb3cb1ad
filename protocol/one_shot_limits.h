// Limits of streams of one-shot transactions (OneShots of transaction_service.proto); those of all messages: limits.h.
#ifndef PROTOCOL_ONE_SHOT_LIMITS_H_
#define PROTOCOL_ONE_SHOT_LIMITS_H_

#include <cstddef>

namespace deut {

// Calls of a message, and the bytes at which a sender starts the next message.
constexpr int kMaxOneShotsPerMessage = 256;
constexpr size_t kOneShotMessageBytes = 64 << 10;
// What one call may hold to travel on a stream that others share; larger ones go by session.
constexpr size_t kMaxSharedOneShotBytes = 128 << 10;
// Calls of one stream that are sent and not yet answered.
constexpr size_t kMaxOutstandingOneShots = 8192;

}  // namespace deut

#endif  // PROTOCOL_ONE_SHOT_LIMITS_H_
