// The threads of an executor, on the queue of a server without services.
#include "protocol/rpc/rpc_executor.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "protocol/testing/loopback.h"

namespace deut {
namespace {

using testing::Eventually;

// A runtime without deadlines. Only rpc-monitor waits with a deadline, so it never checks here.
class NoMonitorRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return RealRuntime().Now(); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline) override {
    return RealRuntime().Wait(word, expected, kNoDeadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }
};

// A runtime that gives the executor only as many threads as the test sets. rpc-monitor is not counted.
class ThreadlessRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return RealRuntime().Now(); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    if (name == "rpc") {
      int left = threads_left;
      while (left > 0 && !threads_left.compare_exchange_weak(left, left - 1)) {
      }
      if (left <= 0 || (every_third && asked_.fetch_add(1) % 3 != 0))
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    return RealRuntime().Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }
  std::atomic<int> threads_left{1 << 20};
  std::atomic<bool> every_third{false};

 private:
  std::atomic<int> asked_{0};
};

// An executor whose wait for events fails as often as the test sets, as gRPC's wait does without a free descriptor.
class FailingExecutor final : public RpcExecutor {
 public:
  using RpcExecutor::RpcExecutor;
  ~FailingExecutor() override { Stop(); }
  std::atomic<int> failures_left{0};

 private:
  grpc::CompletionQueue::NextStatus AwaitEvent(void** tag, bool* ok) override {
    int left = failures_left.load();
    while (left > 0 && !failures_left.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0 ? grpc::CompletionQueue::TIMEOUT : RpcExecutor::AwaitEvent(tag, ok);
  }
};

class RpcExecutorTest : public ::testing::Test {
 protected:
  ~RpcExecutorTest() override { Stop(); }

  void Start(Runtime& runtime, const RpcExecutor::Options& options) {
    grpc::ServerBuilder builder;
    std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    executor_ = std::make_unique<FailingExecutor>(runtime, options, std::move(queue));
    executor_->Start();
  }
  void Stop() {
    if (executor_ == nullptr) return;
    server_->Shutdown();
    executor_->Stop();
    EXPECT_EQ(executor_->counts().threads, 0);
    executor_.reset();
  }

  // Puts an event into the queue, which soon runs `body` on one of the threads.
  void Fire(std::function<void()> body, bool may_block = true) {
    auto fired = std::make_unique<Fired>(std::move(body), may_block);
    Fired& event = *fired;
    {
      MutexLock lock(mutex_);
      fired_.push_back(std::move(fired));
    }
    event.Set(executor_->queue());
  }
  // Announces that it blocks, then blocks until the gate opens.
  void Block(Event& gate) {
    executor_->BeforeBlocking();
    gate.Wait(RealRuntime(), kNoDeadline);
  }
  static bool Wait(Event& event) { return event.Wait(RealRuntime(), RealRuntime().Now() + seconds(20)); }
  static void Open(Event& event) { event.Signal(RealRuntime()); }

  NoMonitorRuntime no_monitor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<FailingExecutor> executor_;

 private:
  class Fired final : public RpcEvent {
   public:
    Fired(std::function<void()> body, bool may_block) : body_(std::move(body)), may_block_(may_block) {}
    void Set(grpc::ServerCompletionQueue* queue) {
      alarm_.Set(queue, gpr_now(GPR_CLOCK_MONOTONIC), static_cast<RpcEvent*>(this));
    }
    void Done(bool) override { body_(); }
    bool MayBlock() const override { return may_block_; }

   private:
    const std::function<void()> body_;
    const bool may_block_;
    grpc::Alarm alarm_;
  };

  Mutex mutex_{RealRuntime()};
  std::vector<std::unique_ptr<Fired>> fired_ DEUT_GUARDED_BY(mutex_);
};

TEST_F(RpcExecutorTest, EventsThatBlockNowhereAreRunByOneThread) {
  Start(no_monitor_, {.max_running = 1});
  Event done;
  std::atomic<int> ran{0};
  std::atomic<std::thread::id> by{};
  std::function<void()> next = [&] {
    const std::thread::id self = std::this_thread::get_id();
    if (ran.fetch_add(1) == 0) by = self;
    EXPECT_EQ(by.load(), self);
    if (ran == 200) return Open(done);
    Fire(next);
  };
  Fire(next);
  ASSERT_TRUE(Wait(done));
  EXPECT_EQ(executor_->counts().events, 200u);
  EXPECT_EQ(executor_->counts().summons, 1u);
  EXPECT_EQ(executor_->counts().threads, 2) << "the other one has rested since the start";
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, AThreadThatAnnouncesABlockHandsOver) {
  Start(no_monitor_, {.max_running = 1});
  Event gate, blocked, other;
  Fire([&] {
    Open(blocked);
    Block(gate);
  });
  ASSERT_TRUE(Wait(blocked));
  Fire([&] { Open(other); });
  EXPECT_TRUE(Wait(other));
  EXPECT_EQ(executor_->counts().blocked, 1);
  Open(gate);
  EXPECT_TRUE(Eventually([&] { return executor_->counts().blocked == 0; }));
  EXPECT_EQ(executor_->counts().summons, 2u);
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, AnnouncingTwiceIsAnnouncingOnce) {
  Start(no_monitor_, {.max_running = 1});
  Event gate;
  Fire([&] {
    executor_->BeforeBlocking();
    Block(gate);
  });
  EXPECT_TRUE(Eventually([&] { return executor_->counts().blocked == 1; }));
  Open(gate);
  EXPECT_TRUE(Eventually([&] { return executor_->counts().blocked == 0; }));
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, DuringALongEventAnotherThreadLeadsWhileFewerThanMaxRunningRun) {
  Start(no_monitor_, {.max_running = 2});
  Event gate, second, third;
  Fire([&] {
    executor_->BeforeLongEvent();
    Fire([&] {
      executor_->BeforeLongEvent();
      Open(second);
      gate.Wait(RealRuntime(), kNoDeadline);
    });
    gate.Wait(RealRuntime(), kNoDeadline);
  });
  ASSERT_TRUE(Wait(second));
  // Both threads run, so the second event has summoned no further one.
  EXPECT_EQ(executor_->counts().summons, 2u);
  Fire([&] { Open(third); });
  Open(gate);
  EXPECT_TRUE(Wait(third));
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, AThreadThatHasRunForShareAfterSummonsAnother) {
  Start(no_monitor_, {.max_running = 2, .share_after = Duration(0)});
  std::atomic<bool> stop{false};
  std::function<void()> busy = [&] {
    if (!stop) {
      Fire(busy);
      Fire([] {});
    }
  };
  Fire(busy);
  EXPECT_TRUE(Eventually([&] { return executor_->counts().summons >= 2; }));
  stop = true;
  EXPECT_LE(executor_->counts().threads, 2 + static_cast<int>(RpcExecutor::kMaxResting));
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, AnUnannouncedBlockDelaysTheOthersForAMomentOnly) {
  Start(RealRuntime(), {.max_running = 1});
  Event gate, other;
  Fire([&] { gate.Wait(RealRuntime(), kNoDeadline); });
  EXPECT_TRUE(Eventually([&] { return executor_->counts().events == 1; }));
  Fire([&] { Open(other); });
  EXPECT_TRUE(Wait(other));
  Open(gate);
  Stop();  // before the objects that the events use are destroyed
}

// The last thread that the system gave used to run the event that blocks. Then no thread led until another event ended.
TEST_F(RpcExecutorTest, WithoutASpareThreadAnEventThatCouldBlockWaitsWhileOthersRun) {
  ThreadlessRuntime runtime;
  Start(runtime, {.max_running = 1});
  EXPECT_EQ(executor_->counts().threads, 2);
  runtime.threads_left = 0;
  Event gate, other;
  Fire([&] { Block(gate); });
  ASSERT_TRUE(Eventually([&] { return executor_->counts().blocked == 1; }));
  Fire([&] { Open(other); });
  ASSERT_TRUE(Eventually([&] { return executor_->counts().events == 2; }));
  for (int i = 0; i < 100; ++i) {
    Event one;
    Fire([&] { Open(one); }, /*may_block=*/false);
    ASSERT_TRUE(Wait(one));
  }
  // rpc-monitor tries repeatedly to start a spare.
  EXPECT_TRUE(Eventually([&] { return executor_->counts().shortages >= 3; }));
  EXPECT_FALSE(other.IsSet());
  EXPECT_EQ(executor_->counts().threads, 2);
  runtime.threads_left = 1;
  EXPECT_TRUE(Wait(other));
  EXPECT_EQ(executor_->counts().blocked, 1);
  Open(gate);
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, WorkWithoutASpareThreadRunsWhenAnEventEnds) {
  ThreadlessRuntime runtime;
  Start(runtime, {.max_running = 1});
  runtime.threads_left = 0;
  Event gate, event, posted, single;
  Fire([&] { Block(gate); });
  ASSERT_TRUE(Eventually([&] { return executor_->counts().blocked == 1; }));
  Fire([&] { Open(event); });
  ASSERT_TRUE(Eventually([&] { return executor_->counts().events == 2; }));
  EXPECT_FALSE(executor_->Post([&] { Open(posted); }));
  executor_->PostSingle([&] { Open(single); });
  EXPECT_FALSE(event.IsSet() || posted.IsSet() || single.IsSet());
  Open(gate);
  EXPECT_TRUE(Wait(event));
  EXPECT_TRUE(Wait(posted));
  EXPECT_TRUE(Wait(single));
  EXPECT_EQ(executor_->counts().threads, 2);
  Stop();  // before the objects that the events use are destroyed
}

// The system gives one thread at the start, and no second one until later.
TEST_F(RpcExecutorTest, TheOnlyThreadRunsEventsThatDoNotBlock) {
  ThreadlessRuntime runtime;
  runtime.threads_left = 1;
  Start(runtime, {.max_running = 1});
  Event blocks, light;
  Fire([&] {
    executor_->BeforeBlocking();
    Open(blocks);
  });
  ASSERT_TRUE(Eventually([&] { return executor_->counts().events == 1; }));
  Fire([&] { Open(light); }, /*may_block=*/false);
  EXPECT_TRUE(Wait(light));
  EXPECT_FALSE(blocks.IsSet());
  EXPECT_EQ(executor_->counts().threads, 1);
  runtime.threads_left = 1;
  EXPECT_TRUE(Wait(blocks));
  Stop();  // before the objects that the events use are destroyed
}

// Events that end only through another event, while the system gives only every third thread that the executor requests.
TEST_F(RpcExecutorTest, NothingIsLostWhereTheSystemGivesThreadsNowAndThen) {
  constexpr int kEvents = 2000;
  ThreadlessRuntime runtime;
  runtime.every_third = true;
  Start(runtime, {.threads = 64, .max_running = 2, .share_after = Duration(0)});
  std::atomic<int> over{0};
  std::vector<Event> gates(kEvents);
  for (int i = 0; i < kEvents; ++i) {
    if (i % 4 == 3) {
      executor_->PostSingle([&] { ++over; });
      continue;
    }
    Fire([&, i] {
      Fire([&, i] { Open(gates[i]); }, /*may_block=*/false);
      Block(gates[i]);
      ++over;
    });
  }
  EXPECT_TRUE(Eventually([&] { return over == kEvents; }));
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, PostedWorkIsNotRunByTheLeader) {
  Start(no_monitor_, {.max_running = 1});
  for (int i = 0; i < 100; ++i) {
    Event done;
    EXPECT_TRUE(executor_->Post([&] { Open(done); }));
    ASSERT_TRUE(Wait(done));
  }
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, WorkThatABlockedThreadHasPostedIsRunByAnother) {
  Start(no_monitor_, {.max_running = 1});
  Event gate, other;
  Fire([&] {
    EXPECT_TRUE(executor_->Post([&] { Open(gate); }));
    Block(gate);
    Open(other);
  });
  EXPECT_TRUE(Wait(other));
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, WorkThatIsPostedWhileAllBlockIsRunWhenOneNoLongerDoes) {
  constexpr int kThreads = 3;
  Start(no_monitor_, {.threads = kThreads, .max_running = 1});
  Event gate, other, light;
  std::atomic<int> blocked{0};
  for (int i = 0; i < kThreads - 1; ++i) {
    Fire([&] {
      ++blocked;
      Block(gate);
    });
  }
  EXPECT_TRUE(Eventually([&] { return executor_->counts().blocked == kThreads - 1; }));
  std::atomic<bool> ran{false};
  EXPECT_FALSE(executor_->Post([&] { ran = true; }));
  // An event that may block has to wait, too. The last thread is kept for events that do not block.
  Fire([&] { Open(other); });
  EXPECT_TRUE(Eventually([&] { return executor_->counts().events == kThreads; }));
  Fire([&] { Open(light); }, /*may_block=*/false);
  EXPECT_TRUE(Wait(light));
  EXPECT_FALSE(ran);
  EXPECT_FALSE(other.IsSet());
  Open(gate);
  EXPECT_TRUE(Wait(other));
  EXPECT_TRUE(Eventually([&] { return ran.load(); }));
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, OneThreadIsEnoughForEventsThatNeverBlock) {
  Start(no_monitor_, {.threads = 1, .max_running = 1});
  for (int i = 0; i < 100; ++i) {
    Event done;
    Fire([&] { Open(done); });
    ASSERT_TRUE(Wait(done));
  }
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, ThreadsBeyondThoseThatRestEnd) {
  constexpr int kBlocked = 64;
  Start(no_monitor_, {.max_running = 1});
  for (int round = 0; round < 3; ++round) {
    Event gate;
    std::atomic<int> over{0};
    for (int i = 0; i < kBlocked; ++i) {
      Fire([&] {
        Block(gate);
        ++over;
      });
    }
    EXPECT_TRUE(Eventually([&] { return executor_->counts().blocked == kBlocked; }));
    EXPECT_EQ(executor_->counts().threads, kBlocked + 1);
    Open(gate);
    EXPECT_TRUE(Eventually([&] {
      return over == kBlocked && executor_->counts().threads <= static_cast<int>(RpcExecutor::kMaxResting) + 1;
    }));
  }
  Stop();  // before the objects that the events use are destroyed
}

TEST_F(RpcExecutorTest, StopWaitsForRunningEventsAndRunsTheWorkThatTheyPost) {
  Start(RealRuntime(), {.max_running = 1});
  Event gate;
  std::atomic<int> over{0};
  for (int i = 0; i < 8; ++i) {
    Fire([&] {
      Block(gate);
      executor_->Post([&] { ++over; });
    });
  }
  EXPECT_TRUE(Eventually([&] { return executor_->counts().blocked == 8; }));
  std::thread opener([&] { Open(gate); });
  Stop();
  opener.join();
  EXPECT_EQ(over, 8);
}

TEST_F(RpcExecutorTest, StopWaitsUntilCallsThatHaveBegunAreGone) {
  Start(RealRuntime(), {.max_running = 1});
  std::optional<RpcCallPresence> call(*executor_);
  Event gate;
  std::atomic<bool> gone{false};
  Fire([&] {
    Block(gate);
    // The server has shut down, and the call starts another operation. That is allowed until the queue shuts down.
    Fire([&] {
      gone = true;
      call.reset();
    });
  });
  EXPECT_TRUE(Eventually([&] { return executor_->counts().blocked == 1; }));
  server_->Shutdown();
  server_->Wait();
  std::thread opener([&] { Open(gate); });
  Stop();
  opener.join();
  EXPECT_TRUE(gone);
}

// The executor used to mistake the failure for the end of the queue. All threads ended, no event was served any more, and Stop waited for ever for
// calls that had begun.
TEST_F(RpcExecutorTest, AFailureToWaitIsNotTheEnd) {
  Start(RealRuntime(), {.max_running = 2});
  std::optional<RpcCallPresence> call(*executor_);
  Event first;
  Fire([&] { Open(first); });
  ASSERT_TRUE(Wait(first));
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = executor_->counts().failures;
    executor_->failures_left = 3;
    // This event ends the wait that is in progress. The next wait fails.
    Event over, later;
    Fire([&] { Open(over); });
    ASSERT_TRUE(Wait(over));
    Fire([&] { Open(later); });
    EXPECT_TRUE(Wait(later));
    EXPECT_TRUE(Eventually([&] { return executor_->counts().failures == before + 3; }));
  }
  Fire([&] { call.reset(); });
  Stop();  // before the objects that the events use are destroyed
}

// Events that block, events that do not, and posted work, on few threads: none is lost, in whatever order they come.
TEST_F(RpcExecutorTest, NothingIsLostWhereThreadsAreFew) {
  constexpr int kEvents = 3000;
  Start(no_monitor_, {.threads = 4, .max_running = 2, .share_after = Duration(0)});
  std::atomic<int> over{0};
  std::vector<Event> gates(kEvents);
  for (int i = 0; i < kEvents; ++i) {
    switch (i % 3) {
      case 0:
        // Waits for an event that does not block, and which therefore always runs.
        Fire([&, i] {
          Fire([&, i] { Open(gates[i]); }, /*may_block=*/false);
          Block(gates[i]);
          ++over;
        });
        break;
      case 1:
        Fire([&] { ++over; });
        break;
      default:
        (void)executor_->Post([&] { ++over; });
        break;
    }
  }
  EXPECT_TRUE(Eventually([&] { return over == kEvents; }));
  EXPECT_LE(executor_->counts().threads, 4);
  Stop();  // before the objects that the events use are destroyed
}

}  // namespace
}  // namespace deut
