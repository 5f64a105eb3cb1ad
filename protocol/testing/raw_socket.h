// Raw sockets for tests: clients that do not use gRPC, and frames of HTTP/2 (RFC 9113). Thread-safety: any thread may call the functions.
#ifndef PROTOCOL_TESTING_RAW_SOCKET_H_
#define PROTOCOL_TESTING_RAW_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/descriptor.h"
#include "common/runtime/runtime.h"
#include "protocol/connections/endpoint.h"

namespace deut::testing {

// Returns a connected socket, or an invalid one if the connection is refused. Addresses of TCP are numbers or localhost. `source` is the IPv4 address
// from which the connection comes, one of 127.0.0.0/8; empty: the system chooses. Each such address is a peer of its own to a server without TLS.
Descriptor ConnectRaw(const Address& address, const std::string& source = {});
// Sends all bytes. False if the peer has closed the connection, or does not take all of them within `limit`.
bool SendRaw(const Descriptor& socket, std::string_view bytes, Duration limit = seconds(10));
// True if the peer ends the connection within `limit`. Bytes that the peer sends meanwhile are appended to `received`, unless that is null.
bool EndsWithin(const Descriptor& socket, Duration limit, std::string* received = nullptr);
// Reads until `received` holds at least `bytes`. False if the peer ends the connection before, or the limit passes.
bool ReceiveRaw(const Descriptor& socket, size_t bytes, std::string* received, Duration limit = seconds(10));

// The first bytes that a client of HTTP/2 sends.
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
