#include "common/io/watched_storage.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/faulty_disk_fixture.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/recorded_log.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

class WatchedStorageTest : public ::testing::Test {
 protected:
  void Start(Duration slow_after, Duration stuck_after) {
    storage_ = std::make_unique<WatchedStorage>(runtime_, *behind_,
                                                DiskWatchOptions{slow_after, stuck_after, [this](const Status& status) {
                                                                   reason_ = status;
                                                                   stuck_reports_.fetch_add(1);
                                                                   stuck_.Signal(runtime_);
                                                                 }});
    file_ = Open(*storage_, "f", kCreate);
  }
  template <typename Condition>
  void WaitFor(const Condition& condition) {
    while (!condition()) runtime_.SleepUntil(runtime_.Now() + milliseconds(1));
  }

  Runtime& runtime_ = RealRuntime();
  FaultyDisk disk_{runtime_, 1};
  const std::unique_ptr<Storage> behind_ = disk_.Mount();
  testing::RecordedLog recorded_;
  Status reason_;  // after stuck_
  std::atomic<int> stuck_reports_{0};
  Event stuck_;
  std::unique_ptr<WatchedStorage> storage_;
  std::unique_ptr<File> file_;
};

TEST_F(WatchedStorageTest, OperationsThatWaitForTheDiskCallTheBlockingHook) {
  Start(seconds(60), Duration());
  int calls = 0;
  const auto calls_hook = [&](const std::function<bool()>& operation) {
    calls = 0;
    const std::function<void()> hook = [&] { ++calls; };
    const BlockingHook blocking_hook(hook);
    EXPECT_TRUE(operation());
    return calls == 1;
  };
  std::string bytes(512, 'x');
  EXPECT_TRUE(calls_hook([&] { return file_->Write(0, bytes.data(), bytes.size()).ok(); }));
  EXPECT_TRUE(calls_hook([&] { return file_->Sync().ok(); }));
  EXPECT_TRUE(calls_hook([&] { return file_->Read(0, bytes.data(), bytes.size()).ok(); }));
  // The kernel answers from memory, and callers ask often.
  EXPECT_FALSE(calls_hook([&] { return storage_->FreeBytes("").ok(); }));
}

TEST_F(WatchedStorageTest, SlowOperationsAreLoggedAndCounted) {
  Start(milliseconds(20), Duration());
  EXPECT_EQ(storage_->statistics().slow_in_flight, 0u);
  disk_.HoldOperations(kDiskWrite | kDiskSync, "f");
  std::vector<std::unique_ptr<Thread>> threads;
  Status written, synced;
  threads.push_back(
      runtime_.StartThread("write", [&] { written = file_->Write(512, std::string(1000, 'x').data(), 1000); }));
  WaitFor([&] { return storage_->statistics().slow_in_flight == 1; });
  threads.push_back(runtime_.StartThread("sync", [&] { synced = file_->Sync(); }));
  WaitFor([&] { return storage_->statistics().slow_in_flight == 2; });
  EXPECT_GE(storage_->statistics().oldest_age, milliseconds(20));
  EXPECT_EQ(storage_->statistics().slow_operations, 2u);
  WaitFor([&] { return recorded_.Count("has not come back for") == 2; });
  EXPECT_EQ(recorded_.Count("disk: the write of f, 1000 bytes at offset 512 has not come back for "), 1u)
      << recorded_.text();
  EXPECT_EQ(recorded_.Count("disk: the sync of f has not come back for "), 1u) << recorded_.text();

  disk_.HoldOperations(0);
  threads.clear();
  EXPECT_TRUE(written.ok() && synced.ok());
  EXPECT_EQ(storage_->statistics().slow_in_flight, 0u);
  EXPECT_EQ(storage_->statistics().oldest_age, Duration());
  EXPECT_EQ(storage_->statistics().slow_operations, 2u);
  EXPECT_EQ(recorded_.Count("has come back after"), 2u) << recorded_.text();
  EXPECT_EQ(stuck_reports_.load(), 0);
}

TEST_F(WatchedStorageTest, RequestsOfAQueueAreWatchedUntilTheyAreReaped) {
  Start(milliseconds(20), milliseconds(60));
  ASSERT_TRUE(file_->Write(0, "ab", 2).ok());
  auto queue = storage_->NewQueue(2);
  ASSERT_TRUE(queue.ok());
  disk_.HoldOperations(kDiskRead, "f");
  char bytes[2] = {};
  IoRequest requests[2];
  for (int i = 0; i < 2; ++i) {
    requests[i] = {.file = file_.get(), .offset = uint64_t(i), .data = &bytes[i], .bytes = 1};
    ASSERT_TRUE((*queue)->Submit(&requests[i]).ok());
  }
  WaitFor([&] { return storage_->statistics().slow_in_flight == 2; });
  ASSERT_TRUE(stuck_.Wait(runtime_, kNoDeadline));
  EXPECT_NE(reason_.message().find("the disk is stuck: the read of f"), std::string::npos) << reason_.ToString();
  disk_.HoldOperations(0);
  std::vector<IoRequest*> completed;
  while ((*queue)->in_flight() > 0) (*queue)->Reap(&completed, kNoDeadline);
  EXPECT_EQ(completed.size(), 2u);
  for (const IoRequest& request : requests) {
    EXPECT_TRUE(request.status.ok());
    EXPECT_EQ(request.file, file_.get());
  }
  EXPECT_EQ(std::string(bytes, 2), "ab");
  EXPECT_EQ(storage_->statistics().slow_in_flight, 0u);
}

TEST_F(WatchedStorageTest, OfManySlowOperationsOnlyOneIsLogged) {
  Start(milliseconds(200), Duration());
  disk_.HoldOperations(kDiskRead);
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 8; ++i) {
    threads.push_back(runtime_.StartThread("read", [&] {
      char byte;
      EXPECT_TRUE(file_->Read(0, &byte, 1).ok());
    }));
  }
  WaitFor([&] { return storage_->statistics().slow_in_flight == 8; });
  disk_.HoldOperations(0);
  threads.clear();
  EXPECT_LE(recorded_.Count("has not come back"), 3u) << recorded_.text();
  EXPECT_EQ(recorded_.Count("has come back after"), recorded_.Count("has not come back"));
  EXPECT_EQ(storage_->statistics().slow_operations, 8u);
}

TEST_F(WatchedStorageTest, AStuckDiskIsReportedOnce) {
  Start(milliseconds(5), milliseconds(40));
  disk_.HoldOperations(kDiskAny, "g");
  Status removed;
  std::vector<std::unique_ptr<Thread>> threads;
  threads.push_back(runtime_.StartThread("remove", [&] { removed = storage_->Remove("g"); }));
  ASSERT_TRUE(stuck_.Wait(runtime_, kNoDeadline));
  EXPECT_EQ(reason_, ErrorCode::kIoError);
  EXPECT_NE(reason_.message().find("the disk is stuck: the removal of g: no answer within 40 ms"), std::string::npos)
      << reason_.ToString();
  // A second operation becomes slow; the watch goes on.
  threads.push_back(runtime_.StartThread("list", [&] { EXPECT_TRUE(storage_->Exists("g").ok()); }));
  WaitFor([&] { return storage_->statistics().slow_in_flight == 2; });
  disk_.HoldOperations(0);
  threads.clear();
  EXPECT_EQ(removed, ErrorCode::kNotFound);
  EXPECT_EQ(stuck_reports_.load(), 1);
}

TEST_F(WatchedStorageTest, ByDefaultTheProcessEnds) {
  const auto hang = [] {
    FaultyDisk disk(RealRuntime(), 1);
    const auto behind = disk.Mount();
    DiskWatchOptions options;
    options.slow_after = milliseconds(5);
    options.stuck_after = milliseconds(10);
    WatchedStorage storage(RealRuntime(), *behind, options);
    disk.HoldOperations(kDiskAny);
    (void)storage.Exists("f");
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(3),
              "fail-stop: IO_ERROR: the disk is stuck: the lookup of f: no answer within 10 ms");
}

// A clock that a test sets.
class StoppedRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return MonotonicTime(Duration(now.load())); }
  int64_t WallMicros() override { return real.WallMicros(); }
  uint64_t RandomSeed() override { return real.RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return real.StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline /*deadline*/) override {
    waits.fetch_add(1);
    return real.Wait(word, expected, real.Now() + milliseconds(1));
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { real.Wake(word, waiters); }
  void Yield() override { real.Yield(); }

  Runtime& real = RealRuntime();
  std::atomic<int64_t> now{1};
  std::atomic<int> waits{0};
};

TEST_F(WatchedStorageTest, TimeInWhichTheProcessDidNotRunDoesNotCount) {
  StoppedRuntime stopped;
  std::atomic<int> stuck_reports{0};
  WatchedStorage storage(stopped, *behind_,
                         DiskWatchOptions{seconds(4), seconds(60), [&](const Status&) { stuck_reports.fetch_add(1); }});
  disk_.HoldOperations(kDiskAny);
  const auto thread = runtime_.StartThread("exists", [&] { EXPECT_TRUE(storage.Exists("f").ok()); });
  WaitFor([&] { return disk_.held_operations() == 1; });
  const auto pass = [&](Duration time) {
    stopped.now.fetch_add(time.count());
    const int waits = stopped.waits.load();
    WaitFor([&] { return stopped.waits.load() > waits + 2; });
  };
  pass(seconds(3600));
  EXPECT_EQ(storage.statistics().slow_in_flight, 0u) << "a whole hour, of which it could only see a moment";
  for (int i = 0; i < 4; ++i) pass(seconds(1));
  EXPECT_EQ(storage.statistics().slow_in_flight, 1u);
  EXPECT_EQ(stuck_reports.load(), 0);
  for (int i = 0; i < 60; ++i) pass(seconds(1));
  EXPECT_EQ(stuck_reports.load(), 1);
  disk_.HoldOperations(0);
  thread->Join();
}

}  // namespace
}  // namespace deut
