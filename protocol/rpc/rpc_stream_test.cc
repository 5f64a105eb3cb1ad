#include "protocol/rpc/rpc_stream.h"

#include <memory>
#include <string>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using Stream = RpcStream<wire::DataRequests, wire::DataAnswers>;

class RpcStreamTest : public ::testing::Test {
 protected:
  RpcStreamTest() {
    component_.hold = [](const DataRequest& request) { return request.key == "held"; };
    stub_ = wire::DataComponent::NewStub(peer_->NewChannel(RpcTraffic::kShort));
  }

  Status Start(Stream* stream, Deadline deadline) {
    return stream->Start([this](grpc::ClientContext* context,
                                grpc::CompletionQueue* queue) { return stub_->PrepareAsyncData(context, queue); },
                         deadline);
  }
  Deadline In(Duration duration) { return runtime_.Now() + duration; }

  static wire::DataRequests Read(const std::string& key) {
    wire::DataRequests requests;
    requests.mutable_sender()->set_incarnation(1);
    wire::DataItem* item = requests.add_items();
    item->set_kind(wire::DATA_READ);
    item->set_key(key);
    return requests;
  }

  Runtime& runtime_ = RealRuntime();
  testing::ScriptedDataComponent component_{runtime_};
  GrpcDataComponentService service_{runtime_, component_, RpcServiceOptions()};
  testing::Loopback loopback_{{service_.service()}};
  std::shared_ptr<const RpcPeer> peer_ = loopback_.Peer();
  std::unique_ptr<wire::DataComponent::Stub> stub_;
  RpcEventThread events_{runtime_};
};

TEST_F(RpcStreamTest, MessagesThereAndBack) {
  Stream stream(runtime_, peer_, events_);
  ASSERT_TRUE(Start(&stream, In(seconds(20))).ok());
  wire::DataAnswers answers;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(stream.Write(Read("k"), In(seconds(20))).ok());
    ASSERT_TRUE(stream.Read(&answers, In(seconds(20))).ok());
    ASSERT_EQ(answers.items_size(), 1);
  }
}

TEST_F(RpcStreamTest, ReadThatTimesOutGoesOnLater) {
  Stream stream(runtime_, peer_, events_);
  ASSERT_TRUE(Start(&stream, In(seconds(20))).ok());
  ASSERT_TRUE(stream.Write(Read("held"), In(seconds(20))).ok());
  wire::DataAnswers answers;
  const MonotonicTime start = runtime_.Now();
  EXPECT_EQ(stream.Read(&answers, In(milliseconds(30))).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_GE(runtime_.Now() - start, milliseconds(29));
  EXPECT_EQ(stream.Read(&answers, runtime_.Now() - seconds(1)).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(stream.open());
  EXPECT_EQ(component_.Release(), 1u);
  ASSERT_TRUE(stream.Read(&answers, In(seconds(20))).ok());
  EXPECT_EQ(answers.items_size(), 1);
}

// A message that comes between two waits must be there at the second. It was once lost, because the second wait began
// another read.
TEST_F(RpcStreamTest, AMessageThatComesBetweenTwoWaits) {
  Stream stream(runtime_, peer_, events_);
  ASSERT_TRUE(Start(&stream, In(seconds(20))).ok());
  wire::DataAnswers answers;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(stream.Write(Read("k"), In(seconds(20))).ok());
    const Deadline limit = In(seconds(20));
    Status read;
    do {
      ASSERT_LT(runtime_.Now(), limit) << "message " << i;
      read = stream.Read(&answers, runtime_.Now());
      runtime_.Yield();
    } while (read == ErrorCode::kDeadlineExceeded);
    ASSERT_TRUE(read.ok()) << read.ToString();
    ASSERT_EQ(answers.items_size(), 1);
  }
}

TEST_F(RpcStreamTest, NobodyThere) {
  loopback_.Stop();
  Stream stream(runtime_, peer_, events_);
  EXPECT_EQ(Start(&stream, In(seconds(20))).code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(stream.open());
  EXPECT_EQ(stream.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(stream.Write(Read("k"), In(seconds(20))).code(), ErrorCode::kUnavailable);
  wire::DataAnswers answers;
  EXPECT_EQ(stream.Read(&answers, In(seconds(20))).code(), ErrorCode::kUnavailable);
}

TEST_F(RpcStreamTest, ServerThatDiesBreaksTheStream) {
  Stream stream(runtime_, peer_, events_);
  ASSERT_TRUE(Start(&stream, In(seconds(20))).ok());
  ASSERT_TRUE(stream.Write(Read("held"), In(seconds(20))).ok());
  ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 1; }));
  loopback_.Stop();
  wire::DataAnswers answers;
  EXPECT_EQ(stream.Read(&answers, In(seconds(20))).code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(stream.open());
}

TEST_F(RpcStreamTest, AbandonGivesItsReason) {
  Stream stream(runtime_, peer_, events_);
  ASSERT_TRUE(Start(&stream, In(seconds(20))).ok());
  ASSERT_TRUE(stream.Write(Read("held"), In(seconds(20))).ok());
  stream.Abandon(Status(ErrorCode::kCorruption, "mine"));
  EXPECT_EQ(stream.status().message(), "mine");
  EXPECT_EQ(stream.Write(Read("k"), In(seconds(20))).code(), ErrorCode::kCorruption);
  stream.Abandon(Status(ErrorCode::kInternal, "too late"));
  EXPECT_EQ(stream.status().message(), "mine");
}

TEST_F(RpcStreamTest, CancelFromAnotherThreadEndsTheWait) {
  Stream stream(runtime_, peer_, events_);
  ASSERT_TRUE(Start(&stream, In(seconds(20))).ok());
  ASSERT_TRUE(stream.Write(Read("held"), In(seconds(20))).ok());
  const auto canceller = runtime_.StartThread("canceller", [&] {
    ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 1; }));
    stream.Cancel();
  });
  wire::DataAnswers answers;
  EXPECT_FALSE(stream.Read(&answers, kNoDeadline).ok());
  EXPECT_FALSE(stream.open());
}

TEST_F(RpcStreamTest, WriteIsBoundedByItsDeadlineWhenThePeerDoesNotRead) {
  // The server stops reading when its room for answers is used up. Then the windows fill, and a write has to wait.
  Stream stream(runtime_, peer_, events_);
  ASSERT_TRUE(Start(&stream, In(seconds(20))).ok());
  wire::DataRequests requests = Read("held");
  for (int i = 0; i < 200; ++i) *requests.add_items() = requests.items(0);
  for (int i = 0; i < 200; ++i) requests.mutable_items(i)->set_low(std::string(4000, 'x'));
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = stream.Write(requests, In(milliseconds(300)));
  EXPECT_EQ(status.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(stream.open());
  EXPECT_LE(component_.held(), RpcServiceOptions().data_requests);
}

}  // namespace
}  // namespace deut
