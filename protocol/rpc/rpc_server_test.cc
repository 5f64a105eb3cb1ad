#include "protocol/rpc/rpc_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/limits.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

testing::ScriptedDataComponent& Component() {
  static testing::ScriptedDataComponent component(RealRuntime());
  return component;
}

Result<std::unique_ptr<RpcServer>> Start(const std::string& listen, bool insecure = false) {
  // A service belongs to one server for good, so each server gets a new one.
  static std::deque<GrpcDataComponentService> services;
  services.emplace_back(RealRuntime(), Component(), RpcServiceOptions());
  RpcServerOptions options;
  options.listen = *Address::Parse("--listen", listen);
  options.insecure = insecure;
  return RpcServer::Start(RealRuntime(), options, {services.back().service()});
}

TEST(RpcServerTest, ChoosesAPortAndSaysWhich) {
  auto server = Start("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_NE((*server)->address().port(), 0);
}

TEST(RpcServerTest, TakenPortIsNamed) {
  auto first = Start("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string where = (*first)->address().ToString();
  auto second = Start(where);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(second.status().ToString(), HasSubstr("cannot listen at " + where + ": the address is taken"));
  // "localhost" is one address, not whichever of two is free.
  auto third = Start("localhost:" + std::to_string((*first)->address().port()));
  EXPECT_FALSE(third.ok());
  first->reset();
  EXPECT_TRUE(Start(where).ok());
}

TEST(RpcServerTest, OffLoopbackOnlyWhenToldSo) {
  const auto refused = Start("0.0.0.0:0");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.status().ToString(), HasSubstr("--tls_cert"));
  EXPECT_TRUE(Start("0.0.0.0:0", /*insecure=*/true).ok());
  EXPECT_FALSE(Start("192.0.2.1:0", /*insecure=*/true).ok());
}

TEST(RpcServerTest, UnixSocketOfALivingServerStaysItsOwn) {
  testing::TempDir dir(testing::TempDirPath::kShortPath);
  const std::string where = "unix:" + dir.Sub("s");
  auto first = Start(where);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  const auto second = Start(where);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().ToString(), HasSubstr("taken"));
  auto peer = RpcPeer::Create("the server", "--dc", (*first)->address(), nullptr, false);
  ASSERT_TRUE(peer.ok());
  const auto channel = (*peer)->NewChannel(RpcTraffic::kShort);
  EXPECT_TRUE(
      channel->WaitForConnected(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN))));
}

TEST(RpcServerTest, HealthSaysWhetherItServes) {
  GrpcDataComponentService service(RealRuntime(), Component(), RpcServiceOptions());
  testing::Loopback loopback({service.service()});
  const auto peer = loopback.Peer();
  auto health = testing::Health(*peer);
  ASSERT_TRUE(health.ok()) << health.status().ToString();
  EXPECT_EQ(*health, 2);
  loopback.server().SetServing(true);
  EXPECT_EQ(*testing::Health(*peer), 1);
  loopback.server().SetServing(false);
  EXPECT_EQ(*testing::Health(*peer), 2);
  loopback.Stop();
  EXPECT_EQ(testing::Health(*peer).status().code(), ErrorCode::kUnavailable);
}

// Bounds on the resources that a peer can take from a server. Each is tested with a service behind it, and afterwards
// the server must still answer.
class RpcServerBoundsTest : public ::testing::Test {
 protected:
  std::unique_ptr<wire::DataComponent::Stub> Stub(const grpc::ChannelArguments& arguments = {}) {
    return wire::DataComponent::NewStub(
        grpc::CreateCustomChannel(loopback_.address().ToString(), grpc::InsecureChannelCredentials(), arguments));
  }
  void ExpectAlive() {
    grpc::ClientContext context;
    // Uses a connection of its own, because that of a refused call may be closing just now.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    wire::CountersAnswer answer;
    const grpc::Status answered = Stub(arguments)->Counters(&context, wire::CountersRequest(), &answer);
    EXPECT_TRUE(answered.ok()) << answered.error_message();
    EXPECT_EQ(answer.counters_size(), 1);
  }

  testing::ScriptedDataComponent component_{RealRuntime()};
  GrpcDataComponentService service_{RealRuntime(), component_, RpcServiceOptions()};
  testing::Loopback loopback_{{service_.service()}};
};

TEST_F(RpcServerBoundsTest, OversizeMessageIsRefused) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto stub = Stub(arguments);
  grpc::ClientContext context;
  const auto stream = stub->Data(&context);
  wire::DataRequests requests;
  requests.add_items()->set_key(std::string(kMaxMessageBytes + 1, 'k'));
  stream->Write(requests);
  wire::DataAnswers answers;
  EXPECT_FALSE(stream->Read(&answers));
  EXPECT_FALSE(stream->Finish().ok());
  ExpectAlive();
}

// A megabyte of zeros fits into a kilobyte. The server does not unpack compressed messages at all.
TEST_F(RpcServerBoundsTest, CompressedMessageIsNotUnpacked) {
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  const auto stub = Stub(arguments);
  grpc::ClientContext context;
  wire::PartitionRequest request;
  request.mutable_sender()->set_tc(1);
  request.set_pieces(1);
  auto* unknown = request.GetReflection()->MutableUnknownFields(&request);
  unknown->AddLengthDelimited(1000, std::string(3 << 20, '\0'));
  wire::PartitionAnswer answer;
  EXPECT_FALSE(stub->Partition(&context, request, &answer).ok());
  ExpectAlive();
}

TEST_F(RpcServerBoundsTest, LargeMetadataIsRefused) {
  grpc::ClientContext context;
  context.AddMetadata("x", std::string(100000, 'x'));
  wire::CountersAnswer answer;
  EXPECT_FALSE(Stub()->Counters(&context, wire::CountersRequest(), &answer).ok());
  ExpectAlive();
}

// Makes an HTTP/2 frame as in RFC 9113, on stream 1 or for the connection.
std::string Frame(char type, char flags, char stream, const std::string& payload) {
  return std::string{
             0,     static_cast<char>(payload.size() >> 8), static_cast<char>(payload.size()), type, flags, 0, 0, 0,
             stream} +
         payload;
}

// A client whose machine is gone. It opens a stream, and then answers nothing, not even pings. The kernel of this
// machine still accepts bytes for it.
class SilentClient {
 public:
  SilentClient(const Address& server, const std::string& path, const std::string& message)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string headers = std::string("\x83\x86\x44") + static_cast<char>(path.size()) + path + "\x41\x01x" +
                                std::string("\0\x02te\x08trailers", 13) + "\x0f\x10\x10" + "application/grpc";
    const std::string prefixed = std::string(4, '\0') + static_cast<char>(message.size()) + message;
    const std::string bytes =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "") + Frame(1, 4, 1, headers) + Frame(0, 0, 1, prefixed);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                 send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  ~SilentClient() { close(socket_); }
  bool connected() const { return connected_; }

 private:
  const int socket_;
  bool connected_ = false;
};

TEST_F(RpcServerBoundsTest, PeerThatIsGoneWithoutAWordLosesItsStreams) {
  wire::ApplyLogRequest open;
  open.mutable_open()->mutable_sender()->set_tc(1);
  const SilentClient client(loopback_.address(), "/deuteronomy.v1.DataComponent/ApplyLog", open.SerializeAsString());
  ASSERT_TRUE(client.connected());
  ASSERT_TRUE(testing::Eventually([&] { return component_.apply_logs() == 1; }));
  // The stream ends after kKeepaliveMs + kKeepaliveTimeoutMs.
  EXPECT_TRUE(testing::Eventually([&] { return component_.apply_logs() == 0; }));
}

// A server with few threads refuses further streams, and does not queue them. Its health service still answers.
TEST(RpcServerThreadsTest, StreamsBeyondTheThreadsAreRefused) {
  Runtime& runtime = RealRuntime();
  testing::ScriptedDataComponent component(runtime);
  // 4 of the 6 threads are kept for single calls.
  GrpcDataComponentService service(runtime, component, RpcServiceOptions{.threads = 6});
  RpcServerOptions options;
  options.max_threads = 6;
  auto server = RpcServer::Start(runtime, options, {service.service()});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  (*server)->SetServing(true);
  auto peer = RpcPeer::Create("the server", "--dc", (*server)->address(), nullptr, false);
  ASSERT_TRUE(peer.ok());
  const auto stub = wire::DataComponent::NewStub((*peer)->NewChannel(RpcTraffic::kShort));
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<wire::DataRequests, wire::DataAnswers>>> streams;
  int refused = 0;
  for (int i = 0; i < 12; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stub->Data(contexts.back().get()));
    // One request on each stream shows whether it is served.
    wire::DataRequests requests;
    requests.mutable_sender()->set_incarnation(1);
    wire::DataItem* item = requests.add_items();
    item->set_kind(wire::DATA_READ);
    item->set_key("k");
    streams.back()->Write(requests);
    wire::DataAnswers answers;
    if (streams.back()->Read(&answers)) continue;
    const grpc::Status end = streams.back()->Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << end.error_message();
    streams.back().reset();
    ++refused;
  }
  EXPECT_EQ(refused, 10);
  EXPECT_EQ(*testing::Health(**peer), 1);
  for (auto& stream : streams) {
    if (stream != nullptr) stream->WritesDone();
  }
  for (auto& stream : streams) {
    if (stream != nullptr) stream->Finish();
  }
}

}  // namespace
}  // namespace deut
