#include "integration/product/cli/tc_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tc/verify/log_on_disk.h"

namespace deut::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TcCommandTest : public ::testing::Test {
 protected:
  TcCommandTest() { disk_.Fill(); }

  // Returns the printed text, followed by the error, if there is one.
  std::string Run(const std::vector<std::string>& words, const TcCommandOptions& options = {}) {
    std::string text;
    Status status = CheckTcCommand(words, options);
    if (status.ok()) {
      status = RunTcCommand(disk_.storage(), words, options, [&](std::string_view piece) { text.append(piece); });
    }
    code_ = status.code();
    return status.ok() ? text : text + status.ToString();
  }

  tc::LogOnDisk disk_;
  ErrorCode code_ = ErrorCode::kOk;
};

TEST_F(TcCommandTest, Words) {
  EXPECT_TRUE(IsTcCommand({"tc"}) && IsTcCommand({"tc", "frob"}));
  EXPECT_FALSE(IsTcCommand({}) || IsTcCommand({"get", "tc"}));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"tc"}, {"tc", "frob"}, {"tc", "frob", "/tc"}}) {
    EXPECT_THAT(Run(words), HasSubstr("usage, one of:\n  deut tc verify DIR\n  deut [--from=LSN]"));
  }
  EXPECT_THAT(Run({"tc", "verify"}), EndsWith("usage: deut tc verify DIR"));
  EXPECT_THAT(Run({"tc", "dump", "/tc", "more"}), EndsWith(" tc dump DIR"));
  EXPECT_THAT(Run({"tc", "dump", "/tc"}, {.table = "users", .key = ""}),
              HasSubstr("--table: \"users\" is no table id"));
  EXPECT_THAT(Run({"tc", "dump", "/tc"}, {.table = "", .key = "\\q"}), HasSubstr("--key"));
  EXPECT_EQ(code_, ErrorCode::kInvalidArgument);
  EXPECT_THAT(TcCommandHelp(), StartsWith("  deut tc verify DIR "));
}

TEST_F(TcCommandTest, Verify) {
  EXPECT_THAT(Run({"tc", "verify", "/tc"}), HasSubstr("\ntc verify: clean, "));
  EXPECT_EQ(code_, ErrorCode::kOk);
  EXPECT_THAT(Run({"tc", "verify", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_EQ(code_, ErrorCode::kNotFound);
  disk_.Flip(disk_.Segments()[0], 5000, 1);
  EXPECT_THAT(Run({"tc", "verify", "/tc"}),
              AllOf(HasSubstr("\nDAMAGED log: " + disk_.Segments()[0] + " at offset 4096: "),
                    HasSubstr("\nwhat to do: "), HasSubstr("\ntc verify: DAMAGED, 1 finding\n")));
  EXPECT_EQ(code_, ErrorCode::kCorruption);
  EXPECT_THAT(Run({"tc", "dump", "/tc"}), HasSubstr("the redo log is damaged at LSN "));
  EXPECT_EQ(code_, ErrorCode::kCorruption);
}

TEST_F(TcCommandTest, VerifyFailsIfTheOldestFilesAreMissing) {
  tc::LogOnDisk kept(1 << 30);
  kept.Fill();
  const std::string oldest = kept.Segments()[0];
  ASSERT_TRUE(kept.storage().Remove(oldest).ok());
  std::string text;
  const Status status =
      RunTcCommand(kept.storage(), {"tc", "verify", "/tc"}, {}, [&](std::string_view piece) { text.append(piece); });
  EXPECT_EQ(status.code(), ErrorCode::kCorruption);
  EXPECT_THAT(text, AllOf(HasSubstr("are missing, which were in " + oldest + "; redo starts at LSN "),
                          HasSubstr("\ntc verify: DAMAGED, 1 finding\n")));
}

TEST_F(TcCommandTest, Dump) {
  const std::string all = Run({"tc", "dump", "/tc"});
  EXPECT_THAT(all, AllOf(StartsWith("segment log-"), HasSubstr(", table 1, key never = \"committed\"\n"),
                         HasSubstr("\nthe log ends at LSN ")));
  const std::string one = Run({"tc", "dump", "/tc"}, {.table = "1", .key = "never"});
  EXPECT_THAT(one, AllOf(HasSubstr("key never = \"committed\"\n"), Not(HasSubstr("key key"))));
  EXPECT_THAT(Run({"tc", "dump", "/tc"}, {.table = "2", .key = ""}), StartsWith("the log ends at LSN "));
  EXPECT_THAT(Run({"tc", "dump", "/tc"}, {.to = 1, .table = "", .key = ""}), StartsWith("the log ends at LSN "));
  EXPECT_THAT(Run({"tc", "dump", "/tc"}, {.table = "", .key = "6e65766572", .form = TextForm::kHex}),
              HasSubstr("key 6e65766572 = 0x636f6d6d6974746564\n"));
}

}  // namespace
}  // namespace deut::cli
