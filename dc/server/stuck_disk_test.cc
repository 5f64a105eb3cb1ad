// A data component whose disk hangs. Calls that do not need the disk continue, the hang is reported, and in the end
// the process is told to exit.
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/server/data_component_server.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

class StuckDiskTest : public ::testing::Test {
 protected:
  void Start(Duration slow_after, Duration timeout) {
    DataComponentOptions options = SmallServer();
    options.disk_slow_after = slow_after;
    options.disk_timeout = timeout;
    options.records.on_failure = [this](const Status& status) {
      failure_ = status;
      failed_.Signal(RealRuntime());
    };
    auto opened = DataComponentServer::Open(options, *storage_, RealRuntime());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    dc_ = std::move(*opened);
    tc_ = SayHello(*dc_, 1);
    auto stream = dc_->OpenApplyLog(tc_, &listener_, kNoDeadline);
    ASSERT_TRUE(stream.ok());
    stream_ = std::move(*stream);
    log_.Create().Put("a", "1");
    ASSERT_TRUE(stream_->Send(log_.Take(), kNoDeadline).ok());
  }
  // Leaves an incarnation with no leaf in memory, and a disk that answers no reads.
  void StartWithPagesOnDisk() {
    Start(seconds(100), Duration());
    for (char c = 'b'; c <= 'z'; ++c) log_.Put(std::string(3, c), std::string(1000, c));  // makes many pages
    ASSERT_TRUE(stream_->Send(log_.Take(), kNoDeadline).ok());
    ASSERT_TRUE(dc_->TakeCheckpoints(log_.end()).ok());
    stream_.reset();
    dc_.reset();
    auto opened = DataComponentServer::Open(SmallServer(), *storage_, RealRuntime());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    dc_ = std::move(*opened);
    tc_ = SayHello(*dc_, 1);
    disk_.HoldOperations(kDiskRead);
  }
  void Submit(DataRequest* request, DataRequest::Kind kind) {
    request->sender = tc_;
    request->kind = kind;
    request->table = kTable;
    request->key = "mmm";
    dc_->Submit(absl::MakeConstSpan(&request, 1));
  }
  void StartCheckpoint() {
    checkpoint_ =
        RealRuntime().StartThread("checkpoint", [this] { taken_ = dc_->TakeCheckpoints(log_.end()).status(); });
  }

  FaultyDisk disk_{RealRuntime(), 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  CountingListener listener_;
  TestLog log_;
  Status failure_;  // valid after failed_
  Event failed_;
  Status taken_;
  std::unique_ptr<DataComponentServer> dc_;
  Sender tc_;
  std::unique_ptr<ApplyLogStream> stream_;
  std::unique_ptr<Thread> checkpoint_;
};

TEST_F(StuckDiskTest, CountersAndWhatIsInMemoryAreAnsweredMeanwhile) {
  Start(milliseconds(20), Duration());
  const uint64_t free_bytes = Counter(*dc_, "free_bytes");
  EXPECT_GT(free_bytes, 0u);
  disk_.HoldOperations(kDiskAny & ~kDiskOther);
  StartCheckpoint();
  while (Counter(*dc_, "disk_waiting_operations") == 0) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
  disk_.HoldOperations(kDiskAny);
  EXPECT_EQ(Counter(*dc_, "free_bytes"), free_bytes);
  EXPECT_GE(Counter(*dc_, "disk_waiting_ms"), 20u);
  EXPECT_EQ(Counter(*dc_, "disk_slow_operations"), 1u);
  EXPECT_EQ(Read(*dc_, tc_, "a").value, "1");
  EXPECT_FALSE(failed_.IsSet());
  // A Hello must not wait for the disk, and later Hellos must not wait for it.
  const Status hello = dc_->Hello(HelloOf(2), kNoDeadline).status();
  EXPECT_EQ(hello, ErrorCode::kUnavailable);
  EXPECT_NE(hello.message().find("disk hangs: 1 operations"), std::string_view::npos) << hello.ToString();

  disk_.HoldOperations(0);
  checkpoint_->Join();
  EXPECT_TRUE(taken_.ok()) << taken_.ToString();
  EXPECT_EQ(Counter(*dc_, "disk_waiting_operations"), 0u);
  EXPECT_EQ(Counter(*dc_, "disk_waiting_ms"), 0u);
  EXPECT_TRUE(dc_->Hello(HelloOf(2), kNoDeadline).ok());
}

// No other TC has taken over from an incarnation that ends, so no caller is told so: its TC would stop serving.
TEST_F(StuckDiskTest, ACallThatWaitsForTheDiskReportsNoOtherTcWhenTheIncarnationEnds) {
  StartWithPagesOnDisk();
  std::array<DataRequest, 3> requests;  // all wait for the read of one page
  for (DataRequest& request : requests) Submit(&request, DataRequest::Kind::kRead);
  Event ending;
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "dc.ending") ending.Signal(RealRuntime());
  });
  const auto end = RealRuntime().StartThread("end", [&] { dc_.reset(); });
  ASSERT_TRUE(ending.Wait(RealRuntime(), kNoDeadline));
  for (int i = 0; i < 200; ++i) RealRuntime().Yield();  // time enough for the others to continue
  for (const DataRequest& request : requests) EXPECT_FALSE(request.done.IsSet());
  disk_.HoldOperations(0);
  end->Join();
  testing::SetPointHandler({});
  for (DataRequest& request : requests) {
    ASSERT_TRUE(request.done.IsSet());
    EXPECT_TRUE(request.status.ok()) << request.status.ToString();
  }
}

TEST_F(StuckDiskTest, ARequestThatWaitsForAPageIsRefusedWhenAnotherTcHasTakenOver) {
  StartWithPagesOnDisk();
  std::array<DataRequest, 2> requests;
  Submit(&requests[0], DataRequest::Kind::kRead);
  Submit(&requests[1], DataRequest::Kind::kScan);
  while (disk_.held_operations() == 0) RealRuntime().Yield();
  EXPECT_TRUE(dc_->Hello(HelloOf(2), kNoDeadline).ok()) << "it waits for no page";
  disk_.HoldOperations(0);
  for (DataRequest& request : requests) {
    ASSERT_TRUE(request.done.Wait(RealRuntime(), kNoDeadline));
    EXPECT_EQ(request.status, ErrorCode::kFenced) << request.status.ToString();
  }
}

TEST_F(StuckDiskTest, MoreRequestsThanThreadsWaitForPagesAndAnAbandonedOneIsNotAnswered) {
  StartWithPagesOnDisk();
  std::vector<std::unique_ptr<DataRequest>> requests;
  std::vector<std::string> keys;
  for (char c = 'b'; c <= 'z'; ++c) keys.emplace_back(3, c);
  for (const std::string& key : keys) {
    requests.push_back(std::make_unique<DataRequest>());
    DataRequest* const request = requests.back().get();
    request->sender = tc_;
    request->table = kTable;
    request->key = key;
    dc_->Submit(absl::MakeConstSpan(&request, 1));
    EXPECT_FALSE(request->done.IsSet());
  }
  dc_->Abandon(requests[3].get());
  EXPECT_FALSE(requests[3]->done.IsSet());
  requests.erase(requests.begin() + 3);
  disk_.HoldOperations(0);
  for (const std::unique_ptr<DataRequest>& request : requests) {
    ASSERT_TRUE(request->done.Wait(RealRuntime(), kNoDeadline));
    EXPECT_TRUE(request->status.ok()) << request->status.ToString();
    EXPECT_EQ(request->answer.size(), 1u);
  }
}

// The scan goes on on the loader's only thread, with all its pages in memory but the first ones.
TEST_F(StuckDiskTest, AScanThatGoesOnLetsOtherRequestsPass) {
  constexpr int kRecords = 200;
  constexpr int kLastOfScan = 180;
  const auto key = [](int i) { return Concat("k", 1000 + i); };
  Start(seconds(100), Duration());
  for (int i = 0; i < kRecords; ++i) log_.Put(key(i), std::string(1000, 'v'));
  ASSERT_TRUE(stream_->Send(log_.Take(), kNoDeadline).ok());
  ASSERT_TRUE(dc_->TakeCheckpoints(log_.end()).ok());
  stream_.reset();
  dc_.reset();
  DataComponentOptions options = SmallServer();
  options.records.loader.threads = 1;
  auto opened = DataComponentServer::Open(options, *storage_, RealRuntime());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  dc_ = std::move(*opened);
  tc_ = SayHello(*dc_, 1);
  for (int i = 20; i < kLastOfScan; ++i) ASSERT_TRUE(Read(*dc_, tc_, key(i)).value.has_value());

  const std::string low = key(0);
  const std::string high = key(kLastOfScan);
  const std::string cold = key(kRecords - 1);
  DataRequest scan;
  scan.low = low;
  scan.high = high;
  scan.limit_bytes = 1 << 20;
  DataRequest read;
  read.sender = tc_;
  read.table = kTable;
  read.key = cold;
  std::atomic<int> pages{0};
  std::atomic<int> pages_before_read{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "dc.scan.page") return;
    // Behind the pages that are missing, the read arrives.
    if (pages.fetch_add(1) == 40) {
      DataRequest* const request = &read;
      RealRuntime().StartThread("reads", [&] { dc_->Submit(absl::MakeConstSpan(&request, 1)); })->Join();
      EXPECT_FALSE(read.done.IsSet());
    }
    if (!read.done.IsSet()) pages_before_read.store(pages.load());
  });
  Submit(&scan, DataRequest::Kind::kScan);
  ASSERT_TRUE(scan.done.Wait(RealRuntime(), kNoDeadline));
  ASSERT_TRUE(read.done.Wait(RealRuntime(), kNoDeadline));
  testing::SetPointHandler({});
  EXPECT_TRUE(scan.status.ok()) << scan.status.ToString();
  EXPECT_EQ(scan.answer.size(), static_cast<size_t>(kLastOfScan));
  EXPECT_TRUE(read.status.ok()) << read.status.ToString();
  EXPECT_EQ(read.answer.size(), 1u);
  EXPECT_GE(pages.load(), 80);
  // The turn in which it arrives, and a few more: for its submission, its end and its answer.
  EXPECT_LE(pages_before_read.load(), 40 + 5 * 8);
}

TEST_F(StuckDiskTest, AfterTheTimeoutTheProcessIsToEnd) {
  Start(milliseconds(5), milliseconds(60));
  disk_.HoldOperations(kDiskWrite);
  StartCheckpoint();
  ASSERT_TRUE(failed_.Wait(RealRuntime(), kNoDeadline));
  EXPECT_EQ(failure_, ErrorCode::kIoError);
  EXPECT_NE(failure_.message().find("the disk is stuck: the write of /data/dc/pages/"), std::string::npos)
      << failure_.ToString();
  disk_.HoldOperations(0);
  checkpoint_->Join();
}

TEST_F(StuckDiskTest, AStartOnAStuckDiskIsToldToo) {
  DataComponentOptions options = SmallServer();
  options.disk_slow_after = milliseconds(5);
  options.disk_timeout = milliseconds(20);
  options.records.on_failure = [this](const Status& status) {
    failure_ = status;
    failed_.Signal(RealRuntime());
  };
  disk_.HoldOperations(kDiskAny);
  const auto start = RealRuntime().StartThread(
      "start", [&] { EXPECT_TRUE(DataComponentServer::Open(options, *storage_, RealRuntime()).ok()); });
  ASSERT_TRUE(failed_.Wait(RealRuntime(), kNoDeadline));
  EXPECT_NE(failure_.message().find("/data/dc"), std::string::npos) << failure_.ToString();
  disk_.HoldOperations(0);
  start->Join();
}

}  // namespace
}  // namespace deut::dc
