// A small service of streams on an executor, against clients that break any rule they like.
#include "protocol/rpc/rpc_call.h"

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "grpcpp/support/sync_stream.h"
#include "gtest/gtest.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"

namespace deut {
namespace {

using testing::Eventually;

grpc::ByteBuffer Message(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Text(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  if (!message.DumpToSingleSlice(&slice).ok()) return "";
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

constexpr size_t kLarge = 256 << 10;

// The first letter of a message says what the call does with it. `e` sends it back; `q` ends the call; `f` writes large
// messages until it can write no more; `p` holds its thread until the gate opens; `t` sends it back unless a write is
// in flight.
class Streams final : public grpc::Service, public ExecutedService {
 public:
  Streams(Runtime& runtime, Duration stuck) : runtime_(runtime), watchdog_(runtime, stuck) {
    using grpc::internal::RpcMethod;
    AddMethod(new grpc::internal::RpcServiceMethod("/test.Streams/Talk", RpcMethod::BIDI_STREAMING, nullptr));
    MarkMethodAsync(0);
  }

  void Serve(RpcExecutor& executor) override {
    executor_ = &executor;
    new Call(*this);
  }

  // Ends the only call, from the calling thread.
  void End(const grpc::Status& status) { only_.load()->End(status); }

  std::atomic<int> accepted{0};
  std::atomic<int> gone{0};
  std::atomic<int> stuck{0};    // calls in a write that waits
  std::atomic<int> written{0};  // number of OnWritten
  std::atomic<int> unwritten{0};
  std::atomic<int> holding{0};
  Event gate;

 private:
  class Call final : public RpcCall<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Call(Streams& owner) : RpcCall(owner.runtime_, *owner.executor_, owner.watchdog_), owner_(owner) {
      grpc::ServerCompletionQueue* const queue = executor().queue();
      owner_.RequestAsyncBidiStreaming(0, &context(), stream(), queue, queue, accepted());
    }

   private:
    ~Call() override {
      if (was_accepted_) ++owner_.gone;
    }
    void OnAccepted() override {
      new Call(owner_);
      was_accepted_ = true;
      owner_.only_ = this;
      ++owner_.accepted;
      StartRead();
    }
    void OnRead(bool ok) override {
      EXPECT_EQ(inside_.fetch_add(1), 0) << "two threads are told of reads";
      const bool more = ok && Handle(Text(incoming()));
      EXPECT_EQ(inside_.fetch_sub(1), 1);
      if (more) return StartRead();
      End(grpc::Status::OK);
    }
    void OnWritten(bool ok) override { ++(ok ? owner_.written : owner_.unwritten); }
    bool Handle(const std::string& text) {
      if (text.empty()) return true;
      switch (text.front()) {
        case 'e':
          return Write(Message(text));
        case 't':
          (void)Write(Message(text), /*wait=*/false);
          return !broken();
        case 'f': {
          const grpc::ByteBuffer large = Message(std::string(kLarge, 'f'));
          executor().BeforeBlocking();
          ++owner_.stuck;
          while (Write(large)) {
          }
          --owner_.stuck;
          return false;
        }
        case 'p':
          executor().BeforeBlocking();
          ++owner_.holding;
          owner_.gate.Wait(runtime_, kNoDeadline);
          return true;
        default:
          return false;
      }
    }

    Streams& owner_;
    bool was_accepted_ = false;
    std::atomic<int> inside_{0};
  };

  Runtime& runtime_;
  StreamWatchdog watchdog_;
  RpcExecutor* executor_ = nullptr;
  std::atomic<Call*> only_{nullptr};
};

class Client {
 public:
  explicit Client(const std::shared_ptr<grpc::Channel>& channel)
      : stream_(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
            channel.get(), grpc::internal::RpcMethod("/test.Streams/Talk", grpc::internal::RpcMethod::BIDI_STREAMING),
            &context_)) {}
  ~Client() {
    context_.TryCancel();
    if (!finished_) (void)Finish();
  }
  bool Send(const std::string& text) { return stream_->Write(Message(text)); }
  std::string Next() {
    grpc::ByteBuffer message;
    return stream_->Read(&message) ? Text(message) : "";
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
  const std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> stream_;
};

// An event that an executor's queue delivers at once.
class Ping final : public RpcEvent {
 public:
  void Send(grpc::ServerCompletionQueue* queue) {
    alarm_.Set(queue, gpr_now(GPR_CLOCK_MONOTONIC), static_cast<RpcEvent*>(this));
  }
  void Done(bool) override { done_.Signal(RealRuntime()); }
  void Wait() { done_.Wait(RealRuntime(), kNoDeadline); }

 private:
  grpc::Alarm alarm_;
  Event done_;
};

class RpcCallTest : public ::testing::Test {
 protected:
  explicit RpcCallTest(int threads = 64, Duration stuck = seconds(60)) : streams_(runtime_, stuck) {
    RpcServerOptions options;
    options.listen = Address();
    options.max_threads = threads;
    auto server = RpcServer::Start(runtime_, options, {&streams_});
    if (!server.ok()) ADD_FAILURE() << server.status().ToString();
    server_ = std::move(server).value();
    peer_ = *RpcPeer::Create("the server", "--server", server_->address(), nullptr, /*insecure=*/false);
    channel_ = peer_->NewChannel(RpcTraffic::kShort);
  }
  ~RpcCallTest() override {
#ifdef DEUT_TEST_POINTS
    testing::SetPointHandler({});
#endif
    if (!streams_.gate.IsSet()) streams_.gate.Signal(runtime_);
    server_.reset();
    EXPECT_EQ(streams_.gone, streams_.accepted);
  }
  std::unique_ptr<Client> Connect() { return std::make_unique<Client>(channel_); }
  void ExpectServes() {
    const auto client = Connect();
    EXPECT_TRUE(client->Send("e"));
    EXPECT_EQ(client->Next(), "e");
    EXPECT_TRUE(client->Send("q"));
    EXPECT_TRUE(client->Finish().ok());
  }
  void ExpectAllGone() {
    EXPECT_TRUE(Eventually([&] { return streams_.gone == streams_.accepted; }));
  }

  Runtime& runtime_ = RealRuntime();
  Streams streams_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<const RpcPeer> peer_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(RpcCallTest, MessagesAreAnsweredInOrder) {
  const auto client = Connect();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Send("e" + std::to_string(i)));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client->Next(), "e" + std::to_string(i));
  client->HalfClose();
  EXPECT_EQ(client->Next(), "");
  EXPECT_TRUE(client->Finish().ok());
  ExpectAllGone();
}

TEST_F(RpcCallTest, HalfCloseAtOnceEndsTheCall) {
  const auto client = Connect();
  client->HalfClose();
  EXPECT_TRUE(client->Finish().ok());
  ExpectAllGone();
}

TEST_F(RpcCallTest, TheFirstOfManyEndsStaysAndAReadInFlightDoesNotDelayIt) {
  for (int round = 0; round < 30; ++round) {
    const auto client = Connect();
    ASSERT_TRUE(client->Send("e"));
    ASSERT_EQ(client->Next(), "e");
    streams_.End({grpc::StatusCode::DATA_LOSS, "first"});
    const grpc::Status end = client->Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_EQ(end.error_message(), "first");
    ExpectAllGone();
  }
}

// The peer takes nothing, so that a write stays in flight.
TEST_F(RpcCallTest, AnEndDuringAWriteWaitsForItAndWakesOtherWritersAtOnce) {
  const auto client = Connect();
  ASSERT_TRUE(client->Send("f"));
  const auto stands = [&] {
    const int before = streams_.written;
    runtime_.SleepUntil(runtime_.Now() + milliseconds(20));
    return streams_.stuck == 1 && before > 0 && streams_.written == before;
  };
  ASSERT_TRUE(Eventually(stands));
  streams_.End({grpc::StatusCode::DATA_LOSS, "enough"});
  EXPECT_TRUE(Eventually([&] { return streams_.stuck == 0; }));
  // The call ends once the peer has taken the message in flight.
  EXPECT_EQ(streams_.gone, 0);
  while (!client->Next().empty()) {
  }
  const grpc::Status end = client->Finish();
  EXPECT_EQ(end.error_message(), "enough");
  ExpectAllGone();
}

TEST_F(RpcCallTest, AResetEndsAWriteThatWaits) {
  const auto client = Connect();
  ASSERT_TRUE(client->Send("f"));
  ASSERT_TRUE(Eventually([&] { return streams_.stuck == 1; }));
  client->Reset();
  EXPECT_TRUE(Eventually([&] { return streams_.stuck == 0; }));
  ExpectAllGone();
}

#ifdef DEUT_TEST_POINTS
TEST_F(RpcCallTest, ACallThatEndsBeforeItIsAcceptedLivesUntilItIs) {
  std::unique_ptr<Client> client;
  Event made;
  std::atomic<bool> first{true};
  RpcExecutor& executor = *server_->executor();
  Event passed;
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "rpc_call.accepted" || !first.exchange(false)) return;
    made.Wait(runtime_, kNoDeadline);
    const uint64_t events = executor.counts().events;
    executor.BeforeBlocking();
    client->Reset();
    EXPECT_TRUE(Eventually([&] { return executor.counts().events > events; }));
    // The only other thread has run that event before it runs the ping.
    Ping ping;
    ping.Send(executor.queue());
    ping.Wait();
    EXPECT_EQ(streams_.accepted, 0);
    passed.Signal(runtime_);
  });
  client = Connect();
  made.Signal(runtime_);
  EXPECT_TRUE(passed.Wait(runtime_, runtime_.Now() + seconds(30)));
  EXPECT_FALSE(client->Finish().ok());
  EXPECT_TRUE(Eventually([&] { return streams_.accepted == 1 && streams_.gone == 1; }));
}
#endif

TEST_F(RpcCallTest, ResetsAtRandomMomentsLeaveNothingBehind) {
  constexpr int kThreads = 4, kRounds = 150;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      for (int round = 0; round < kRounds; ++round) {
        const auto client = Connect();
        const char* const kinds[] = {"e", "t", "f", "e", "q"};
        const auto steps = random() % 5;
        for (unsigned step = 0; step < steps; ++step) {
          const char* const kind = kinds[random() % 5];
          if (!client->Send(kind)) break;
          // A `t` may stay unanswered. Each other message is answered, or ends the call.
          if (*kind != 't' && random() % 3 == 0) (void)client->Next();
        }
        if (random() % 4 == 0) client->HalfClose();
        if (random() % 2 == 0) client->Reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ExpectAllGone();
  ExpectServes();
  EXPECT_EQ(streams_.stuck, 0);
}

// The states are: wanted, open, parked, running, and in a write that waits.
TEST_F(RpcCallTest, AServerThatEndsEndsCallsInEachState) {
  const auto open = Connect(), parked = Connect(), running = Connect(), writing = Connect();
  ASSERT_TRUE(parked->Send("e"));
  ASSERT_EQ(parked->Next(), "e");
  ASSERT_TRUE(running->Send("p"));
  ASSERT_TRUE(writing->Send("f"));
  ASSERT_TRUE(Eventually([&] { return streams_.accepted == 4 && streams_.holding == 1 && streams_.stuck == 1; }));
  std::thread opener([&] {
    // The shutdown waits for the running call.
    EXPECT_TRUE(Eventually([&] { return streams_.gone == 3; }));
    streams_.gate.Signal(runtime_);
  });
  server_->Shutdown(runtime_.Now());
  opener.join();
  EXPECT_EQ(streams_.gone, 4);
}

TEST_F(RpcCallTest, AServerThatEndsWhileCallsComeAndGoEnds) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      while (!stop) {
        const auto client = Connect();
        if (client->Send(random() % 2 == 0 ? "e" : "f")) (void)client->Next();
        if (random() % 2 == 0) client->Reset();
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return streams_.gone > 50; }));
  server_->Shutdown(runtime_.Now() + milliseconds(1));
  EXPECT_EQ(streams_.gone, streams_.accepted);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// The server has few threads, and a watchdog with a short limit.
class RpcCallFewThreadsTest : public RpcCallTest {
 protected:
  static constexpr int kThreads = 4;
  RpcCallFewThreadsTest() : RpcCallTest(kThreads, milliseconds(500)) {}
};

TEST_F(RpcCallFewThreadsTest, PeersThatTakeNothingDoNotBlockOthersForGood) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3 * kThreads; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back()->Send("f"));
  }
  EXPECT_TRUE(Eventually([&] { return streams_.accepted == 3 * kThreads; }));
  // Each is cut off in turn, although no client goes away.
  ExpectAllGone();
  ExpectServes();
}

// An event that could block must not take the last thread. Else the events that end other threads' waits would have
// none.
TEST_F(RpcCallFewThreadsTest, HealthIsAnsweredWhileAllCallsBlock) {
  server_->SetServing(true);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3 * kThreads; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(clients.back()->Send("p"));
  }
  EXPECT_TRUE(Eventually([&] { return streams_.holding == kThreads - 1; }));
  EXPECT_EQ(*testing::Health(*peer_), 1);
  EXPECT_EQ(streams_.holding, kThreads - 1);
  streams_.gate.Signal(runtime_);
  EXPECT_TRUE(Eventually([&] { return streams_.holding == 3 * kThreads; }));
  ExpectServes();
}

}  // namespace
}  // namespace deut
