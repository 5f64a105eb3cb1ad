#include "tc/client/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "protocol/number.h"
#include "tc/client/fake_transaction_service.h"

namespace deut {
namespace {

using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::HasSubstr;
using testing::JumpingRuntime;

class RetryTest : public ::testing::Test {
 protected:
  // Makes the first `times` calls of this kind fail.
  void Fail(FakeCall kind, int times, const Status& status) {
    service_.on_call = [this, kind, times, status](FakeCall call, Deadline) {
      if (call != kind || failures_ >= times) return FakeFault{};
      ++failures_;
      return FakeFault{status};
    };
  }
  static Status Conflict() {
    return Status::Aborted({.reason = AbortReason::kWriteUncommitted, .table = 1, .key = "a", .other_timestamp = 9},
                           "met another");
  }

  int failures_ = 0;
  JumpingRuntime runtime_;
  FakeTransactionService service_{runtime_};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {.runtime = &runtime_});
  TableId table_ = client_->CreateTable("t").value();
};

TEST_F(RetryTest, CommitsWhatTheBodyLeavesOpen) {
  RetryReport report;
  EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) { return t.Put(table_, "a", "1"); }, &report).ok());
  EXPECT_EQ(service_.Peek(table_, "a"), "1");
  EXPECT_EQ(report.attempts, 1u);
  EXPECT_GT(report.commit.timestamp.value, 0u);
}

TEST_F(RetryTest, RepeatsAConflictAtAnyStepAndCountsItsReason) {
  for (const FakeCall call : {FakeCall::kBegin, FakeCall::kExecute, FakeCall::kCommit}) {
    failures_ = 0;
    Fail(call, 3, Conflict());
    RetryReport report;
    EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) { return t.Put(table_, "a", "1"); }, &report).ok());
    EXPECT_EQ(report.attempts, 4u);
    EXPECT_EQ(report.aborts[static_cast<size_t>(AbortReason::kWriteUncommitted)], 3u);
  }
}

TEST_F(RetryTest, RepeatsWhenTheBodySwallowsTheConflict) {
  Fail(FakeCall::kExecute, 1, Conflict());
  int runs = 0;
  EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) {
                ++runs;
                (void)t.Put(table_, "a", "1");
                return Status();
              }).ok());
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(service_.Peek(table_, "a"), "1");
}

TEST_F(RetryTest, RepeatsWhenTheBodyTurnsTheConflictIntoAnErrorOfItsOwn) {
  Fail(FakeCall::kExecute, 1, Conflict());
  EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) {
                return t.Put(table_, "a", "1").ok() ? Status() : DEUT_ERROR(kInternal, "could not put");
              }).ok());
}

TEST_F(RetryTest, AnErrorOfTheBodyAbortsAndIsReturned) {
  int runs = 0;
  const Status status = RunTransaction(*client_, {}, [&](Transaction& t) {
    ++runs;
    DEUT_RETURN_IF_ERROR(t.Put(table_, "a", "1"));
    return t.Update(table_, "missing", "1");
  });
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(service_.transactions_open(), 0);
  EXPECT_EQ(service_.Peek(table_, "a"), std::nullopt);
}

TEST_F(RetryTest, ABodyMayEndItByItself) {
  EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) {
                DEUT_RETURN_IF_ERROR(t.Put(table_, "a", "1"));
                return t.Abort();
              }).ok());
  EXPECT_EQ(service_.Peek(table_, "a"), std::nullopt);
  EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) {
                DEUT_RETURN_IF_ERROR(t.Put(table_, "a", "1"));
                return t.Commit().status();
              }).ok());
  EXPECT_EQ(service_.Peek(table_, "a"), "1");
}

TEST_F(RetryTest, NeverRepeatsAnUnknownOutcome) {
  int commits = 0;
  service_.forgets_outcomes = true;
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kCommit && call != FakeCall::kOneShot) return FakeFault{};
    ++commits;
    return FakeFault{DEUT_ERROR(kOutcomeUnknown, "the connection broke"), true};
  };
  EXPECT_EQ(RunTransaction(*client_, {}, [&](Transaction& t) { return t.Put(table_, "a", "1"); }).code(),
            ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(commits, 1);
  OneShot put(*client_);
  put.Put(table_, "b", "1");
  EXPECT_EQ(RunOneShot(put).status().code(), ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(commits, 2);
}

// The answer is lost, but the outcome is not: a committed transaction is not repeated, and one that is not committed
// is.
TEST_F(RetryTest, ALostAnswerIsAskedFor) {
  for (const bool applied : {true, false}) {
    int commits = 0;
    service_.on_call = [&](FakeCall call, Deadline) {
      if ((call != FakeCall::kCommit && call != FakeCall::kOneShot) || ++commits != 1) return FakeFault{};
      return FakeFault{DEUT_ERROR(kOutcomeUnknown, "the connection broke"), applied};
    };
    RetryReport report;
    EXPECT_TRUE(
        RunTransaction(*client_, {}, [&](Transaction& t) { return t.Add(table_, "n", 1).status(); }, &report).ok());
    EXPECT_EQ(report.attempts, applied ? 1u : 2u);
    EXPECT_GT(report.commit.timestamp, Timestamp(0));
    commits = 0;
    OneShot put(*client_);
    put.Put(table_, applied ? "a" : "b", "1");
    const Result<CommitAnswer> done = RunOneShot(put);
    EXPECT_TRUE(done.ok()) << done.status().ToString();
    EXPECT_EQ(commits, applied ? 1 : 2);
    EXPECT_EQ(put.results().size(), 1u);
  }
  EXPECT_EQ(service_.Peek(table_, "n"), EncodeNumber(2)) << "each was done once";
  EXPECT_EQ(service_.Peek(table_, "a"), "1");
  EXPECT_EQ(service_.Peek(table_, "b"), "1");
  EXPECT_EQ(service_.outcomes_asked(), 4);
}

// The store cannot be reached for a while. The client asks until it gets an answer, or the time is up.
TEST_F(RetryTest, TheStoreIsAskedUntilItAnswers) {
  int asked = 0, unreachable = 7;
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call == FakeCall::kCommit) return FakeFault{DEUT_ERROR(kOutcomeUnknown, "the connection broke"), true};
    if (call != FakeCall::kAskOutcome || ++asked > unreachable) return FakeFault{};
    return FakeFault{DEUT_ERROR(kUnavailable, "nobody listens")};
  };
  const auto put = [&](Transaction& t) { return t.Put(table_, "a", "1"); };
  EXPECT_TRUE(RunTransaction(*client_, {}, put).ok());
  EXPECT_EQ(asked, 8);
  unreachable = 1'000'000'000;
  const Status status = RunTransaction(*client_, {.timeout = seconds(2)}, put);
  EXPECT_EQ(status.code(), ErrorCode::kOutcomeUnknown);
  EXPECT_NE(status.message().find("nobody listens"), std::string_view::npos) << status.ToString();
  EXPECT_NE(status.message().find("ask again: outcome "), std::string_view::npos) << status.ToString();
  // The client does not wait after an error that cannot get better.
  asked = 0;
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call == FakeCall::kCommit) return FakeFault{DEUT_ERROR(kOutcomeUnknown, "the connection broke"), true};
    if (call != FakeCall::kAskOutcome) return FakeFault{};
    ++asked;
    return FakeFault{DEUT_ERROR(kPermissionDenied, "not you")};
  };
  EXPECT_EQ(RunTransaction(*client_, {}, put).code(), ErrorCode::kOutcomeUnknown);
  EXPECT_EQ(asked, 1);
}

// The results of a one-shot were in the lost answer. The client can say only that it has committed.
TEST_F(RetryTest, LostResultsAreNotMadeUp) {
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kOneShot) return FakeFault{};
    return FakeFault{DEUT_ERROR(kOutcomeUnknown, "the connection broke"), true};
  };
  OneShot add(*client_);
  add.Change(OperationKind::kAdd, table_, "n", 5);
  const Status status = RunOneShot(add).status();
  EXPECT_EQ(status.code(), ErrorCode::kOutcomeUnknown);
  EXPECT_NE(status.message().find("committed at "), std::string_view::npos) << status.ToString();
  EXPECT_EQ(service_.Peek(table_, "n"), EncodeNumber(5));
}

TEST_F(RetryTest, NeverRepeatsAPassedDeadlineOrDamage) {
  for (const ErrorCode code :
       {ErrorCode::kDeadlineExceeded, ErrorCode::kCorruption, ErrorCode::kFenced, ErrorCode::kInternal}) {
    failures_ = 0;
    Fail(FakeCall::kExecute, 5, Status(code, "no"));
    EXPECT_EQ(RunTransaction(*client_, {}, [&](Transaction& t) { return t.Put(table_, "a", "1"); }).code(), code);
    EXPECT_EQ(failures_, 1);
  }
}

TEST_F(RetryTest, GivesUpWithTheLastReasonWhenTimeIsUp) {
  Fail(FakeCall::kCommit, 1'000'000, Conflict());
  const MonotonicTime begun = runtime_.Now();
  RetryReport report;
  const Status status = RunTransaction(
      *client_, {.timeout = seconds(5)}, [&](Transaction& t) { return t.Put(table_, "a", "1"); }, &report);
  EXPECT_LE(runtime_.Now() - begun, seconds(5));
  EXPECT_GE(runtime_.Now() - begun, milliseconds(4800));
  EXPECT_GT(report.attempts, 50u);
  ASSERT_EQ(status.code(), ErrorCode::kAborted);
  ASSERT_NE(status.abort(), nullptr);
  EXPECT_EQ(status.abort()->reason, AbortReason::kWriteUncommitted);
  EXPECT_EQ(status.abort()->key, "a");
  EXPECT_THAT(status.ToString(),
              HasSubstr("gave up after " + std::to_string(report.attempts) + " attempts because the time is up"));
  EXPECT_THAT(status.ToString(), HasSubstr("met another"));
}

TEST_F(RetryTest, GivesUpAfterTheAllowedAttempts) {
  Fail(FakeCall::kCommit, 1'000'000, DEUT_ERROR(kUnavailable, "down"));
  const Status status =
      RunTransaction(*client_, {.max_attempts = 3}, [&](Transaction& t) { return t.Put(table_, "a", "1"); });
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(failures_, 3);
  EXPECT_THAT(status.ToString(), HasSubstr("3 attempts"));
}

TEST_F(RetryTest, CallsOfAnAttemptEndWithTheWhole) {
  std::vector<Deadline> deadlines;
  service_.on_call = [&](FakeCall call, Deadline deadline) {
    if (call != FakeCall::kOpenTable) deadlines.push_back(deadline);
    return FakeFault{};
  };
  const Deadline limit = runtime_.Now() + seconds(2);
  EXPECT_TRUE(RunTransaction(*client_, {.timeout = seconds(2)}, [&](Transaction& t) {
                runtime_.Advance(seconds(1));
                return t.Put(table_, "a", "1", {.timeout = seconds(60)});
              }).ok());
  ASSERT_EQ(deadlines.size(), 4u) << "new session, begin, put, commit";
  for (const Deadline deadline : deadlines) EXPECT_EQ(deadline, limit);
}

TEST_F(RetryTest, RespectsTheHintOfTheRefuser) {
  for (const ErrorCode code : {ErrorCode::kResourceExhausted, ErrorCode::kUnavailable}) {
    failures_ = 0;
    Fail(FakeCall::kBegin, 2, Status(code, "later").WithRetryAfter(700));
    const MonotonicTime begun = runtime_.Now();
    RetryReport report;
    // A client of its own has no idle session, which it would replace before it reports a failure.
    const std::unique_ptr<Client> client = Client::FromService(&service_, {.runtime = &runtime_});
    EXPECT_TRUE(RunTransaction(*client, {}, [&](Transaction& t) { return t.Put(table_, "a", "1"); }, &report).ok());
    EXPECT_GE(runtime_.Now() - begun, milliseconds(1400));
    EXPECT_LT(runtime_.Now() - begun, milliseconds(1600));
    EXPECT_EQ(report.exhausted + report.unavailable, 2u);
  }
}

TEST_F(RetryTest, AHintBeyondTheTimeEndsItAtOnce) {
  Fail(FakeCall::kBegin, 1'000'000, DEUT_ERROR(kResourceExhausted, "later").WithRetryAfter(60'000));
  const MonotonicTime begun = runtime_.Now();
  const Status status = RunTransaction(*client_, {}, [&](Transaction& t) { return t.Put(table_, "a", "1"); });
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(status.retry_after_ms(), 60'000u);
  EXPECT_EQ(runtime_.Now(), begun);
}

// R11: the second attempt declares the keys that the first wrote, merged over attempts, sorted and without
// duplicates.
TEST_F(RetryTest, DeclaresTheKeysWrittenBefore) {
  std::vector<std::vector<std::string>> declared;
  service_.on_begin = [&](const TransactionOptions& options) {
    declared.emplace_back();
    for (const DeclaredKey& key : options.declared) {
      EXPECT_EQ(key.table, table_);
      declared.back().push_back(key.key);
    }
  };
  Fail(FakeCall::kCommit, 2, Conflict());
  int run = 0;
  EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) {
                DEUT_RETURN_IF_ERROR(t.Get(table_, "read").status());
                DEUT_RETURN_IF_ERROR(t.Put(table_, run++ == 0 ? "z" : "b", "1"));
                DEUT_RETURN_IF_ERROR(t.Remove(table_, "m"));
                return t.Insert(table_, "n", "1");
              }).ok());
  EXPECT_EQ(declared, (std::vector<std::vector<std::string>>{{}, {"m", "n", "z"}, {"b", "m", "n", "z"}}));

  declared.clear();
  failures_ = 0;
  Fail(FakeCall::kOneShot, 1, Conflict());
  OneShot shot(*client_);
  shot.Put(table_, "p", "1");
  shot.Get(table_, "q");
  shot.Put(table_, "o", "1");
  shot.Put(table_, "p", "2");
  EXPECT_TRUE(RunOneShot(shot).ok());
  EXPECT_EQ(declared, (std::vector<std::vector<std::string>>{{}, {"o", "p"}}));
}

TEST_F(RetryTest, DeclaresNoMoreThanIsAllowed) {
  size_t most = 0;
  service_.on_begin = [&](const TransactionOptions& options) { most = std::max(most, options.declared.size()); };
  Fail(FakeCall::kCommit, 1, Conflict());
  EXPECT_TRUE(RunTransaction(*client_, {}, [&](Transaction& t) {
                for (int i = 0; i < 3000; ++i) DEUT_RETURN_IF_ERROR(t.Put(table_, std::to_string(i), "1"));
                return Status();
              }).ok());
  EXPECT_EQ(most, WrittenKeys::kMaxKeys);
}

TEST(RetryPauses, AreRandomBelowADoublingBound) {
  RetryOptions options;
  options.first_pause = microseconds(100);
  options.max_pause = milliseconds(10);
  const Status conflict = Status::Aborted({.reason = AbortReason::kWriteLater, .key = {}}, "");
  constexpr int kAttempts = 12;
  std::array<Duration, kAttempts> longest{};
  std::array<Duration, kAttempts> sum{};
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RetryPauses pauses(options, seed);
    for (int i = 0; i < kAttempts; ++i) {
      const Duration pause = pauses.Next(conflict);
      ASSERT_GE(pause, Duration(0));
      longest[i] = std::max(longest[i], pause);
      sum[i] += pause;
    }
  }
  for (int i = 0; i < kAttempts; ++i) {
    const Duration bound = std::min<Duration>(microseconds(100) * (1 << i), milliseconds(10));
    EXPECT_LT(longest[i], bound);
    EXPECT_GT(longest[i], bound * 9 / 10);
    EXPECT_NEAR(static_cast<double>(sum[i].count()) / 400, static_cast<double>(bound.count()) / 2,
                static_cast<double>(bound.count()) * 0.075);  // 5 standard errors of the mean of 400
  }
}

// Several threads add to one counter through the retry loop; in the fake the later committer loses.
TEST(RetryThreads, EveryIncrementCounts) {
  FakeTransactionService service(RealRuntime());
  const std::unique_ptr<Client> client = Client::FromService(&service, {});
  const TableId table = client->CreateTable("t").value();
  service.Poke(table, "n", "0");
  std::atomic<uint64_t> attempts{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      RetryReport report;
      for (int k = 0; k < 250; ++k) {
        const Status status = RunTransaction(
            *client, {},
            [&](Transaction& t) {
              Result<std::optional<std::string>> value = t.Get(table, "n");
              DEUT_RETURN_IF_ERROR(value.status());
              return t.Put(table, "n", std::to_string(std::stoi(**value) + 1));
            },
            &report);
        EXPECT_TRUE(status.ok()) << status.ToString();
      }
      attempts.fetch_add(report.attempts);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(service.Peek(table, "n"), "1000");
  EXPECT_GE(attempts.load(), 1000u);
}

}  // namespace
}  // namespace deut
