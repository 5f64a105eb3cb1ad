// Raw sockets for tests: clients that are not gRPC's, and frames of HTTP/2 as RFC 9113 draws them.
// Thread-safety: functions from any thread.
#ifndef PROTOCOL_TESTING_RAW_SOCKET_H_
#define PROTOCOL_TESTING_RAW_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/descriptor.h"
#include "common/runtime/runtime.h"
#include "protocol/endpoint.h"

namespace deut::testing {

// A connected socket; not valid if nobody accepts. Addresses of TCP are numbers or localhost. `source` is the IPv4 address that the connection
// comes from, one of 127.0.0.0/8, each of which is a peer of its own to a server without TLS; empty: the system chooses.
Descriptor ConnectRaw(const Address& address, const std::string& source = {});
// False if the peer has closed, or does not take it all within `limit`.
bool SendRaw(const Descriptor& socket, std::string_view bytes, Duration limit = seconds(10));
// True if the peer ends the connection within `limit`. What it sends meanwhile is appended to `received`, if there is one.
bool EndsWithin(const Descriptor& socket, Duration limit, std::string* received = nullptr);
// Reads until `received` holds at least `bytes`. False if the peer ends the connection before, or the limit passes.
bool ReceiveRaw(const Descriptor& socket, size_t bytes, std::string* received, Duration limit = seconds(10));

// What a client sends first.
constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kResetStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;

std::string Http2Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload);
// The header block of a gRPC call to `path`, without Huffman codes and without the dynamic table.
std::string CallHeaders(std::string_view path);
// One header field as a literal without indexing.
std::string LiteralHeader(std::string_view name, std::string_view value);

}  // namespace deut::testing

#endif  // PROTOCOL_TESTING_RAW_SOCKET_H_
