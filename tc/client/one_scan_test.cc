#include "tc/client/one_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tc/client/client.h"
#include "tc/client/fake_transaction_service.h"

namespace deut {
namespace {

using ::testing::ElementsAre;
using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::IsEmpty;
using testing::JumpingRuntime;

class OneScanTest : public ::testing::Test {
 protected:
  OneScanTest() {
    for (const char* key : {"a", "b", "c", "d", "e"}) service_.Poke(table_, key, std::string(1, key[0] - 'a' + 'A'));
    service_.on_call = [this](FakeCall call, Deadline /*deadline*/) {
      calls_.push_back(call);
      return call == failing_ ? FakeFault{failure_} : FakeFault{};
    };
  }

  static std::vector<std::string> Keys(OneScan& scan) {
    std::vector<std::string> keys;
    while (scan.Next()) keys.emplace_back(scan.key());
    EXPECT_FALSE(scan.Next()) << "stays at the end";
    return keys;
  }

  JumpingRuntime runtime_;
  FakeTransactionService service_{runtime_};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {.runtime = &runtime_});
  TableId table_ = client_->CreateTable("t").value();
  std::vector<FakeCall> calls_;
  FakeCall failing_ = FakeCall::kStatus;
  Status failure_;
};

TEST_F(OneScanTest, ShowsTheRangeAndCommits) {
  OneScan all(*client_, table_, {});
  EXPECT_TRUE(calls_.empty()) << "nothing before the first Next";
  EXPECT_THAT(Keys(all), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_TRUE(all.status().ok() && all.complete());
  EXPECT_NE(all.timestamp(), Timestamp{});
  EXPECT_THAT(calls_, ElementsAre(FakeCall::kNewSession, FakeCall::kBegin, FakeCall::kExecute, FakeCall::kCommit));
  OneScan few(*client_, table_, {.low = "b", .high = "e", .limit_records = 2});
  ASSERT_TRUE(few.Next());
  EXPECT_EQ(few.key(), "b");
  EXPECT_EQ(few.value(), "B");
  EXPECT_EQ(service_.transactions_open(), 0) << "committed by the call that has read it";
  EXPECT_THAT(Keys(few), ElementsAre("c"));
  EXPECT_TRUE(few.status().ok());
  EXPECT_FALSE(few.complete());
  ScanOptions rest{.low = "b", .high = "e"};
  rest.ResumeAt(few.resume());
  OneScan behind(*client_, table_, rest);
  EXPECT_THAT(Keys(behind), ElementsAre("d"));
  OneScan none(*client_, table_, {.low = "b1", .high = "b2"});
  EXPECT_THAT(Keys(none), IsEmpty());
  EXPECT_TRUE(none.status().ok() && none.complete());
  EXPECT_EQ(service_.sessions_opened(), 1) << "each had it after the one before";
}

TEST_F(OneScanTest, ALongerOneStaysATransactionToItsEnd) {
  service_.max_batch_records = 2;
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    OneScan scan(*client_, table_, {.direction = direction});
    ASSERT_TRUE(scan.Next());
    EXPECT_EQ(service_.transactions_open(), 1);
    const bool up = direction == Direction::kAscending;
    EXPECT_EQ(scan.key(), up ? "a" : "e");
    EXPECT_EQ(scan.value(), up ? "A" : "E");
    EXPECT_EQ(Keys(scan).size(), 4u);
    EXPECT_TRUE(scan.status().ok() && scan.complete());
    EXPECT_EQ(service_.transactions_open(), 0);
  }
  OneScan limited(*client_, table_, {.limit_records = 3});
  EXPECT_THAT(Keys(limited), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(limited.status().ok());
  EXPECT_FALSE(limited.complete());
  EXPECT_GT(limited.resume(), "c");
}

TEST_F(OneScanTest, AScanThatStopsEarlyLeavesNothingOpen) {
  service_.max_batch_records = 2;
  for (const uint64_t limit : {0, 2}) {
    OneScan scan(*client_, table_, {.limit_records = limit});
    ASSERT_TRUE(scan.Next());
  }
  EXPECT_EQ(service_.transactions_open(), 0);
  OneScan never(*client_, table_, {});
}

// A failure that does not end the transaction, like that of an operation that is refused before it is sent.
TEST_F(OneScanTest, AFailureThatLeavesItOpenEndsIt) {
  failure_ = Status(ErrorCode::kInvalidArgument, "too long");
  failing_ = FakeCall::kExecute;
  OneScan scan(*client_, table_, {});
  EXPECT_TRUE(Keys(scan).empty());
  EXPECT_EQ(scan.status(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(service_.transactions_open(), 0);
}

TEST_F(OneScanTest, FailuresAreToldAndEndIt) {
  failure_ = Status::Aborted(AbortInfo{.reason = AbortReason::kRangeWriter}, "lost");
  for (const FakeCall call : {FakeCall::kBegin, FakeCall::kExecute, FakeCall::kCommit}) {
    for (const uint32_t batch : {1000, 2}) {
      service_.max_batch_records = batch;
      failing_ = call;
      OneScan scan(*client_, table_, {});
      const std::vector<std::string> keys = Keys(scan);
      EXPECT_EQ(scan.status(), ErrorCode::kAborted);
      // The records shown before the commit were provisional.
      EXPECT_EQ(keys.size(), call == FakeCall::kCommit && batch == 2 ? 5u : 0u);
      failing_ = FakeCall::kStatus;
    }
  }
  EXPECT_EQ(service_.transactions_open(), 0);
  OneScan again(*client_, table_, {});
  EXPECT_EQ(Keys(again).size(), 5u);
  EXPECT_TRUE(again.status().ok());
}

}  // namespace
}  // namespace deut
