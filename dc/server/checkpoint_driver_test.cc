// When checkpoints are taken automatically, with the driver as the server uses it.
#include "dc/server/checkpoint_driver.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/server/data_component_server.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"

namespace deut::dc {
namespace {

constexpr Duration kNeverByTime = std::chrono::hours(1000);

// The real runtime, with two additions: it counts how often the driver's thread begins to wait, and it decides when
// that thread begins.
class WatchedRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return RealRuntime().Now(); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    const bool watched = name == "dc-checkpoint";
    return RealRuntime().StartThread(std::move(name), [this, watched, body = std::move(body)] {
      if (watched) Until([this] { return begin.load(); });
      is_driver_ = watched;
      body();
    });
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (is_driver_ && deadline > Now() + kNeverByTime / 2 && word.load() == expected) {
      rests.fetch_add(1);
      if (intervals.load() > 0) return intervals.fetch_sub(1) == 0;  // simulates the end of an interval
    }
    return RealRuntime().Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }

  static void Until(const std::function<bool()>& condition) {
    while (!condition()) RealRuntime().Yield();
  }

  std::atomic<bool> begin{true};
  std::atomic<uint64_t> rests{0};
  std::atomic<int> intervals{0};  // intervals that end at once

 private:
  static thread_local bool is_driver_;
};
thread_local bool WatchedRuntime::is_driver_ = false;

class CheckpointDriverTest : public ::testing::Test {
 protected:
  void Start(uint64_t log_bytes) {
    server_.reset();
    DataComponentOptions options = SmallServer();
    options.checkpoints.log_bytes = log_bytes;
    options.checkpoints.interval = kNeverByTime;
    auto opened = DataComponentServer::Open(options, *storage_, runtime_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    server_ = std::move(*opened);
    sender_ = SayHello(*server_, 1);
  }
  void Apply(TestLog* log) {
    auto stream = server_->OpenApplyLog(sender_, &listener_, kNoDeadline);
    ASSERT_TRUE(stream.ok());
    ASSERT_TRUE((*stream)->Send(log->Take(), kNoDeadline).ok());
  }
  uint64_t Taken() {
    const std::vector<CounterValue> counters = *server_->Counters(kNoDeadline);
    for (const CounterValue& counter : counters) {
      if (counter.name == "checkpoints") return counter.value;
    }
    ADD_FAILURE();
    return 0;
  }
  // Waits until the driver has begun to wait more than `before` times.
  void UntilRest(uint64_t before) {
    WatchedRuntime::Until([&] { return runtime_.rests.load() > before; });
  }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  WatchedRuntime runtime_;
  CountingListener listener_;
  Sender sender_;
  std::unique_ptr<DataComponentServer> server_;
};

// The position of the last incarnation does not count as new log.
TEST_F(CheckpointDriverTest, AStartAloneTakesNone) {
  TestLog log;
  Start(1 << 20);
  UntilRest(0);  // the thread of this incarnation has begun
  log.Create();
  for (int i = 0; i < 100; ++i) log.Put("key", "value");
  Apply(&log);
  ASSERT_TRUE(server_->TakeCheckpoints(log.end()).ok());
  const uint64_t rests = runtime_.rests.load();
  runtime_.begin.store(false);
  Start(/*log_bytes=*/1000);
  ASSERT_GT(log.end().commit.value, 1000u);
  runtime_.begin.store(true);
  UntilRest(rests);
  EXPECT_EQ(Taken(), 0u);
}

TEST_F(CheckpointDriverTest, OneIsTakenAfterSoMuchLog) {
  TestLog log;
  Start(/*log_bytes=*/1000);
  UntilRest(0);
  log.Create();
  Apply(&log);
  EXPECT_EQ(Taken(), 0u);
  for (int i = 0; i < 20; ++i) log.Put("key", "value");
  const uint64_t rests = runtime_.rests.load();
  Apply(&log);
  UntilRest(rests);
  EXPECT_EQ(Taken(), 1u);
}

// A folder that may be new or may have lost its checkpoints, as a program of version 2 has left it.
TEST_F(CheckpointDriverTest, S2ALifeThatHasProvenNothingRemovesNothing) {
  TestLog log;
  Start(1 << 20);
  log.Create();
  for (int i = 0; i < 100; ++i) log.Put(Concat("key", i), "value");
  Apply(&log);
  ASSERT_TRUE(server_->TakeCheckpoints(log.end()).ok());
  server_.reset();
  StateFile file(*storage_, "/data/dc");
  DcState state = **file.Load();
  EXPECT_EQ(state.oldest_kept, CheckpointNumber(1));
  state.oldest_kept = CheckpointNumber();
  ASSERT_TRUE(file.Save(state).ok());
  const std::vector<std::string> all = *storage_->List("/data/dc/pages");
  std::vector<std::string> segments;
  for (const std::string& name : all) {
    if (name.ends_with(".seg")) segments.push_back(name);
    if (name.starts_with("checkpoint-")) {
      ASSERT_TRUE(storage_->Remove(Concat("/data/dc/pages/", name)).ok());
    }
  }
  ASSERT_FALSE(segments.empty());
  const uint64_t rests = runtime_.rests.load();
  runtime_.intervals.store(3);
  Start(1 << 20);
  UntilRest(rests + 3);
  EXPECT_EQ(Taken(), 0u);
  EXPECT_EQ(*storage_->List("/data/dc/pages"), segments);
  // Once a TC has sent it everything, the left-over segments may be removed.
  TestLog again;
  again.Create();
  for (int i = 0; i < 100; ++i) again.Put(Concat("key", i), "value");
  Apply(&again);
  ASSERT_TRUE(server_->TakeCheckpoints(again.end()).ok());
  for (const std::string& name : segments) EXPECT_FALSE(*storage_->Exists(Concat("/data/dc/pages/", name))) << name;
}

// An empty interval between two checkpoints does not count as new log.
TEST_F(CheckpointDriverTest, WithoutALimitOneIsTakenAfterEachBatchAndNoMore) {
  TestLog log;
  Start(/*log_bytes=*/0);
  UntilRest(0);
  EXPECT_EQ(Taken(), 0u);
  for (uint64_t i = 1; i < 4; ++i) {
    i == 1 ? log.Create() : log.Put("key", "value");
    const uint64_t rests = runtime_.rests.load();
    Apply(&log);
    UntilRest(rests);
    EXPECT_EQ(Taken(), i);
  }
}

}  // namespace
}  // namespace deut::dc
