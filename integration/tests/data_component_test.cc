// A real dcd in a process of its own, and transaction components that this process simulates: tests of the protocol
// between the two (X5; protocol/README.md). No server runs in this process, because a server would poll the
// connections of its clients, too.
#include "protocol/data_component.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "common/testing/temp_dir.h"
#include "integration/harness/cluster.h"
#include "integration/harness/process.h"
#include "protocol/connections/endpoint.h"
#include "protocol/data/grpc_data_component.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"
#include "protocol/rpc/rpc_peer.h"

namespace deut {
namespace {

using ::testing::AllOf;
using testing::FreePort;
using ::testing::HasSubstr;
using testing::Process;
using testing::ProgramAt;
using testing::TempDir;

class DataComponentTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }
  void TearDown() override {
    if (HasFailure()) std::cerr << testing::EndOfLog(dc_->log());
  }

  // Returns when the dcd serves. It reads that from the log, because a question would make a connection.
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

// Requests of a TC that has said Hello to the first incarnation.
constexpr HelloRequest kHello{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1};
constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

class NoListener final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck&) override {}
  void OnClosed(const Status&) override {}
};

// Every call to a data component, each tested alone: a call that polls one connection polls all connections of the
// process.
struct DcCall {
  const char* name;
  Status (*take)(DataComponent& dc, Deadline deadline);
  ErrorCode expected;  // the answer of the second incarnation
};

const DcCall kDcCalls[] = {
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

class ReconnectTest : public DataComponentTest, public ::testing::WithParamInterface<DcCall> {};

// A transaction component calls only now and then, and between its calls no thread polls its connections. This target
// switches off gRPC's own polling, every five seconds, so a call that relies on that never succeeds.
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
    // The longest pause between two attempts to reconnect is a second.
    ASSERT_LT(runtime_.Now() - begin, seconds(10)) << status.ToString();
    Pause();
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ReconnectTest, ::testing::ValuesIn(kDcCalls),
                         [](const auto& info) { return std::string(info.param.name); });

class Listener final : public ApplyLogListener {
 public:
  void OnAck(const ApplyAck& ack) override {
    MutexLock lock(mutex_);
    applied_ = ack.applied;
  }
  void OnClosed(const Status& status) override {
    MutexLock lock(mutex_);
    reason_ = status;
    closed.Signal(RealRuntime());
  }
  Position applied() {
    MutexLock lock(mutex_);
    return applied_;
  }
  Status reason() {
    MutexLock lock(mutex_);
    return reason_;
  }
  Event closed;

 private:
  Mutex mutex_{RealRuntime()};
  Position applied_ DEUT_GUARDED_BY(mutex_);
  Status reason_ DEUT_GUARDED_BY(mutex_);
};

// A simulated transaction component of a given epoch. Its log has one record of key "k" in each batch.
class SimulatedTc {
 public:
  SimulatedTc(std::unique_ptr<DataComponent> dc, uint64_t epoch, uint64_t nonce)
      : dc_(std::move(dc)), hello_{.tc = TcId(1), .epoch = TcEpoch(epoch), .nonce = nonce} {}

  Status SayHello() {
    const Result<HelloAnswer> answer = dc_->Hello(hello_, Soon());
    if (!answer.ok()) return answer.status();
    sender_ = {.tc = hello_.tc, .epoch = hello_.epoch, .nonce = hello_.nonce, .incarnation = answer->incarnation};
    applied_ = answer->applied;
    return Status::Ok();
  }
  // Opens a stream that continues at the position that was applied when it said Hello.
  Status OpenLog() {
    sent_ = applied_;
    DEUT_ASSIGN_OR_RETURN(log_, dc_->OpenApplyLog(sender_, &listener_, Soon()));
    return Status::Ok();
  }
  void CloseLog() { log_.reset(); }
  // Sends the next batch: the creation of the table at the beginning of the log, then puts.
  Status Send(std::string_view value, Deadline deadline) {
    const Position next{Lsn(sent_.commit.value + 1), 1};
    LogBatch batch{.from = sent_, .to = next, .entries = {}};
    const bool first = next.commit == Lsn(1);
    batch.Append({.kind = first ? LogEntryKind::kCreateTable : LogEntryKind::kPut,
                  .position = next,
                  .timestamp = Timestamp(next.commit.value),
                  .table = kTable,
                  .key = first ? "accounts" : "k",
                  .value = first ? "" : value});
    DEUT_RETURN_IF_ERROR(log_->Send(batch, deadline));
    sent_ = next;
    return Status::Ok();
  }
  Status SendApplied(std::string_view value) {
    DEUT_RETURN_IF_ERROR(Send(value, Soon()));
    while (listener_.applied() < sent_) {
      if (listener_.closed.IsSet()) return listener_.reason();
      RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
    }
    return Status::Ok();
  }
  // Returns the value of "k", or the error of the read.
  std::string Read() {
    const Result<std::string> read = TryRead();
    return read.ok() ? *read : read.status().ToString();
  }
  Result<std::string> TryRead() {
    DataRequest request;
    request.sender = sender_;
    request.table = kTable;
    request.key = "k";
    DataRequest* const requests[] = {&request};
    dc_->Submit(requests);
    if (!request.done.Wait(RealRuntime(), RealRuntime().Now() + seconds(60))) {
      dc_->Abandon(&request);
      return DEUT_ERROR(kDeadlineExceeded, "the read was given up");
    }
    if (!request.status.ok()) return request.status;
    if (request.answer.empty()) return DEUT_ERROR(kNotFound, "k");
    return std::string(RecordBatch::Iterator(request.answer).record().value);
  }

  DataComponent& dc() { return *dc_; }
  Listener& listener() { return listener_; }
  const Sender& sender() const { return sender_; }
  Position applied() const { return applied_; }
  Position sent() const { return sent_; }

  static constexpr TableId kTable{7};

 private:
  static Deadline Soon() { return RealRuntime().Now() + seconds(20); }

  const std::unique_ptr<DataComponent> dc_;
  const HelloRequest hello_;
  Sender sender_;
  Position applied_, sent_;
  Listener listener_;
  std::unique_ptr<ApplyLogStream> log_;
};

// X5: a data component obeys one transaction component at a time.
class FencingTest : public DataComponentTest {
 protected:
  std::unique_ptr<SimulatedTc> Tc(uint64_t epoch, uint64_t nonce = 1) {
    return std::make_unique<SimulatedTc>(Connect(), epoch, nonce);
  }
};

TEST_F(FencingTest, LowerEpochsAndOtherNoncesAreRefusedAndDoNoHarm) {
  const auto tc = Tc(5);
  ASSERT_TRUE(tc->SayHello().ok());
  ASSERT_TRUE(tc->OpenLog().ok());
  ASSERT_TRUE(tc->SendApplied("").ok());
  ASSERT_TRUE(tc->SendApplied("first").ok());

  const Status lower = Tc(4)->SayHello();
  EXPECT_EQ(lower.code(), ErrorCode::kFenced);
  EXPECT_THAT(lower.ToString(), AllOf(HasSubstr("epoch 4"), HasSubstr("epoch 5")));
  const Status copy = Tc(5, 2)->SayHello();
  EXPECT_EQ(copy.code(), ErrorCode::kFenced);
  EXPECT_THAT(copy.ToString(), HasSubstr("copy of the log"));

  EXPECT_EQ(tc->Read(), "first");
  EXPECT_TRUE(tc->SendApplied("second").ok());
  EXPECT_EQ(tc->Read(), "second");
  // The same TC may say Hello again, and a new incarnation of the data component remembers which TC it obeys.
  EXPECT_TRUE(tc->SayHello().ok());
  Kill();
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(Tc(4)->SayHello().code(), ErrorCode::kFenced);
  EXPECT_EQ(Tc(5, 2)->SayHello().code(), ErrorCode::kFenced);
  EXPECT_TRUE(Tc(5)->SayHello().ok());
}

// The older TC is in the middle of sending when the newer one says Hello. The position that this Hello reports as
// applied stays right.
TEST_F(FencingTest, OlderTcIsRefusedInTheMiddleOfItsStreams) {
  const auto older = Tc(5);
  ASSERT_TRUE(older->SayHello().ok());
  ASSERT_TRUE(older->OpenLog().ok());
  ASSERT_TRUE(older->SendApplied("").ok());
  ASSERT_TRUE(older->SendApplied("old").ok());
  const ScanSpec spec{.table = SimulatedTc::kTable, .range = {}};
  const auto scan = older->dc().OpenScan(older->sender(), spec, Soon());
  ASSERT_TRUE(scan.ok()) << scan.status().ToString();

  Event sending;
  Status end;
  const auto sender = runtime_.StartThread("older", [&] {
    const Position begin = older->sent();
    while ((end = older->Send("old", Soon())).ok()) {
      if (older->sent().commit.value == begin.commit.value + 100) sending.Signal(runtime_);
    }
    sending.Signal(runtime_);
  });
  ASSERT_TRUE(sending.Wait(runtime_, Soon()));
  const auto newer = Tc(6);
  ASSERT_TRUE(newer->SayHello().ok());
  sender->Join();
  EXPECT_EQ(end.code(), ErrorCode::kFenced) << end.ToString();
  ASSERT_TRUE(older->listener().closed.Wait(runtime_, Soon()));
  EXPECT_EQ(older->listener().reason().code(), ErrorCode::kFenced);
  EXPECT_LE(older->listener().applied(), newer->applied());

  ScanBatch batch;
  ASSERT_TRUE((*scan)->Grant("", 1 << 20).ok());
  EXPECT_EQ((*scan)->Next(&batch, Soon()).code(), ErrorCode::kFenced);
  EXPECT_EQ(older->TryRead().status().code(), ErrorCode::kFenced);
  EXPECT_EQ(older->dc().Tables(older->sender(), Soon()).status().code(), ErrorCode::kFenced);
  EXPECT_EQ(older->OpenLog().code(), ErrorCode::kFenced);
  EXPECT_EQ(older->SayHello().code(), ErrorCode::kFenced);

  const Position applied = newer->applied();
  EXPECT_TRUE(newer->SayHello().ok());
  EXPECT_EQ(newer->applied(), applied);
  ASSERT_TRUE(newer->OpenLog().ok());
  EXPECT_TRUE(newer->SendApplied("new").ok());
  EXPECT_EQ(newer->Read(), "new");
}

// A data component that neither answers nor goes away: while it is frozen, its connections stay open, and its kernel
// accepts bytes while there is room.
TEST_F(FencingTest, FrozenDataComponentHoldsNobodyForEver) {
  const auto tc = Tc(5);
  ASSERT_TRUE(tc->SayHello().ok());
  ASSERT_TRUE(tc->OpenLog().ok());
  ASSERT_TRUE(tc->SendApplied("").ok());
  ASSERT_TRUE(tc->SendApplied("before").ok());
  const auto idle = Tc(5);
  ASSERT_TRUE(idle->SayHello().ok());
  EXPECT_EQ(idle->Read(), "before");
  dc_->Freeze();
  const MonotonicTime frozen = runtime_.Now();

  // A Send on a stream whose buffers are full ends at its deadline, and closing the stream does not block.
  const std::string value(kMaxValueBytes, 'v');
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = tc->Send(value, runtime_.Now() + milliseconds(500));
  EXPECT_EQ(status.code(), ErrorCode::kDeadlineExceeded);
  tc->CloseLog();
  EXPECT_LT(runtime_.Now() - frozen, seconds(10));
  EXPECT_TRUE(tc->listener().closed.IsSet());

  // A read ends when the pings of its connection have had no answer for 15 s.
  EXPECT_EQ(idle->TryRead().status().code(), ErrorCode::kUnavailable);
  EXPECT_LT(runtime_.Now() - frozen, seconds(40));
  dc_->Thaw();
}

}  // namespace
}  // namespace deut
