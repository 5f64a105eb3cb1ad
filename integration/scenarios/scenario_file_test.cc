#include "integration/scenarios/scenario_file.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut::scenarios {
namespace {

using ::testing::HasSubstr;

TEST(ScenarioFileTest, SaysWhatRunsAndWhatGoesWrong) {
  const Result<Scenario> parsed = ParseScenario("s", R"(# a comment
workload bank  ring
threads 3
clients 2
slice 5ms..10ms
faults 1..2
history 7
cluster 21
timeout 3s
stall 9s
small_disk 64MiB
tc --max_ranges=64 --records_per_range=8
dc --dc_memory=1GiB
always delay client_tc 200us to_server
fault kill both for 0..50ms, replay old, drop_caches
fault storm dc 2..4 times for 1ms..9ms
fault freeze tc for 10ms
fault bandwidth tc_dc 100KB for 5ms
fault drop both to_client for 5ms
fault partition tc_dc for 5ms
fault half_open client_tc told server
fault reset both
fault disk_full
)");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  const Scenario& s = *parsed;
  EXPECT_EQ(s.workloads, (std::vector<std::string>{"bank", "ring"}));
  EXPECT_EQ(s.threads, 3U);
  EXPECT_EQ(s.slice.high, Duration(milliseconds(10)));
  EXPECT_EQ(s.faults_per_cycle.high, 2U);
  EXPECT_EQ(s.history, 7U);
  EXPECT_EQ(s.small_disk, 64U << 20);
  EXPECT_EQ(s.tc_flags, (std::vector<std::string>{"--max_ranges=64", "--records_per_range=8"}));
  ASSERT_EQ(s.always.size(), 1U);
  EXPECT_EQ(s.always[0].delay, Duration(microseconds(200)));
  EXPECT_FALSE(s.always[0].to_client);
  ASSERT_EQ(s.faults.size(), 9U);
  ASSERT_EQ(s.faults[0].size(), 3U);
  EXPECT_EQ(s.faults[0][2].kind, FaultKind::kDropCaches);
  EXPECT_TRUE(s.faults[0][0].tc && s.faults[0][0].dc);
  EXPECT_EQ(s.faults[0][0].text, "kill both for 0..50ms");
  EXPECT_EQ(s.faults[0][1].which, Which::kOld);
  EXPECT_EQ(s.faults[1][0].times.high, 4U);
  EXPECT_EQ(s.faults[3][0].bytes_per_second, 100'000U);
  EXPECT_FALSE(s.faults[4][0].to_server);
  EXPECT_TRUE(s.faults[5][0].tc_dc && !s.faults[5][0].client_tc);
  EXPECT_EQ(s.faults[6][0].told, testing::End::kServer);
}

TEST(ScenarioFileTest, RefusalsNameThePlaceAndWhatIsExpected) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"workload bank bunk", "s:1:15: a workload or \"any\" is expected, not \"bunk\""},
      {"workload any\n\n  wrong", "s:3:3: a setting is expected, not \"wrong\""},
      {"workload any\nfault kill dc", "s:2:14: \"for\" and a duration is expected, not the end of the line"},
      {"workload any\nfault kill dc for soon", "s:2:19: a duration up to 600s"},
      {"workload any\nfault kill dc for 5ms..1ms", "s:2:19: a duration up to 600s"},
      {"workload any\nfault kill ds for 5ms", "s:2:12: tc, dc or both is expected, not \"ds\""},
      {"workload any\nfault kill dc for 5ms,", "s:2:23: a fault is expected, not the end of the line"},
      {"workload any\nfault kill dc for 5ms twice", "s:2:23: the end of the line is expected, not \"twice\""},
      {"workload any\nfault , reset both", "s:2:7: a fault is expected, not a comma"},
      {"workload any\nalways reset both", "s:2:8: delay or bandwidth is expected, not \"reset\""},
      {"workload any\nthreads 0", "s:2:9: a number of threads from 1 to 256 is expected, not \"0\""},
      {"workload any\nfault replay new", "s:2:14: live, old or any is expected, not \"new\""},
      {"fault reset both", "s: there is no line with \"workload\""},
      {"workload any", "s: there is no line with \"fault\""},
      {"workload any\nfault disk_full", "s: disk_full needs small_disk"},
      {"workload any\ndurability buffered\nfault kill tc for 0", "s: a buffered commit may be lost with the TC"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Scenario> parsed = ParseScenario("s", text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.status().ToString(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace deut::scenarios
