// Runs each workload on a whole store inside this process; both checkers judge its history. The store is small, so
// that ranges are split and caches emptied all the time. A refused history is kept beside the test's outputs, where
// check_history can read it.
#include "integration/history/workloads.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/history_text.h"
#include "integration/history/timestamp_checker.h"
#include "integration/product/embedded/embedded.h"

namespace deut::history {
namespace {

enum class Harm { kNone, kDropCaches, kRestartDc };

class WorkloadsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    EmbeddedOptions options;
    options.data_dir = folder_.path();
    options.tc.log.segment_bytes = 16 << 20;
    options.tc.log.ring_bytes = 16 << 20;
    options.tc.memory.log2_record_buckets = 8;
    options.tc.ranges.records_per_range = 8;
    options.tc.ranges.period = milliseconds(20);
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
    const Result<TableId> table = store_->client().CreateTable("t");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }

  void Meanwhile(Harm harm) {
    Runtime& runtime = RealRuntime();
    runtime.SleepUntil(runtime.Now() + milliseconds(harm == Harm::kRestartDc ? 200 : 20));
    if (harm == Harm::kDropCaches) EXPECT_TRUE(store_->client().DropCaches().ok());
    if (harm == Harm::kRestartDc) EXPECT_TRUE(store_->RestartDc().ok());
  }

  void RunAndCheck(const std::string& name, Harm harm, Duration duration) {
    Result<std::unique_ptr<Workload>> workload = NewWorkload(name, table_);
    ASSERT_TRUE(workload.ok()) << workload.status().ToString();
    const WorkloadOptions options{
        .threads = 4, .duration = duration, .steps_per_thread = 2500, .seed = RealRuntime().RandomSeed()};
    SCOPED_TRACE(Concat(name, ", seed ", options.seed));
    const MonotonicTime begin = RealRuntime().Now();
    const WorkloadRun run = RunWorkload(store_->client(), **workload, options, [&] { Meanwhile(harm); });
    const MonotonicTime recorded = RealRuntime().Now();
    EXPECT_TRUE(run.status.ok()) << run.status.ToString();
    const Report timestamps = CheckTimestamps(run.history);
    EXPECT_TRUE(timestamps.ok()) << timestamps.ToText();
    const Report cycles = CheckCycles(run.history);
    EXPECT_TRUE(cycles.ok()) << cycles.ToText();
    const MonotonicTime checked = RealRuntime().Now();
    // The store promises that at least one transaction succeeds.
    EXPECT_GT(timestamps.committed, 20U);
    std::cout << name << ": " << timestamps.committed << " committed, " << timestamps.aborted << " aborted, "
              << timestamps.reads << " values read, " << timestamps.scans << " scans, " << cycles.edges
              << " edges; run " << duration_cast<milliseconds>(recorded - begin).count() << " ms, checked in "
              << duration_cast<milliseconds>(checked - recorded).count() << " ms\n";
    if (HasFailure()) Keep(run.history, name);
  }

  static void Keep(const History& history, const std::string& name) {
    const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    if (outputs == nullptr) return;
    const std::string path = Concat(outputs, "/", name, ".history");
    const Status kept = WriteHistory(history, path);
    std::cout << (kept.ok() ? Concat("kept in ", path) : kept.ToString()) << "\n";
  }

  testing::TempDir folder_;
  std::unique_ptr<Embedded> store_;
  TableId table_;
};

TEST_P(WorkloadsTest, IsStrictlySerializable) { RunAndCheck(GetParam(), Harm::kNone, milliseconds(500)); }
TEST_P(WorkloadsTest, IsStrictlySerializableWhenReadsGoToTheDc) {
  RunAndCheck(GetParam(), Harm::kDropCaches, milliseconds(300));
}
TEST_P(WorkloadsTest, IsStrictlySerializableWhenTheDcRestarts) {
  RunAndCheck(GetParam(), Harm::kRestartDc, milliseconds(400));
}

INSTANTIATE_TEST_SUITE_P(All, WorkloadsTest, ::testing::ValuesIn(WorkloadNames()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace deut::history
