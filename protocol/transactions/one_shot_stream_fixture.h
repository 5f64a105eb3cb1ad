// The common parts of tests of streams of one-shot transactions on a server: a client that may break any rule, and a server
// whose service is scripted. The test brings the scheduler.
#ifndef PROTOCOL_TRANSACTIONS_ONE_SHOT_STREAM_FIXTURE_H_
#define PROTOCOL_TRANSACTIONS_ONE_SHOT_STREAM_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/rpc/service_options.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/transactions/one_shot_scheduler.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {

class OneShotStreamClient {
 public:
  explicit OneShotStreamClient(wire::TransactionService::Stub& stub) : stream_(stub.OneShots(&context_)) {}
  ~OneShotStreamClient() {
    context_.TryCancel();
    if (!finished_) (void)Finish();
  }
  void AddOpen(uint32_t version = kProtocolVersion) { message_.mutable_open()->set_protocol_version(version); }
  void Add(uint64_t id, const std::vector<Operation>& operations) {
    wire::OneShotCall* call = message_.add_calls();
    call->set_id(id);
    for (const Operation& operation : operations) ToWire(operation, call->mutable_one_shot()->add_operations());
  }
  bool Send() {
    const bool sent = stream_->Write(message_);
    message_.Clear();
    return sent;
  }
  // Returns the next message; empty if the stream has ended.
  wire::OneShotAnswers Next() {
    wire::OneShotAnswers answers;
    if (!stream_->Read(&answers)) answers.Clear();
    return answers;
  }
  void HalfClose() { stream_->WritesDone(); }
  void Reset() { context_.TryCancel(); }
  grpc::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  bool finished_ = false;
  const std::unique_ptr<grpc::ClientReaderWriter<wire::OneShotCalls, wire::OneShotAnswers>> stream_;
  wire::OneShotCalls message_;
};

class OneShotStreamTest : public ::testing::Test {
 protected:
  explicit OneShotStreamTest(OneShotSchedulerFactory one_shots,
                             const RpcServiceOptions& options = {.streams_per_peer = 64}, int threads = 256)
      : service_(runtime_, scripted_, std::move(one_shots), options) {
    RpcServerOptions server;
    server.max_threads = threads;
    auto started = RpcServer::Start(RealRuntime(), server, {service_.service()});
    if (!started.ok()) ADD_FAILURE() << started.status().ToString();
    server_ = std::move(started).value();
    peer_ = *RpcPeer::Create("the server", "--server", server_->address(), nullptr, /*insecure=*/false);
    stub_ = wire::TransactionService::NewStub(peer_->NewChannel(RpcTraffic::kShort));
  }
  ~OneShotStreamTest() override {
#ifdef DEUT_TEST_POINTS
    testing::SetPointHandler({});
#endif
    server_.reset();
    EXPECT_EQ(scripted_.sessions(), 0u);
  }
  std::unique_ptr<OneShotStreamClient> Connect() { return std::make_unique<OneShotStreamClient>(*stub_); }
  std::unique_ptr<OneShotStreamClient> Open() {
    auto client = Connect();
    client->AddOpen();
    EXPECT_TRUE(client->Send());
    EXPECT_EQ(client->Next().protocol_version(), kProtocolVersion);
    return client;
  }
  void ExpectServes() {
    const auto client = Open();
    client->Add(1, {Put("k", "v")});
    ASSERT_TRUE(client->Send());
    const wire::OneShotAnswers answers = client->Next();
    ASSERT_EQ(answers.answers_size(), 1);
    EXPECT_TRUE(FromWire(answers.answers(0).answer().status()).ok());
    client->HalfClose();
    EXPECT_TRUE(client->Finish().ok());
  }

  static Operation Put(const std::string& key, const std::string& value) {
    return {.kind = OperationKind::kPut, .table = TableId(1), .key = key, .value = value};
  }
  static Operation Get(const std::string& key) {
    return {.kind = OperationKind::kGet, .table = TableId(1), .key = key};
  }

  BlockingHookRuntime runtime_{RealRuntime()};
  testing::ScriptedTransactionService scripted_{runtime_};
  GrpcTransactionServiceServer service_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<const RpcPeer> peer_;
  std::unique_ptr<wire::TransactionService::Stub> stub_;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_ONE_SHOT_STREAM_FIXTURE_H_
