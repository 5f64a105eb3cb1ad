// Runs each scenario for a few cycles, on real daemons. DEUT_SEED and DEUT_CYCLES repeat a run and prolong it. A
// failure prints the command that repeats it, and leaves the history and the daemons' logs in the test's undeclared
// outputs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "integration/scenarios/scenario_file.h"
#include "integration/scenarios/scenario_run.h"

namespace deut::scenarios {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFolder = "integration/scenarios/files";

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

std::string KeptIn() {
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  return outputs != nullptr ? outputs : "";
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

class ScenariosTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenariosTest, Holds) {
  const std::string path = Concat(kFolder, "/", GetParam(), ".scenario");
  const Result<Scenario> scenario = ReadScenario(path);
  ASSERT_TRUE(scenario.ok()) << scenario.status().ToString();
  // Keepalive detects half-open connections, so one cycle takes 15 s, sometimes 20 s.
  const uint64_t few = GetParam() == "half_open" ? 1 : 4;
  const RunOptions options{.seed = FromEnvironment("DEUT_SEED", RealRuntime().RandomSeed() >> 16),
                           .cycles = FromEnvironment("DEUT_CYCLES", few),
                           .keep = KeptIn()};
  std::cout << "to repeat: scenario " << path << " --seed=" << options.seed << " --cycles=" << options.cycles << "\n";
  const RunReport report = RunScenario(*scenario, options, std::cout);
  if (report.verdict == "skipped") GTEST_SKIP() << GetParam() << " is skipped: " << report.details;
  EXPECT_EQ(report.verdict, "ok") << report.details;
  EXPECT_EQ(report.cycles, options.cycles);
  EXPECT_GT(report.committed, 4 * report.cycles) << "hardly anything was judged";
  for (const auto& [effect, count] : report.effects) std::cout << "  " << effect << ": " << count << "\n";
  const auto effect = [&](const char* name) { return report.effects.contains(name) ? report.effects.at(name) : 0; };
  if (GetParam() == "replay") EXPECT_GT(effect("replays answered"), 0U) << "the DC has understood no replay";
  if (GetParam() == "disk_full") {
    EXPECT_EQ(effect("full disks noticed"), report.cycles);
    EXPECT_EQ(effect("starts on a full disk"), report.cycles);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScenariosTest, ::testing::ValuesIn(Names()), [](const auto& test) { return test.param; });

// Tests of the instrument itself: it detects errors.

RunReport RunText(const std::string& text, uint64_t cycles) {
  const Result<Scenario> scenario = ParseScenario("s", text);
  EXPECT_TRUE(scenario.ok()) << scenario.status().ToString();
  return RunScenario(*scenario, {.seed = 7, .cycles = cycles}, std::cout);
}

TEST(ScenarioRunTest, ADaemonThatEndsByItselfIsACrash) {
  const RunReport report = RunText("workload any\ntc --no_such_flag=1\nfault kill dc for 0\n", 1);
  EXPECT_EQ(report.verdict, "crash");
  EXPECT_THAT(report.details, HasSubstr("no_such_flag"));
  EXPECT_EQ(report.failed_seed, 7U);
}

TEST(ScenarioRunTest, NoProgressIsAStall) {
  // Each step scans, which needs the DC, and no byte reaches it.
  const RunReport report = RunText(
      "workload phantom_scan\nstall 1s\ntimeout 2s\nalways bandwidth tc_dc 1B to_server\nfault freeze tc for 1ms\n", 3);
  EXPECT_EQ(report.verdict, "stall");
}

TEST(ScenarioRunTest, TheSeedDecidesAndTheLedgerTells) {
  const std::string text = "workload any\nhistory 2\nfault freeze tc for 1ms\nfault freeze dc for 1ms\n";
  const RunReport first = RunText(text, 3), again = RunText(text, 3);
  ASSERT_TRUE(first.ok()) << first.details;
  EXPECT_EQ(first.histories, 2U);
  EXPECT_EQ(first.effects, again.effects);
  const Scenario scenario = ParseScenario("s", text).value();
  EXPECT_THAT(LedgerLine("", scenario, {.seed = 7}, first),
              HasSubstr(Concat("unknown s 7 3 ", first.committed, " ok ")));
}

}  // namespace
}  // namespace deut::scenarios
