// The text of reports that are built by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tc/log_format/log_record.h"
#include "tc/verify/verify.h"

namespace deut::tc {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

LogReport Whole() {
  LogReport report;
  report.files = 3;
  report.counts.segments = 2;
  report.counts.starts = 1;
  report.counts.blocks = 5;
  report.counts.block_bytes = 20480;
  report.counts.updates = 7;
  report.counts.orphans = 1;
  report.counts.records[static_cast<size_t>(RecordType::kCommit)] = {.count = 4, .bytes = 400};
  report.state.redo_start.stable = {{.dc = DcId(9), .stable = Position{Lsn(64), 3}}};
  report.state.known_dcs = {DcId(9)};
  report.end = Cut{.lsn = Lsn(500), .segment = 2, .offset = 8192};
  report.end_reason = "no block begins here";
  return report;
}

TEST(VerifyTextTest, AWholeLog) {
  const std::string text = ReportText(Whole());
  EXPECT_THAT(text, HasSubstr("2 segments of 3 files, 1 starts, 5 blocks of 20480 bytes\n"));
  EXPECT_THAT(text, HasSubstr("  commits: 4, 400 bytes\n"));
  EXPECT_THAT(text, Not(HasSubstr("low-water records"))) << "there is none";
  EXPECT_THAT(text, HasSubstr("of the chunks 1 are of transactions that did not commit\n"));
  EXPECT_THAT(text, HasSubstr(", data component 9 was stable at 64/3\n"));
  EXPECT_THAT(text, HasSubstr("\ndata component 9 belongs to it\n"));
  EXPECT_THAT(text, HasSubstr("\nthe log ends at LSN 500: no block begins here\n"));
  EXPECT_THAT(text, Not(HasSubstr("what to do")));
  EXPECT_THAT(text, EndsWith("\ntc verify: clean, 4 commits, 7 updates in 5 blocks, 2 segments, 1 starts\n"));
}

TEST(VerifyTextTest, ReportSaysHowAStartTreatsTheTail) {
  LogReport report = Whole();
  report.counts.behind_blocks = 2;
  report.counts.behind_bytes = 8192;
  report.unproven_bytes = 96;
  EXPECT_THAT(
      ReportText(report),
      HasSubstr("behind its end: 2 whole blocks of 8192 bytes, which were never acknowledged: a start cuts them off\n"
                "of the last 96 bytes no later block says that they were durable: a start writes them again\n"));
}

TEST(VerifyTextTest, FindingsNotesAndTheRemedy) {
  LogReport report = Whole();
  report.notes = {"there is no lock file"};
  report.findings = {{.rule = "D3", .text = "a here"}, {.rule = "", .text = "b there"}};
  report.damages = 5;
  const std::string text = ReportText(report);
  EXPECT_THAT(text, HasSubstr("\nnote: there is no lock file\nDAMAGED records (rule D3): a here\nDAMAGED log: b there\n"
                              "and 3 more\nwhat to do: "));
  EXPECT_THAT(text, EndsWith("\ntc verify: DAMAGED, 5 findings\n"));
  report.damages = 1;
  EXPECT_EQ(VerdictLine(report), "tc verify: DAMAGED, 1 finding");
}

TEST(VerifyTextTest, NoLog) {
  EXPECT_EQ(ReportText(LogReport()),
            "there is no log: nothing was ever durable\n"
            "tc verify: clean, 0 commits, 0 updates in 0 blocks, 0 segments, 0 starts\n");
}

}  // namespace
}  // namespace deut::tc
