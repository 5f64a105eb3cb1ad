// Workers of streams of one-shot transactions on a real server: against clients that break any rule they like, and with
// the client's own side of such a stream.
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/record_batch.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/rpc/service_options.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_transaction_service.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/grpc_one_shots.h"
#include "protocol/transactions/grpc_transaction_service_server.h"
#include "protocol/transactions/one_shot_channel.h"
#include "protocol/transactions/one_shot_stream_fixture.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"
#include "tc/server/one_shot_workers.h"

namespace deut::tc {
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

class BothSidesTest : public ::testing::Test {
 protected:
  // Runs one operation as a transaction.
  Result<CommitAnswer> Run(const Operation& operation, std::vector<OperationResult>* results) {
    const TransactionOptions options;
    OneShotTransaction transaction{.options = &options, .operations = {&operation, 1}, .results = results};
    if (!client_.Ready() || !client_.Execute(absl::MakeSpan(&transaction, 1), runtime_.Now() + seconds(20))) {
      return DEUT_ERROR(kUnavailable, "not ready");
    }
    return transaction.answer;
  }
  std::unique_ptr<GrpcTransactionServiceServer> NewService() {
    return std::make_unique<GrpcTransactionServiceServer>(runtime_, scripted_, NewOneShotWorkers);
  }

  BlockingHookRuntime runtime_{RealRuntime()};
  std::atomic<uint64_t> calls_{0};
  testing::ScriptedTransactionService scripted_{runtime_};
  std::unique_ptr<GrpcTransactionServiceServer> service_ = NewService();
  testing::Loopback loopback_{{service_->service()}};
  RpcEventThread events_{runtime_};
  GrpcOneShots client_{runtime_, loopback_.Peer(), events_};
};

// Some calls wait, some are held back for their reads, and writes are answered when they are durable. Each thread writes
// a key of its own. After a write whose outcome is unknown, the next one is certain again, because the first server has
// ended all its calls by then.
TEST_F(BothSidesTest, ManyThreadsShareAStreamThatBreaksOnce) {
  scripted_.withholds = true;
  scripted_.reads_ahead = "far";
  scripted_.before = [this](std::string_view call, Deadline) {
    if (call == "one_shot" && calls_.fetch_add(1) % 8 == 0) runtime_.SleepUntil(runtime_.Now() + microseconds(100));
    return Status::Ok();
  };
  std::atomic<bool> restarted{false};
  std::atomic<uint64_t> written{0}, lost{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 8; ++t) {
    threads.push_back(runtime_.StartThread("client", [&, t] {
      const std::string key = (t % 2 == 0 ? "far" : "near") + std::to_string(t);
      std::vector<OperationResult> results;
      for (int i = 0, left = 50; left > 0; ++i) {
        if (restarted.load()) --left;
        const std::string value = std::to_string(i);
        const Result<CommitAnswer> put =
            Run({.kind = OperationKind::kPut, .table = TableId(1), .key = key, .value = value}, &results);
        if (!put.ok()) {
          const ErrorCode code = put.status().code();
          EXPECT_TRUE(code == ErrorCode::kUnavailable || code == ErrorCode::kOutcomeUnknown) << put.status().ToString();
          ++lost;
          runtime_.SleepUntil(runtime_.Now() + milliseconds(1));
          continue;
        }
        ++written;
        const Result<CommitAnswer> get = Run({.kind = OperationKind::kGet, .table = TableId(1), .key = key}, &results);
        if (!get.ok()) {
          EXPECT_EQ(get.status().code(), ErrorCode::kUnavailable) << get.status().ToString();
          continue;
        }
        const RecordBatch::Iterator it(results.at(0).records);
        ASSERT_TRUE(it.Valid());
        EXPECT_EQ(it.record().value, value);
      }
    }));
  }
  EXPECT_TRUE(Eventually([&] { return written.load() >= 500; }));
  loopback_.Stop();
  const uint64_t lost_before = lost.load();
  EXPECT_TRUE(Eventually([&] { return lost.load() > lost_before; }));
  EXPECT_EQ(scripted_.sessions(), 0u);
  service_ = NewService();
  loopback_.Restart({service_->service()});
  const uint64_t written_before = written.load();
  EXPECT_TRUE(Eventually([&] { return written.load() > written_before; })) << "the stream does not come back";
  restarted = true;
  for (const auto& thread : threads) thread->Join();
  EXPECT_GE(scripted_.commits(), written.load());
  EXPECT_EQ(scripted_.transactions(), 0u);
  loopback_.Stop();
  EXPECT_EQ(scripted_.sessions(), 0u);
}

}  // namespace
}  // namespace deut::tc
