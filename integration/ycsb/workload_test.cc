#include "integration/ycsb/workload.h"

#include <gtest/gtest.h>

#include <numeric>

namespace deut::ycsb {
namespace {

TEST(Workload, EachAddsUpAndDrawsItsShares) {
  for (const char* name : {"a", "b", "c", "d", "e", "e-update", "f", "hot", "long"}) {
    const Workload workload = WorkloadByName(name).value();
    EXPECT_EQ(workload.name, name);
    EXPECT_EQ(std::accumulate(workload.percent.begin(), workload.percent.end(), 0u), 100u);
    Random random(11);
    std::array<int, kOperationTypes> drawn{};
    for (int i = 0; i < 100'000; ++i) ++drawn[static_cast<int>(workload.Choose(random))];
    for (int type = 0; type < kOperationTypes; ++type) {
      EXPECT_NEAR(drawn[type], workload.percent[type] * 1000.0, 800) << name << " " << type;
      EXPECT_EQ(drawn[type] == 0, workload.percent[type] == 0) << name;
    }
  }
}

TEST(Workload, ScansAndInsertsMakeE) {
  const Workload e = WorkloadByName("e").value();
  EXPECT_EQ(e.percent[static_cast<int>(OperationType::kScan)], 95u);
  EXPECT_EQ(e.percent[static_cast<int>(OperationType::kInsert)], 5u);
  const Workload update = WorkloadByName("e-update").value();
  EXPECT_EQ(update.percent[static_cast<int>(OperationType::kUpdate)], 5u);
  EXPECT_EQ(WorkloadByName("d").value().distribution, Distribution::kLatest);
}

TEST(Workload, TheShareOfScansCanBeSet) {
  Workload update = WorkloadByName("e-update").value();
  ASSERT_TRUE(update.SetScanPercent(20).ok());
  EXPECT_EQ(update.percent[static_cast<int>(OperationType::kScan)], 20u);
  EXPECT_EQ(update.percent[static_cast<int>(OperationType::kUpdate)], 80u);
  ASSERT_TRUE(update.SetScanPercent(100).ok());
  EXPECT_EQ(update.percent[static_cast<int>(OperationType::kUpdate)], 0u);
  EXPECT_EQ(update.SetScanPercent(101), ErrorCode::kInvalidArgument);
  Workload e = WorkloadByName("e").value();
  EXPECT_EQ(e.SetScanPercent(20), ErrorCode::kInvalidArgument);
  EXPECT_EQ(e.percent[static_cast<int>(OperationType::kScan)], 95u);
}

TEST(Workload, UnknownNames) {
  const Result<Workload> unknown = WorkloadByName("g\n");
  EXPECT_EQ(unknown.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(unknown.status().ToString().find("g\\n"), std::string::npos);
}

}  // namespace
}  // namespace deut::ycsb
