#include "integration/history/recorder.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "integration/history/history_text.h"
#include "integration/history/timestamp_checker.h"
#include "tc/client/client.h"
#include "tc/client/fake_transaction_service.h"

namespace deut::history {
namespace {

using testing::FakeCall;
using testing::FakeFault;

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() { table_ = *client_->CreateTable("t"); }

  // Returns operations and outcomes, without times.
  std::vector<std::string> Recorded() {
    std::vector<std::string> lines;
    history_ = recorder_.Take();
    for (TransactionRecord t : history_.transactions) {
      EXPECT_GT(t.timestamp, 0U);
      if (t.outcome != Outcome::kUnknown) EXPECT_LE(t.invoke, t.complete);
      for (OperationRecord& operation : t.operations) {
        EXPECT_LE(t.invoke, operation.invoke);
        EXPECT_LE(operation.invoke, operation.complete);
        operation.invoke = operation.complete = 0;
        operation.table = 0;
      }
      const std::string text = ToText(t);
      const size_t outcome = text.find(' ', text.find('@'));
      lines.push_back(text.substr(0, text.find(' ')) + text.substr(outcome));
    }
    return lines;
  }

  testing::FakeTransactionService service_{RealRuntime()};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {});
  Recorder recorder_{*client_};
  RecordedClient* first_ = recorder_.NewClient();
  TableId table_;
  History history_;
};

TEST_F(RecorderTest, WritesDownWhatIsDoneAndSeen) {
  const Status done = first_->Run({}, [&](RecordedTransaction& t) -> Status {
    DEUT_RETURN_IF_ERROR(t.Put(table_, "a", "950"));
    DEUT_RETURN_IF_ERROR(t.Insert(table_, "b"));
    EXPECT_EQ(t.Insert(table_, "b"), ErrorCode::kAlreadyExists);
    EXPECT_EQ(t.Update(table_, "z"), ErrorCode::kNotFound);
    DEUT_RETURN_IF_ERROR(t.Update(table_, "a", "951"));
    DEUT_RETURN_IF_ERROR(t.Append(table_, "c"));
    DEUT_RETURN_IF_ERROR(t.Append(table_, "c"));
    DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> a, t.Get(table_, "a"));
    EXPECT_EQ(a->payload, "951");
    return t.Remove(table_, "b");
  });
  ASSERT_TRUE(done.ok()) << done.ToString();
  EXPECT_EQ(Recorded(), std::vector<std::string>{
                            "T1000 ok w(a)=1000.1 i(b)=1000.2 p(b) r(z)=- u(a)=1000.3 r(c)=- a(c)=1000.4 r(c)=1000.4 "
                            "a(c)=1000.5 r(a)=1000.3 d(b)"});
  EXPECT_TRUE(CheckTimestamps(history_).ok());
}

TEST_F(RecorderTest, ScansSayWhatTheyReached) {
  RecordedClient* second = recorder_.NewClient();
  ASSERT_TRUE(first_
                  ->Run({},
                        [&](RecordedTransaction& t) -> Status {
                          for (const char* key : {"a", "b", "c"}) DEUT_RETURN_IF_ERROR(t.Put(table_, key));
                          return Status();
                        })
                  .ok());
  ASSERT_TRUE(second
                  ->Run({},
                        [&](RecordedTransaction& t) -> Status {
                          ScanOptions scan{.low = "a", .high = "z"};
                          DEUT_RETURN_IF_ERROR(t.Scan(table_, scan).status());
                          scan.direction = Direction::kDescending;
                          scan.limit_records = 2;
                          DEUT_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, t.Scan(table_, scan));
                          EXPECT_EQ(records.size(), 2U);
                          return Status();
                        })
                  .ok());
  const std::vector<std::string> lines = Recorded();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "T1001 ok s[a,z)={a=1000.1,b=1000.2,c=1000.3} s[a,z)<#2~[a%00,z)={c=1000.3,b=1000.2}");
  EXPECT_TRUE(CheckTimestamps(history_).ok());
}

TEST_F(RecorderTest, EveryAttemptIsATransactionAndALostAnswerIsUnknown) {
  int commits = 0;
  service_.forgets_outcomes = true;
  service_.on_call = [&](FakeCall call, Deadline) -> FakeFault {
    if (call != FakeCall::kCommit) return {};
    if (++commits == 1) return {.status = DEUT_ERROR(kAborted, "a conflict")};
    return {.status = DEUT_ERROR(kOutcomeUnknown, "the answer was lost"), .applied = true};
  };
  RetryReport report;
  EXPECT_EQ(
      first_->Run({}, [&](RecordedTransaction& t) { return t.Put(table_, "a"); }, &report), ErrorCode::kOutcomeUnknown);
  service_.on_call = nullptr;
  ASSERT_TRUE(first_->Run({}, [&](RecordedTransaction& t) { return t.Get(table_, "a").status(); }).ok());
  EXPECT_EQ(Recorded(), (std::vector<std::string>{"T1000 aborted w(a)=1000.1", "T2000 unknown w(a)=2000.1",
                                                  "T3000 ok r(a)=2000.1"}));
  const Report judged = CheckTimestamps(history_);
  EXPECT_TRUE(judged.ok()) << judged.ToText();
  EXPECT_EQ(judged.unknown_committed, 1U);
}

// After a lost answer, the recorder asks for the outcome: the attempt committed, or it never happened.
TEST_F(RecorderTest, ALostAnswerThatIsAskedForIsKnown) {
  int commits = 0;
  service_.on_call = [&](FakeCall call, Deadline) -> FakeFault {
    if (call != FakeCall::kCommit) return {};
    return {.status = DEUT_ERROR(kOutcomeUnknown, "the answer was lost"), .applied = ++commits == 2};
  };
  ASSERT_TRUE(first_->Run({}, [&](RecordedTransaction& t) { return t.Put(table_, "a"); }).ok());
  service_.on_call = nullptr;
  ASSERT_TRUE(first_->Run({}, [&](RecordedTransaction& t) { return t.Get(table_, "a").status(); }).ok());
  const Report judged = CheckTimestamps(recorder_.Take());
  EXPECT_TRUE(judged.ok()) << judged.ToText();
  EXPECT_EQ(judged.unknown_committed, 0U);
  EXPECT_EQ(commits, 2);
}

TEST_F(RecorderTest, OneShotsAreTransactionsLikeOthers) {
  using Kind = deut::history::OperationKind;
  const std::vector<Step> write = {{.kind = Kind::kWrite, .table = table_, .key = "a", .payload = "950"},
                                   {.kind = Kind::kInsert, .table = table_, .key = "b"},
                                   {.kind = Kind::kDelete, .table = table_, .key = "c"},
                                   {.kind = Kind::kRead, .table = table_, .key = "a"}};
  ASSERT_TRUE(first_->RunOneShot({}, write).ok());
  ASSERT_EQ(first_->RunOneShot({}, write).status(), ErrorCode::kAlreadyExists);
  int one_shots = 0;
  service_.on_call = [&](FakeCall call, Deadline) -> FakeFault {
    if (call != FakeCall::kOneShot) return {};
    if (++one_shots == 1) return {.status = DEUT_ERROR(kAborted, "a conflict")};
    return {.status = DEUT_ERROR(kOutcomeUnknown, "the answer was lost"), .applied = true};
  };
  const std::vector<Step> update = {{.kind = Kind::kRead, .table = table_, .key = "b"},
                                    {.kind = Kind::kUpdate, .table = table_, .key = "a"}};
  ASSERT_EQ(first_->RunOneShot({}, update).status(), ErrorCode::kOutcomeUnknown);
  service_.on_call = nullptr;
  std::vector<StepResult> results;
  const std::vector<Step> read = {
      {.kind = Kind::kRead, .table = table_, .key = "a"},
      {.kind = Kind::kRead, .table = table_, .key = "z"},
      {.kind = Kind::kScan, .table = table_, .scan = {.direction = Direction::kDescending, .limit_records = 1}}};
  ASSERT_TRUE(first_->RunOneShot({}, read, &results).ok());
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].value->value.id, (WriteId{4000, 1}));
  EXPECT_FALSE(results[1].value);
  ASSERT_EQ(results[2].records.size(), 1U);
  EXPECT_EQ(results[2].records[0].key, "b");
  std::vector<std::string> lines;
  history_ = recorder_.Take();
  const Report judged = CheckTimestamps(history_);
  EXPECT_TRUE(judged.ok()) << judged.ToText();
  EXPECT_EQ(judged.unknown_committed, 1U);
  for (TransactionRecord& t : history_.transactions) {
    EXPECT_EQ(t.timestamp != 0, t.outcome == Outcome::kCommitted);
    for (OperationRecord& operation : t.operations) operation.table = 0;
    lines.push_back(ToText(t).substr(ToText(t).find(t.timestamp != 0                 ? " ok"
                                                    : t.outcome == Outcome::kUnknown ? " unknown"
                                                                                     : " aborted")));
  }
  EXPECT_EQ(lines,
            (std::vector<std::string>{" ok w(a)=1000.1 i(b)=1000.2 d(c) r(a)=1000.1",
                                      " aborted w(a)=2000.1 i(b)=2000.2 d(c)", " aborted u(a)=3000.1",
                                      " unknown u(a)=4000.1", " ok r(a)=4000.1 r(z)=- s[,)<#1~[a%00,)={b=1000.2}"}));
}

TEST_F(RecorderTest, ASlowScanStandsWhereItBegan) {
  ASSERT_TRUE(first_
                  ->Run({},
                        [&](RecordedTransaction& t) -> Status {
                          for (const char* key : {"a", "b", "c"}) DEUT_RETURN_IF_ERROR(t.Put(table_, key));
                          return Status();
                        })
                  .ok());
  service_.max_batch_records = 1;
  ASSERT_TRUE(first_
                  ->Run({},
                        [&](RecordedTransaction& t) -> Status {
                          const auto between = [&] { return t.Put(table_, "d"); };
                          DEUT_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records,
                                                t.ScanSlowly(table_, {.limit_records = 2}, between));
                          EXPECT_EQ(records.size(), 2U);
                          return Status();
                        })
                  .ok());
  const std::vector<std::string> lines = Recorded();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "T2000 ok s[,)#2~[,c)={a=1000.1,b=1000.2} w(d)=2000.1 w(d)=2000.2");
  EXPECT_TRUE(CheckTimestamps(history_).ok());
}

TEST_F(RecorderTest, ABodyThatGivesUpHasAborted) {
  EXPECT_EQ(first_->Run({},
                        [&](RecordedTransaction& t) -> Status {
                          DEUT_RETURN_IF_ERROR(t.Put(table_, "a"));
                          return DEUT_ERROR(kNotFound, "changed my mind");
                        }),
            ErrorCode::kNotFound);
  EXPECT_EQ(Recorded(), std::vector<std::string>{"T1000 aborted w(a)=1000.1"});
}

TEST_F(RecorderTest, AnUnparsableValueIsAGarbageRead) {
  service_.Poke(table_, "a", "something else");
  ASSERT_TRUE(first_->Run({}, [&](RecordedTransaction& t) { return t.Get(table_, "a").status(); }).ok());
  EXPECT_EQ(Recorded(), std::vector<std::string>{"T1000 ok r(a)=0.0"});
  EXPECT_EQ(CheckTimestamps(history_).verdict(), "garbage-read");
}

TEST(StoredTextTest, CarriesTheWrite) {
  const Value list{.id = {.writer = 7, .sequence = 2}, .before = {{.writer = 3, .sequence = 1}}};
  const StoredValue stored = ParseStored(StoredText(list, "a payload"));
  EXPECT_EQ(stored.value, list);
  EXPECT_EQ(stored.payload, "a payload");
  EXPECT_EQ(ParseStored("7.1").value.id, (WriteId{7, 1}));
  for (const char* wrong : {"", "7", "7.", "7.1x", "[7.1", "x"})
    EXPECT_EQ(ParseStored(wrong).value.id, WriteId()) << wrong;
}

}  // namespace
}  // namespace deut::history
