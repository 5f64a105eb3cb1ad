// A server whose streams are busy, where each thread waits for its own connection: new calls and connections are served all the same.
#include <atomic>
#include <memory>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/rpc_polling.h"
#include "protocol/testing/loopback.h"

namespace deut {
namespace {

using testing::Eventually;

// As many messages as busy streams read, without streams.
class BusyStreams {
 public:
  BusyStreams() {
    thread_ = RealRuntime().StartThread("streams", [this] {
      while (!stop_.load(std::memory_order_relaxed)) {
        for (int i = 0; i < 100; ++i) CountStreamRead();
        RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
      }
    });
  }
  ~BusyStreams() {
    stop_.store(true, std::memory_order_relaxed);
    thread_->Join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

// Of the process, before anything of gRPC.
class BusyStreamsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    PollByStream();
    ASSERT_TRUE(PollsByStream()) << "GRPC_POLL_STRATEGY asks for another";
  }

  testing::Loopback loopback_{{}};
};

TEST_F(BusyStreamsTest, NewConnectionsAndCallsAreServed) {
  const BusyStreams streams;
  ASSERT_TRUE(Eventually([&] { return loopback_.server().rests() != 0; }));
  const auto peer = loopback_.Peer();
  for (int i = 0; i < 10; ++i) {
    loopback_.server().SetServing(i % 2 == 0);
    const auto serving = testing::Health(*peer);  // with a connection of its own
    ASSERT_TRUE(serving.ok()) << serving.status().ToString();
    EXPECT_EQ(*serving, i % 2 == 0 ? 1 : 2);
  }
}

TEST_F(BusyStreamsTest, OnlyWhileTheyAreBusy) {
  {
    const BusyStreams streams;
    ASSERT_TRUE(Eventually([&] { return loopback_.server().rests() != 0; }));
  }
  uint64_t rests = 0;
  EXPECT_TRUE(Eventually([&] {
    const uint64_t before = rests;
    rests = loopback_.server().rests();
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(50));
    return rests == before;
  }));
  EXPECT_EQ(*testing::Health(*loopback_.Peer()), 2);
}

TEST_F(BusyStreamsTest, AServerEnds) {
  const BusyStreams streams;
  ASSERT_TRUE(Eventually([&] { return loopback_.server().rests() != 0; }));
  loopback_.Stop();
}

}  // namespace
}  // namespace deut
