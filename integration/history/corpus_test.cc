// Runs both checkers over the kept histories. Comments in each history say what the two must find.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/history_text.h"
#include "integration/history/timestamp_checker.h"

namespace deut::history {
namespace {

constexpr const char* kFolder = "integration/history/corpus";

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the text behind "# expect WHICH: ".
std::string Expected(const std::string& text, const std::string& which) {
  const std::string label = "# expect " + which + ": ";
  const size_t at = text.find(label);
  if (at == std::string::npos) return "nothing is expected";
  const size_t begin = at + label.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

class CorpusTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, BothCheckersFindWhatIsThere) {
  const std::string text = TextOf(GetParam());
  const Result<History> history = ParseHistory(text);
  ASSERT_TRUE(history.ok()) << history.status().ToString();
  const Report timestamps = CheckTimestamps(*history);
  EXPECT_EQ(timestamps.verdict(), Expected(text, "timestamps")) << timestamps.ToText();
  const Report cycles = CheckCycles(*history);
  EXPECT_EQ(cycles.verdict(), Expected(text, "cycles")) << cycles.ToText();
}

TEST_P(CorpusTest, TheTextIsWrittenAsItWasRead) {
  const std::string text = TextOf(GetParam());
  const Result<History> history = ParseHistory(text);
  ASSERT_TRUE(history.ok()) << history.status().ToString();
  std::ostringstream out;
  WriteHistory(*history, out);
  std::string without_comments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) without_comments += line + "\n";
  }
  EXPECT_EQ(out.str(), without_comments);
}

INSTANTIATE_TEST_SUITE_P(Histories, CorpusTest, ::testing::ValuesIn(Files()),
                         [](const auto& test) { return std::filesystem::path(test.param).stem().string(); });

TEST(CorpusFolderTest, IsNotEmpty) { EXPECT_GE(Files().size(), 45U); }

}  // namespace
}  // namespace deut::history
