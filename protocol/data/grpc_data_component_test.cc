// Every call of the interface through a real connection, and its failures.
#include "protocol/data/grpc_data_component.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/limits.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

constexpr TableId kTable{5};
constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

class GrpcDataComponentTest : public ::testing::Test {
 protected:
  GrpcDataComponentTest() {
    for (int i = 0; i < 1000; ++i) scripted_.Put(kTable, Key(i), Value(i));
  }
  static std::string Key(int i) { return "k" + std::to_string(10000 + i); }
  static std::string Value(int i) { return "value " + std::to_string(i); }
  Deadline Soon() { return runtime_.Now() + seconds(20); }

  Runtime& runtime_ = RealRuntime();
  Event stuck_;
  testing::ScriptedDataComponent scripted_{runtime_};
  GrpcDataComponentService service_{runtime_, scripted_, RpcServiceOptions()};
  testing::Loopback loopback_{{service_.service()}};
  GrpcDataComponent component_{runtime_, loopback_.Peer(), GrpcDataComponentOptions{.data_streams = 2}};
};

TEST_F(GrpcDataComponentTest, Hello) {
  auto answer = component_.Hello(HelloRequest{.tc = TcId(7), .epoch = TcEpoch(8), .nonce = 9}, Soon());
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->dc, DcId(77));
  EXPECT_EQ(answer->incarnation, DcIncarnation(1));
  ASSERT_EQ(answer->tables.size(), 1u);
  EXPECT_EQ(answer->tables[0].name, "table5");
  EXPECT_EQ(answer->tables[0].records, 1000u);
}

TEST_F(GrpcDataComponentTest, HelloRefusals) {
  HelloRequest request;
  request.protocol_version = kProtocolVersion + 1;
  EXPECT_EQ(component_.Hello(request, Soon()).status().code(), ErrorCode::kVersionMismatch);
  scripted_.check_hello = [](const HelloRequest& hello) {
    return hello.epoch < TcEpoch(5) ? Status(ErrorCode::kFenced, "epoch 5 has said Hello") : Status::Ok();
  };
  const auto fenced = component_.Hello(HelloRequest{.tc = TcId(1), .epoch = TcEpoch(4)}, Soon());
  EXPECT_EQ(fenced.status().code(), ErrorCode::kFenced);
  EXPECT_THAT(fenced.status().ToString(), HasSubstr("epoch 5"));
  EXPECT_TRUE(component_.Hello(HelloRequest{.tc = TcId(1), .epoch = TcEpoch(5)}, Soon()).ok());
}

TEST_F(GrpcDataComponentTest, CallsEndAtTheirDeadline) {
  scripted_.check_hello = [&](const HelloRequest&) {
    stuck_.Wait(runtime_, kNoDeadline);
    return Status::Ok();
  };
  EXPECT_EQ(component_.Hello(HelloRequest(), runtime_.Now() + milliseconds(30)).status().code(),
            ErrorCode::kDeadlineExceeded);
  stuck_.Signal(runtime_);
}

TEST_F(GrpcDataComponentTest, FencingCodesOfEveryCall) {
  scripted_.check_sender = [](const Sender& sender) {
    return sender.epoch < TcEpoch(5) ? Status(ErrorCode::kFenced, "epoch 5 has said Hello") : Status::Ok();
  };
  DataRequest request;
  request.sender = kSender;
  request.table = kTable;
  request.key = "k";
  component_.Submit({&request});
  ASSERT_TRUE(request.done.Wait(runtime_, Soon()));
  EXPECT_EQ(request.status.code(), ErrorCode::kFenced);
  EXPECT_EQ(component_.OpenScan(kSender, ScanSpec{.table = kTable, .range = {}}, Soon()).status().code(),
            ErrorCode::kFenced);
  EXPECT_EQ(component_.Partition(kSender, kTable, 4, Soon()).status().code(), ErrorCode::kFenced);
  EXPECT_EQ(component_.Tables(kSender, Soon()).status().code(), ErrorCode::kFenced);
  EXPECT_TRUE(component_.Counters(Soon()).ok());  // needs no Hello
}

TEST_F(GrpcDataComponentTest, ControlCalls) {
  auto keys = component_.Partition(kSender, kTable, 4, Soon());
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(*keys, (std::vector<std::string>{Key(1), Key(2), Key(3)}));
  EXPECT_EQ(component_.Partition(kSender, kTable, 0, Soon()).status().code(), ErrorCode::kInvalidArgument);
  auto tables = component_.Tables(kSender, Soon());
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(tables->size(), 1u);
  auto counters = component_.Counters(Soon());
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ((*counters)[0].name, "reads");
}

TEST_F(GrpcDataComponentTest, TableListsMayBeLargerThanAMessage) {
  for (uint32_t i = 100; i < 100000; ++i) scripted_.Put(TableId(i), "k", "v");
  auto tables = component_.Tables(kSender, Soon());
  ASSERT_TRUE(tables.ok()) << tables.status().ToString();
  EXPECT_EQ(tables->size(), 99901u);
}

TEST_F(GrpcDataComponentTest, ShortScansBothWays) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    std::string low = Key(100), high = Key(200);
    std::vector<std::string> keys;
    DataRequest request;
    request.kind = DataRequest::Kind::kScan;
    request.sender = kSender;
    request.table = kTable;
    request.direction = direction;
    request.limit_records = 30;
    do {
      request.low = low;
      request.high = high;
      request.done.Reset();
      component_.Submit({&request});
      ASSERT_TRUE(request.done.Wait(runtime_, Soon()));
      ASSERT_TRUE(request.status.ok()) << request.status.ToString();
      for (RecordBatch::Iterator it(request.answer); it.Valid(); it.Next()) keys.emplace_back(it.record().key);
      (direction == Direction::kAscending ? low : high) = request.covered;
    } while (!request.complete);
    ASSERT_EQ(keys.size(), 100u);
    EXPECT_EQ(keys.front(), direction == Direction::kAscending ? Key(100) : Key(199));
    EXPECT_EQ(keys.back(), direction == Direction::kAscending ? Key(199) : Key(100));
  }
}

TEST_F(GrpcDataComponentTest, BulkScanWithGrantsAheadOfNeed) {
  auto scan = component_.OpenScan(
      kSender, ScanSpec{.table = kTable, .range = {}, .direction = Direction::kAscending, .batch_bytes = 500}, Soon());
  ASSERT_TRUE(scan.ok()) << scan.status().ToString();
  size_t records = 0;
  ScanBatch batch;
  for (int stretch = 0; stretch <= 10; ++stretch) {
    const std::string bound = stretch == 10 ? "" : Key(stretch * 100);
    ASSERT_TRUE((*scan)->Grant(bound, 1 << 20).ok());
    if (stretch == 0) continue;  // one grant ahead
    const std::string reach = Key((stretch - 1) * 100);
    while (batch.covered < reach && !batch.complete) {
      ASSERT_TRUE((*scan)->Next(&batch, Soon()).ok());
      records += batch.records.size();
    }
  }
  while (!batch.complete) {
    ASSERT_TRUE((*scan)->Next(&batch, Soon()).ok());
    records += batch.records.size();
  }
  EXPECT_EQ(records, 1000u);
}

// A client that grants ahead does not know how far the component is. It may grant bytes up to a bound already reached,
// or grant after the last batch.
TEST_F(GrpcDataComponentTest, GrantsThatComeTooLateAreHarmless) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    auto scan = component_.OpenScan(
        kSender, ScanSpec{.table = kTable, .range = {}, .direction = direction, .batch_bytes = 500}, Soon());
    ASSERT_TRUE(scan.ok()) << scan.status().ToString();
    size_t records = 0;
    ScanBatch batch;
    ASSERT_TRUE((*scan)->Grant(Key(500), 1 << 20).ok());
    while (batch.covered != Key(500)) {
      ASSERT_TRUE((*scan)->Next(&batch, Soon()).ok());
      records += batch.records.size();
    }
    EXPECT_EQ(records, 500u);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE((*scan)->Grant(Key(500), 1000).ok());
    ASSERT_TRUE((*scan)->Grant("", 1 << 20).ok());
    EXPECT_TRUE(testing::Eventually([&] { return scripted_.scans() == 0; })) << "all is sent";
    while (!batch.complete) {
      ASSERT_TRUE((*scan)->Grant("", 1000).ok());
      ASSERT_TRUE((*scan)->Next(&batch, Soon()).ok());
      records += batch.records.size();
    }
    EXPECT_EQ(records, 1000u);
  }
}

TEST_F(GrpcDataComponentTest, NextWaitsOnlyToItsDeadlineAndMayBeRepeated) {
  auto scan = component_.OpenScan(kSender, ScanSpec{.table = kTable, .range = {}}, Soon());
  ASSERT_TRUE(scan.ok());
  ScanBatch batch;
  EXPECT_EQ((*scan)->Next(&batch, runtime_.Now() + milliseconds(20)).code(), ErrorCode::kDeadlineExceeded);
  ASSERT_TRUE((*scan)->Grant("", 1000).ok());
  EXPECT_TRUE((*scan)->Next(&batch, Soon()).ok());
  EXPECT_FALSE(batch.records.empty());
  scan->reset();
  EXPECT_TRUE(testing::Eventually([&] { return scripted_.scans() == 0; }));
}

TEST_F(GrpcDataComponentTest, ScanEndsWithItsConnection) {
  auto scan = component_.OpenScan(kSender, ScanSpec{.table = kTable, .range = {}}, Soon());
  ASSERT_TRUE(scan.ok());
  loopback_.Stop();
  ScanBatch batch;
  EXPECT_EQ((*scan)->Next(&batch, Soon()).code(), ErrorCode::kUnavailable);
  EXPECT_EQ((*scan)->Grant("", 1).code(), ErrorCode::kUnavailable);
}

TEST_F(GrpcDataComponentTest, EverythingIsUnavailableWithoutAServer) {
  loopback_.Stop();
  EXPECT_EQ(component_.Hello(HelloRequest(), Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(component_.Counters(Soon()).status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(component_.OpenScan(kSender, ScanSpec(), Soon()).status().code(), ErrorCode::kUnavailable);
  DataRequest request;
  request.sender = kSender;
  request.key = "k";
  component_.Submit({&request});
  ASSERT_TRUE(request.done.Wait(runtime_, Soon()));
  EXPECT_EQ(request.status.code(), ErrorCode::kUnavailable);
  component_.Abandon(&request);
}

TEST_F(GrpcDataComponentTest, ThreadsShareStreams) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 4; ++t) {
    threads.push_back(runtime_.StartThread("reader", [&, t] {
      for (int i = 0; i < 300; ++i) {
        const std::string key = Key((i * 7 + t) % 1000);
        DataRequest request;
        request.sender = kSender;
        request.table = kTable;
        request.key = key;
        component_.Submit({&request});
        ASSERT_TRUE(request.done.Wait(runtime_, Soon()));
        ASSERT_EQ(RecordBatch::Iterator(request.answer).record().key, key);
      }
    }));
  }
}

}  // namespace
}  // namespace deut
