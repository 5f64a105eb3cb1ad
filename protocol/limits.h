// Limits of messages between the processes. The sender keeps them, the receiver checks them, and the error that refuses more
// names the field and the limit. A message never exceeds kMaxMessageBytes; what is larger is split or refused before it is sent.
// (Limits of keys, values and names: common/base/ids.h.)
#ifndef PROTOCOL_LIMITS_H_
#define PROTOCOL_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "common/base/ids.h"

namespace deut {

// What a peer may send in one message. Answers to the control calls (table lists, partitions, counters) may be larger.
constexpr size_t kMaxMessageBytes = 4 << 20;
constexpr size_t kMaxControlAnswerBytes = 64 << 20;

// Bounds of ranges may be one byte longer than keys: the smallest key behind a key is that key and a zero byte.
constexpr uint32_t kMaxBoundBytes = kMaxKeyBytes + 1;

// Data stream: requests a message, and the bytes of their keys and bounds at which a sender starts the next message.
constexpr int kMaxRequestsPerMessage = 256;
constexpr size_t kRequestMessageBytes = 64 << 10;
// Requests of one Data stream that are sent and not yet answered.
constexpr size_t kMaxOutstandingRequests = 16384;

// What one scan answer may be asked to hold. It exceeds this by one record at most.
constexpr uint32_t kMaxScanBytes = 1 << 20;
// Answers are gathered into messages up to about this size.
constexpr size_t kAnswerMessageBytes = 256 << 10;

// Entries of one log batch.
constexpr size_t kMaxLogBatchBytes = 3 << 20;

// Operations of one call to a session, and keys a transaction may declare.
constexpr int kMaxOperationsPerCall = 1024;
constexpr int kMaxDeclaredKeys = 1024;
// Requests of a session's message (pipelining).
constexpr int kMaxCallsPerMessage = 64;

// Pieces that Partition may be asked for.
constexpr uint32_t kMaxPartitions = 8192;

// Bytes of a status message on the wire; longer ones are cut.
constexpr size_t kMaxStatusMessageBytes = 4096;

}  // namespace deut

#endif  // PROTOCOL_LIMITS_H_
