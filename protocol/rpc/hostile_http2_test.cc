// Hostile peers that speak HTTP/2: the harm that each can do to a server is bounded (docs/security.md). A client is served beside each of them.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/data_component.h"
#include "protocol/rpc/health_service.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/raw_socket.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/transactions/thread_per_one_shot.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {
namespace {

using testing::CallHeaders;
using testing::FrameType;
using testing::Http2Frame;
using testing::kAck;
using testing::kEndHeaders;
using testing::kEndStream;
using testing::LiteralHeader;

constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";

class HostileHttp2Test : public ::testing::Test {
 protected:
  HostileHttp2Test() {
    loopback_.server().SetServing(true);
    // The peer never acknowledges the server's settings.
    hostile_ = testing::ConnectRaw(loopback_.address());
    EXPECT_TRUE(Send(Concat(testing::kHttp2Preface, Http2Frame(FrameType::kSettings, 0, 0, ""))));
  }
  ~HostileHttp2Test() override { EXPECT_EQ(*testing::Health(*loopback_.Peer()), 1) << "the server serves as before"; }

  bool Send(const std::string& bytes) { return testing::SendRaw(hostile_, bytes); }
  // Sends up to `most` frames until the server ends the connection. Returns the number that could be sent; kNeverEnds: the server did not end it. The
  // system's buffers hold a megabyte or more that the server has not read.
  static constexpr uint64_t kNeverEnds = UINT64_MAX;
  template <typename Frame>
  uint64_t SendUntilItEnds(uint64_t most, const Frame& frame) {
    for (uint64_t i = 0; i < most; ++i) {
      if (!Send(frame(i)) || testing::EndsWithin(hostile_, Duration(0))) return i;
    }
    return testing::EndsWithin(hostile_, seconds(5)) ? most : kNeverEnds;
  }
  static std::string CallAndReset(uint64_t i) {
    const auto stream = static_cast<uint32_t>(2 * i + 1);
    return Concat(
        Http2Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders("/deuteronomy.v1.DataComponent/Data")),
        Http2Frame(FrameType::kResetStream, 0, stream, std::string(4, '\x08')));
  }
  // Whether the connection still answers a ping.
  bool AnswersPing() {
    std::string received;
    if (!Send(Http2Frame(FrameType::kPing, 0, 0, "01234567"))) return false;
    const std::string answer = Http2Frame(FrameType::kPing, kAck, 0, "01234567");
    while (received.find(answer) == std::string::npos) {
      if (!testing::ReceiveRaw(hostile_, received.size() + 1, &received)) return false;
    }
    return true;
  }
  // Whether the server answers SERVING to a health check on `stream` that carries `more_headers`.
  bool IsServedOn(uint32_t stream, const std::string& more_headers) {
    const std::string nothing(5, '\0');
    if (!Send(Concat(Http2Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders(kHealthCheck) + more_headers),
                     Http2Frame(FrameType::kData, kEndStream, stream, nothing)))) {
      return false;
    }
    const std::string answer = Http2Frame(FrameType::kData, 0, stream, std::string("\0\0\0\0\2\x08\x01", 7));
    std::string received;
    while (received.find(answer) == std::string::npos) {
      if (!testing::ReceiveRaw(hostile_, received.size() + 1, &received)) return false;
    }
    return true;
  }

  testing::ScriptedDataComponent component_{RealRuntime()};
  GrpcDataComponentService service_{RealRuntime(), component_, RpcServiceOptions()};
  testing::Loopback loopback_{{service_.service()}};
  Descriptor hostile_;
};

// CVE-2023-33953: the server kept the received part of such a field, and copied all of it again with each frame.
TEST_F(HostileHttp2Test, AFieldOfAGigabyteEndsItsConnectionSoon) {
  std::string begin = CallHeaders(kHealthCheck) + LiteralHeader("x", "");
  begin.pop_back();
  begin += "\x7f\x81\xff\xff\xff\x03";  // the length of the value: 2^30
  ASSERT_TRUE(Send(Http2Frame(FrameType::kHeaders, 0, 1, begin)));
  const uint64_t taken = SendUntilItEnds(
      4096, [](uint64_t) { return Http2Frame(FrameType::kContinuation, 0, 1, std::string(1024, 'x')); });
  EXPECT_NE(taken, kNeverEnds);
}

// CVE-2023-33953: the server applied the limit of a header block to each of its frames, instead of the whole block.
TEST_F(HostileHttp2Test, AHeaderBlockOfManyFramesIsLimitedAsAWhole) {
  ASSERT_TRUE(Send(Http2Frame(FrameType::kHeaders, 0, 1, CallHeaders(kHealthCheck))));
  const uint64_t taken = SendUntilItEnds(4096, [](uint64_t i) {
    return Http2Frame(FrameType::kContinuation, 0, 1, LiteralHeader(Concat("x", i), std::string(1000, 'x')));
  });
  EXPECT_NE(taken, kNeverEnds);
}

// CVE-2023-44487: a stream that is reset at once leaves room for the next one at once.
TEST_F(HostileHttp2Test, RapidResetsEndTheirConnection) {
  EXPECT_NE(SendUntilItEnds(20'000, [](uint64_t i) { return CallAndReset(i); }), kNeverEnds);
}

TEST_F(HostileHttp2Test, AClientMayCancelSomeCalls) {
  for (uint64_t i = 0; i < 900; ++i) ASSERT_TRUE(Send(CallAndReset(i)));
  EXPECT_TRUE(AnswersPing());
}

// A peer that did not acknowledge the settings had no limit of streams, and a limit of 16 MiB for a header block.
TEST_F(HostileHttp2Test, StreamsAreLimitedBeforeTheSettingsAreAcknowledged) {
  const uint64_t sent = SendUntilItEnds(4000, [](uint64_t i) {
    return Http2Frame(FrameType::kHeaders, kEndHeaders, static_cast<uint32_t>(2 * i + 1),
                      CallHeaders("/deuteronomy.v1.DataComponent/Data"));
  });
  EXPECT_NE(sent, kNeverEnds);
}

// CVE-2023-32732: such a field ended the connection, which behind a proxy also carries the calls of other clients.
TEST_F(HostileHttp2Test, AFieldOfIllegalBase64DoesNotEndTheConnection) {
  ASSERT_TRUE(Send(
      Http2Frame(FrameType::kHeaders, kEndHeaders, 1, CallHeaders(kHealthCheck) + LiteralHeader("x-bin", "!!!!!"))));
  EXPECT_TRUE(AnswersPing());
  EXPECT_TRUE(IsServedOn(3, ""));
}

// CVE-2024-7246, of other versions of gRPC: a field with an error spoils later entries of the connection's header table, which behind a proxy belong
// to other clients.
TEST_F(HostileHttp2Test, AnIllegalFieldDoesNotSpoilTheTableForLaterCalls) {
  const auto indexed = [](const std::string& name, const std::string& value) {
    std::string field = LiteralHeader(name, value);
    field[0] = '\x40';  // adds the field to the table
    return field;
  };
  ASSERT_TRUE(Send(Http2Frame(FrameType::kHeaders, kEndHeaders, 1,
                              CallHeaders(kHealthCheck) + indexed("x-bin", "!!!!!") + indexed("y", "value"))));
  // Names the two entries by their numbers, the newest one first.
  EXPECT_TRUE(IsServedOn(3, "\xbe"));
  EXPECT_TRUE(IsServedOn(5, "\xbf"));
}

TEST_F(HostileHttp2Test, AFloodOfPingsEndsItsConnection) {
  std::string ping = Http2Frame(FrameType::kPing, 0, 0, "01234567");
  EXPECT_NE(SendUntilItEnds(2000, [&](uint64_t) { return ping; }), kNeverEnds);
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<uint64_t>(getpagesize());
}

// While the peer does not read the answers to its pings, the server cannot close the connection in good order. Each ping added a reason for closing
// to a list that was copied. Tens of thousands of pings took gigabytes, and no other client was served meanwhile.
TEST_F(HostileHttp2Test, AFloodOfPingsWithoutAReaderIsNotKeptInMemory) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += Http2Frame(FrameType::kPing, 0, 0, "01234567");
  const uint64_t before = ResidentBytes();
  for (int i = 0; i < 40 && testing::SendRaw(hostile_, many, milliseconds(500)); ++i) {
  }
  EXPECT_EQ(*testing::Health(*loopback_.Peer()), 1);
  EXPECT_LT(ResidentBytes(), before + (uint64_t{512} << 20));
}

// The peer does not read the server's acknowledgements. The server must not keep an unlimited number of them.
TEST_F(HostileHttp2Test, AFloodOfSettingsWithoutAReaderIsNotKeptInMemory) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += Http2Frame(FrameType::kSettings, 0, 0, "");
  uint64_t sent = 0;
  // Sends until the server stops reading.
  while (sent < 50'000'000 && testing::SendRaw(hostile_, many, milliseconds(500))) sent += many.size();
  EXPECT_LT(sent, 50'000'000u);
}

// A peer that opens no flow-control window, so the server may not send it any byte of an answer.
class ZeroWindowPeer {
 public:
  explicit ZeroWindowPeer(const Address& address, const std::string& source = "127.0.0.2")
      : socket_(testing::ConnectRaw(address, source)) {
    const std::string initial_window_0("\0\4\0\0\0\0", 6);
    EXPECT_TRUE(testing::SendRaw(
        socket_, Concat(testing::kHttp2Preface, Http2Frame(FrameType::kSettings, 0, 0, initial_window_0))));
  }
  bool Call(std::string_view path, const std::string& request) {
    std::string message(1, '\0');
    for (const int shift : {24, 16, 8, 0}) message.push_back(static_cast<char>(request.size() >> shift));
    const uint32_t stream = next_stream_;
    next_stream_ += 2;
    return testing::SendRaw(socket_, Concat(Http2Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders(path)),
                                            Http2Frame(FrameType::kData, kEndStream, stream, message + request)));
  }
  // Reads, and waits for more bytes, until a call has been answered with this gRPC status.
  bool HearsStatus(std::string_view status) {
    const std::string field = Concat("grpc-status", std::string(1, static_cast<char>(status.size())), status);
    while (received_.find(field) == std::string::npos) {
      if (!testing::ReceiveRaw(socket_, received_.size() + 1, &received_)) return false;
    }
    return true;
  }
  // Waits until the server resets the first call.
  bool HearsReset() {
    const std::string reset = Http2Frame(FrameType::kResetStream, 0, 1, std::string(4, '\0')).substr(0, 5);
    while (received_.find(reset) == std::string::npos) {
      if (!testing::ReceiveRaw(socket_, received_.size() + 1, &received_)) return false;
    }
    return true;
  }

 private:
  const Descriptor socket_;
  uint32_t next_stream_ = 1;
  std::string received_;
};

// Before a fix, each answer that the peer did not take held a thread of the server.
class ZeroWindowTest : public ::testing::Test {
 protected:
  static constexpr RpcServiceOptions kOptions{.stuck_peer = milliseconds(500)};

  ZeroWindowTest() {
    scripted_.before = [this](std::string_view call, Deadline) {
      if (call == "get_status") ++ran_;
      return Status::Ok();
    };
    wire::ServiceRequest request;
    request.set_protocol_version(kProtocolVersion);
    status_request_ = request.SerializeAsString();
  }

  bool AskStatus(ZeroWindowPeer& peer) {
    return peer.Call("/deuteronomy.v1.TransactionService/GetStatus", status_request_);
  }

  std::atomic<size_t> ran_{0};
  testing::ScriptedTransactionService scripted_{RealRuntime()};
  GrpcTransactionServiceServer service_{RealRuntime(), scripted_, testing::NewThreadPerOneShot, kOptions};
  testing::Loopback loopback_{{service_.service()}};
  std::string status_request_;
};

TEST_F(ZeroWindowTest, AnswersThatAreNotTakenHoldNoThreadAndEndAfterAWhile) {
  constexpr int kCalls = 1000;
  const size_t most = kOptions.calls().per_peer;
  ZeroWindowPeer one(loopback_.address()), two(loopback_.address(), "127.0.0.3");
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(AskStatus(one) && AskStatus(two));
  ASSERT_TRUE(testing::Eventually([&] { return ran_ >= 2 * most; }));
  const auto stub = wire::TransactionService::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kShort));
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    wire::ServiceRequest request;
    request.set_protocol_version(kProtocolVersion);
    wire::GetStatusAnswer answer;
    const grpc::Status answered = stub->GetStatus(&context, request, &answer);
    EXPECT_TRUE(answered.ok()) << answered.error_message();
  }
  // After stuck_peer the calls are cancelled, and their places come back.
  const size_t before = ran_;
  EXPECT_TRUE(testing::Eventually([&] { return AskStatus(one) && ran_ > before; }));
}

// Before a fix, the server kept every check whose answer was not taken, up to the connection's limit of streams, until the connection ended.
TEST(ZeroWindowHealthTest, ChecksAreLimitedByPeerAndEndAfterAWhile) {
  RpcServerOptions options;
  options.listen = Address();
  options.stuck_peer = milliseconds(500);
  auto server = RpcServer::Start(RealRuntime(), options, {});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  (*server)->SetServing(true);
  ZeroWindowPeer hostile((*server)->address());
  for (size_t i = 0; i < HealthService::kMaxChecksPerPeer + 1; ++i) ASSERT_TRUE(hostile.Call(kHealthCheck, ""));
  EXPECT_TRUE(hostile.HearsStatus("8")) << "one was more than the peer may have";
  const auto peer = *RpcPeer::Create("the server", "--server", (*server)->address(), nullptr, /*insecure=*/false);
  EXPECT_EQ(*testing::Health(*peer), 1);
  EXPECT_TRUE(hostile.HearsReset()) << "the others are ended";
}

}  // namespace
}  // namespace deut
