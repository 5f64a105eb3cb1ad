#include "integration/harness/stream_replay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

namespace deut::testing {
namespace {

// Constants of RFC 9113.
constexpr size_t kPrefaceBytes = 24, kFrameHeaderBytes = 9;
constexpr uint8_t kData = 0, kHeaders = 1, kResetStream = 3, kSettings = 4, kPing = 6, kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1, kAck = 1;
constexpr uint16_t kInitialWindowSize = 4;
constexpr int64_t kDefaultWindow = 65535;

uint32_t Number(std::string_view bytes, size_t count) {
  uint32_t number = 0;
  for (size_t i = 0; i < count; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

struct Frame {
  uint8_t type = 0, flags = 0;
  uint32_t stream = 0;
  std::string_view whole, payload;
};

// Takes the first frame from `bytes`. Returns false if the frame is not complete.
bool ConsumeFrame(std::string_view* bytes, Frame* frame) {
  if (bytes->size() < kFrameHeaderBytes) return false;
  const size_t size = Number(*bytes, 3);
  if (bytes->size() < kFrameHeaderBytes + size) return false;
  frame->type = static_cast<uint8_t>((*bytes)[3]);
  frame->flags = static_cast<uint8_t>((*bytes)[4]);
  frame->stream = Number(bytes->substr(5), 4) & 0x7FFF'FFFF;
  frame->whole = bytes->substr(0, kFrameHeaderBytes + size);
  frame->payload = frame->whole.substr(kFrameHeaderBytes);
  bytes->remove_prefix(frame->whole.size());
  return true;
}

class Replay {
 public:
  Replay(int fd, const ReplayOptions& options) : fd_(fd), options_(options) {}

  ReplayReport Run(std::string_view to_server) {
    report_.connected = true;
    report_.complete = SendAll(to_server);
    while (open_ && Receive(report_.answered_bytes == 0 ? options_.patience : options_.linger)) {
    }
    report_.ended_streams = ended_.size();
    return report_;
  }

 private:
  bool SendAll(std::string_view bytes) {
    if (bytes.size() < kPrefaceBytes || !Send(bytes.substr(0, kPrefaceBytes))) return false;
    bytes.remove_prefix(kPrefaceBytes);
    Frame frame;
    while (ConsumeFrame(&bytes, &frame)) {
      // The server regards pings that come faster than its answers as an attack, and hangs up.
      if (frame.type == kPing) continue;
      // The client had received the server's settings before it sent its first frame in answer to them.
      if (frame.type != kSettings || (frame.flags & kAck) != 0) {
        if (!Await([&] { return settled_; })) return false;
      }
      if (frame.type == kData && !AwaitRoom(frame)) return false;
      if (!Send(frame.whole)) return false;
      ++report_.frames;
    }
    return true;
  }

  bool AwaitRoom(const Frame& frame) {
    const auto size = static_cast<int64_t>(frame.payload.size());
    // A stream that the server has ended accepts any number of bytes, because the server throws them away.
    const auto has_room = [&] {
      return room_ >= size && (ended_.contains(frame.stream) || initial_ + moved_[frame.stream] >= size);
    };
    if (!Await(has_room)) return false;
    room_ -= size;
    moved_[frame.stream] -= size;
    report_.data_bytes += frame.payload.size();
    return true;
  }

  template <typename Condition>
  bool Await(Condition condition) {
    while (Receive(Duration(0))) {
    }
    while (open_ && !condition()) {
      if (!Receive(options_.patience)) return false;
    }
    return open_;
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      if (poll(&ready, 1, Milliseconds(options_.patience)) != 1) return false;
      const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0 && errno != EAGAIN) open_ = false;
      if (!open_) return false;
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    }
    return true;
  }

  // Returns false if nothing came within the time, or if the connection has ended.
  bool Receive(Duration limit) {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, Milliseconds(limit)) != 1) return false;
    char bytes[64 << 10];
    const ssize_t count = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (count <= 0) {
      open_ = count < 0 && errno == EAGAIN;
      return false;
    }
    received_.append(bytes, static_cast<size_t>(count));
    std::string_view rest = received_;
    Frame frame;
    while (ConsumeFrame(&rest, &frame)) Understand(frame);
    received_.erase(0, received_.size() - rest.size());
    return true;
  }

  void Understand(const Frame& frame) {
    const bool numbered = frame.payload.size() >= 4;
    if (frame.type == kSettings && (frame.flags & kAck) == 0) {
      settled_ = true;
      for (std::string_view rest = frame.payload; rest.size() >= 6; rest.remove_prefix(6)) {
        if (Number(rest, 2) == kInitialWindowSize) initial_ = Number(rest.substr(2), 4);
      }
    } else if (frame.type == kWindowUpdate && numbered) {
      const int64_t more = Number(frame.payload, 4) & 0x7FFF'FFFF;
      (frame.stream == 0 ? room_ : moved_[frame.stream]) += more;
    } else if (frame.type == kData) {
      report_.answered_bytes += frame.payload.size();
    }
    const bool ends = (frame.type == kHeaders || frame.type == kData) && (frame.flags & kEndStream) != 0;
    if (ends || frame.type == kResetStream) ended_.insert(frame.stream);
  }

  static int Milliseconds(Duration duration) { return static_cast<int>(duration_cast<milliseconds>(duration).count()); }

  const int fd_;
  const ReplayOptions& options_;
  ReplayReport report_;
  bool open_ = true, settled_ = false;
  int64_t room_ = kDefaultWindow, initial_ = kDefaultWindow;
  std::map<uint32_t, int64_t> moved_;  // change of a stream's window from the initial one
  std::set<uint32_t> ended_;
  std::string received_;
};

}  // namespace

ReplayReport ReplayConnection(uint16_t server_port, std::string_view to_server, const ReplayOptions& options) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server_port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ReplayReport report;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    report = Replay(fd, options).Run(to_server);
  }
  close(fd);
  return report;
}

uint64_t LogStreamsIn(std::string_view to_server) {
  constexpr std::string_view kPath = "/deuteronomy.v1.DataComponent/ApplyLog";
  uint64_t count = 0;
  for (size_t at = to_server.find(kPath); at != std::string_view::npos; at = to_server.find(kPath, at + 1)) ++count;
  return count;
}

}  // namespace deut::testing
