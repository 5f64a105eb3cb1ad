// The server side of data_component.proto as a whole: the cost of waiting streams, and that none delays the others.
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using testing::Eventually;

constexpr TableId kTable{5};
constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

template <typename Request, typename Answer>
struct Call {
  std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
  std::unique_ptr<grpc::ClientReaderWriter<Request, Answer>> stream;
};
using DataCall = Call<wire::DataRequests, wire::DataAnswers>;
using LogCall = Call<wire::ApplyLogRequest, wire::ApplyLogAnswer>;
using ScanCall = Call<wire::ScanRequest, wire::ScanAnswer>;

class DataComponentServiceTest : public ::testing::Test {
 protected:
  DataComponentServiceTest() {
    component_.Put(kTable, "k", "v");
    stub_ = wire::DataComponent::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kShort));
  }

  DataCall OpenData() {
    DataCall call;
    call.stream = stub_->Data(call.context.get());
    return call;
  }
  // Whether the stream answers one read.
  static bool Reads(DataCall& call, const std::string& key = "k") {
    wire::DataRequests message;
    message.mutable_sender()->set_incarnation(1);
    DataRequest request;
    request.table = kTable;
    request.key = key;
    ToWire(request, 1, message.add_items());
    wire::DataAnswers answers;
    return call.stream->Write(message) && call.stream->Read(&answers) && answers.items_size() == 1 &&
           answers.items(0).status().code() == 0;
  }
  template <typename Any>
  static void End(Any& call) {
    call.context->TryCancel();
    (void)call.stream->Finish();
  }

  Status Counters() {
    grpc::ClientContext context;
    context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN)));
    wire::CountersAnswer answer;
    const grpc::Status end = stub_->Counters(&context, {}, &answer);
    return end.ok() ? Status::Ok() : DEUT_ERROR(kUnavailable, end.error_message());
  }

  static size_t Threads() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
  }

  BlockingHookRuntime runtime_{RealRuntime()};
  testing::ScriptedDataComponent component_{runtime_};
  GrpcDataComponentService service_{RealRuntime(), component_, RpcServiceOptions()};
  testing::Loopback loopback_{{service_.service()}};
  std::unique_ptr<wire::DataComponent::Stub> stub_;
};

TEST_F(DataComponentServiceTest, StreamsThatWaitHoldNoThreads) {
  constexpr size_t kStreams = 60;  // of one connection
  DataCall first = OpenData();
  ASSERT_TRUE(Reads(first));
  const size_t before = Threads();
  std::vector<DataCall> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    streams.push_back(OpenData());
    ASSERT_TRUE(Reads(streams.back()));
  }
  EXPECT_LT(Threads(), before + kStreams / 2);
  End(first);
  for (DataCall& stream : streams) End(stream);
}

// A log stream and a scan wait for their component, and the component holds a request of a Data stream. Only this test
// makes any of them go on.
TEST_F(DataComponentServiceTest, StreamsThatWaitForTheComponentHoldUpNoOther) {
  Event go_on;
  std::atomic<int> waiting{0};
  component_.await_window = [&](Deadline) {
    waiting.fetch_add(1);
    go_on.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  component_.hold = [](const DataRequest& request) { return request.key == "held"; };

  LogCall log;
  log.stream = stub_->ApplyLog(log.context.get());
  wire::ApplyLogRequest batch;
  ToWire(kSender, batch.mutable_open()->mutable_sender());
  ASSERT_TRUE(log.stream->Write(batch));
  wire::ApplyLogAnswer answer;
  ASSERT_TRUE(log.stream->Read(&answer));
  LogBatch entries{.from = Position{Lsn(0), 1}, .to = Position{Lsn(1), 1}, .entries = {}};
  entries.Append({.kind = LogEntryKind::kPut,
                  .position = {Lsn(1), 1},
                  .timestamp = Timestamp(1),
                  .table = kTable,
                  .key = "key",
                  .value = "value"});
  batch.Clear();
  ToWire(entries, batch.mutable_batch());
  ASSERT_TRUE(log.stream->Write(batch));

  ScanCall scan;
  scan.stream = stub_->Scan(scan.context.get());
  wire::ScanRequest grant;
  ToWire(kSender, ScanSpec{.table = kTable, .range = {}}, grant.mutable_open());
  ASSERT_TRUE(scan.stream->Write(grant));
  grant.Clear();
  grant.mutable_grant()->set_bytes(1000);
  ASSERT_TRUE(scan.stream->Write(grant));
  ASSERT_TRUE(Eventually([&] { return waiting.load() == 2; }));

  DataCall data = OpenData();
  wire::DataRequests held;
  held.mutable_sender()->set_incarnation(1);
  DataRequest request;
  request.table = kTable;
  request.key = "held";
  ToWire(request, 1, held.add_items());
  ASSERT_TRUE(data.stream->Write(held));
  ASSERT_TRUE(Eventually([&] { return component_.held() == 1; }));

  EXPECT_TRUE(Reads(data));
  DataCall other = OpenData();
  EXPECT_TRUE(Reads(other));
  EXPECT_TRUE(Counters().ok());
  EXPECT_TRUE(testing::Health(*loopback_.Peer()).ok());

  go_on.Signal(runtime_);
  ASSERT_TRUE(log.stream->Read(&answer));
  EXPECT_TRUE(answer.has_ack());
  wire::ScanAnswer records;
  ASSERT_TRUE(scan.stream->Read(&records));  // the answer to the opening
  ASSERT_TRUE(scan.stream->Read(&records));
  EXPECT_FALSE(records.records().empty());
  EXPECT_EQ(component_.Release(), 1u);
  wire::DataAnswers answers;
  EXPECT_TRUE(data.stream->Read(&answers));
  End(log);
  End(scan);
  End(data);
  End(other);
}

}  // namespace
}  // namespace deut
