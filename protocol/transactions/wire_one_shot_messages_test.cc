#include "protocol/transactions/wire_one_shot_messages.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/limits.h"
#include "protocol/one_shot_limits.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WireOneShotMessagesTest : public ::testing::Test, protected WireOneShotMessages::Stream {
 protected:
  void StartRead(wire::OneShotCalls* message) override { reading_ = message; }
  void StartWrite(const wire::OneShotAnswers& message) override { written_.push_back(message); }
  void End(const Status& reason) override { ended_ = reason; }

  // The stream's peer sends a message of calls, each of which reads a key.
  Result<OneShotBatch*> Read(int calls, bool first = false) {
    MutexLock lock(messages_.mutex);
    messages_.StartRead();
    reading_->Clear();
    for (int i = 0; i < calls; ++i) {
      wire::OneShotCall* const call = reading_->add_calls();
      call->set_id(static_cast<uint64_t>(i) + 1);
      ToWire(Operation{.kind = OperationKind::kGet, .table = TableId(1), .key = "key"},
             call->mutable_one_shot()->add_operations());
    }
    return messages_.TakeRead(first);
  }
  // Adds the answer to a call with `results` results of about `bytes` bytes.
  void Add(OneShotBatch* batch, int call, size_t results = 0, size_t bytes = 0) {
    std::vector<OperationResult> list(results);
    for (OperationResult& result : list) result.resume = std::string(bytes, 'r');
    answers_->Add(*batch, call, list, CommitAnswer{.timestamp = Timestamp(7), .commit_lsn = Lsn(8)}, [this] {
      ++parts_;
      Publish();
    });
  }
  void Publish() {
    MutexLock lock(messages_.mutex);
    messages_.Publish(answers_.get());
    EXPECT_TRUE(answers_->empty());
  }
  // Writes all that is ready. Returns the ids of the answers of each message.
  std::vector<std::vector<uint64_t>> WriteAll() {
    MutexLock lock(messages_.mutex);
    written_.clear();
    while (messages_.backlog().ready) {
      messages_.StartWrite();
      messages_.WriteEnded();
    }
    EXPECT_EQ(messages_.backlog().ready_bytes, 0u);
    std::vector<std::vector<uint64_t>> ids;
    for (const wire::OneShotAnswers& message : written_) {
      ids.emplace_back();
      for (const wire::OneShotAnswer& answer : message.answers()) ids.back().push_back(answer.id());
    }
    return ids;
  }
  OneShotMessages::Backlog Backlog() {
    MutexLock lock(messages_.mutex);
    return messages_.backlog();
  }

  WireOneShotMessages messages_{RealRuntime(), this};
  std::unique_ptr<UnpublishedAnswers> answers_ = messages_.NewAnswers();
  int parts_ = 0;
  wire::OneShotCalls* reading_ = nullptr;
  std::vector<wire::OneShotAnswers> written_;
  Status ended_;
};

TEST_F(WireOneShotMessagesTest, ABatchGivesItsCallsAndIsUsedAgain) {
  const Result<OneShotBatch*> batch = Read(2);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ((*batch)->size(), 2);
  EXPECT_FALSE((*batch)->IsSnapshot(0));
  TransactionOptions options;
  EXPECT_TRUE((*batch)->GetOptions(1, &options).ok());
  std::vector<Operation> operations;
  EXPECT_TRUE((*batch)->GetOperations(1, &operations).ok());
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0].key, "key");
  reading_->mutable_calls(1)->set_timeout_us(1'000'000);
  (*batch)->SetDeadlines(RealRuntime());
  ASSERT_EQ((*batch)->deadlines.size(), 2u);
  EXPECT_EQ((*batch)->deadlines[0], kNoDeadline);
  EXPECT_LT((*batch)->deadlines[1], RealRuntime().Now() + seconds(2));
  reading_->mutable_calls(0)->mutable_one_shot()->mutable_begin()->set_isolation(wire::SNAPSHOT);
  EXPECT_TRUE((*batch)->IsSnapshot(0));
  reading_->mutable_calls(0)->mutable_one_shot()->mutable_begin()->set_isolation(static_cast<wire::Isolation>(9));
  EXPECT_THAT((*batch)->GetOptions(0, &options).ToString(), HasSubstr("begin.isolation"));

  wire::OneShotCalls* const before = reading_;
  {
    MutexLock lock(messages_.mutex);
    messages_.Recycle(*batch);
  }
  ASSERT_TRUE(Read(1).ok());
  EXPECT_EQ(reading_, before);
}

TEST_F(WireOneShotMessagesTest, OnlyTheFirstMessageMayHaveNoCallsAndNoneTooMany) {
  EXPECT_TRUE(Read(0, /*first=*/true).ok());
  EXPECT_EQ(Read(0).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Read(kMaxOneShotsPerMessage).ok());
  EXPECT_EQ(Read(kMaxOneShotsPerMessage + 1).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(WireOneShotMessagesTest, TheOpeningIsCheckedAndAnsweredAlone) {
  const Result<OneShotBatch*> first = Read(1, /*first=*/true);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(messages_.CheckOpening(**first).code(), ErrorCode::kWrongState);
  reading_->mutable_open()->set_protocol_version(kProtocolVersion + 1);
  EXPECT_EQ(messages_.CheckOpening(**first).code(), ErrorCode::kVersionMismatch);
  reading_->mutable_open()->set_protocol_version(kProtocolVersion);
  EXPECT_TRUE(messages_.CheckOpening(**first).ok());
  {
    MutexLock lock(messages_.mutex);
    messages_.AnswerOpening(Status::Ok(), Timestamp(5));
  }
  Add(*first, 0);
  Publish();
  EXPECT_THAT(WriteAll(), ElementsAre(ElementsAre(), ElementsAre(1)));
  EXPECT_EQ(written_[0].not_before(), 5u);
  EXPECT_EQ(written_[0].protocol_version(), kProtocolVersion);
}

TEST_F(WireOneShotMessagesTest, AnswersThatWerePublishedOneByOneJoinAMessage) {
  const Result<OneShotBatch*> batch = Read(3);
  ASSERT_TRUE(batch.ok());
  for (int i = 0; i < 3; ++i) {
    Add(*batch, i);
    EXPECT_FALSE(answers_->empty());
    Publish();
  }
  EXPECT_THAT(WriteAll(), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_EQ(written_[0].answers(0).answer().timestamp(), 7u);
  EXPECT_EQ(written_[0].answers(0).answer().commit_lsn(), 8u);
}

TEST_F(WireOneShotMessagesTest, ResultsThatDoNotFitTravelInParts) {
  const Result<OneShotBatch*> batch = Read(1);
  ASSERT_TRUE(batch.ok());
  Add(*batch, 0, /*results=*/5, kAnswerMessageBytes / 2);
  EXPECT_EQ(parts_, 4);
  Publish();
  const std::vector<std::vector<uint64_t>> ids = WriteAll();
  ASSERT_EQ(ids.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_THAT(ids[i], ElementsAre(1));
    EXPECT_EQ(written_[i].answers(0).answer().more(), i < 4);
    EXPECT_EQ(written_[i].answers(0).answer().results_size(), 1);
  }
}

TEST_F(WireOneShotMessagesTest, AWithheldAnswerIsReadyOnlyOnceTheLogIsDurable) {
  const Result<OneShotBatch*> batch = Read(3);
  ASSERT_TRUE(batch.ok());
  const Deadline deadline = RealRuntime().Now() + seconds(100);
  for (int i = 0; i < 3; ++i) {
    Add(*batch, i);
    if (i < 2) answers_->WithholdLast(/*wrote=*/true, Lsn(static_cast<uint64_t>(20 - i)), deadline);
  }
  Publish();
  EXPECT_THAT(WriteAll(), ElementsAre(ElementsAre(3)));
  EXPECT_TRUE(Backlog().withheld);
  EXPECT_NE(Backlog().withheld_bytes, 0u);
  {
    MutexLock lock(messages_.mutex);
    EXPECT_EQ(messages_.FirstWithheld(), Lsn(19));
    EXPECT_EQ(messages_.EarliestDeadline(), deadline);
    messages_.Release(Lsn(20), RealRuntime().Now());
  }
  EXPECT_THAT(WriteAll(), ElementsAre(ElementsAre(2)));
  {
    MutexLock lock(messages_.mutex);
    messages_.Release(Status(ErrorCode::kIoError, "the disk is gone"), RealRuntime().Now());
  }
  EXPECT_FALSE(Backlog().withheld);
  EXPECT_THAT(WriteAll(), ElementsAre(ElementsAre(1)));
  EXPECT_EQ(FromWire(written_[0].answers(0).answer().status()).code(), ErrorCode::kOutcomeUnknown);
}

TEST_F(WireOneShotMessagesTest, DroppedAnswersAreNotWrittenAndThoseInFlightCount) {
  const Result<OneShotBatch*> batch = Read(3);
  ASSERT_TRUE(batch.ok());
  Add(*batch, 0);
  Publish();
  size_t in_flight = 0;
  {
    MutexLock lock(messages_.mutex);
    in_flight = messages_.backlog().ready_bytes;
    messages_.StartWrite();
  }
  Add(*batch, 1);
  Add(*batch, 2);
  answers_->WithholdLast(/*wrote=*/false, Lsn(20), kNoDeadline);
  Publish();
  EXPECT_GT(Backlog().ready_bytes, in_flight);
  MutexLock lock(messages_.mutex);
  messages_.DropAnswers();
  EXPECT_FALSE(messages_.backlog().ready);
  EXPECT_FALSE(messages_.backlog().withheld);
  EXPECT_EQ(messages_.backlog().ready_bytes, in_flight);
  messages_.WriteEnded();
  EXPECT_EQ(messages_.backlog().ready_bytes, 0u);
}

TEST_F(WireOneShotMessagesTest, TheEndIsPassedToTheConnection) {
  messages_.End(Status(ErrorCode::kUnavailable, "idle"));
  EXPECT_EQ(ended_.code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace deut
