// Settings of connections that both sides must agree on or that bound what a peer can make us hold (limits of messages: limits.h).
#ifndef PROTOCOL_RPC_LIMITS_H_
#define PROTOCOL_RPC_LIMITS_H_

namespace deut {

// Reconnecting. gRPC pauses for 100 ms at least. The time allowed for one attempt must differ from the longest pause, or a slow TLS
// handshake never ends.
constexpr int kInitialBackoffMs = 100;
constexpr int kMaxBackoffMs = 1000;
constexpr int kConnectTimeoutMs = 5000;
// How long a call waits for a connection before it fails.
constexpr int kConnectPatienceMs = 200;

// A side that hears nothing pings; a peer that does not answer in time is gone (a half-open connection). A server accepts pings this often.
constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kMinPingIntervalMs = 5'000;

constexpr int kMaxMetadataBytes = 8 << 10;
constexpr int kMaxStreamsPerConnection = 1024;
constexpr int kShortFrameBytes = 16 << 10;
constexpr int kBulkFrameBytes = 256 << 10;
// What may be in flight on a stream before its reader has taken it.
constexpr int kWindowBytes = 1 << 20;

}  // namespace deut

#endif  // PROTOCOL_RPC_LIMITS_H_
