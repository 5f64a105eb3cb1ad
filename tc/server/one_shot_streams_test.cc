// Workers of streams of one-shot transactions on a real server, against clients that break any rule they like.
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/rpc/service_options.h"
#include "protocol/testing/loopback.h"
#include "protocol/transactions/one_shot_stream_fixture.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"
#include "tc/server/one_shot_workers.h"

namespace deut {
namespace {

using testing::Eventually;

class OneShotStreamWorkersTest : public OneShotStreamTest {
 protected:
  explicit OneShotStreamWorkersTest(const RpcServiceOptions& options = {.streams_per_peer = 64}, int threads = 256)
      : OneShotStreamTest(NewOneShotWorkers, options, threads) {}
};

// A waiting call delays neither the other call nor the end of the stream.
TEST_F(OneShotStreamWorkersTest, ACallThatWaitsHoldsUpNoOther) {
  std::atomic<int> calls{0};
  Event gate;
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "one_shot" && calls.fetch_add(1) == 0) gate.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  const auto client = Open();
  client->Add(1, {Put("a", "v")});
  client->Add(2, {Put("b", "v")});
  ASSERT_TRUE(client->Send());
  const wire::OneShotAnswers first = client->Next();
  ASSERT_EQ(first.answers_size(), 1);
  EXPECT_EQ(first.answers(0).id(), 2u);
  gate.Signal(runtime_);
  EXPECT_EQ(client->Next().answers(0).id(), 1u);
}

TEST_F(OneShotStreamWorkersTest, ResetsAtRandomMomentsLeaveNothingBehind) {
  scripted_.withholds = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      for (int round = 0; round < 100; ++round) {
        const auto client = Connect();
        client->AddOpen();
        bool good = true;
        for (auto step = random() % 4; step != 0 && good; --step) {
          for (uint64_t id = 1; id <= random() % 8; ++id)
            client->Add(id, {Put("k", std::string(random() % 10000, 'v')), Get("k")});
          good = client->Send();
          if (random() % 3 == 0) (void)client->Next();
        }
        if (random() % 4 == 0) client->HalfClose();
        if (random() % 2 == 0) client->Reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] { return scripted_.sessions() == 0; }));
  ExpectServes();
}

class FewThreadsOneShotWorkersTest : public OneShotStreamWorkersTest {
 protected:
  static constexpr int kThreads = 4;
  FewThreadsOneShotWorkersTest() : OneShotStreamWorkersTest({.stuck_peer = milliseconds(500)}, kThreads) {}
};

TEST_F(FewThreadsOneShotWorkersTest, PeersThatTakeNoAnswersDoNotBlockOthersForGood) {
  {
    const auto client = Open();
    client->Add(1, {Put("k", std::string(kMaxValueBytes, 'v'))});
    ASSERT_TRUE(client->Send());
    ASSERT_EQ(client->Next().answers_size(), 1);
  }
  std::vector<std::unique_ptr<OneShotStreamClient>> clients;
  for (int i = 0; i < 3 * kThreads; ++i) {
    clients.push_back(Connect());
    clients.back()->AddOpen();
    for (uint64_t id = 1; id <= 4; ++id) clients.back()->Add(id, std::vector<Operation>(16, Get("k")));
    ASSERT_TRUE(clients.back()->Send());
  }
  // Each is cut off in turn, although no client goes away.
  EXPECT_TRUE(Eventually([&] { return scripted_.commits() > 1; }));
  EXPECT_TRUE(Eventually([&] { return scripted_.sessions() == 0; }));
  ExpectServes();
}

class IdleOneShotWorkersTest : public OneShotStreamWorkersTest {
 protected:
  IdleOneShotWorkersTest() : OneShotStreamWorkersTest({.idle_session = seconds(1)}) {}
};

// A call takes longer than the timeout, while the stream waits for the next message.
TEST_F(IdleOneShotWorkersTest, AStreamWithACallAtWorkIsNotIdle) {
  scripted_.before = [&](std::string_view call, Deadline) {
    if (call == "one_shot") runtime_.SleepUntil(runtime_.Now() + milliseconds(2500));
    return Status::Ok();
  };
  const auto client = Open();
  client->Add(1, {Put("k", "v")});
  ASSERT_TRUE(client->Send());
  const wire::OneShotAnswers answers = client->Next();
  ASSERT_EQ(answers.answers_size(), 1);
  EXPECT_TRUE(FromWire(answers.answers(0).answer().status()).ok());
  EXPECT_EQ(client->Next().ByteSizeLong(), 0u);
  EXPECT_EQ(client->Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << "it was idle after that";
}

// Messages come at about the moment at which the stream is found idle. Each is answered, or it was not run, and the stream has ended without a word
// about it.
TEST_F(IdleOneShotWorkersTest, MessagesBesideTheEndAreAnsweredOrNotRun) {
  size_t answered = 0;
  for (int round = 0; round < 6; ++round) {
    const auto client = Open();
    runtime_.SleepUntil(runtime_.Now() + milliseconds(950 + 60 * round));
    client->Add(1, {Put("k", "v")});
    if (!client->Send()) continue;
    const wire::OneShotAnswers answers = client->Next();
    if (answers.answers_size() != 1) continue;
    ++answered;
    EXPECT_TRUE(FromWire(answers.answers(0).answer().status()).ok());
  }
  ExpectServes();
  EXPECT_EQ(scripted_.commits(), answered + 1);
}

}  // namespace
}  // namespace deut
