// The client side of Data streams through a real connection: answers out of order, abandoned requests, connections that
// break and come back.
#include "protocol/data/grpc_data_stream.h"

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/rpc/rpc_event_thread.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

constexpr TableId kTable{5};
constexpr Sender kSender{.tc = TcId(1), .epoch = TcEpoch(1), .nonce = 1, .incarnation = DcIncarnation(1)};

class GrpcDataStreamTest : public ::testing::Test {
 protected:
  GrpcDataStreamTest() {
    component_.hold = [](const DataRequest& request) { return request.key.substr(0, 4) == "held"; };
    for (int i = 0; i < 100; ++i) component_.Put(kTable, Key(i), Value(i));
  }

  static std::string Key(int i) { return "k" + std::to_string(i); }
  static std::string Value(int i) { return "value " + std::to_string(i); }

  std::unique_ptr<GrpcDataComponentService> NewService() {
    return std::make_unique<GrpcDataComponentService>(runtime_, component_, RpcServiceOptions());
  }
  // REQUIRES: the server was stopped.
  void Restart() {
    service_ = NewService();
    loopback_.Restart({service_->service()});
  }

  DataRequest* NewRequest(const std::string& key) {
    DataRequest& request = requests_.emplace_back();
    request.sender = kSender;
    request.table = kTable;
    request.key = keys_.emplace_back(key);
    return &request;
  }
  void Submit(const std::vector<DataRequest*>& requests) { stream_.Submit(requests); }
  bool Wait(DataRequest* request) { return request->done.Wait(runtime_, runtime_.Now() + seconds(20)); }
  Status Read(const std::string& key) {
    DataRequest* request = NewRequest(key);
    Submit({request});
    EXPECT_TRUE(Wait(request));
    return request->status;
  }

  Runtime& runtime_ = RealRuntime();
  std::deque<std::string> keys_;
  std::deque<DataRequest> requests_;
  testing::ScriptedDataComponent component_{runtime_};
  std::unique_ptr<GrpcDataComponentService> service_ = NewService();
  testing::Loopback loopback_{{service_->service()}};
  RpcEventThread events_{runtime_};
  GrpcDataStream stream_{runtime_, loopback_.Peer(), events_};
};

TEST_F(GrpcDataStreamTest, FillsInAnswers) {
  std::vector<DataRequest*> requests;
  for (int i = 0; i < 1000; ++i) requests.push_back(NewRequest(Key(i % 100)));
  Submit(requests);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Wait(requests[i]));
    ASSERT_TRUE(requests[i]->status.ok());
    ASSERT_EQ(RecordBatch::Iterator(requests[i]->answer).record().value, Value(i % 100));
    ASSERT_EQ(requests[i]->answered_by, DcIncarnation(1));
  }
}

TEST_F(GrpcDataStreamTest, AnswersDoNotWaitForEachOther) {
  DataRequest* held = NewRequest("held");
  DataRequest* quick = NewRequest(Key(1));
  Submit({held, quick});
  ASSERT_TRUE(Wait(quick));
  EXPECT_FALSE(held->done.IsSet());
  component_.Release();
  ASSERT_TRUE(Wait(held));
  EXPECT_TRUE(held->status.ok());
}

TEST_F(GrpcDataStreamTest, AbandonedRequestMayBeFreed) {
  auto request = std::make_unique<DataRequest>();
  request->sender = kSender;
  request->table = kTable;
  request->key = "held";
  stream_.Submit({request.get()});
  ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 1; }));
  stream_.Abandon(request.get());
  request.reset();
  EXPECT_EQ(component_.Release(), 1u);
  EXPECT_TRUE(Read(Key(1)).ok());
}

TEST_F(GrpcDataStreamTest, ABrokenStreamFailsOutstandingRequestsAndIsReopened) {
  EXPECT_TRUE(Read(Key(1)).ok());
  std::vector<DataRequest*> held;
  for (int i = 0; i < 20; ++i) held.push_back(NewRequest("held"));
  Submit(held);
  ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 20; }));
  loopback_.Stop();
  for (DataRequest* request : held) {
    ASSERT_TRUE(Wait(request));
    EXPECT_EQ(request->status.code(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(component_.abandoned(), 20u);
  // While the server is away, every request fails quickly, with the address in the message.
  const Status away = Read(Key(1));
  EXPECT_EQ(away.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(away.ToString(), HasSubstr(loopback_.address().ToString()));
  Restart();
  const MonotonicTime back = runtime_.Now();
  ASSERT_TRUE(testing::Eventually([&] { return Read(Key(1)).ok(); }));
  // The pause between attempts is at most one second, plus at most a fifth at random.
  EXPECT_LT(runtime_.Now() - back, seconds(4));
}

TEST_F(GrpcDataStreamTest, NothingSubmittedIsLostWhileConnecting) {
  // The first requests arrive before a stream is open.
  std::vector<std::unique_ptr<Thread>> threads;
  std::atomic<int> answered{0};
  for (int t = 0; t < 4; ++t) {
    threads.push_back(runtime_.StartThread("submitter", [&, t] {
      for (int i = 0; i < 500; ++i) {
        DataRequest request;
        const std::string key = Key((t * 25 + i) % 100);
        request.sender = kSender;
        request.table = kTable;
        request.key = key;
        DataRequest* const list[] = {&request};
        stream_.Submit(list);
        ASSERT_TRUE(request.done.Wait(runtime_, runtime_.Now() + seconds(20)));
        ASSERT_TRUE(request.status.ok()) << request.status.ToString();
        ASSERT_EQ(RecordBatch::Iterator(request.answer).record().key, key);
        answered.fetch_add(1);
      }
    }));
  }
  threads.clear();
  EXPECT_EQ(answered.load(), 2000);
}

TEST_F(GrpcDataStreamTest, ThreadsThroughRestarts) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> answered{0}, failed{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 3; ++t) {
    threads.push_back(runtime_.StartThread("submitter", [&, t] {
      for (int i = 0; !stop.load(); ++i) {
        DataRequest request;
        const std::string key = i % 7 == 0 ? "held" : Key((t + i) % 100);
        request.sender = kSender;
        request.table = kTable;
        request.key = key;
        DataRequest* const list[] = {&request};
        stream_.Submit(list);
        if (i % 7 == 0 && !request.done.Wait(runtime_, runtime_.Now() + milliseconds(1))) {
          stream_.Abandon(&request);
          continue;
        }
        ASSERT_TRUE(request.done.Wait(runtime_, runtime_.Now() + seconds(20)));
        (request.status.ok() ? answered : failed).fetch_add(1);
        if (!request.status.ok()) {
          ASSERT_EQ(request.status.code(), ErrorCode::kUnavailable);
          runtime_.SleepUntil(runtime_.Now() + milliseconds(1));
        }
      }
    }));
  }
  for (int round = 0; round < 5; ++round) {
    const uint64_t before = answered.load();
    ASSERT_TRUE(testing::Eventually([&] { return answered.load() > before + 20; }));
    loopback_.Stop();
    const uint64_t failures = failed.load();
    ASSERT_TRUE(testing::Eventually([&] { return failed.load() > failures; }));
    Restart();
  }
  const uint64_t before = answered.load();
  ASSERT_TRUE(testing::Eventually([&] { return answered.load() > before; }));
  stop.store(true);
  threads.clear();
  component_.Release();
}

TEST(GrpcDataStreamLifeTest, DestructorFinishesOutstandingRequests) {
  Runtime& runtime = RealRuntime();
  testing::ScriptedDataComponent component(runtime);
  component.hold = [](const DataRequest&) { return true; };
  GrpcDataComponentService service(runtime, component, RpcServiceOptions());
  testing::Loopback loopback({service.service()});
  DataRequest request;
  request.sender = kSender;
  request.key = "k";
  {
    RpcEventThread events(runtime);
    GrpcDataStream stream(runtime, loopback.Peer(), events);
    stream.Submit({&request});
    ASSERT_TRUE(testing::Eventually([&] { return component.held() == 1; }));
  }
  ASSERT_TRUE(request.done.IsSet());
  EXPECT_EQ(request.status.code(), ErrorCode::kUnavailable);
  ASSERT_TRUE(testing::Eventually([&] { return component.abandoned() == 1; }));
}

}  // namespace
}  // namespace deut
