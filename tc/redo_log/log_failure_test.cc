#include "tc/redo_log/log_failure.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"

namespace deut::tc {
namespace {

TEST(LogFailure, TheFirstReportStands) {
  std::vector<std::string> told;
  LogFailure failure([&](const Status& status) { told.emplace_back(status.message()); });
  EXPECT_FALSE(failure.failed());
  EXPECT_TRUE(failure.status().ok());
  failure.Report(DEUT_ERROR(kIoError, "first"));
  failure.Report(DEUT_ERROR(kResourceExhausted, "second"));
  EXPECT_TRUE(failure.failed());
  EXPECT_EQ(failure.status().message(), "first");
  EXPECT_EQ(told, std::vector<std::string>{"first"});
}

// A report that loses against another thread's must find the log failed too. Otherwise the log thread, whose write
// failed while a helper reported another failure, would take its write for durable.
TEST(LogFailure, HasFailedForEveryReporterAtOnce) {
  constexpr int kRounds = 60;
  const Status long_one(ErrorCode::kIoError, std::string(1 << 20, 'x'));  // it takes a while to copy
  std::vector<std::unique_ptr<LogFailure>> failures;
  std::atomic<int> told{0};
  for (int i = 0; i < kRounds; ++i) {
    failures.push_back(std::make_unique<LogFailure>([&](const Status&) { told.fetch_add(1); }));
  }
  std::array<std::atomic<int>, 2> at{};
  std::atomic<int> not_failed{0};
  const auto report = [&](size_t me) {
    for (int i = 0; i < kRounds; ++i) {
      at[me].store(i + 1, std::memory_order_seq_cst);
      while (at[1 - me].load(std::memory_order_seq_cst) <= i) RealRuntime().Yield();
      failures[static_cast<size_t>(i)]->Report(long_one);
      const bool known = failures[static_cast<size_t>(i)]->failed() && !failures[static_cast<size_t>(i)]->status().ok();
      not_failed.fetch_add(known ? 0 : 1);
    }
  };
  {
    const auto other = RealRuntime().StartThread("reporter", [&] { report(1); });
    report(0);
  }
  EXPECT_EQ(not_failed.load(), 0);
  EXPECT_EQ(told.load(), kRounds);
}

}  // namespace
}  // namespace deut::tc
