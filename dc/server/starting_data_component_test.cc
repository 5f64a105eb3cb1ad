#include "dc/server/starting_data_component.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "dc/server/data_component_server.h"
#include "dc/server/server_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

bool Contains(const Status& status, std::string_view piece) {
  return status.message().find(piece) != std::string_view::npos;
}

// A data component with a checkpoint of some pages has ended, and another one starts.
class StartingDataComponentTest : public ::testing::Test {
 protected:
  StartingDataComponentTest() {
    const auto dc = StartServer(*storage_);
    const Sender tc = SayHello(*dc, 1);
    CountingListener listener;
    auto stream = dc->OpenApplyLog(tc, &listener, kNoDeadline);
    TestLog log;
    log.Create();
    for (int i = 0; i < 500; ++i) log.Put("key" + std::to_string(1000 + i), std::string(100, 'x'));
    EXPECT_TRUE((*stream)->Send(log.Take(), kNoDeadline).ok());
    EXPECT_TRUE(dc->TakeCheckpoints(log.end()).ok());
  }

  void Start(Duration disk_slow_after = seconds(5)) {
    DataComponentOptions options = SmallServer();
    options.disk_slow_after = disk_slow_after;
    auto claimed = DataComponentServer::Claim(options, *storage_, runtime_);
    ASSERT_TRUE(claimed.ok()) << claimed.status().ToString();
    starting_ = std::make_unique<StartingDataComponent>(options, runtime_, std::move(*claimed),
                                                        [this] { failed_.Signal(runtime_); });
  }
  // Starts a component that hangs in the middle of the check of its segments.
  void StartAndHang() {
    disk_.HoldOperations(kDiskRead, ".seg");
    Start();
    while (disk_.held_operations() == 0) runtime_.SleepUntil(runtime_.Now() + milliseconds(1));
  }

  // Polls until Health returns this code.
  bool HealthBecomes(ErrorCode code) {
    for (const Deadline end = runtime_.Now() + seconds(60); runtime_.Now() < end;) {
      if (starting_->Health(runtime_.Now() + milliseconds(10)) == code) return true;
    }
    return false;
  }

  Runtime& runtime_ = RealRuntime();
  FaultyDisk disk_{runtime_, 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  Event failed_;
  std::unique_ptr<StartingDataComponent> starting_;
};

// Health fails while the disk hangs, and recovers with it.
TEST_F(StartingDataComponentTest, HealthFollowsTheDisk) {
  Start(milliseconds(20));
  ASSERT_TRUE(HealthBecomes(ErrorCode::kOk));
  disk_.HoldOperations(kDiskAny);
  const auto counters =
      runtime_.StartThread("counters", [&] { EXPECT_TRUE(starting_->Counters(kNoDeadline).ok()); });  // the free bytes
  ASSERT_TRUE(HealthBecomes(ErrorCode::kUnavailable));
  EXPECT_TRUE(Contains(starting_->Health(kNoDeadline), "disk hangs: "));
  EXPECT_TRUE(starting_->WaitServing(kNoDeadline).ok()) << "what memory answers is answered";
  disk_.HoldOperations(0);
  EXPECT_TRUE(HealthBecomes(ErrorCode::kOk));
  counters->Join();
}

TEST_F(StartingDataComponentTest, ACallDuringTheStartReportsTheProgress) {
  StartAndHang();
  EXPECT_EQ(Counter(*starting_, "recovering"), 1u);
  EXPECT_EQ(Counter(*starting_, "incarnation"), 2u);
  EXPECT_GE(Counter(*starting_, "recovery_checkpoint"), 1u);
  EXPECT_GE(Counter(*starting_, "recovery_segments"), 1u);
  EXPECT_LT(Counter(*starting_, "recovery_segments_checked"), Counter(*starting_, "recovery_segments"));
  for (const Status& status :
       {starting_->WaitServing(runtime_.Now()),
        starting_->Hello(HelloOf(2), runtime_.Now() + milliseconds(250)).status(),
        starting_->Tables(Sender(), kNoDeadline).status(), Read(*starting_, Sender(), "key1000").status}) {
    EXPECT_EQ(status, ErrorCode::kUnavailable);
    EXPECT_TRUE(Contains(status, "the data component is recovering: checkpoint ")) << status.ToString();
  }

  // A Hello with a longer deadline is answered when the component serves.
  Result<HelloAnswer> answer = Status(ErrorCode::kInternal, "");
  const auto hello = runtime_.StartThread("hello", [&] { answer = starting_->Hello(HelloOf(2), kNoDeadline); });
  disk_.HoldOperations(0);
  hello->Join();
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->number.value, 2u);
  EXPECT_EQ(answer->incarnation.value, Counter(*starting_, "incarnation_id"));
  EXPECT_TRUE(starting_->WaitServing(kNoDeadline).ok());
  EXPECT_TRUE(starting_->failure().ok());
  EXPECT_FALSE(failed_.IsSet());
  const Sender tc{HelloOf(2).tc, HelloOf(2).epoch, HelloOf(2).nonce, answer->incarnation};
  EXPECT_EQ(Read(*starting_, tc, "key1000").value, std::string(100, 'x'));
  EXPECT_EQ(Counter(*starting_, "recovering"), 0u);
  EXPECT_GE(Counter(*starting_, "recovery_checkpoint"), 1u);
  EXPECT_GT(Counter(*starting_, "recovery_inner_pages"), 1u);
}

TEST_F(StartingDataComponentTest, OneThatCannotBeRecoveredSaysWhyAndTheRemedy) {
  const auto names = storage_->List("/data/dc/pages");
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    if (name.starts_with("base-")) ASSERT_TRUE(storage_->Remove("/data/dc/pages/" + name).ok());
  }
  Start();
  ASSERT_TRUE(failed_.Wait(runtime_, kNoDeadline));
  EXPECT_EQ(starting_->failure(), ErrorCode::kCorruption);
  EXPECT_TRUE(Contains(starting_->failure(), "/data/dc/pages/base-")) << starting_->failure().ToString();
  EXPECT_TRUE(Contains(starting_->failure(), "deut dc verify")) << starting_->failure().ToString();
  const Status refused = starting_->Hello(HelloOf(2), runtime_.Now() + seconds(1)).status();
  EXPECT_EQ(refused, ErrorCode::kUnavailable);
  EXPECT_TRUE(Contains(refused, "cannot start: ")) << refused.ToString();
}

TEST_F(StartingDataComponentTest, AStartCanBeGivenUp) {
  StartAndHang();
  starting_->GiveUp();
  disk_.HoldOperations(0);
  ASSERT_TRUE(failed_.Wait(runtime_, kNoDeadline));
  EXPECT_EQ(starting_->failure(), ErrorCode::kCancelled);
  starting_.reset();
  Start();
  EXPECT_TRUE(starting_->WaitServing(kNoDeadline).ok()) << "nothing was lost by it";
}

}  // namespace
}  // namespace deut::dc
