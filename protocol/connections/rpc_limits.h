// Settings of connections that both sides must agree on, or that bound the resources that a peer can take. (Limits of
// messages: limits.h.)
#ifndef PROTOCOL_CONNECTIONS_RPC_LIMITS_H_
#define PROTOCOL_CONNECTIONS_RPC_LIMITS_H_

namespace deut {

// Reconnecting. gRPC pauses for at least 100 ms. The time for one attempt must differ from the longest pause, or a slow
// TLS handshake never ends.
constexpr int kInitialBackoffMs = 100;
constexpr int kMaxBackoffMs = 1000;
constexpr int kConnectTimeoutMs = 5000;
// How long a call waits for a connection before it fails.
constexpr int kConnectPatienceMs = 200;

// A side that hears nothing sends pings. A peer that does not answer in time is gone (a half-open connection). A server
// accepts pings that are kMinPingIntervalMs apart.
constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kMinPingIntervalMs = 5'000;

constexpr int kMaxMetadataBytes = 8 << 10;
constexpr int kMaxStreamsPerConnection = 1024;
constexpr int kShortFrameBytes = 16 << 10;
constexpr int kBulkFrameBytes = 256 << 10;
// The most bytes in flight on a stream that its reader has not taken yet.
constexpr int kWindowBytes = 1 << 20;

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_RPC_LIMITS_H_
