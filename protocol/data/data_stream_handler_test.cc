// The server side of Data streams, against a client that breaks any rule it likes.
#include "protocol/data/data_stream_handler.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/limits.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TableId kTable{5};

class DataStreamHandlerTest : public ::testing::Test {
 protected:
  // The limit is far above the time that a reading peer may need on a busy machine.
  explicit DataStreamHandlerTest(Duration stuck_peer = seconds(60), size_t data_requests = 256)
      : service_(runtime_, component_, RpcServiceOptions{.stuck_peer = stuck_peer, .data_requests = data_requests}) {
    component_.hold = [](const DataRequest& request) { return request.key.substr(0, 4) == "held"; };
    for (int i = 0; i < 100; ++i) component_.Put(kTable, "k" + std::to_string(i), "v" + std::to_string(i));
    stub_ = wire::DataComponent::NewStub(loopback_.Peer()->NewChannel(RpcTraffic::kShort));
    Open();
  }
  ~DataStreamHandlerTest() override {
    context_->TryCancel();
    (void)stream_->Finish();
  }

  void Open() {
    context_ = std::make_unique<grpc::ClientContext>();
    stream_ = stub_->Data(context_.get());
  }

  static wire::DataRequests NewMessage(uint64_t incarnation = 1) {
    wire::DataRequests message;
    message.mutable_sender()->set_incarnation(incarnation);
    return message;
  }
  static void AddRead(wire::DataRequests* message, uint64_t id, const std::string& key) {
    DataRequest request;
    request.table = kTable;
    request.key = key;
    ToWire(request, id, message->add_items());
  }

  // Reads answers until `n` have come, and returns them by id.
  std::map<uint64_t, wire::DataAnswer> Read(size_t n) {
    std::map<uint64_t, wire::DataAnswer> answers;
    while (answers.size() < n) {
      wire::DataAnswers message;
      if (!stream_->Read(&message)) break;
      for (const wire::DataAnswer& answer : message.items()) {
        EXPECT_TRUE(answers.emplace(answer.id(), answer).second) << "answered twice: " << answer.id();
        order_.push_back(answer.id());
      }
    }
    return answers;
  }

  Runtime& runtime_ = RealRuntime();
  testing::ScriptedDataComponent component_{runtime_};
  GrpcDataComponentService service_;
  testing::Loopback loopback_{{service_.service()}};
  std::unique_ptr<wire::DataComponent::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::DataRequests, wire::DataAnswers>> stream_;
  std::vector<uint64_t> order_;
};

TEST_F(DataStreamHandlerTest, AnswersOutOfOrder) {
  wire::DataRequests message = NewMessage();
  AddRead(&message, 1, "held a");
  AddRead(&message, 2, "k2");
  AddRead(&message, 3, "held b");
  AddRead(&message, 4, "k4");
  ASSERT_TRUE(stream_->Write(message));
  auto answers = Read(2);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers.count(2), 1u);
  EXPECT_EQ(answers.count(4), 1u);
  EXPECT_EQ(component_.Release(), 2u);
  answers = Read(2);
  EXPECT_EQ(answers.count(1) + answers.count(3), 2u);
  // The newest came first.
  EXPECT_THAT(order_, ElementsAre(2, 4, 3, 1));
}

TEST_F(DataStreamHandlerTest, StatusOfEachItem) {
  wire::DataRequests message = NewMessage();
  AddRead(&message, 1, "k1");
  message.add_items()->set_id(2);  // without a kind
  AddRead(&message, 3, std::string(5000, 'k'));
  AddRead(&message, 4, "absent");
  ASSERT_TRUE(stream_->Write(message));
  auto answers = Read(4);
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[1].status().code(), 0u);
  EXPECT_FALSE(answers[1].records().empty());
  EXPECT_THAT(FromWire(answers[2].status()).ToString(), HasSubstr("INVALID_ARGUMENT: kind"));
  EXPECT_THAT(FromWire(answers[3].status()).ToString(), HasSubstr("INVALID_ARGUMENT: key: a key of 5000 bytes"));
  EXPECT_EQ(answers[4].status().code(), 0u);
  EXPECT_TRUE(answers[4].records().empty());
}

TEST_F(DataStreamHandlerTest, AnotherIncarnationIsReportedPerItem) {
  wire::DataRequests message = NewMessage(99);
  AddRead(&message, 1, "k1");
  ASSERT_TRUE(stream_->Write(message));
  EXPECT_EQ(FromWire(Read(1)[1].status()).code(), ErrorCode::kWrongIncarnation);
}

TEST_F(DataStreamHandlerTest, ManyMessagesAndLargeAnswers) {
  component_.Put(kTable, "large", std::string(kMaxValueBytes, 'x'));
  constexpr int kMessages = 20;
  const auto writer = runtime_.StartThread("writer", [&] {
    for (int m = 0; m < kMessages; ++m) {
      wire::DataRequests message = NewMessage();
      for (int i = 0; i < kMaxRequestsPerMessage; ++i) {
        AddRead(&message, static_cast<uint64_t>(m) * 1000 + i, i % 50 == 0 ? "large" : "k" + std::to_string(i % 100));
      }
      ASSERT_TRUE(stream_->Write(message));
    }
  });
  const auto answers = Read(size_t{kMessages} * kMaxRequestsPerMessage);
  ASSERT_EQ(answers.size(), size_t{kMessages} * kMaxRequestsPerMessage);
  for (const auto& [id, answer] : answers) {
    ASSERT_EQ(answer.status().code(), 0u);
    ASSERT_EQ(answer.records().size() > kMaxValueBytes, id % 1000 % 50 == 0) << id;
  }
}

TEST_F(DataStreamHandlerTest, MessagesThatAreNoneEndTheStream) {
  ASSERT_TRUE(stream_->Write(NewMessage()));
  wire::DataAnswers answers;
  EXPECT_FALSE(stream_->Read(&answers));
  grpc::Status end = stream_->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(end.error_message(), HasSubstr("items: 0 is not within 1 to 256"));
  Open();
  wire::DataRequests message = NewMessage();
  for (int i = 0; i <= kMaxRequestsPerMessage; ++i) AddRead(&message, i, "k");
  ASSERT_TRUE(stream_->Write(message));
  EXPECT_FALSE(stream_->Read(&answers));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  Open();
}

TEST_F(DataStreamHandlerTest, ClientThatGoesAwayLeavesNothingBehind) {
  wire::DataRequests message = NewMessage();
  for (int i = 0; i < 10; ++i) AddRead(&message, i, "held");
  ASSERT_TRUE(stream_->Write(message));
  ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 10; }));
  context_->TryCancel();
  EXPECT_TRUE(testing::Eventually([&] { return component_.abandoned() == 10; }));
  EXPECT_EQ(component_.Release(), 0u);
}

TEST_F(DataStreamHandlerTest, HalfClosedStreamIsDone) {
  wire::DataRequests message = NewMessage();
  AddRead(&message, 1, "k1");
  ASSERT_TRUE(stream_->Write(message));
  EXPECT_EQ(Read(1).size(), 1u);
  stream_->WritesDone();
  wire::DataAnswers answers;
  EXPECT_FALSE(stream_->Read(&answers));
  EXPECT_TRUE(stream_->Finish().ok());
  Open();
}

// A peer asks, half-closes the stream, and reads afterwards. Answers that were ready before the half-close still
// arrive.
TEST_F(DataStreamHandlerTest, AnswersBeforeTheHalfCloseAreWritten) {
  component_.Put(kTable, "large", std::string(kMaxValueBytes, 'x'));
  constexpr int kReads = 16;
  wire::DataRequests message = NewMessage();
  for (int i = 0; i < kReads; ++i) AddRead(&message, i, "large");
  ASSERT_TRUE(stream_->Write(message));
  stream_->WritesDone();
  EXPECT_EQ(Read(kReads).size(), size_t{kReads});
  wire::DataAnswers answers;
  EXPECT_FALSE(stream_->Read(&answers));
  EXPECT_TRUE(stream_->Finish().ok());
  Open();
}

// The stream has room for one group of requests.
class SmallDataStreamTest : public DataStreamHandlerTest {
 protected:
  SmallDataStreamTest() : DataStreamHandlerTest(seconds(60), 16) {}
  // Sends as many requests as there is room for, which the component holds, and one more.
  void Overfill() {
    for (const uint64_t first : {0, 100}) {
      wire::DataRequests message = NewMessage();
      for (int i = 0; i < (first == 0 ? 16 : 1); ++i) AddRead(&message, first + i, first == 0 ? "held" : "k1");
      ASSERT_TRUE(stream_->Write(message));
    }
    ASSERT_TRUE(testing::Eventually([&] { return component_.held() == 16; }));
  }
};

TEST_F(SmallDataStreamTest, StreamWithoutRoomGoesOnWhenThereIsSome) {
  Overfill();
  EXPECT_EQ(component_.Release(), 16u);
  EXPECT_EQ(Read(17).size(), 17u);
  // The last request is read from the stream once an answer has left, so it is not the first to be answered. It may
  // overtake answers that were released later.
  EXPECT_NE(order_.front(), 100u);
}

TEST_F(SmallDataStreamTest, ClientThatGoesAwayWhileThereIsNoRoomLeavesNothingBehind) {
  Overfill();
  context_->TryCancel();
  EXPECT_TRUE(testing::Eventually([&] { return component_.abandoned() == 16; }));
  EXPECT_EQ(component_.Release(), 0u);
}

class StuckPeerTest : public DataStreamHandlerTest {
 protected:
  StuckPeerTest() : DataStreamHandlerTest(milliseconds(300)) {}
};

// A peer sends many requests and reads nothing. The server stops reading from it, and cuts it off after a while.
TEST_F(StuckPeerTest, PeerThatDoesNotReadIsCutOff) {
  component_.Put(kTable, "large", std::string(kMaxValueBytes, 'x'));
  wire::DataRequests message = NewMessage();
  for (int i = 0; i < 64; ++i) {
    AddRead(&message, i, "large");
    message.mutable_items(i)->set_low(std::string(1000, 'x'));  // no meaning in a read, but it fills the windows
  }
  const Deadline deadline = runtime_.Now() + seconds(20);
  while (stream_->Write(message)) ASSERT_LT(runtime_.Now(), deadline);
  wire::DataAnswers answers;
  while (stream_->Read(&answers)) {
  }
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  Open();
  // The server still works.
  message = NewMessage();
  AddRead(&message, 1, "k1");
  ASSERT_TRUE(stream_->Write(message));
  EXPECT_EQ(Read(1).size(), 1u);
}

}  // namespace
}  // namespace deut
