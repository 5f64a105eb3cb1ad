// Tests of the program check_history: its output and its exit status.
#include <string>
#include <vector>

#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "integration/harness/process.h"

namespace deut::history {
namespace {

using ::testing::ContainsRegex;
using testing::Ended;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFolder = "integration/history/corpus/";

class CheckHistoryTest : public ::testing::Test {
 protected:
  Ended Run(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {testing::ProgramAt("CHECK_HISTORY")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return testing::RunProgram(command, folder_.Sub("log"));
  }

  const testing::TempDir folder_;
};

TEST_F(CheckHistoryTest, AcceptsAndRefuses) {
  const Ended right = Run({std::string(kFolder) + "serial.history"});
  EXPECT_EQ(right.status, 0) << right.output;
  EXPECT_THAT(right.output, ContainsRegex("timestamps: verdict: ok"));
  EXPECT_THAT(right.output, ContainsRegex("cycles: verdict: ok"));

  const Ended wrong = Run({std::string(kFolder) + "write_skew.history", "--checker=cycles"});
  EXPECT_EQ(wrong.status, 1) << wrong.output;
  EXPECT_THAT(wrong.output, HasSubstr("verdict: G2-item"));
  EXPECT_THAT(wrong.output, ContainsRegex("cycle T[23] -rw [xy]-> T[23] -rw [xy]-> T[23]"));
  EXPECT_THAT(wrong.output, Not(HasSubstr("timestamps:")));
}

TEST_F(CheckHistoryTest, WritesWhatElleReads) {
  const Ended run = Run({std::string(kFolder) + "lists.history", "--edn=" + folder_.Sub("edn")});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(testing::ReadWholeFile(folder_.Sub("edn")), HasSubstr(":value [[:append \"x\" 1]]"));
}

TEST_F(CheckHistoryTest, SaysWhatIsWrongWithFilesAndFlags) {
  const Ended none = Run({folder_.Sub("none")});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.output, HasSubstr("cannot open the history"));
  const Ended nothing = Run({});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.output, HasSubstr("one FILE is wanted"));
  const Ended deletes = Run({std::string(kFolder) + "deleted_rises_again.history", "--edn=" + folder_.Sub("edn")});
  EXPECT_EQ(deletes.status, 2);
  EXPECT_THAT(deletes.output, HasSubstr("Elle has no word for d(x) of T2"));
}

}  // namespace
}  // namespace deut::history
