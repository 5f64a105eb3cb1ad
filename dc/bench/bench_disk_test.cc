#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_rows.h"
#include "gtest/gtest.h"

namespace deut::dc::bench {
namespace {

using Units = std::vector<std::string>;

class BenchDiskTest : public ::testing::Test {
 protected:
  // The destructor removes the created files.
  ~BenchDiskTest() override {
    const auto left = (*NewSystemStorage(IoKind::kPosix, RealRuntime()))->List(directory_.Sub("pages"));
    EXPECT_TRUE(left.ok() && left->empty());
  }

  const testing::TempDir directory_;
  BenchOptions options_{.records = 8000, .rounds = 1, .time = milliseconds(1), .directory = directory_.path()};
  BenchReport report_;
};

TEST_F(BenchDiskTest, BeyondMemory) {
  options_.memory_share = 2;
  BenchBeyondMemory(options_, &report_);
  EXPECT_EQ(UnitsOf(report_, "disk: insert", 1),
            (Units{"operations/s", "pages loaded/operation", "bytes written/byte"}));
  EXPECT_EQ(UnitsOf(report_, "disk: lookup, 9 of 10 in a tenth, beside a scan of everything", 1),
            (Units{"operations/s", "misses/operation"}));
  size_t rows = 3 + 2 + 1;
  for (const std::string threads : {"1 thread", "2 threads"}) {
    for (const std::string what :
         {"lookup", "lookup, 9 of 10 in a tenth", "scan of 1-100 records", "scan of 10,000 records", "update"}) {
      EXPECT_EQ(UnitsOf(report_, Concat("disk: ", what, ", ", threads), 1),
                (Units{"operations/s", "pages loaded/operation",
                       what == "update" ? "bytes written/byte" : "bytes read/byte"}));
      rows += 3;
    }
  }
  EXPECT_EQ(report_.rows().size(), rows) << report_.Text();
  // Half of the data does not fit into memory: a scan of everything must load and read.
  EXPECT_GT(SampleOf(report_, "disk: scan of 10,000 records, 1 thread", "pages loaded/operation"), 0);
  EXPECT_GT(SampleOf(report_, "disk: scan of 10,000 records, 1 thread", "bytes read/byte"), 0);
  EXPECT_GT(SampleOf(report_, "disk: memory used / budget", "ratio"), 0);
}

TEST_F(BenchDiskTest, RecoveryOfThreeSizesWithEachLengthOfRedo) {
  options_.recovery_gib = 1.0 / 1024;
  options_.redo_mib = {1, 2};
  BenchRecovery(options_, &report_);
  for (const std::string gib : {"0.000244", "0.000488", "0.000977"}) {
    const std::string name = "recovery of " + gib + " GiB";
    EXPECT_EQ(UnitsOf(report_, name, 2), Units{"s"}) << "one opening for each length of redo";
    for (const std::string mib : {"1", "2"}) {
      EXPECT_EQ(UnitsOf(report_, Concat(name, ": redo of ", mib, " MiB"), 1), (Units{"s", "updates/s"}));
    }
  }
  EXPECT_EQ(report_.rows().size(), 3u * 5) << report_.Text();
}

TEST_F(BenchDiskTest, CheckpointsAgainstNone) {
  BenchCheckpoint(options_, &report_);
  EXPECT_EQ(UnitsOf(report_, "checkpoint: every 64 MiB of log", 1), Units{"bytes written/byte"});
  EXPECT_GT(SampleOf(report_, "checkpoint: updates with / without", "ratio"), 0);
  EXPECT_GT(SampleOf(report_, "checkpoint: lookups (and updates) with / without", "ratio"), 0);
  EXPECT_GE(SampleOf(report_, "checkpoint: taken", "checkpoints"), 1) << "that of the load";
  EXPECT_EQ(report_.rows().size(), 4u) << report_.Text();
}

}  // namespace
}  // namespace deut::dc::bench
