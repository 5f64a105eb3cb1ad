// The server side of bulk scans, against a client that breaks any rule it likes.
#include "protocol/data/scan_handler.h"

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
constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

class ScanHandlerTest : public ::testing::Test {
 protected:
  ScanHandlerTest() {
    for (int i = 0; i < 100; ++i) component_.Put(kTable, Key(i), std::string(100, 'v'));
    stub_ = wire::DataComponent::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kBulk));
    stream_ = stub_->Scan(&context_);
  }
  ~ScanHandlerTest() override {
    if (stream_ == nullptr) return;
    context_.TryCancel();
    (void)stream_->Finish();
  }

  static std::string Key(int i) { return "k" + std::to_string(1000 + i); }

  Status Open(const ScanSpec& spec) {
    wire::ScanRequest request;
    ToWire(kSender, spec, request.mutable_open());
    EXPECT_TRUE(stream_->Write(request));
    wire::ScanAnswer answer;
    EXPECT_TRUE(stream_->Read(&answer));
    EXPECT_TRUE(answer.records().empty());
    return FromWire(answer.status());
  }
  void Grant(const std::string& bound, uint64_t bytes) {
    wire::ScanRequest request;
    request.mutable_grant()->set_bound(bound);
    request.mutable_grant()->set_bytes(bytes);
    ASSERT_TRUE(stream_->Write(request));
  }
  // Reads the next answer, and returns its status.
  Status Next() {
    wire::ScanAnswer answer;
    if (!stream_->Read(&answer)) return Status(ErrorCode::kUnavailable, "ended");
    RecordBatch records = std::move(RecordBatch::Parse(answer.records())).value();
    records_ += records.size();
    covered_ = answer.covered();
    complete_ = answer.complete();
    return FromWire(answer.status());
  }

  const ScanSpec spec_{.table = kTable, .range = {}, .direction = Direction::kAscending, .batch_bytes = 1000};
  Runtime& runtime_ = RealRuntime();
  Event never_;
  testing::ScriptedDataComponent component_{runtime_};
  GrpcDataComponentService service_{runtime_, component_, RpcServiceOptions{.stuck_peer = milliseconds(300)}};
  testing::Loopback loopback_{{service_.service()}};
  std::unique_ptr<wire::DataComponent::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::ScanRequest, wire::ScanAnswer>> stream_;
  size_t records_ = 0;
  std::string covered_;
  bool complete_ = false;
};

TEST_F(ScanHandlerTest, ComponentThatAnswersNothingEndsTheScan) {
  component_.await_window = [&](Deadline deadline) {
    never_.Wait(runtime_, std::min(deadline, runtime_.Now() + seconds(10)));
    return Status(ErrorCode::kDeadlineExceeded, "nothing to be had");
  };
  const MonotonicTime begin = runtime_.Now();
  ASSERT_TRUE(Open(spec_).ok());
  Grant(Key(30), 1 << 20);
  EXPECT_EQ(Next().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_LT(runtime_.Now() - begin, seconds(9));
  EXPECT_TRUE(testing::Eventually([&] { return component_.scans() == 0; }));
}

TEST_F(ScanHandlerTest, ReadsOnlyWhatIsGranted) {
  ASSERT_TRUE(Open(spec_).ok());
  Grant(Key(30), 1 << 20);
  while (covered_ != Key(30)) ASSERT_TRUE(Next().ok());
  EXPECT_EQ(records_, 30u);
  EXPECT_FALSE(complete_);
  // Nothing more comes before the next grant, so the next message is that grant's first batch.
  Grant(Key(40), 1 << 20);
  while (covered_ != Key(40)) ASSERT_TRUE(Next().ok());
  EXPECT_EQ(records_, 40u);
  Grant("", 1 << 20);
  while (!complete_) ASSERT_TRUE(Next().ok());
  EXPECT_EQ(records_, 100u);
  EXPECT_EQ(Next().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(stream_->Finish().ok());
  stream_.reset();
  EXPECT_TRUE(testing::Eventually([&] { return component_.scans() == 0; }));
}

TEST_F(ScanHandlerTest, StopsWhenTheBytesAreUsed) {
  ASSERT_TRUE(Open(spec_).ok());
  Grant("", 3000);
  size_t batches = 0;
  // Each batch has about 1,000 bytes. Each later grant continues where the previous one ended.
  while (!complete_) {
    ASSERT_TRUE(Next().ok());
    if (++batches % 3 == 0 && !complete_) Grant("", 3000);
  }
  EXPECT_EQ(records_, 100u);
  EXPECT_GE(component_.granted_bytes(), 9000u);
}

TEST_F(ScanHandlerTest, Descending) {
  ScanSpec spec = spec_;
  spec.direction = Direction::kDescending;
  ASSERT_TRUE(Open(spec).ok());
  Grant(Key(90), 1 << 20);
  while (covered_ != Key(90)) ASSERT_TRUE(Next().ok());
  EXPECT_EQ(records_, 10u);
  Grant("", 1 << 20);
  while (!complete_) ASSERT_TRUE(Next().ok());
  EXPECT_EQ(records_, 100u);
}

TEST_F(ScanHandlerTest, RefusalsAreTheAnswer) {
  component_.check_sender = [](const Sender&) { return Status(ErrorCode::kFenced, "a newer one"); };
  EXPECT_EQ(Open(spec_).code(), ErrorCode::kFenced);
}

TEST_F(ScanHandlerTest, HostileOpen) {
  ScanSpec spec = spec_;
  spec.batch_bytes = 0;
  EXPECT_THAT(Open(spec).ToString(), HasSubstr("INVALID_ARGUMENT: batch_bytes: 0"));
}

TEST_F(ScanHandlerTest, FirstMessageHasToOpen) {
  Grant("", 1);
  wire::ScanAnswer answer;
  EXPECT_FALSE(stream_->Read(&answer));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  stream_.reset();
}

TEST_F(ScanHandlerTest, HostileGrants) {
  ASSERT_TRUE(Open(spec_).ok());
  Grant(std::string(5000, 'k'), 1);
  EXPECT_THAT(Next().ToString(), HasSubstr("INVALID_ARGUMENT: bound: a bound of 5000 bytes"));
  EXPECT_EQ(Next().code(), ErrorCode::kUnavailable);
}

TEST_F(ScanHandlerTest, SecondOpenIsNoGrant) {
  ASSERT_TRUE(Open(spec_).ok());
  wire::ScanRequest request;
  request.mutable_open();
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_EQ(Next().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ScanHandlerTest, ClientThatGoesAwayEndsTheScan) {
  ASSERT_TRUE(Open(spec_).ok());
  EXPECT_EQ(component_.scans(), 1u);
  context_.TryCancel();
  EXPECT_TRUE(testing::Eventually([&] { return component_.scans() == 0; }));
}

TEST_F(ScanHandlerTest, PeerThatDoesNotReadIsCutOff) {
  for (int i = 0; i < 100; ++i) component_.Put(kTable, Key(i), std::string(500000, 'v'));
  ASSERT_TRUE(Open(spec_).ok());
  Grant("", UINT64_MAX);
  Grant("", UINT64_MAX);  // more than there is, twice: it does not overflow
  EXPECT_TRUE(testing::Eventually([&] { return component_.scans() == 0; }));
  EXPECT_LT(records_, 100u);
}

}  // namespace
}  // namespace deut
