#include "protocol/prefetch.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

static_assert(std::is_move_constructible_v<PrefetchNotes> && !std::is_copy_constructible_v<PrefetchNotes>);
static_assert(std::is_move_constructible_v<PendingPrefetch> && !std::is_copy_constructible_v<PendingPrefetch>);

// Writes the calls that reach it, and its end, into a text.
class LoggedSession final : public TransactionSession, PrefetchSteps {
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
  PrefetchSteps* prefetch_steps() override { return this; }

 private:
  struct Begun final : BegunOneShot {
    explicit Begun(std::string* text) : log(*text) {}
    ~Begun() override { log += "end "; }
    std::string& log;
  };

  bool NotePrefetch(Token, absl::Span<const Operation> operations) override {
    log_ += "note ";
    return operations.size() == 1;
  }
  std::unique_ptr<BegunOneShot> BeginForPrefetch(Token, const TransactionOptions&,
                                                 absl::Span<const Operation> operations) override {
    log_ += "begin ";
    return operations.size() == 1 ? std::make_unique<Begun>(&log_) : nullptr;
  }
  bool StartPrefetch(Token) override {
    log_ += "start ";
    return sends_;
  }
  bool AwaitPrefetch(Token, Deadline) override {
    log_ += "await ";
    return false;
  }

  std::string& log_;
  const bool sends_;
};

class PrefetchTest : public ::testing::Test {
 protected:
  std::unique_ptr<TransactionSession> Session(bool sends) { return std::make_unique<LoggedSession>(&log_, sends); }

  std::string log_;
  const std::vector<Operation> one_ = std::vector<Operation>(1), two_ = std::vector<Operation>(2);
};

TEST_F(PrefetchTest, AwaitGivesBackTheSessionAndTheBegunTransactionsByTheirTags) {
  std::unique_ptr<TransactionSession> session = Session(/*sends=*/true);
  const TransactionSession* const before = session.get();
  PrefetchNotes notes(std::move(session));
  EXPECT_TRUE(notes.Note(one_));
  EXPECT_FALSE(notes.Note(two_));
  EXPECT_TRUE(notes.Begin({}, one_, 5));
  EXPECT_FALSE(notes.Begin({}, two_, 6));
  EXPECT_TRUE(notes.Begin({}, one_, 7));
  PendingPrefetch pending = std::move(notes).Start();
  EXPECT_TRUE(pending.sent());
  {
    const EndedPrefetch ended = std::move(pending).Await(kNoDeadline);
    EXPECT_EQ(ended.session.get(), before);
    EXPECT_FALSE(ended.all_answered);
    ASSERT_EQ(ended.begun.size(), 2u);
    EXPECT_EQ(ended.begun[0].tag, 5u);
    EXPECT_EQ(ended.begun[1].tag, 7u);
    EXPECT_NE(ended.begun[1].transaction, nullptr);
    EXPECT_EQ(log_, "note note begin begin begin start await ");
  }
  EXPECT_EQ(log_, "note note begin begin begin start await end end close ");
}

TEST_F(PrefetchTest, WithoutAMessageTheBegunTransactionsEndAndTheSessionComesBack) {
  PrefetchNotes notes(Session(/*sends=*/false));
  EXPECT_TRUE(notes.Begin({}, one_, 0));
  PendingPrefetch pending = std::move(notes).Start();
  EXPECT_FALSE(pending.sent());
  EXPECT_EQ(log_, "begin start end ");
  const EndedPrefetch ended = std::move(pending).Await(kNoDeadline);
  EXPECT_NE(ended.session, nullptr);
  EXPECT_TRUE(ended.all_answered);
  EXPECT_TRUE(ended.begun.empty());
  EXPECT_EQ(log_, "begin start end ");
}

TEST_F(PrefetchTest, WithoutASessionNothingIsNoted) {
  PrefetchNotes notes(nullptr);
  EXPECT_FALSE(notes.Note(one_));
  EXPECT_FALSE(notes.Begin({}, one_, 0));
  PendingPrefetch pending = std::move(notes).Start();
  EXPECT_FALSE(pending.sent());
  EXPECT_EQ(std::move(pending).Await(kNoDeadline).session, nullptr);
}

// The DC may hold the request of a begun transaction until the session has given it up.
TEST_F(PrefetchTest, APrefetchThatIsGivenUpClosesTheSessionBeforeTheBegunTransactionsEnd) {
  {
    PrefetchNotes notes(Session(/*sends=*/true));
    EXPECT_TRUE(notes.Begin({}, one_, 0));
  }
  EXPECT_EQ(log_, "begin close end ");
  log_.clear();
  {
    PrefetchNotes notes(Session(/*sends=*/true));
    EXPECT_TRUE(notes.Begin({}, one_, 0));
    const PendingPrefetch pending = std::move(notes).Start();
  }
  EXPECT_EQ(log_, "begin start close end ");
}

}  // namespace
}  // namespace deut
