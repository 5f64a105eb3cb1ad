#include "integration/ycsb/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/testing/temp_dir.h"
#include "integration/ycsb/journal.h"
#include "integration/ycsb/record.h"
#include "tc/client/fake_transaction_service.h"

namespace deut::ycsb {
namespace {

using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::HasSubstr;
using testing::JumpingRuntime;
using testing::TempDir;

class VerifyTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRecords = 1500;

  // Writes records 0 .. kRecords - 1 as writer 1, and journals them.
  void SetUp() override {
    journal_ = Journal::Open(directory_.Sub("journal"), runtime_).value();
    ASSERT_TRUE(journal_->BeginPhase("run").ok());
    for (uint64_t number = 0; number < kRecords; ++number) {
      const JournalWrite write = Next(number);
      ASSERT_TRUE(journal_->Try(write).ok());
      Store(number, write.first);
      ASSERT_TRUE(journal_->Acknowledge(write, Timestamp(++timestamp_)).ok());
      runtime_.Advance(microseconds(10));
    }
  }
  JournalWrite Next(uint64_t number) { return {.first = {.writer = 1, .sequence = ++sequence_}, .number = number}; }
  void Store(uint64_t number, const WriteId& id) {
    const std::string key = KeyOf(number);
    std::string value;
    MakeValue(number, id, key, 50, &value);
    service_.Poke(table_, key, value);
  }
  JournalContents Read() { return ReadJournal(directory_.Sub("journal")).value(); }
  JournalCheck Check() {
    Result<JournalCheck> check = CheckAgainstJournal(*client_, table_, Read(), seconds(30));
    EXPECT_TRUE(check.ok()) << check.status().ToString();
    return std::move(check).value();
  }

  JumpingRuntime runtime_;
  FakeTransactionService service_{runtime_};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {.runtime = &runtime_});
  TableId table_ = client_->CreateTable("t").value();
  TempDir directory_;
  std::unique_ptr<Journal> journal_;
  uint32_t sequence_ = 0;
  uint64_t timestamp_ = 0;
};

TEST_F(VerifyTest, AWholeStorePasses) {
  EXPECT_EQ(Check().Summary(), "acknowledged 1500, checked 1500, missing 0, wrong 0, unknown 0");
}

TEST_F(VerifyTest, AMissingRecordIsNoticed) {
  service_.Poke(table_, KeyOf(700), std::nullopt);
  const JournalCheck check = Check();
  EXPECT_EQ(check.Summary(), "acknowledged 1500, checked 1500, missing 1, wrong 0, unknown 0");
  ASSERT_EQ(check.details.size(), 1u);
  EXPECT_THAT(check.details[0], HasSubstr("record 700"));
}

TEST_F(VerifyTest, AnOlderValueATornOneAndAnotherKeysAreWrong) {
  // The newer write is acknowledged in the journal, but the store shows the older value.
  const JournalWrite newer = Next(3);
  ASSERT_TRUE(journal_->Try(newer).ok());
  ASSERT_TRUE(journal_->Acknowledge(newer, Timestamp(++timestamp_)).ok());
  std::string torn = *service_.Peek(table_, KeyOf(5));
  torn[40] = static_cast<char>(torn[40] ^ 1);
  service_.Poke(table_, KeyOf(5), torn);
  service_.Poke(table_, KeyOf(6), service_.Peek(table_, KeyOf(7)));
  const JournalCheck check = Check();
  EXPECT_EQ(check.Summary(), "acknowledged 1501, checked 1501, missing 0, wrong 3, unknown 0");
}

TEST_F(VerifyTest, AnUnknownWriteMayBeThereOrNot) {
  const JournalWrite tried = Next(3);
  ASSERT_TRUE(journal_->Try(tried).ok());
  const JournalWrite inserted = Next(5000);
  ASSERT_TRUE(journal_->Try(inserted).ok());
  EXPECT_EQ(Check().Summary(), "acknowledged 1500, checked 1500, missing 0, wrong 0, unknown 2");
  Store(3, tried.first);
  Store(5000, inserted.first);
  EXPECT_EQ(Check().Summary(), "acknowledged 1500, checked 1500, missing 0, wrong 0, unknown 2");
}

TEST_F(VerifyTest, AWriteThatWasRefusedMustNotBeThere) {
  for (const uint64_t number : {uint64_t{3}, uint64_t{5000}}) {
    const JournalWrite refused = Next(number);
    ASSERT_TRUE(journal_->Try(refused).ok());
    ASSERT_TRUE(journal_->Fail(refused).ok());
    Store(number, refused.first);
  }
  EXPECT_EQ(Check().wrong, 2u);
}

TEST_F(VerifyTest, AFailedReadIsAnError) {
  service_.on_call = [](FakeCall call, Deadline) {
    return call == FakeCall::kOneShot ? FakeFault{DEUT_ERROR(kUnavailable, "down")} : FakeFault{};
  };
  EXPECT_EQ(CheckAgainstJournal(*client_, table_, Read(), seconds(1)).status().code(), ErrorCode::kUnavailable);
}

TEST_F(VerifyTest, AKillMustFallBetweenTheAcknowledgements) {
  const JournalContents contents = Read();
  ASSERT_LT(contents.first_run_ack_us, contents.last_run_ack_us);
  const int64_t middle = (contents.first_run_ack_us + contents.last_run_ack_us) / 2;
  EXPECT_TRUE(CheckKillTimes(contents, {}).ok());
  EXPECT_TRUE(CheckKillTimes(contents, {middle, middle + 1}).ok());
  EXPECT_FALSE(CheckKillTimes(contents, {contents.first_run_ack_us}).ok());
  EXPECT_FALSE(CheckKillTimes(contents, {middle, contents.last_run_ack_us + 1}).ok());
}

TEST_F(VerifyTest, ScansAndPointReadsAgree) {
  int drops = 0;
  service_.on_call = [&](FakeCall call, Deadline) {
    drops += call == FakeCall::kDropCaches ? 1 : 0;
    return FakeFault{};
  };
  const ReadCheck check = CheckReads(*client_, table_, 1001, seconds(30)).value();
  EXPECT_EQ(check.scanned_ascending, 500u);
  EXPECT_EQ(check.scanned_descending, 501u);
  EXPECT_EQ(check.points, 1001u);
  EXPECT_EQ(check.disagreements, 0u);
  EXPECT_EQ(drops, 2);
  EXPECT_EQ(CheckReads(*client_, table_, 4000, seconds(30)).status().code(), ErrorCode::kNotFound);
}

TEST_F(VerifyTest, DisagreementIsNoticed) {
  int drops = 0;
  service_.on_call = [&](FakeCall call, Deadline) {
    // Between the scans and the point reads, one record changes and one disappears.
    if (call == FakeCall::kDropCaches && ++drops == 2) {
      Store(10, {.writer = 9, .sequence = 9});
      service_.Poke(table_, KeyOf(11), std::nullopt);
    }
    return FakeFault{};
  };
  const ReadCheck check = CheckReads(*client_, table_, kRecords, seconds(30)).value();
  EXPECT_EQ(check.disagreements, 2u);
  EXPECT_EQ(check.details.size(), 2u);
}

}  // namespace
}  // namespace deut::ycsb
