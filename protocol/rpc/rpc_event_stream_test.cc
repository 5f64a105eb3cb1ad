#include "protocol/rpc/rpc_event_stream.h"

#include <atomic>
#include <limits>
#include <memory>
#include <string>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

constexpr int kEndless = std::numeric_limits<int>::max();

// Asks for one key in each message. The end of a write starts the next one.
class ReadingStream final : private RpcEventStream<wire::DataRequests, wire::DataAnswers> {
 public:
  ReadingStream(Runtime& runtime, RpcEventLoop& loop) : RpcEventStream(runtime, loop) {}

  // Runs one stream, which writes `messages` messages and ends after `answers` answers.
  grpc::StatusCode RunOnce(wire::DataComponent::Stub& stub, const std::string& key, int messages, int answers) {
    messages_left_ = messages;
    answers_left_ = answers;
    opened = last_writes = answered = 0;
    outgoing_.Clear();
    outgoing_.mutable_sender()->set_incarnation(1);
    wire::DataItem* const item = outgoing_.add_items();
    item->set_kind(wire::DATA_READ);
    item->set_key(key);
    const grpc::Status end = RunStream([&stub](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
      return stub.PrepareAsyncData(context, queue);
    });
    EXPECT_FALSE(end.ok());
    return end.error_code();
  }
  using RpcEventStreamBase::Stop;

  std::atomic<int> opened{0};
  std::atomic<int> last_writes{0};
  std::atomic<int> answered{0};

 private:
  void OnOpenLocked() override DEUT_REQUIRES(mutex_) {
    ++opened;
    WriteLocked();
  }
  bool OnRead() override {
    EXPECT_GT(incoming_.items_size(), 0);  // the server sends answers that are ready at once in one message
    answered += incoming_.items_size();
    answers_left_ -= incoming_.items_size();
    if (answers_left_ > 0) return true;
    MutexLock lock(mutex_);
    CancelLocked();
    return false;
  }
  void OnWrittenLocked() override DEUT_REQUIRES(mutex_) { WriteLocked(); }
  bool StopWritingLocked() override DEUT_REQUIRES(mutex_) {
    EXPECT_TRUE(ended());
    return in_flight_;
  }
  void OnLastWriteLocked(bool /*ok*/) override DEUT_REQUIRES(mutex_) {
    EXPECT_TRUE(in_flight_);
    ++last_writes;
  }
  void WriteLocked() DEUT_REQUIRES(mutex_) {
    in_flight_ = messages_left_ != 0;
    if (!in_flight_) return;
    --messages_left_;
    StartWrite();
  }

  int messages_left_ = 0;
  int answers_left_ = 0;
  bool in_flight_ DEUT_GUARDED_BY(mutex_) = false;
};

class RpcEventStreamTest : public ::testing::Test {
 protected:
  RpcEventStreamTest() {
    component_.hold = [](const DataRequest& request) { return request.key == "held"; };
    stub_ = wire::DataComponent::NewStub(peer_->NewChannel(RpcTraffic::kShort));
  }

  std::unique_ptr<GrpcDataComponentService> NewService() {
    return std::make_unique<GrpcDataComponentService>(runtime_, component_, RpcServiceOptions());
  }

  Runtime& runtime_ = RealRuntime();
  testing::ScriptedDataComponent component_{runtime_};
  std::unique_ptr<GrpcDataComponentService> service_ = NewService();
  testing::Loopback loopback_{{service_->service()}};
  std::shared_ptr<const RpcPeer> peer_ = loopback_.Peer();
  std::unique_ptr<wire::DataComponent::Stub> stub_;
  RpcEventThread events_{runtime_};
  ReadingStream stream_{runtime_, events_};
};

TEST_F(RpcEventStreamTest, MessagesGoThereAndBackUntilTheClientCancels) {
  for (int round = 1; round <= 3; ++round) {
    EXPECT_EQ(stream_.RunOnce(*stub_, "k", 100, 100), grpc::StatusCode::CANCELLED);
    EXPECT_EQ(stream_.opened, 1);
    EXPECT_EQ(stream_.answered, 100);
    EXPECT_LE(stream_.last_writes, 1);
  }
}

TEST_F(RpcEventStreamTest, TheEndOfAWriteInFlightIsWaitedForOnce) {
  for (int round = 1; round <= 20; ++round) {
    EXPECT_EQ(stream_.RunOnce(*stub_, "k", kEndless, 50), grpc::StatusCode::CANCELLED);
    EXPECT_GE(stream_.answered, 50);
    EXPECT_EQ(stream_.last_writes, 1);
  }
}

TEST_F(RpcEventStreamTest, WithoutAServerTheStreamDoesNotOpen) {
  loopback_.Stop();
  EXPECT_EQ(stream_.RunOnce(*stub_, "k", 1, 1), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(stream_.opened, 0);
}

TEST_F(RpcEventStreamTest, StopEndsThePresentStreamAndAllLaterOnes) {
  const auto stopper = runtime_.StartThread("stopper", [&] {
    ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 1; }));
    stream_.Stop();
  });
  EXPECT_EQ(stream_.RunOnce(*stub_, "held", 1, 1), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(stream_.answered, 0);
  EXPECT_EQ(stream_.RunOnce(*stub_, "k", 1, 1), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(stream_.answered, 0);
}

TEST_F(RpcEventStreamTest, AServerThatDiesEndsTheStreamAndTheNextOneOpens) {
  const auto killer = runtime_.StartThread("killer", [&] {
    ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 1; }));
    loopback_.Stop();
  });
  EXPECT_EQ(stream_.RunOnce(*stub_, "held", 1, 1), grpc::StatusCode::UNAVAILABLE);
  killer->Join();
  service_ = NewService();
  loopback_.Restart({service_->service()});
  ASSERT_TRUE(testing::Eventually([&] { return stream_.RunOnce(*stub_, "k", 1, 1) == grpc::StatusCode::CANCELLED; }));
  EXPECT_EQ(stream_.answered, 1);
}

}  // namespace
}  // namespace deut
