#include "integration/history/history_text.h"

#include <sstream>
#include <string>

#include "common/runtime/random.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut::history {
namespace {

using ::testing::HasSubstr;

constexpr const char* kExample =
    "history 1\n"
    "T1 c1 10..20 @1 ok w(x)=1.1!11-12 a(list)=1.2 i3(%00k%20)=1.3 u(x)=1.4 p(q) d(x)\n"
    "T2 c2 15.. @7 unknown r(x)=- r(list)=[1.2,9.1] s[a,z)<#2~[x,z)={y=1.1,x=[1.2,1.3]}\n"
    "T3 c0 -5..0 @9 aborted snapshot>4 s[,)={}\n"
    "T4 c0 1..1 unknown\n"
    "T5 c3 3..4 @? ok w(end7)=5.1\n";

std::string Written(const History& history) {
  std::ostringstream out;
  WriteHistory(history, out);
  return out.str();
}

TEST(HistoryTextTest, ReadsAndWrites) {
  const Result<History> history = ParseHistory(kExample);
  ASSERT_TRUE(history.ok()) << history.status().ToString();
  ASSERT_EQ(history->transactions.size(), 5U);
  const TransactionRecord& first = history->transactions[0];
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.timestamp, 1U);
  ASSERT_EQ(first.operations.size(), 6U);
  EXPECT_EQ(first.operations[0].invoke, 11);
  EXPECT_EQ(first.operations[0].complete, 12);
  EXPECT_EQ(first.operations[2].table, 3U);
  EXPECT_EQ(first.operations[2].key, std::string("\0k ", 3));
  const TransactionRecord& second = history->transactions[1];
  EXPECT_EQ(second.outcome, Outcome::kUnknown);
  EXPECT_FALSE(second.operations[0].value.has_value());
  EXPECT_EQ(second.operations[1].value->id, (WriteId{9, 1}));
  EXPECT_EQ(second.operations[1].value->before.size(), 1U);
  const Scan& scan = second.scans[0];
  EXPECT_TRUE(scan.descending);
  EXPECT_EQ(scan.limit, 2U);
  EXPECT_EQ(scan.reached_low, "x");
  EXPECT_EQ(scan.results.size(), 2U);
  EXPECT_TRUE(history->transactions[2].snapshot);
  EXPECT_EQ(history->transactions[2].min_timestamp, 4U);
  EXPECT_TRUE(history->transactions[4].untimed);
  // T4's end has no meaning and is not written.
  std::string expected = kExample;
  expected.replace(expected.find("1..1 unknown"), 4, "1..");
  EXPECT_EQ(Written(*history), expected);
}

TEST(HistoryTextTest, KeepsAFile) {
  const testing::TempDir folder;
  const Result<History> history = ParseHistory(kExample);
  ASSERT_TRUE(history.ok());
  ASSERT_TRUE(WriteHistory(*history, folder.Sub("h")).ok());
  const Result<History> again = ReadHistory(folder.Sub("h"));
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(Written(*again), Written(*history));
  EXPECT_EQ(ReadHistory(folder.Sub("none")).status().code(), ErrorCode::kIoError);
  EXPECT_EQ(WriteHistory(*history, folder.Sub("no/folder")).code(), ErrorCode::kIoError);
}

TEST(HistoryTextTest, ErrorsNameTheLine) {
  constexpr struct {
    const char* text;
    const char* message;
  } kWrong[] = {
      {"", "line 1: a history begins with"},
      {"history 2\n", "line 1: a history begins with"},
      {"history 1\n\n# c\nX\n", "line 4, column 1: expected T"},
      {"history 1\nT0 c1 1..2 ok\n", "line 2, column 3: expected T"},
      {"history 1\nT1 c1 2..1 ok\n", "an interval that does not end before it begins"},
      {"history 1\nT1 c1 2.. ok\n", "the end of the interval"},
      {"history 1\nT1 c1 2..3 @0 ok\n", "a timestamp"},
      {"history 1\nT1 c1 2..3 maybe\n", "ok, aborted or unknown"},
      {"history 1\nT1 c1 2..3 ok r(x)\n", "= and a value"},
      {"history 1\nT1 c1 2..3 ok r()=-\n", "a key"},
      {"history 1\nT1 c1 2..3 ok r(%4x)=-\n", "a key"},
      {"history 1\nT1 c1 2..3 ok w(x)=2.1\n", "a write of this transaction"},
      {"history 1\nT1 c1 2..3 ok w(x)=[1.1,1.2]\n", "a write of this transaction"},
      {"history 1\nT1 c1 2..3 ok r(x)=[1.1,\n", "a value"},
      {"history 1\nT1 c1 2..3 ok s[a,b={}\n", "bounds"},
      {"history 1\nT1 c1 2..3 ok s[a,b)#0={}\n", "a number of records"},
      {"history 1\nT1 c1 2..3 ok s[a,b)={x=1.1\n", ", or }"},
      {"history 1\nT1 c1 2..3 ok s[a,b)={x}\n", "KEY=VALUE"},
      {"history 1\nT1 c1 2..3 ok z(x)\n", "an operation"},
      {"history 1\nT1 c1 2..3 ok  d(x)\n", "an operation"},
      {"history 1\nT1 c1 2..3 ok d(x)!5-4\n", "the operation's interval"},
      {"history 1\nT99999999999999999999999 c1 2..3 ok\n", "T and the transaction's number"},
  };
  for (const auto& [text, message] : kWrong) {
    const Result<History> history = ParseHistory(text);
    ASSERT_FALSE(history.ok()) << text;
    EXPECT_EQ(history.status().code(), ErrorCode::kCorruption);
    EXPECT_THAT(history.status().ToString(), HasSubstr(message)) << text;
  }
}

// A text that parses can be written, and the result parses to the same history.
TEST(HistoryTextTest, DamagedTextNeverHarms) {
  Random random(20261121);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = kExample;
    for (uint64_t changes = 1 + random.Below(3); changes > 0; --changes) {
      const size_t at = 10 + random.Below(text.size() - 10);
      if (random.OneIn(2)) {
        text[at] = kExample[random.Below(text.size() - 1)];
      } else {
        text.erase(at, 1 + random.Below(3));
      }
    }
    const Result<History> history = ParseHistory(text);
    if (!history.ok()) {
      ASSERT_THAT(history.status().ToString(), HasSubstr("line ")) << text;
      continue;
    }
    ++accepted;
    const std::string written = Written(*history);
    const Result<History> again = ParseHistory(written);
    ASSERT_TRUE(again.ok()) << written;
    ASSERT_EQ(Written(*again), written);
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace deut::history
