#include "integration/ycsb/settle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tc/client/fake_transaction_service.h"

namespace deut::ycsb {
namespace {

using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::HasSubstr;

class SettleTest : public ::testing::Test {
 protected:
  // The next `count` calls of DropCaches return `status`.
  void Refuse(int count, const Status& status) {
    service_.on_call = [this, count, status](FakeCall call, Deadline) {
      return call == FakeCall::kDropCaches && asked_++ < count ? FakeFault{status} : FakeFault{};
    };
  }
  Status Run() {
    return Settle(*client_, options_, [this](std::string_view line) { lines_.emplace_back(line); });
  }

  FakeTransactionService service_{RealRuntime()};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {});
  SettleOptions options_{.step = milliseconds(1), .stall = milliseconds(50)};
  int asked_ = 0;
  std::vector<std::string> lines_;
};

TEST_F(SettleTest, AsksUntilTheStoreIsIdleAndTellsWhatIsLeft) {
  Refuse(3, DEUT_ERROR(kDeadlineExceeded, "not yet"));
  options_.stall = seconds(60);
  service_.on_status = [](ServiceStatus* status) {
    status->tc = {{"collector.waiting_transactions", 77}, {"ship.backlog_bytes", 4096}};
  };
  const Status status = Run();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(asked_, 4);
  ASSERT_EQ(lines_.size(), 3u);
  EXPECT_THAT(lines_[0], HasSubstr("77 transactions in the TC, 4096 bytes on their way to the DC"));
}

TEST_F(SettleTest, GivesUpWhenNothingGetsOn) {
  Refuse(1 << 30, DEUT_ERROR(kDeadlineExceeded, "the oldest open transaction is 5"));
  service_.on_status = [](ServiceStatus* status) { status->tc = {{"collector.waiting_transactions", 77}}; };
  const Status status = Run();
  EXPECT_EQ(status.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(status.ToString(), HasSubstr("77 transactions"));
  EXPECT_THAT(status.ToString(), HasSubstr("the oldest open transaction is 5"));
}

TEST_F(SettleTest, SlowIsNotStuck) {
  // The whole wait takes far longer than the stall limit, but each request finds progress.
  const MonotonicTime begun = RealRuntime().Now();
  service_.on_call = [&](FakeCall call, Deadline deadline) {
    if (call != FakeCall::kDropCaches || RealRuntime().Now() - begun > 4 * options_.stall) return FakeFault{};
    RealRuntime().SleepUntil(deadline);
    return FakeFault{DEUT_ERROR(kDeadlineExceeded, "not yet")};
  };
  uint64_t collected = 0;
  service_.on_status = [&](ServiceStatus* status) { status->tc = {{"collector.collected_transactions", ++collected}}; };
  const Status status = Run();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(RealRuntime().Now() - begun, 4 * options_.stall);
}

TEST_F(SettleTest, UnavailableEndsItUnlessTolerated) {
  Refuse(2, DEUT_ERROR(kUnavailable, "nobody there"));
  EXPECT_EQ(Run().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(asked_, 1);
  options_.tolerate_unavailable = true;
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(asked_, 3);
}

}  // namespace
}  // namespace deut::ycsb
