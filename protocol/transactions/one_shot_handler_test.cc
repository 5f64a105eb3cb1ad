// Streams of one-shot transactions on a server, against clients that break any rule they like.
#include "protocol/transactions/one_shot_handler.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "grpcpp/alarm.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"
#include "protocol/transactions/one_shot_stream_fixture.h"
#include "protocol/transactions/thread_per_one_shot.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using testing::Eventually;

#ifdef DEUT_TEST_POINTS
// An event that an executor's queue delivers at once.
class Ping final : public RpcEvent {
 public:
  // Returns after the event has been delivered.
  void DeliverThrough(grpc::ServerCompletionQueue* queue) {
    alarm_.Set(queue, gpr_now(GPR_CLOCK_MONOTONIC), static_cast<RpcEvent*>(this));
    done_.Wait(RealRuntime(), kNoDeadline);
  }
  void Done(bool) override { done_.Signal(RealRuntime()); }

 private:
  Event done_;
  grpc::Alarm alarm_;
};
#endif

class OneShotHandlerTest : public OneShotStreamTest {
 protected:
  explicit OneShotHandlerTest(const RpcServiceOptions& options = {.streams_per_peer = 64})
      : OneShotStreamTest(testing::NewThreadPerOneShot, options) {}
};

TEST_F(OneShotHandlerTest, CallsOfAStreamAreAnswered) { ExpectServes(); }

TEST_F(OneShotHandlerTest, AnotherVersionIsReportedAndTheStreamEnds) {
  const auto client = Connect();
  client->AddOpen(kProtocolVersion + 1);
  ASSERT_TRUE(client->Send());
  EXPECT_EQ(FromWire(client->Next().status()).code(), ErrorCode::kVersionMismatch);
  EXPECT_TRUE(client->Finish().ok());
  EXPECT_TRUE(Eventually([&] { return scripted_.sessions() == 0; }));
}

TEST_F(OneShotHandlerTest, AMessageThatIsNoneEndsTheStream) {
  const auto client = Open();
  ASSERT_TRUE(client->Send());
  const grpc::Status end = client->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << end.error_message();
}

TEST_F(OneShotHandlerTest, HalfCloseAtOnceEndsTheStream) {
  const auto client = Connect();
  client->HalfClose();
  EXPECT_TRUE(client->Finish().ok());
}

#ifdef DEUT_TEST_POINTS
TEST_F(OneShotHandlerTest, AStreamLivesUntilTheThreadThatEndsItHasFinished) {
  RpcExecutor& executor = *server_->executor();
  std::atomic<int> calls{0}, over{0};
  std::atomic<bool> opened{false}, ended{false};
  Event gates[2];
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "one_shot") gates[calls.fetch_add(1)].Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "rpc_call.over") ++over;
    if (point != "rpc_call.finishing") return;
    EXPECT_TRUE(opened) << "not by the work that was posted";
    executor.BeforeBlocking();
    // The end of the call and the note to its peer have been run. The thread that ran the second of these has finished
    // it.
    EXPECT_TRUE(Eventually([&] { return over == 2; }));
    Ping().DeliverThrough(executor.queue());
    EXPECT_NE(scripted_.sessions(), 0u) << "the stream is gone, and its scheduler with it";
    ended = true;
  });
  const auto client = Open();
  for (int id = 1; id <= 2; ++id) {
    client->Add(static_cast<uint64_t>(id), {Put("k", "v")});
    ASSERT_TRUE(client->Send());
    ASSERT_TRUE(Eventually([&] { return calls == id; }));
  }
  gates[0].Signal(runtime_);
  EXPECT_EQ(client->Next().answers(0).id(), 1u);
  Ping().DeliverThrough(executor.queue());
  const uint64_t events = executor.counts().events;
  client->Reset();
  EXPECT_TRUE(Eventually([&] { return executor.counts().events >= events + 2; }));
  Ping().DeliverThrough(executor.queue());
  opened = true;
  gates[1].Signal(runtime_);
  EXPECT_TRUE(Eventually([&] { return ended.load(); }));
}
#endif

// More streams than a peer may have open at once: their places are released.
TEST_F(OneShotHandlerTest, StreamsThatAreResetAtOnceKeepNoPlace) {
  for (int i = 0; i < 1000; ++i) Connect()->Reset();
  EXPECT_TRUE(Eventually([&] {
    const auto client = Connect();
    client->AddOpen();
    return client->Send() && client->Next().protocol_version() == kProtocolVersion;
  }));
}

class IdleOneShotsTest : public OneShotHandlerTest {
 protected:
  IdleOneShotsTest() : OneShotHandlerTest({.idle_session = seconds(1)}) {}
};

TEST_F(IdleOneShotsTest, AStreamThatAsksForNothingIsEndedAndSaysSo) {
  for (const bool opened : {true, false}) {
    const auto client = opened ? Open() : Connect();
    EXPECT_EQ(client->Next().ByteSizeLong(), 0u);
    const grpc::Status end = client->Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_NE(end.error_message().find("--idle_session_timeout"), std::string::npos) << end.error_message();
  }
  ExpectServes();
}

}  // namespace
}  // namespace deut
