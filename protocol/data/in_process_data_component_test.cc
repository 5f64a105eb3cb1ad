#include "protocol/data/in_process_data_component.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"
#include "protocol/testing/scripted_data_component.h"

namespace deut {
namespace {

using testing::ScriptedDataComponent;

constexpr TableId kTable{5};

class Listener final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck& ack) override {
    EXPECT_EQ(closed.load(), 0);
    applied.store(ack.applied.commit.value);
  }
  void OnClosed(const Status& status) override {
    code.store(status.code());
    closed.fetch_add(1);
  }
  std::atomic<uint64_t> applied{0};
  std::atomic<int> closed{0};
  std::atomic<ErrorCode> code{ErrorCode::kOk};
};

class InProcessDataComponentTest : public ::testing::Test {
 protected:
  InProcessDataComponentTest()
      : component_(runtime_, [this]() -> Result<std::unique_ptr<DataComponent>> {
          if (!refuse_.ok()) return refuse_;
          auto life = std::make_unique<ScriptedDataComponent>(runtime_, ++lives_);
          life->Put(kTable, "k", "v" + std::to_string(lives_));
          life->hold = [this](const DataRequest&) { return hold_.load(); };
          life_ = life.get();
          return std::unique_ptr<DataComponent>(std::move(life));
        }) {}

  Sender SenderOf(uint64_t incarnation) {
    return Sender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 3, .incarnation = DcIncarnation(incarnation)};
  }

  void Prepare(DataRequest* request, uint64_t incarnation) {
    request->sender = SenderOf(incarnation);
    request->table = kTable;
    request->key = "k";
    request->done.Reset();
  }

  Status Read(uint64_t incarnation, std::string* value) {
    DataRequest request;
    Prepare(&request, incarnation);
    DataRequest* const requests[] = {&request};
    component_.Submit(requests);
    request.done.Wait(runtime_, kNoDeadline);
    if (request.status.ok()) *value = std::string(RecordBatch::Iterator(request.answer).record().value);
    return request.status;
  }

  static LogBatch Batch(uint64_t from, uint64_t to) {
    LogBatch batch{.from = Position{Lsn(from), 0}, .to = Position{Lsn(to), 0}, .entries = {}};
    return batch;
  }

  Runtime& runtime_ = RealRuntime();
  Status refuse_;
  uint64_t lives_ = 0;
  std::atomic<bool> hold_{false};
  ScriptedDataComponent* life_ = nullptr;
  InProcessDataComponent component_;
};

TEST_F(InProcessDataComponentTest, IsUnavailableUntilStarted) {
  std::string value;
  EXPECT_EQ(Read(1, &value).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(component_.Hello(HelloRequest(), kNoDeadline).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(component_.Tables(SenderOf(1), kNoDeadline).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(component_.Counters(kNoDeadline).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(component_.OpenScan(SenderOf(1), ScanSpec(), kNoDeadline).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(component_.Partition(SenderOf(1), kTable, 2, kNoDeadline).status().code(), ErrorCode::kUnavailable);
  Listener listener;
  EXPECT_EQ(component_.OpenApplyLog(SenderOf(1), &listener, kNoDeadline).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(listener.closed.load(), 0);
}

TEST_F(InProcessDataComponentTest, EachStartIsAnotherLife) {
  ASSERT_TRUE(component_.Start().ok());
  EXPECT_EQ(component_.Start().code(), ErrorCode::kWrongState);
  std::string value;
  ASSERT_TRUE(Read(1, &value).ok());
  EXPECT_EQ(value, "v1");
  component_.Kill();
  component_.Kill();
  EXPECT_EQ(Read(1, &value).code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(component_.Start().ok());
  EXPECT_EQ(Read(1, &value).code(), ErrorCode::kWrongIncarnation);
  ASSERT_TRUE(Read(2, &value).ok());
  EXPECT_EQ(value, "v2");
  EXPECT_EQ(component_.Hello(HelloRequest(), kNoDeadline)->incarnation, DcIncarnation(2));
}

TEST_F(InProcessDataComponentTest, AFactoryThatFailsLeavesItDead) {
  refuse_ = Status(ErrorCode::kIoError, "no disk");
  EXPECT_EQ(component_.Start().code(), ErrorCode::kIoError);
  std::string value;
  EXPECT_EQ(Read(1, &value).code(), ErrorCode::kUnavailable);
  refuse_ = Status::Ok();
  EXPECT_TRUE(component_.Start().ok());
}

TEST_F(InProcessDataComponentTest, KillEndsRequestsThatWait) {
  ASSERT_TRUE(component_.Start().ok());
  hold_ = true;
  DataRequest request;
  Prepare(&request, 1);
  DataRequest* const requests[] = {&request};
  component_.Submit(requests);
  EXPECT_FALSE(request.done.IsSet());
  component_.Kill();
  ASSERT_TRUE(request.done.IsSet());
  EXPECT_EQ(request.status.code(), ErrorCode::kUnavailable);
}

TEST_F(InProcessDataComponentTest, AbandonedRequestIsNotTouched) {
  ASSERT_TRUE(component_.Start().ok());
  hold_ = true;
  auto request = std::make_unique<DataRequest>();
  Prepare(request.get(), 1);
  DataRequest* const requests[] = {request.get()};
  component_.Submit(requests);
  component_.Abandon(request.get());
  EXPECT_EQ(life_->abandoned(), 1u);
  request.reset();  // the address sanitizer would report a late access
  component_.Kill();
}

TEST_F(InProcessDataComponentTest, KillClosesLogStreamOnce) {
  ASSERT_TRUE(component_.Start().ok());
  Listener listener;
  auto log = component_.OpenApplyLog(SenderOf(1), &listener, kNoDeadline);
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE((*log)->Send(Batch(0, 10), kNoDeadline).ok());
  EXPECT_EQ(listener.applied.load(), 10u);
  component_.Kill();
  EXPECT_EQ(listener.closed.load(), 1);
  EXPECT_EQ(listener.code.load(), ErrorCode::kUnavailable);
  EXPECT_EQ((*log)->Send(Batch(10, 20), kNoDeadline).code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(component_.Start().ok());
  // The stream stays with its incarnation.
  EXPECT_EQ((*log)->Send(Batch(10, 20), kNoDeadline).code(), ErrorCode::kUnavailable);
  log->reset();
  EXPECT_EQ(listener.closed.load(), 1);
}

TEST_F(InProcessDataComponentTest, SecondLogStreamClosesTheFirst) {
  ASSERT_TRUE(component_.Start().ok());
  Listener first, second;
  auto one = component_.OpenApplyLog(SenderOf(1), &first, kNoDeadline);
  auto two = component_.OpenApplyLog(SenderOf(1), &second, kNoDeadline);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(first.closed.load(), 1);
  EXPECT_FALSE((*one)->Send(Batch(0, 1), kNoDeadline).ok());
  EXPECT_TRUE((*two)->Send(Batch(0, 1), kNoDeadline).ok());
  one->reset();
  EXPECT_EQ(first.closed.load(), 1);
  two->reset();
  EXPECT_EQ(second.closed.load(), 1);
  EXPECT_EQ(second.code.load(), ErrorCode::kCancelled);
}

TEST_F(InProcessDataComponentTest, KillEndsScans) {
  ASSERT_TRUE(component_.Start().ok());
  auto scan = component_.OpenScan(SenderOf(1), ScanSpec{.table = kTable, .range = {}}, kNoDeadline);
  ASSERT_TRUE(scan.ok());
  ASSERT_TRUE((*scan)->Grant("", 1000).ok());
  ScanBatch batch;
  ASSERT_TRUE((*scan)->Next(&batch, kNoDeadline).ok());
  EXPECT_EQ(batch.records.size(), 1u);
  component_.Kill();
  EXPECT_EQ((*scan)->Next(&batch, kNoDeadline).code(), ErrorCode::kUnavailable);
  EXPECT_EQ((*scan)->Grant("", 1).code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(component_.Start().ok());
  EXPECT_EQ((*scan)->Next(&batch, kNoDeadline).code(), ErrorCode::kUnavailable);
  scan->reset();
  EXPECT_EQ(life_->scans(), 0u);
}

// Readers, scanners and a log sender run through many incarnations. Every call ends, and every listener is closed once.
TEST_F(InProcessDataComponentTest, LivesUnderLoad) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> answered{0}, refused{0}, abandoned{0}, opened{0}, closed{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 2; ++i) {
    threads.push_back(runtime_.StartThread("reader", [&] {
      while (!stop.load(std::memory_order_relaxed)) {
        DataRequest request;
        Prepare(&request, 1);
        DataRequest* const requests[] = {&request};
        component_.Submit(requests);
        if (hold_.load(std::memory_order_relaxed)) {
          component_.Abandon(&request);
          abandoned.fetch_add(1);
        } else if (request.done.Wait(runtime_, kNoDeadline)) {
          (request.status == ErrorCode::kUnavailable ? refused : answered).fetch_add(1);
        }
      }
    }));
  }
  threads.push_back(runtime_.StartThread("scanner", [&] {
    while (!stop.load(std::memory_order_relaxed)) {
      auto scan = component_.OpenScan(SenderOf(1), ScanSpec{.table = kTable, .range = {}}, kNoDeadline);
      if (!scan.ok()) continue;
      ScanBatch batch;
      if ((*scan)->Grant("", 1000).ok() && (*scan)->Next(&batch, kNoDeadline).ok()) answered.fetch_add(1);
    }
  }));
  threads.push_back(runtime_.StartThread("sender", [&] {
    while (!stop.load(std::memory_order_relaxed)) {
      Listener listener;
      {
        auto log = component_.OpenApplyLog(SenderOf(1), &listener, kNoDeadline);
        if (!log.ok()) continue;
        opened.fetch_add(1);
        for (uint64_t at = 0; at < 20 && (*log)->Send(Batch(at, at + 1), kNoDeadline).ok(); ++at) {
        }
      }
      ASSERT_EQ(listener.closed.load(), 1);
      closed.fetch_add(1);
    }
  }));
  for (int life = 0; life < 100; ++life) {
    hold_.store(false);
    ASSERT_TRUE(component_.Start().ok());
    const uint64_t before = answered.load();
    while (answered.load() == before) runtime_.Yield();
    hold_.store(life % 2 == 0);
    component_.Kill();
    hold_.store(false);
  }
  stop.store(true);
  threads.clear();
  EXPECT_EQ(opened.load(), closed.load());
  EXPECT_GT(answered.load(), 0u);
}

}  // namespace
}  // namespace deut
