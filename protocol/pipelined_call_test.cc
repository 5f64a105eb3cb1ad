#include "protocol/pipelined_call.h"

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

static_assert(std::movable<PipelinedCall> && !std::copyable<PipelinedCall>);

// Writes the calls that reach it, and its end, into a text.
class LoggedSession final : public TransactionSession, PipelinedSteps {
 public:
  LoggedSession(std::string* log, bool sends) : log_(*log), sends_(sends) {}
  ~LoggedSession() override { log_ += "close "; }
  Timestamp not_before() const override { return Timestamp(7); }
  Result<Timestamp> Begin(const TransactionOptions&, Deadline) override { return Timestamp(8); }
  Status Execute(absl::Span<const Operation>, std::vector<OperationResult>*, Deadline) override { return Status::Ok(); }
  Result<CommitAnswer> Commit(Deadline) override { return CommitAnswer(); }
  Status Abort() override { return Status::Ok(); }
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions&, absl::Span<const Operation>,
                                      std::vector<OperationResult>*, Deadline) override {
    return CommitAnswer();
  }
  PipelinedSteps* pipelined_steps() override { return this; }

 private:
  bool SendPipelined(Token, absl::Span<const Operation>, Deadline) override {
    log_ += "send ";
    return sends_;
  }
  Status AwaitPipelined(Token, absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                        Deadline) override {
    log_ += "await ";
    results->resize(operations.size());
    return DEUT_ERROR(kUnavailable, "so it is");
  }

  std::string& log_;
  const bool sends_;
};

class PipelinedCallTest : public ::testing::Test {
 protected:
  std::unique_ptr<TransactionSession> Session(bool sends) { return std::make_unique<LoggedSession>(&log_, sends); }

  std::string log_;
  const std::vector<Operation> operations_ = std::vector<Operation>(2);
};

TEST_F(PipelinedCallTest, ASessionThatSendsNothingStaysWithItsCaller) {
  std::unique_ptr<TransactionSession> session = Session(/*sends=*/false);
  EXPECT_FALSE(PipelinedCall::Send(&session, operations_, kNoDeadline).has_value());
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(log_, "send ");
}

TEST_F(PipelinedCallTest, ACallInFlightOwnsTheSessionUntilItsAnswer) {
  std::unique_ptr<TransactionSession> session = Session(/*sends=*/true);
  const TransactionSession* const before = session.get();
  std::optional<PipelinedCall> call = PipelinedCall::Send(&session, operations_, kNoDeadline);
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(session, nullptr);
  std::vector<OperationResult> results;
  EXPECT_EQ(std::move(*call).Await(&results, kNoDeadline, &session).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(results.size(), 2u);
  EXPECT_EQ(session.get(), before);
  call.reset();
  EXPECT_EQ(log_, "send await ");
}

TEST_F(PipelinedCallTest, ACallWithoutAwaitClosesTheSession) {
  std::unique_ptr<TransactionSession> session = Session(/*sends=*/true);
  {
    std::optional<PipelinedCall> call = PipelinedCall::Send(&session, operations_, kNoDeadline);
    ASSERT_TRUE(call.has_value());
    const PipelinedCall moved = std::move(*call);
    call.reset();
    EXPECT_EQ(log_, "send ");
  }
  EXPECT_EQ(log_, "send close ");
}

}  // namespace
}  // namespace deut
