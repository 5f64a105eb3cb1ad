// The standard health service: its answers to Check and Watch, and that watches do not delay the end of a server. (With few threads:
// rpc_server_test.cc.)
#include "protocol/rpc/health_service.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"

namespace deut {
namespace {

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// A Watch as its client sees it, one step at a time.
class Watcher {
 public:
  explicit Watcher(const RpcPeer& peer, const std::string& request = {})
      : Watcher(peer.NewChannel(RpcTraffic::kShort), request) {}
  // Watches on a connection that other watchers use, too.
  explicit Watcher(std::shared_ptr<grpc::Channel> channel, const std::string& request = {})
      : channel_(std::move(channel)), stub_(channel_) {
    context_.set_wait_for_ready(true);
    call_ = stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_);
    call_->StartCall(nullptr);
    EXPECT_TRUE(Next());
    call_->WriteLast(Bytes(request), grpc::WriteOptions(), nullptr);
    EXPECT_TRUE(Next());
  }
  ~Watcher() {
    if (!ended_) {
      context_.TryCancel();
      End();
    }
    queue_.Shutdown();
    while (Next()) {
    }
  }

  // Returns the next status that the watcher receives; -1: the stream has ended.
  int Read() {
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    grpc::Slice bytes;
    if (!Next() || !answer.DumpToSingleSlice(&bytes).ok() || bytes.size() != 2) return -1;
    return bytes.begin()[1];
  }
  grpc::StatusCode End() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    ended_ = true;
    return status.error_code();
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool ended_ = false;
};

TEST(HealthServiceTest, AWatchReportsTheStatusAndItsChanges) {
  testing::Loopback loopback({});
  const auto peer = loopback.Peer();
  Watcher all(*peer), named(*peer, std::string("\n\0", 2));
  EXPECT_EQ(all.Read(), 2);
  EXPECT_EQ(named.Read(), 2);
  loopback.server().SetServing(true);
  EXPECT_EQ(all.Read(), 1);
  EXPECT_EQ(named.Read(), 1);
  loopback.server().SetServing(false);
  EXPECT_EQ(all.Read(), 2);
}

TEST(HealthServiceTest, OnlyTheWholeServerIsKnown) {
  testing::Loopback loopback({});
  const auto peer = loopback.Peer();
  Watcher other(*peer, std::string("\n\1x", 3));
  EXPECT_EQ(other.Read(), 3);  // the stream stays open
}

// A server with a long time for its shutdown does not use all of it because of an open watch.
TEST(HealthServiceTest, WatchesEndWithTheirServer) {
  testing::Loopback loopback({});
  const auto peer = loopback.Peer();
  Watcher watcher(*peer);
  EXPECT_EQ(watcher.Read(), 2);
  loopback.server().Shutdown(RealRuntime().Now() + seconds(3600));
  EXPECT_EQ(watcher.Read(), -1);
  EXPECT_EQ(watcher.End(), grpc::StatusCode::UNAVAILABLE);
}

TEST(HealthServiceTest, WatchesAreLimitedAndTheirPlacesComeBack) {
  testing::Loopback loopback({});
  const auto peer = loopback.Peer();
  const std::shared_ptr<grpc::Channel> channel = peer->NewChannel(RpcTraffic::kShort);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Watcher>> watchers;
    for (size_t i = 0; i < HealthService::kMaxWatchesPerPeer; ++i) {
      watchers.push_back(std::make_unique<Watcher>(channel));
      // In the second round, watches of the first one may not have ended yet.
      while (watchers.back()->Read() == -1) {
        ASSERT_EQ(round, 1);
        watchers.back()->End();
        watchers.back() = std::make_unique<Watcher>(channel);
      }
    }
    Watcher one_more(channel);
    EXPECT_EQ(one_more.Read(), -1);
    EXPECT_EQ(one_more.End(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    Watcher on_another_connection(*peer);
    EXPECT_EQ(on_another_connection.Read(), -1) << "its address is the same";
    EXPECT_EQ(on_another_connection.End(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(Watcher(loopback.ChannelFrom("127.0.0.2")).Read(), 2) << "another peer watches";
    EXPECT_EQ(*testing::Health(*peer), 2);
  }
}

// Two threads take events from the queue, so the event of a call's end can be handled before that of its begin.
TEST(HealthServiceTest, AWatchWhoseEndIsHeardOfFirstIsFinishedOnce) {
  testing::Loopback loopback({});
  const auto peer = loopback.Peer();
  EXPECT_EQ(*testing::Health(*peer), 2);
  Event taken, ended;
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "health.ended") ended.Signal(RealRuntime());
    if (name != "health.taken" || taken.IsSet()) return;
    taken.Signal(RealRuntime());
    ended.Wait(RealRuntime(), kNoDeadline);
  });
  {
    Watcher watcher(*peer);
    taken.Wait(RealRuntime(), kNoDeadline);
  }  // the watcher cancels its call
  ended.Wait(RealRuntime(), kNoDeadline);
  testing::SetPointHandler({});
  EXPECT_EQ(Watcher(*peer).Read(), 2);
  EXPECT_EQ(*testing::Health(*peer), 2);
}

TEST(HealthServiceTest, AServerWithWatchesEnds) {
  testing::Loopback loopback({});
  const auto peer = loopback.Peer();
  Watcher watcher(*peer);
  EXPECT_EQ(watcher.Read(), 2);
  loopback.Stop();
  EXPECT_EQ(watcher.Read(), -1);
}

}  // namespace
}  // namespace deut
