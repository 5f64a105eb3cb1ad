#include "protocol/data/grpc_apply_log.h"

#include <atomic>
#include <memory>
#include <string>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

constexpr TableId kTable{5};
constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

class Listener final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck& ack) override {
    EXPECT_EQ(closed.load(), 0);
    EXPECT_EQ(ack.incarnation, DcIncarnation(1));
    EXPECT_GE(ack.applied.commit.value, applied.load());
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

class GrpcApplyLogTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<ApplyLogStream>> Open(Listener* listener, Duration patience = seconds(20)) {
    return GrpcApplyLog::Open(runtime_, peer_, events_, *stub_, kSender, listener, runtime_.Now() + patience);
  }
  static LogBatch Batch(uint64_t from, uint64_t to, size_t value_bytes = 10) {
    LogBatch batch{.from = Position{Lsn(from), 1}, .to = Position{Lsn(to), 1}, .entries = {}};
    batch.Append({.kind = LogEntryKind::kPut,
                  .position = {Lsn(to), 1},
                  .timestamp = Timestamp(to),
                  .table = kTable,
                  .key = "key" + std::to_string(to),
                  .value = std::string(value_bytes, 'v')});
    return batch;
  }
  Deadline Soon() { return runtime_.Now() + seconds(20); }

  Runtime& runtime_ = RealRuntime();
  Event stuck_;
  testing::ScriptedDataComponent component_{runtime_};
  GrpcDataComponentService service_{runtime_, component_, RpcServiceOptions()};
  testing::Loopback loopback_{{service_.service()}};
  std::shared_ptr<const RpcPeer> peer_ = loopback_.Peer();
  RpcEventThread events_{runtime_};
  std::unique_ptr<wire::DataComponent::Stub> stub_ = wire::DataComponent::NewStub(peer_->NewChannel(RpcTraffic::kBulk));
};

TEST_F(GrpcApplyLogTest, SendsAndHearsPositions) {
  Listener listener;
  auto log = Open(&listener);
  ASSERT_TRUE(log.ok()) << log.status().ToString();
  for (uint64_t at = 0; at < 300; ++at) ASSERT_TRUE((*log)->Send(Batch(at, at + 1), Soon()).ok());
  EXPECT_TRUE(testing::Eventually([&] { return listener.applied.load() == 300; }));
  EXPECT_EQ(component_.Contents(kTable).size(), 300u);
  EXPECT_EQ(listener.closed.load(), 0);
  log->reset();
  EXPECT_EQ(listener.closed.load(), 1);
  EXPECT_EQ(listener.code.load(), ErrorCode::kCancelled);
  EXPECT_TRUE(testing::Eventually([&] { return component_.apply_logs() == 0; }));
}

TEST_F(GrpcApplyLogTest, LargeBatchesGoThrough) {
  Listener listener;
  auto log = Open(&listener);
  ASSERT_TRUE(log.ok());
  LogBatch batch = Batch(0, 1, kMaxValueBytes);
  ASSERT_TRUE((*log)->Send(batch, Soon()).ok());
  EXPECT_TRUE(testing::Eventually([&] { return listener.applied.load() == 1; }));
  batch.entries.resize(kMaxLogBatchBytes + 1);
  EXPECT_EQ((*log)->Send(batch, Soon()).code(), ErrorCode::kInvalidArgument);
  // Nothing was sent, so the stream still works.
  ASSERT_TRUE((*log)->Send(Batch(1, 2), Soon()).ok());
  EXPECT_TRUE(testing::Eventually([&] { return listener.applied.load() == 2; }));
}

TEST_F(GrpcApplyLogTest, RefusalsComeFromOpen) {
  component_.check_sender = [](const Sender&) { return Status(ErrorCode::kWrongIncarnation, "another life"); };
  Listener listener;
  EXPECT_EQ(Open(&listener).status().code(), ErrorCode::kWrongIncarnation);
  EXPECT_EQ(listener.closed.load(), 0);
  loopback_.Stop();
  EXPECT_EQ(Open(&listener).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(listener.closed.load(), 0);
}

TEST_F(GrpcApplyLogTest, OpenIsBoundedByItsDeadline) {
  component_.check_sender = [&](const Sender&) {
    stuck_.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  Listener listener;
  const MonotonicTime start = runtime_.Now();
  EXPECT_EQ(Open(&listener, milliseconds(50)).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_LT(runtime_.Now() - start, seconds(10));
  EXPECT_EQ(listener.closed.load(), 0);
  stuck_.Signal(runtime_);
}

TEST_F(GrpcApplyLogTest, ComponentThatClosesSaysWhy) {
  Listener listener;
  auto log = Open(&listener);
  ASSERT_TRUE(log.ok());
  component_.CloseApplyLog(Status(ErrorCode::kFenced, "taken over"));
  EXPECT_TRUE(testing::Eventually([&] { return listener.closed.load() == 1; }));
  EXPECT_EQ(listener.code.load(), ErrorCode::kFenced);
  EXPECT_EQ((*log)->Send(Batch(0, 1), Soon()).code(), ErrorCode::kFenced);
}

// The reason and the end of the stream arrive together, during a write. Both Send and the listener get the reason.
TEST_F(GrpcApplyLogTest, ReasonOutlivesAWriteThatFails) {
  for (int round = 0; round < 200; ++round) {
    Listener listener;
    auto log = Open(&listener);
    ASSERT_TRUE(log.ok()) << log.status().ToString();
    std::atomic<bool> sending{false};
    Status end;
    const auto sender = runtime_.StartThread("sender", [&] {
      uint64_t at = 0;
      while ((end = (*log)->Send(Batch(at, at + 1), Soon())).ok()) {
        if (++at == 20) sending.store(true);
      }
      sending.store(true);
    });
    ASSERT_TRUE(testing::Eventually([&] { return sending.load(); }));
    component_.CloseApplyLog(Status(ErrorCode::kFenced, "taken over"));
    sender->Join();
    ASSERT_EQ(end.code(), ErrorCode::kFenced) << "round " << round << ": " << end.ToString();
    ASSERT_TRUE(testing::Eventually([&] { return listener.closed.load() == 1; }));
    ASSERT_EQ(listener.code.load(), ErrorCode::kFenced) << "round " << round;
  }
}

TEST_F(GrpcApplyLogTest, RefusedBatchClosesTheStream) {
  component_.on_batch = [](const LogBatch&) { return Status(ErrorCode::kPositionGap, "a hole"); };
  Listener listener;
  auto log = Open(&listener);
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE((*log)->Send(Batch(0, 1), Soon()).ok());
  EXPECT_TRUE(testing::Eventually([&] { return listener.closed.load() == 1; }));
  EXPECT_EQ(listener.code.load(), ErrorCode::kPositionGap);
}

TEST_F(GrpcApplyLogTest, SecondStreamReplacesTheFirst) {
  Listener first, second;
  auto one = Open(&first);
  ASSERT_TRUE(one.ok());
  auto two = Open(&second);
  ASSERT_TRUE(two.ok());
  EXPECT_TRUE(testing::Eventually([&] { return first.closed.load() == 1; }));
  EXPECT_EQ(first.code.load(), ErrorCode::kUnavailable);
  EXPECT_FALSE((*one)->Send(Batch(0, 1), Soon()).ok());
  ASSERT_TRUE((*two)->Send(Batch(0, 1), Soon()).ok());
  EXPECT_TRUE(testing::Eventually([&] { return second.applied.load() == 1; }));
}

TEST_F(GrpcApplyLogTest, ServerThatDiesClosesTheStream) {
  Listener listener;
  auto log = Open(&listener);
  ASSERT_TRUE(log.ok());
  ASSERT_TRUE((*log)->Send(Batch(0, 1), Soon()).ok());
  loopback_.Stop();
  EXPECT_TRUE(testing::Eventually([&] { return listener.closed.load() == 1; }));
  EXPECT_EQ(listener.code.load(), ErrorCode::kUnavailable);
  EXPECT_EQ((*log)->Send(Batch(1, 2), Soon()).code(), ErrorCode::kUnavailable);
  log->reset();
  EXPECT_EQ(listener.closed.load(), 1);
}

// The component's window stays full. Send waits up to its deadline, and the batches held on the way are bounded.
TEST_F(GrpcApplyLogTest, SendIsBoundedByItsDeadline) {
  component_.on_batch = [&](const LogBatch&) {
    stuck_.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  Listener listener;
  auto log = Open(&listener);
  ASSERT_TRUE(log.ok());
  Status status;
  int sent = 0;
  for (; sent < 100 && status.ok(); ++sent) {
    status = (*log)->Send(Batch(sent, sent + 1, kMaxValueBytes), runtime_.Now() + milliseconds(300));
  }
  EXPECT_EQ(status.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_LT(sent, 30);
  stuck_.Signal(runtime_);
  EXPECT_TRUE(testing::Eventually([&] { return listener.closed.load() == 1; }));
  EXPECT_EQ((*log)->Send(Batch(0, 1), Soon()).code(), ErrorCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace deut
