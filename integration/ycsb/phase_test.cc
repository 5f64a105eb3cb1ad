#include "integration/ycsb/phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "common/testing/temp_dir.h"
#include "integration/ycsb/journal.h"
#include "integration/ycsb/json.h"
#include "integration/ycsb/record.h"
#include "integration/ycsb/report.h"
#include "integration/ycsb/verify.h"
#include "tc/client/fake_transaction_service.h"

namespace deut::ycsb {
namespace {

using testing::FakeCall;
using testing::FakeFault;
using testing::FakeTransactionService;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;

class PhaseTest : public ::testing::Test {
 protected:
  PhaseTest() {
    options_.records = 2000;
    options_.threads = 2;
    options_.operations = 3000;
    options_.run_time = seconds(20);
    options_.load_batch = 64;
    options_.workload = WorkloadByName("e").value();
  }
  PhaseResult Load() { return RunPhase(PhaseKind::kLoad, *client_, table_, options_, journal_.get(), output_); }
  PhaseResult Run() { return RunPhase(PhaseKind::kRun, *client_, table_, options_, journal_.get(), output_); }

  FakeTransactionService service_{RealRuntime()};
  std::unique_ptr<Client> client_ = Client::FromService(&service_, {});
  TableId table_ = client_->CreateTable("t").value();
  BenchmarkOptions options_;
  PhaseOutput output_;
  TempDir directory_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(PhaseTest, LoadsExactlyTheRecords) {
  options_.records = 2001;
  const PhaseResult load = Load();
  EXPECT_TRUE(load.failure.ok()) << load.failure.ToString();
  EXPECT_EQ(load.total.records, 2001u);
  EXPECT_EQ(service_.Records(table_), 2001u);
  for (const uint64_t number : {uint64_t{0}, uint64_t{1000}, uint64_t{2000}}) {
    const std::string key = KeyOf(number);
    const std::optional<std::string> value = service_.Peek(table_, key);
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(value->size(), 100u);
    EXPECT_TRUE(CheckValue(key, *value).ok());
  }
}

TEST_F(PhaseTest, EveryWorkloadRunsWithoutErrors) {
  for (const char* name : {"a", "b", "c", "d", "e", "e-update", "f"}) {
    SCOPED_TRACE(name);
    table_ = client_->CreateTable(name).value();
    ASSERT_TRUE(Load().failure.ok());
    options_.workload = WorkloadByName(name).value();
    const size_t before = service_.Records(table_);
    const PhaseResult run = Run();
    EXPECT_TRUE(run.failure.ok()) << run.failure.ToString();
    EXPECT_EQ(run.total.transactions, 3000u);
    EXPECT_EQ(run.workers.latency_ns.count(), 3000u);
    EXPECT_EQ(run.total.errors, 0u);
    EXPECT_NE(run.workers.checksum, 0u);
    for (int type = 0; type < kOperationTypes; ++type) {
      EXPECT_NEAR(static_cast<double>(run.workers.latency_ns_by_type[type].count()),
                  options_.workload.percent[type] * 30.0, 140);
    }
    const bool inserts = options_.workload.percent[static_cast<int>(OperationType::kInsert)] != 0;
    EXPECT_EQ(service_.Records(table_) > before, inserts);
    if (*name == 'e') {
      EXPECT_GT(run.total.records, 3000u * 30) << "scans of 50 on average";
      EXPECT_EQ(run.total.scans, run.workers.latency_ns_by_type[static_cast<int>(OperationType::kScan)].count());
    }
  }
}

TEST_F(PhaseTest, LongScansGoInBatches) {
  options_.scan_max = 1500;
  options_.value_bytes = 1000;
  options_.operations = 100;
  service_.max_batch_records = 200;
  ASSERT_TRUE(Load().failure.ok());
  const PhaseResult run = Run();
  EXPECT_TRUE(run.failure.ok()) << run.failure.ToString();
  EXPECT_GT(run.total.records, 100u * 200);
}

TEST_F(PhaseTest, ConflictsAreRepeatedAndCounted) {
  ASSERT_TRUE(Load().failure.ok());
  options_.workload = WorkloadByName("f").value();
  std::atomic<int> calls{0};
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kOneShot && call != FakeCall::kCommit) return FakeFault{};
    if (calls.fetch_add(1) % 10 != 0) return FakeFault{};
    return FakeFault{Status::Aborted({.reason = AbortReason::kRangeReadLater, .key = {}}, "injected")};
  };
  const PhaseResult run = Run();
  EXPECT_TRUE(run.failure.ok()) << run.failure.ToString();
  EXPECT_EQ(run.total.transactions, 3000u);
  EXPECT_GT(run.workers.report.aborts[static_cast<size_t>(AbortReason::kRangeReadLater)], 250u);
  EXPECT_GE(run.total.aborts, 250u);
  // The list may also contain real conflicts of the workload.
  const std::string json = ReportJson(options_, "here", nullptr, &run);
  EXPECT_THAT(json, HasSubstr("\"abort_reasons\": {\""));
  EXPECT_THAT(json, HasSubstr("\"range-read-later\": "));
}

TEST_F(PhaseTest, AnyOtherErrorEndsTheRun) {
  ASSERT_TRUE(Load().failure.ok());
  service_.forgets_outcomes = true;
  service_.on_call = [&](FakeCall call, Deadline) {
    return call == FakeCall::kOneShot ? FakeFault{DEUT_ERROR(kOutcomeUnknown, "lost")} : FakeFault{};
  };
  const PhaseResult run = Run();
  EXPECT_EQ(run.failure.code(), ErrorCode::kOutcomeUnknown);
  EXPECT_LT(run.total.transactions, 10u);
  EXPECT_THAT(ReportJson(options_, "here", nullptr, &run), HasSubstr("\"errors\": 1"));
}

TEST_F(PhaseTest, AWrongOrMissingValueEndsTheRun) {
  ASSERT_TRUE(Load().failure.ok());
  options_.workload = WorkloadByName("c").value();
  options_.records = 100;
  for (uint64_t number = 0; number < 100; ++number)
    service_.Poke(table_, KeyOf(number), service_.Peek(table_, KeyOf(number + 1)));
  EXPECT_EQ(Run().failure.code(), ErrorCode::kCorruption);
  for (uint64_t number = 0; number < 100; ++number) service_.Poke(table_, KeyOf(number), std::nullopt);
  EXPECT_THAT(Run().failure.ToString(), HasSubstr("is missing"));
  options_.workload = WorkloadByName("e").value();
  EXPECT_THAT(Run().failure.ToString(), HasSubstr("a scan from user"));
}

// The store goes away in the middle of the run, and the answers of some commits are lost. The journal states which
// writes must be there.
TEST_F(PhaseTest, ToleratesAnOutageAndJournalsWhatIsKnown) {
  journal_ = Journal::Open(directory_.Sub("journal"), RealRuntime()).value();
  options_.tolerate_unavailable = true;
  options_.workload = WorkloadByName("a").value();
  options_.operations = 2000;
  options_.deadline = milliseconds(200);
  ASSERT_TRUE(Load().failure.ok());
  std::atomic<int> calls{0};
  service_.forgets_outcomes = true;
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kOneShot) return FakeFault{};
    const int number = calls.fetch_add(1);
    if (number % 50 == 7) return FakeFault{DEUT_ERROR(kOutcomeUnknown, "lost after"), true};
    if (number % 50 == 8) return FakeFault{DEUT_ERROR(kOutcomeUnknown, "lost before"), false};
    if (number % 50 == 9) return FakeFault{DEUT_ERROR(kDeadlineExceeded, "late"), false};
    if (number > 500 && number < 540) return FakeFault{DEUT_ERROR(kUnavailable, "down"), false};
    return FakeFault{};
  };
  const PhaseResult run = Run();
  EXPECT_TRUE(run.failure.ok()) << run.failure.ToString();
  EXPECT_GT(run.total.errors, 20u);
  EXPECT_GT(run.workers.tolerated.at(ErrorCode::kOutcomeUnknown).count, 10u);
  EXPECT_GT(run.workers.tolerated.at(ErrorCode::kDeadlineExceeded).count, 5u);
  EXPECT_GE(run.workers.report.unavailable, 20u) << "39, less those met by an idle session, which is replaced";
  service_.on_call = nullptr;

  const JournalContents journal = ReadJournal(directory_.Sub("journal")).value();
  EXPECT_GT(journal.run_acknowledged, 900u);
  EXPECT_EQ(journal.acknowledged, journal.run_acknowledged + options_.records);
  EXPECT_GT(journal.unknown, 5u);
  const JournalCheck check = CheckAgainstJournal(*client_, table_, journal, seconds(30)).value();
  EXPECT_EQ(check.missing, 0u);
  EXPECT_EQ(check.wrong, 0u) << check.details[0];
  EXPECT_EQ(check.checked, check.acknowledged);
}

TEST_F(PhaseTest, EndsByTimeAndTellsProgress) {
  ASSERT_TRUE(Load().failure.ok());
  options_.operations = 0;
  options_.run_time = milliseconds(1250);
  std::vector<std::string> lines;
  std::vector<Tick> ticks;
  output_.progress = [&](std::string_view line) { lines.emplace_back(line); };
  output_.tick = [&](const Tick& tick) { ticks.push_back(tick); };
  const PhaseResult run = Run();
  EXPECT_TRUE(run.failure.ok());
  EXPECT_GE(run.seconds, 1.25);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("scans/s"));
  ASSERT_GE(ticks.size(), 10u);
  for (size_t i = 1; i < ticks.size(); ++i) {
    EXPECT_GE(ticks[i].transactions, ticks[i - 1].transactions);
    EXPECT_GE(ticks[i].elapsed, ticks[i - 1].elapsed);
  }
  EXPECT_EQ(ticks.back().transactions, run.total.transactions);
}

TEST_F(PhaseTest, GoesOnForWantOfWrites) {
  ASSERT_TRUE(Load().failure.ok());
  options_.operations = 0;
  options_.run_time = milliseconds(200);
  // The store is slow enough that the run's time alone would allow about 40 writes.
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call == FakeCall::kOneShot) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(500));
    return FakeFault{};
  };
  options_.min_writes = 60;
  const PhaseResult enough = Run();
  EXPECT_TRUE(enough.failure.ok());
  EXPECT_TRUE(enough.total.writes >= 60 || enough.seconds >= 1.2)
      << enough.total.writes << " in " << enough.seconds << " s";
  EXPECT_LT(enough.total.writes, 600u);
  options_.min_writes = 1'000'000;
  const PhaseResult never = Run();
  EXPECT_TRUE(never.failure.ok());
  EXPECT_GE(never.seconds, 1.2);
  EXPECT_LT(never.total.writes, 10'000u);
}

TEST_F(PhaseTest, TellsTheLongestOperationAlsoOneThatFails) {
  ASSERT_TRUE(Load().failure.ok());
  options_.workload = WorkloadByName("c").value();
  options_.tolerate_unavailable = true;
  std::atomic<int> calls{0};
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kOneShot || calls.fetch_add(1) != 1500) return FakeFault{};
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1300));
    return FakeFault{DEUT_ERROR(kDeadlineExceeded, "injected")};
  };
  std::vector<std::string> lines;
  double oldest = 0;
  output_.progress = [&](std::string_view line) { lines.emplace_back(line); };
  output_.tick = [&](const Tick& tick) { oldest = std::max(oldest, tick.oldest); };
  // The other worker is busy for longer than the delay of the one that waits.
  options_.operations = 0;
  options_.run_time = milliseconds(2100);
  const PhaseResult run = Run();
  EXPECT_TRUE(run.failure.ok()) << run.failure.ToString();
  ASSERT_EQ(run.longest.size(), 2u) << "one of each worker";
  EXPECT_GE(run.longest[0].took, milliseconds(1300));
  EXPECT_LT(run.longest[0].begun - run.begun, milliseconds(2100));
  EXPECT_EQ(run.longest[0].type, OperationType::kRead);
  EXPECT_EQ(run.longest[0].attempts, 1u);
  EXPECT_EQ(run.longest[0].outcome, ErrorCode::kDeadlineExceeded);
  EXPECT_LE(run.longest[1].took, run.longest[0].took);
  EXPECT_GE(oldest, 1.0);
  EXPECT_EQ(run.workers.tolerated.at(ErrorCode::kDeadlineExceeded).count, 1u);
  const std::string json = ReportJson(options_, "here", nullptr, &run);
  EXPECT_THAT(json, HasSubstr("\"longest_operations\": [{\"type\": \"read\", \"began_at_seconds\": "));
  EXPECT_THAT(json, HasSubstr("\"attempts\": 1, \"outcome\": \"DEADLINE_EXCEEDED\"}"));
  EXPECT_THAT(json, HasSubstr("\"tolerated\": {\"DEADLINE_EXCEEDED\": {\"count\": 1, \"example\": \"a read: "));
  EXPECT_THAT(json, HasSubstr("injected"));
  EXPECT_THAT(ReportText(run), HasSubstr("in 1 attempt, began at"));
}

TEST_F(PhaseTest, TellsTheLongestGap) {
  ASSERT_TRUE(Load().failure.ok());
  options_.operations = 2000;
  options_.workload = WorkloadByName("c").value();
  std::atomic<int> calls{0};
  service_.on_call = [&](FakeCall call, Deadline) {
    if (call != FakeCall::kOneShot || calls.fetch_add(1) < 1000) return FakeFault{};
    static const MonotonicTime closed = RealRuntime().Now();
    RealRuntime().SleepUntil(closed + milliseconds(700));  // all workers stall together
    return FakeFault{};
  };
  const PhaseResult run = Run();
  EXPECT_TRUE(run.failure.ok());
  EXPECT_GE(run.longest_gap, 0.5);
  EXPECT_LE(run.longest_gap, 5.0);
}

TEST(ReportJson, HasTheDocumentedMembers) {
  BenchmarkOptions options;
  options.workload = WorkloadByName("e").value();
  PhaseResult run;
  run.seconds = 2;
  run.total.transactions = 100;
  run.total.records = 5000;
  run.workers.report.aborts[static_cast<size_t>(AbortReason::kRangeWriter)] = 4;
  for (int i = 0; i < 100; ++i) run.workers.latency_ns.Record(1'000'000);
  EXPECT_THAT(ReportJson(options, "127.0.0.1:1", nullptr, &run), Not(HasSubstr("restarts_per_second")));
  run.restarted = 6;
  const std::string json = ReportJson(options, "127.0.0.1:1\"", nullptr, &run);
  for (const char* member :
       {"\"workload\": \"e\"", "\"target\": \"127.0.0.1:1\\\"\"", "\"threads\": 4", "\"transactions_per_second\": 50",
        "\"records_per_second\": 2500", "\"aborts_per_second\": 2", "\"restarts_per_second\": 3",
        "\"abort_reasons\": {\"range-writer\": 4}", "\"latency_us\": {\"mean\": ", "\"p50\": ", "\"p95\": ",
        "\"p99\": ", "\"p999\": ", "\"max\": ", "\"errors\": 0"}) {
    EXPECT_THAT(json, HasSubstr(member));
  }
  EXPECT_THAT(JsonString("a\nb\xff"), "\"a\\u000ab\\u00ff\"");
}

}  // namespace
}  // namespace deut::ycsb
