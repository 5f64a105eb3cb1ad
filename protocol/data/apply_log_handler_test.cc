// The server side of ApplyLog streams, against a client that breaks any rule it likes.
#include "protocol/data/apply_log_handler.h"

#include <algorithm>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

constexpr TableId kTable{5};

class ApplyLogHandlerTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<wire::ApplyLogRequest, wire::ApplyLogAnswer>;

  ApplyLogHandlerTest() {
    stub_ = wire::DataComponent::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kBulk));
    Connect();
  }
  ~ApplyLogHandlerTest() override { HangUp(); }

  void Connect() {
    context_ = std::make_unique<grpc::ClientContext>();
    stream_ = stub_->ApplyLog(context_.get());
  }
  void HangUp() {
    if (stream_ == nullptr) return;
    context_->TryCancel();
    (void)stream_->Finish();
    stream_.reset();
  }
  grpc::Status Finish() {
    const grpc::Status end = stream_->Finish();
    stream_.reset();
    return end;
  }

  // Opens the stream, and returns the answer's status.
  Status Open() {
    wire::ApplyLogRequest request;
    ToWire(Sender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)},
           request.mutable_open()->mutable_sender());
    EXPECT_TRUE(stream_->Write(request));
    wire::ApplyLogAnswer answer;
    if (!stream_->Read(&answer)) return Status(ErrorCode::kUnavailable, "no answer");
    EXPECT_TRUE(answer.has_opened());
    return FromWire(answer.opened());
  }

  static wire::ApplyLogRequest Batch(uint64_t from, uint64_t to) {
    LogBatch batch{.from = Position{Lsn(from), 1}, .to = Position{Lsn(to), 1}, .entries = {}};
    batch.Append({.kind = LogEntryKind::kPut,
                  .position = {Lsn(to), 1},
                  .timestamp = Timestamp(to),
                  .table = kTable,
                  .key = "key" + std::to_string(to),
                  .value = "value"});
    wire::ApplyLogRequest request;
    ToWire(batch, request.mutable_batch());
    return request;
  }

  // Skips acknowledgements, and returns the reason of the end.
  Status Closed() {
    wire::ApplyLogAnswer answer;
    while (stream_->Read(&answer)) {
      if (answer.has_closed()) return FromWire(answer.closed());
    }
    return Status(ErrorCode::kInternal, "ended without a reason");
  }

  Runtime& runtime_ = RealRuntime();
  Event never_;
  testing::ScriptedDataComponent component_{runtime_};
  GrpcDataComponentService service_{runtime_, component_, RpcServiceOptions{.stuck_peer = milliseconds(300)}};
  testing::Loopback loopback_{{service_.service()}};
  std::unique_ptr<wire::DataComponent::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(ApplyLogHandlerTest, AppliesAndAcknowledges) {
  ASSERT_TRUE(Open().ok());
  for (uint64_t at = 0; at < 200; ++at) ASSERT_TRUE(stream_->Write(Batch(at, at + 1)));
  wire::ApplyLogAnswer answer;
  uint64_t last = 0;
  while (last < 200 && stream_->Read(&answer)) {
    ASSERT_TRUE(answer.has_ack());
    EXPECT_GT(answer.ack().applied().commit_lsn(), last);
    last = answer.ack().applied().commit_lsn();
  }
  EXPECT_EQ(last, 200u);
  EXPECT_EQ(component_.Contents(kTable).size(), 200u);
  stream_->WritesDone();
  EXPECT_TRUE(testing::Eventually([&] { return component_.apply_logs() == 0; }));
}

TEST_F(ApplyLogHandlerTest, FirstMessageHasToOpen) {
  ASSERT_TRUE(stream_->Write(Batch(0, 1)));
  wire::ApplyLogAnswer answer;
  EXPECT_FALSE(stream_->Read(&answer));
  EXPECT_EQ(Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(component_.apply_logs(), 0u);
}

TEST_F(ApplyLogHandlerTest, RefusalOfTheComponentIsTheAnswer) {
  component_.check_sender = [](const Sender&) { return Status(ErrorCode::kFenced, "a newer one"); };
  EXPECT_EQ(Open().code(), ErrorCode::kFenced);
}

TEST_F(ApplyLogHandlerTest, WrongChecksumIsNotApplied) {
  ASSERT_TRUE(Open().ok());
  wire::ApplyLogRequest request = Batch(0, 1);
  request.mutable_batch()->set_crc32c(request.batch().crc32c() ^ 1);
  ASSERT_TRUE(stream_->Write(request));
  const Status closed = Closed();
  EXPECT_EQ(closed.code(), ErrorCode::kCorruption);
  EXPECT_THAT(closed.ToString(), HasSubstr("crc32c"));
  EXPECT_TRUE(component_.Contents(kTable).empty());
}

TEST_F(ApplyLogHandlerTest, TruncatedBatchIsNotApplied) {
  ASSERT_TRUE(Open().ok());
  LogBatch batch;
  wire::ApplyLogRequest request = Batch(0, 1);
  ASSERT_TRUE(FromWire(request.mutable_batch(), &batch).ok());
  batch.entries.pop_back();
  request.Clear();
  ToWire(batch, request.mutable_batch());
  ASSERT_TRUE(stream_->Write(request));
  const Status closed = Closed();
  EXPECT_EQ(closed.code(), ErrorCode::kCorruption);
  EXPECT_THAT(closed.ToString(), HasSubstr("log batch"));
  EXPECT_TRUE(component_.Contents(kTable).empty());
}

TEST_F(ApplyLogHandlerTest, OnlyBatchesOnceOpen) {
  ASSERT_TRUE(Open().ok());
  wire::ApplyLogRequest request;
  request.mutable_open();
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_EQ(Closed().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ApplyLogHandlerTest, ARefusalOfTheComponentEndsTheStream) {
  component_.on_batch = [](const LogBatch& batch) {
    return batch.from.commit.value == 7 ? Status(ErrorCode::kPositionGap, "starts at 7") : Status::Ok();
  };
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(stream_->Write(Batch(0, 1)));
  ASSERT_TRUE(stream_->Write(Batch(7, 8)));
  EXPECT_EQ(Closed().code(), ErrorCode::kPositionGap);
}

TEST_F(ApplyLogHandlerTest, ComponentThatClosesIsHeard) {
  ASSERT_TRUE(Open().ok());
  component_.CloseApplyLog(Status(ErrorCode::kFenced, "taken over"));
  EXPECT_EQ(Closed().code(), ErrorCode::kFenced);
  // This client does not hang up, so the server cuts it off.
  EXPECT_EQ(Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(testing::Eventually([&] { return component_.apply_logs() == 0; }));
}

TEST_F(ApplyLogHandlerTest, SecondStreamReplacesTheFirst) {
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(stream_->Write(Batch(0, 1)));
  const std::unique_ptr<grpc::ClientContext> first_context = std::move(context_);
  const std::unique_ptr<Stream> first = std::move(stream_);
  Connect();
  ASSERT_TRUE(Open().ok());
  wire::ApplyLogAnswer answer;
  Status closed;
  while (first->Read(&answer)) {
    if (answer.has_closed()) closed = FromWire(answer.closed());
  }
  EXPECT_EQ(closed.code(), ErrorCode::kUnavailable);
  (void)first->Finish();
  ASSERT_TRUE(stream_->Write(Batch(0, 1)));
  ASSERT_TRUE(stream_->Read(&answer));
  EXPECT_TRUE(answer.has_ack());
}

// Without this limit, the stream, its thread and the server's shutdown would wait for the component indefinitely.
TEST_F(ApplyLogHandlerTest, ComponentThatTakesNothingLosesTheStream) {
  component_.await_window = [&](Deadline deadline) {
    never_.Wait(runtime_, std::min(deadline, runtime_.Now() + seconds(10)));
    return Status(ErrorCode::kDeadlineExceeded, "the window is full");
  };
  const MonotonicTime begin = runtime_.Now();
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(stream_->Write(Batch(0, 1)));
  EXPECT_EQ(Closed().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_LT(runtime_.Now() - begin, seconds(9));
  EXPECT_TRUE(testing::Eventually([&] { return component_.apply_logs() == 0; }));
}

TEST_F(ApplyLogHandlerTest, ClientThatGoesAwayClosesTheComponentsSide) {
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(component_.apply_logs(), 1u);
  HangUp();
  EXPECT_TRUE(testing::Eventually([&] { return component_.apply_logs() == 0; }));
}

}  // namespace
}  // namespace deut
