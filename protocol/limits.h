// Limits of messages between the processes. The sender keeps them and the receiver checks them. The error for a larger
// message names the field and the limit. No message exceeds kMaxMessageBytes: larger content is split or refused before
// it is sent. (Limits of keys, values and names: common/base/ids.h.)
#ifndef PROTOCOL_LIMITS_H_
#define PROTOCOL_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "common/base/ids.h"

namespace deut {

// The largest message that a peer may send. Answers to the control calls (table lists, partitions, counters) may be
// larger.
constexpr size_t kMaxMessageBytes = 4 << 20;
constexpr size_t kMaxControlAnswerBytes = 64 << 20;

// Bounds of ranges may be one byte longer than keys: the smallest key behind a key is that key and a zero byte.
constexpr uint32_t kMaxBoundBytes = kMaxKeyBytes + 1;

// Data stream: the most requests in a message, and the bytes of keys and bounds at which a sender starts the next
// message.
constexpr int kMaxRequestsPerMessage = 256;
constexpr size_t kRequestMessageBytes = 64 << 10;
// The most requests of one Data stream that are sent and not yet answered.
constexpr size_t kMaxOutstandingRequests = 16384;

// The most bytes that a request may ask for in one scan answer. The answer may exceed it by one record.
constexpr uint32_t kMaxScanBytes = 1 << 20;
// Answers are gathered into messages of at most about this size.
constexpr size_t kAnswerMessageBytes = 256 << 10;

// The most bytes of entries in one log batch.
constexpr size_t kMaxLogBatchBytes = 3 << 20;

// The most operations in one call to a session, and the most keys that a transaction may declare.
constexpr int kMaxOperationsPerCall = 1024;
constexpr int kMaxDeclaredKeys = 1024;
// The most requests in a message of a session (pipelining).
constexpr int kMaxCallsPerMessage = 64;

// The most pieces that a Partition call may ask for.
constexpr uint32_t kMaxPartitions = 8192;

// The most bytes of a status message on the wire. Longer ones are cut.
constexpr size_t kMaxStatusMessageBytes = 4096;

}  // namespace deut

#endif  // PROTOCOL_LIMITS_H_
