// A real dcd in a process of its own, and transaction components that this process plays: what lies between the two (X5, architecture
// section 6). No server runs in this process, as one would poll the connections of its clients, too.
#include "protocol/data_component.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"
#include "protocol/endpoint.h"
#include "protocol/grpc_data_component.h"
#include "protocol/rpc_peer.h"

namespace deut {
namespace {

using testing::FreePort;
using testing::Process;
using testing::ProgramAt;
using testing::TempDir;

class DataComponentTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }
  void TearDown() override {
    if (HasFailure()) std::cerr << testing::EndOfLog(dc_->log());
  }

  // Returns when it serves. That is read in its log: to ask it would make a connection.
  void Start() {
    const std::string log = directory_.Sub(Concat("dc", ++starts_, ".log"));
    dc_ = std::make_unique<Process>(std::vector<std::string>{ProgramAt("DCD"), Concat("--listen=", address_),
                                                             Concat("--data_dir=", directory_.Sub("dc"))},
                                    log);
    while (dc_->Output().find("dcd serves") == std::string::npos) {
      ASSERT_TRUE(dc_->Running()) << dc_->Output();
      Pause();
    }
  }
  void Kill() { dc_.reset(); }
  void Pause() { runtime_.SleepUntil(runtime_.Now() + milliseconds(20)); }
  Deadline Soon() { return runtime_.Now() + seconds(20); }

  std::unique_ptr<GrpcDataComponent> Connect() {
    auto peer = RpcPeer::Create("the data component", "--dc", Address::Parse("--dc", address_).value(), nullptr, false);
    return std::make_unique<GrpcDataComponent>(runtime_, std::move(peer).value(), GrpcDataComponentOptions());
  }

  Runtime& runtime_ = RealRuntime();
  TempDir directory_;
  const std::string address_ = Concat("127.0.0.1:", FreePort());
  int starts_ = 0;
  std::unique_ptr<Process> dc_;
};

// One that has said Hello to the first life.
constexpr HelloRequest kHello{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1};
constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

class NoListener final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck&) override {}
  void OnClosed(const Status&) override {}
};

// Every way to a data component, each on its own: what polls one connection polls all of a process.
struct Way {
  const char* name;
  Status (*take)(DataComponent& dc, Deadline deadline);
  ErrorCode expected;  // of the second life
};

const Way kWays[] = {
    {"Hello", [](DataComponent& dc, Deadline deadline) { return dc.Hello(kHello, deadline).status(); }, ErrorCode::kOk},
    {"Read",
     [](DataComponent& dc, Deadline deadline) {
       DataRequest request;
       request.sender = kSender;
       request.table = TableId(1);
       request.key = "k";
       DataRequest* const requests[] = {&request};
       dc.Submit(requests);
       if (!request.done.Wait(RealRuntime(), deadline)) dc.Abandon(&request);
       return request.status;
     },
     ErrorCode::kWrongIncarnation},
    {"Scan", [](DataComponent& dc, Deadline deadline) { return dc.OpenScan(kSender, ScanSpec(), deadline).status(); },
     ErrorCode::kWrongIncarnation},
    {"ApplyLog",
     [](DataComponent& dc, Deadline deadline) {
       NoListener listener;
       return dc.OpenApplyLog(kSender, &listener, deadline).status();
     },
     ErrorCode::kWrongIncarnation},
};

class ReconnectTest : public DataComponentTest, public ::testing::WithParamInterface<Way> {};

// A transaction component asks now and then, not all the time; in between nobody polls its connections. This target switches off gRPC's
// own polling, every five seconds, so that a way that relies on it never succeeds.
TEST_P(ReconnectTest, RestartedDataComponentIsFoundSoon) {
  ASSERT_TRUE(Connect()->Hello(kHello, Soon()).ok());
  Kill();
  const std::unique_ptr<DataComponent> dc = Connect();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(GetParam().take(*dc, Soon()).code(), ErrorCode::kUnavailable);
    Pause();
  }
  ASSERT_NO_FATAL_FAILURE(Start());
  const MonotonicTime begin = runtime_.Now();
  for (;;) {
    const Status status = GetParam().take(*dc, Soon());
    if (status == GetParam().expected) break;
    ASSERT_EQ(status.code(), ErrorCode::kUnavailable) << status.ToString();
    // The longest pause of reconnecting is a second.
    ASSERT_LT(runtime_.Now() - begin, seconds(10)) << status.ToString();
    Pause();
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ReconnectTest, ::testing::ValuesIn(kWays),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace deut
