#include <string>
#include <vector>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_rows.h"
#include "gtest/gtest.h"

namespace deut::dc::bench {
namespace {

using Units = std::vector<std::string>;

TEST(BenchLargeStoreTest, AllRowsForEachStartAndNoFilesAreLeft) {
  constexpr uint32_t kRounds = 2;
  const testing::TempDir directory;
  BenchReport report;
  BenchLargeStore(
      {.rounds = kRounds, .directory = directory.path(), .store_bytes = 8 << 20, .store_segment_bytes = 1 << 20},
      &report);
  EXPECT_EQ(UnitsOf(report, "large store: made", 1), Units{"s"});
  EXPECT_EQ(UnitsOf(report, "large store", 1), (Units{"GB", "GB without holes", "segments", "leaves", "inner pages"}));
  EXPECT_EQ(UnitsOf(report, "large store: start until the first read", kRounds), Units{"s"});
  EXPECT_EQ(UnitsOf(report, "large store: first read", kRounds), Units{"ms"});
  EXPECT_EQ(UnitsOf(report, "large store: resident memory after the start", kRounds), Units{"MiB"});
  EXPECT_EQ(UnitsOf(report, "large store: counted memory after the start", kRounds), Units{"MiB"});
  for (const std::string which : {"first checkpoint", "checkpoint after 32 updates"}) {
    const std::string name = "large store: " + which;
    EXPECT_EQ(UnitsOf(report, name, kRounds), Units{"s"});
    EXPECT_EQ(UnitsOf(report, name + ": longest read beside it", kRounds), Units{"ms"});
    EXPECT_EQ(UnitsOf(report, name + ": pages written", kRounds), Units{"KiB"});
  }
  EXPECT_EQ(UnitsOf(report, "large store: choice of a victim", kRounds), Units{"ms"});
  EXPECT_EQ(report.rows().size(), 17u) << report.Text();
  EXPECT_GT(SampleOf(report, "large store", "segments"), 1);
  EXPECT_GT(SampleOf(report, "large store", "inner pages"), 1);
  const auto left = (*NewSystemStorage(IoKind::kPosix, RealRuntime()))->List(directory.path());
  EXPECT_TRUE(left.ok() && left->empty());
}

}  // namespace
}  // namespace deut::dc::bench
