#include "common/config/flags.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/version.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

enum class Color : uint8_t { kRed, kGreen };

struct Options {
  bool verbose = false;
  std::string data_dir = "/srv";
  double theta = 0.5;
  uint32_t threads = 2;
  int32_t offset = -1;
  uint64_t memory = uint64_t{64} << 20;
  Duration timeout = seconds(30);
  Color color = Color::kRed;
  std::vector<std::string> names = {"a", "b"};
};

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    flags_.Add("verbose", &options_.verbose, "say more");
    flags_.Add("data_dir", &options_.data_dir, "folder of all files");
    flags_.Add("theta", &options_.theta, "skew");
    flags_.Add<uint32_t>("threads", &options_.threads, "how many", 1, 64);
    flags_.Add("offset", &options_.offset, "signed");
    flags_.AddBytes("memory", &options_.memory, "budget", 1 << 20);
    flags_.Add("timeout", &options_.timeout, "how long to wait");
    flags_.AddEnum("color", &options_.color, {{"red", Color::kRed}, {"green", Color::kGreen}}, "which");
    flags_.Add("names", &options_.names, "who may");
  }

  Result<std::vector<std::string>> Parse(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv = {"program"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    return flags_.Parse(static_cast<int>(argv.size()), argv.data(), *storage_);
  }
  std::string ErrorOf(const std::vector<std::string>& arguments) {
    const auto result = Parse(arguments);
    EXPECT_EQ(result.status(), ErrorCode::kInvalidArgument);
    return std::string(result.status().message());
  }
  void WriteConfig(const std::string& content) {
    auto file = std::move(storage_->Open("config", {.create = true, .writable = true})).value();
    ASSERT_TRUE(file->Truncate(0).ok());
    ASSERT_TRUE(file->Write(0, content.data(), content.size()).ok());
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  Options options_;
  FlagSet flags_{"program", "Does things."};
};

TEST_F(FlagsTest, BytesWithoutAFlagStayEmptyAndHelpSaysWhatThenHolds) {
  std::optional<uint64_t> part, other, third;
  flags_.AddBytes("part", &part, "one part", "a quarter", 1 << 10, 1 << 20);
  flags_.AddBytes("other", &other, "another part", "the rest");
  flags_.AddBytes("third", &third, "a third part", "an eighth", 1 << 10, 1 << 20);
  EXPECT_NE(flags_.Help().find("one part (default a quarter)"), std::string::npos) << flags_.Help();
  const auto parsed = Parse({"--part=64KiB"});
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(part, uint64_t{64} << 10);
  EXPECT_FALSE(other.has_value());
  EXPECT_NE(ErrorOf({"--third=2MiB"}).find("is not from"), std::string::npos);
}

TEST_F(FlagsTest, EveryKind) {
  const auto operands = Parse({"--verbose", "put", "--data_dir=/x=y", "--theta=0.99", "--threads=64", "--offset=-7",
                               "--memory=2GiB", "--timeout=250us", "--color=green", "--names=one, two,three", "key"});
  ASSERT_TRUE(operands.ok()) << operands.status().ToString();
  EXPECT_EQ(*operands, (std::vector<std::string>{"put", "key"}));
  EXPECT_TRUE(options_.verbose);
  EXPECT_EQ(options_.data_dir, "/x=y");
  EXPECT_EQ(options_.theta, 0.99);
  EXPECT_EQ(options_.threads, 64u);
  EXPECT_EQ(options_.offset, -7);
  EXPECT_EQ(options_.memory, uint64_t{2} << 30);
  EXPECT_EQ(options_.timeout, microseconds(250));
  EXPECT_EQ(options_.color, Color::kGreen);
  EXPECT_EQ(options_.names, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_FALSE(flags_.text_requested());
}

TEST_F(FlagsTest, EmptyValuesAndTheEndOfFlags) {
  const auto operands = Parse({"--names=", "--data_dir=", "--verbose=false", "--", "--threads=3", "-x"});
  ASSERT_TRUE(operands.ok()) << operands.status().ToString();
  EXPECT_TRUE(options_.names.empty());
  EXPECT_EQ(options_.data_dir, "");
  EXPECT_EQ(*operands, (std::vector<std::string>{"--threads=3", "-x"}));
  EXPECT_EQ(options_.threads, 2u);
}

TEST_F(FlagsTest, ErrorsNameFlagValueAndForm) {
  EXPECT_EQ(ErrorOf({"--thread=3"}), "there is no flag --thread; the nearest is --threads (--help lists all)");
  EXPECT_EQ(ErrorOf({"--frob=3"}), "there is no flag --frob (--help lists all)");
  EXPECT_EQ(ErrorOf({"--threads=many"}), "--threads: \"many\" is not a whole number from 1 to 64");
  EXPECT_EQ(ErrorOf({"--threads=65"}), "--threads: \"65\" is not a whole number from 1 to 64");
  EXPECT_EQ(ErrorOf({"--threads=3x"}), "--threads: \"3x\" is not a whole number from 1 to 64");
  EXPECT_EQ(ErrorOf({"--offset=99999999999"}),
            "--offset: \"99999999999\" is not a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(ErrorOf({"--theta=nan"}), "--theta: \"nan\" is not a number");
  EXPECT_EQ(ErrorOf({"--verbose=yes"}), "--verbose: \"yes\" is neither true nor false");
  EXPECT_EQ(ErrorOf({"--color=blue"}), "--color: \"blue\" is not one of red|green");
  EXPECT_EQ(ErrorOf({"--memory=1KiB"}), "--memory: \"1KiB\" is not from 1MiB to 18446744073709551615B");
  EXPECT_EQ(ErrorOf({"--timeout=30"}), "--timeout: \"30\" is not a duration such as 250us, 10ms, 30s, 5m or 1h");
  EXPECT_EQ(ErrorOf({"--names=a,,b"}), "--names: \"a,,b\" has an empty item");
  EXPECT_EQ(ErrorOf({"--data_dir"}), "--data_dir wants a value: --data_dir=...");
  EXPECT_EQ(ErrorOf({"--config"}), "--config wants a value: --config=...");
  EXPECT_EQ(ErrorOf({"--hel"}), "there is no flag --hel; the nearest is --help (--help lists all)");
  EXPECT_EQ(ErrorOf({"--data_dir=a", "--data_dir=b"}), "--data_dir is given twice");
}

TEST_F(FlagsTest, TheCommandLineWinsOverTheFileAndTheFileOverDefaults) {
  WriteConfig(
      "# a comment\n"
      "threads = 5\r\n"
      "\n"
      "  data_dir=/from file#1   # and a comment\n"
      "timeout =\t1h");
  const auto operands = Parse({"--data_dir=/from line", "--config=config"});
  ASSERT_TRUE(operands.ok()) << operands.status().ToString();
  EXPECT_EQ(options_.threads, 5u);
  EXPECT_EQ(options_.data_dir, "/from line");
  EXPECT_EQ(options_.timeout, seconds(3600));
  EXPECT_EQ(options_.theta, 0.5);
  EXPECT_EQ(flags_.Given(), (std::vector<std::string>{"data_dir=/from line", "threads=5", "timeout=1h"}));
}

TEST_F(FlagsTest, AValueInTheFileMayHoldAHashSign) {
  WriteConfig("data_dir = /a#b\n");
  ASSERT_TRUE(Parse({"--config=config"}).ok());
  EXPECT_EQ(options_.data_dir, "/a#b");
}

TEST_F(FlagsTest, ErrorsInTheFileNameItsLine) {
  WriteConfig("threads = 5\n\nthreds = 6\n");
  EXPECT_EQ(ErrorOf({"--config=config"}),
            "config:3: there is no flag \"threds\"; the nearest is \"threads\" (--help lists all)");
}

TEST_F(FlagsTest, OtherErrorsInTheFile) {
  WriteConfig("just words\n");
  EXPECT_EQ(ErrorOf({"--config=config"}), "config:1: \"just words\" is not of the form name = value");
  WriteConfig("offset = 1\noffset = 2\n");
  EXPECT_EQ(ErrorOf({"--config=config"}), "config:2: \"offset\" is given twice");
  WriteConfig("threads = 0\n");
  EXPECT_EQ(ErrorOf({"--config=config"}), "config:1: threads: \"0\" is not a whole number from 1 to 64");
  const Status absent = Parse({"--config=absent"}).status();
  EXPECT_EQ(absent, ErrorCode::kNotFound);
  EXPECT_EQ(absent.message().find("--config: "), 0u) << absent.message();
  WriteConfig(std::string(2 << 20, '#'));
  EXPECT_NE(ErrorOf({"--config=config"}).find("the limit is 1048576"), std::string::npos);
}

TEST_F(FlagsTest, HelpListsEveryFlagWithDefaultAndMeaning) {
  ASSERT_TRUE(Parse({"--threads=7", "--help", "--nonsense"}).ok());
  EXPECT_TRUE(flags_.text_requested());
  const std::string help = flags_.RequestedText();
  for (const char* part :
       {"Does things.\n", "Usage: program", "  --threads=NUMBER\n      how many (default 2)\n",
        "  --memory=BYTES\n      budget (default 64MiB)\n",
        "  --timeout=DURATION\n      how long to wait (default 30s)\n",
        "  --color=red|green\n      which (default red)\n", "  --names=TEXT,...\n      who may (default a,b)\n",
        "  --verbose=true|false\n      say more (default false)\n", "  --config=FILE\n"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << "\nis not in\n" << help;
  }
}

TEST_F(FlagsTest, HelpAndVersionAreAskedForInTheUsualWays) {
  for (const char* const argument : {"-h", "help", "--help"}) {
    FlagSet flags("program", "Does things.");
    const char* const argv[] = {"program", argument, "--nonsense"};
    ASSERT_TRUE(flags.Parse(3, argv, *storage_).ok()) << argument;
    EXPECT_TRUE(flags.text_requested()) << argument;
    EXPECT_EQ(flags.RequestedText(), flags.Help()) << argument;
  }
  ASSERT_TRUE(Parse({"--threads=7", "--version", "--nonsense"}).ok());
  EXPECT_TRUE(flags_.text_requested());
  EXPECT_EQ(flags_.RequestedText(), Concat("program ", kVersion, "\n"));
}

TEST_F(FlagsTest, WordsOfACommandAskForNoHelp) {
  const auto operands = Parse({"get", "help", "--", "-h", "--version"});
  ASSERT_TRUE(operands.ok()) << operands.status().ToString();
  EXPECT_EQ(*operands, (std::vector<std::string>{"get", "help", "-h", "--version"}));
  EXPECT_FALSE(flags_.text_requested());
}

TEST(FlagsDeathTest, ANameIsBoundOnce) {
  FlagSet flags("p", "d");
  bool field = false;
  flags.Add("x", &field, "h");
  EXPECT_DEATH(flags.Add("x", &field, "h"), "added");
}

}  // namespace
}  // namespace deut
