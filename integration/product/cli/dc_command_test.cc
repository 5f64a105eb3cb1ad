#include "integration/product/cli/dc_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/runtime.h"
#include "dc/verify/store_on_disk.h"

namespace deut::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DcCommandTest : public ::testing::Test {
 protected:
  DcCommandTest() { store_.Fill(300); }

  // Returns the printed text, followed by the error, if there is one.
  std::string Run(const std::vector<std::string>& words) {
    std::string text;
    Status status = CheckDcCommand(words);
    if (status.ok()) {
      status = RunDcCommand(store_.storage(), RealRuntime(), words, TextForm::kEscaped,
                            [&](std::string_view piece) { text.append(piece); });
    }
    code_ = status.code();
    return status.ok() ? text : text + status.ToString();
  }

  dc::StoreOnDisk store_;
  ErrorCode code_ = ErrorCode::kOk;
};

TEST_F(DcCommandTest, Words) {
  EXPECT_TRUE(IsDcCommand({"dc"}) && IsDcCommand({"dc", "frob"}));
  EXPECT_FALSE(IsDcCommand({}) || IsDcCommand({"get", "dc"}));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"dc"}, {"dc", "frob"}, {"dc", "frob", "/dc"}}) {
    EXPECT_THAT(Run(words), HasSubstr("usage, one of:\n  deut dc verify DIR\n  deut dc inspect DIR [checkpoint"));
  }
  EXPECT_THAT(Run({"dc", "verify"}), EndsWith("usage: deut dc verify DIR"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"dc", "inspect"},
                                                {"dc", "inspect", "/dc", "frob", "1"},
                                                {"dc", "inspect", "/dc", "page"},
                                                {"dc", "inspect", "/dc", "page", "x1"},
                                                {"dc", "inspect", "/dc", "page", "1x"},
                                                {"dc", "inspect", "/dc", "page", "0"},
                                                {"dc", "inspect", "/dc", "page", "1", "2"},
                                                {"dc", "inspect", "/dc", "page", "99999999999999999999"}}) {
    EXPECT_THAT(Run(words), HasSubstr("usage: deut dc inspect DIR [checkpoint [N] | segment N | page ID | table ID]"));
  }
  EXPECT_THAT(DcCommandHelp(), StartsWith("  deut dc verify DIR "));
}

TEST_F(DcCommandTest, Verify) {
  EXPECT_THAT(Run({"dc", "verify", "/dc"}), HasSubstr("\ndc verify: clean, "));
  EXPECT_EQ(code_, ErrorCode::kOk);
  EXPECT_THAT(Run({"dc", "verify", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_EQ(code_, ErrorCode::kNotFound);
  const auto part = store_.Parts().back();
  store_.Flip(part.path, part.address.offset() + 60, 1);
  EXPECT_THAT(Run({"dc", "verify", "/dc"}),
              ::testing::AllOf(HasSubstr("\nDAMAGED segment: " + part.path + ": offset "), HasSubstr("\nwhat to do: "),
                               HasSubstr("\ndc verify: DAMAGED, ")));
  EXPECT_EQ(code_, ErrorCode::kCorruption);
}

TEST_F(DcCommandTest, Inspect) {
  EXPECT_THAT(Run({"dc", "inspect", "/dc"}), StartsWith("data component 7, incarnation 1\n"));
  EXPECT_THAT(Run({"dc", "inspect", "/dc", "checkpoint"}), StartsWith("checkpoint 4 of data component 7"));
  EXPECT_THAT(Run({"dc", "inspect", "/dc", "checkpoint", "3"}), StartsWith("checkpoint 3 of data component 7"));
  EXPECT_THAT(Run({"dc", "inspect", "/dc", "segment", "1"}), StartsWith("segment 1: base parts, "));
  EXPECT_THAT(Run({"dc", "inspect", "/dc", "page", "1"}), StartsWith("page 1 in checkpoint 4: "));
  EXPECT_THAT(Run({"dc", "inspect", "/dc", "table", "3"}),
              StartsWith("table 3 in checkpoint 4: table 3, root page 1, "));
}

}  // namespace
}  // namespace deut::cli
