#include "integration/ycsb/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/testing/temp_dir.h"
#include "integration/ycsb/journal_reader.h"

namespace deut::ycsb {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

JournalWrite Write(uint64_t writer, uint32_t sequence, uint64_t number, uint32_t count = 1) {
  return {.first = {.writer = writer, .sequence = sequence}, .number = number, .count = count};
}

class JournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> Open() { return Journal::Open(path_, RealRuntime()).value(); }
  JournalContents Read() {
    Result<JournalContents> contents = ReadJournal(path_);
    EXPECT_TRUE(contents.ok()) << contents.status().ToString();
    return contents.ok() ? *contents : JournalContents{};
  }
  std::string ReadError() {
    const Result<JournalContents> contents = ReadJournal(path_);
    return contents.ok() ? "no error" : contents.status().ToString();
  }
  std::string Content() {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Replace(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }

  TempDir directory_;
  const std::string path_ = directory_.Sub("journal");
};

TEST_F(JournalTest, TheNewestAcknowledgedWriteOfEachRecordCounts) {
  const auto journal = Open();
  ASSERT_TRUE(journal->BeginPhase("load").ok());
  ASSERT_TRUE(journal->Try(Write(1, 1, 100, 10)).ok());
  ASSERT_TRUE(journal->Acknowledge(Write(1, 1, 100, 10), Timestamp(50)).ok());
  ASSERT_TRUE(journal->BeginPhase("run").ok());
  // The acknowledgements arrive in another order than the commits.
  ASSERT_TRUE(journal->Try(Write(2, 1, 105)).ok());
  ASSERT_TRUE(journal->Try(Write(3, 1, 105)).ok());
  ASSERT_TRUE(journal->Acknowledge(Write(3, 1, 105), Timestamp(80)).ok());
  ASSERT_TRUE(journal->Acknowledge(Write(2, 1, 105), Timestamp(70)).ok());
  ASSERT_TRUE(journal->Try(Write(2, 2, 106)).ok());
  ASSERT_TRUE(journal->Try(Write(2, 3, 999)).ok());
  ASSERT_TRUE(journal->Try(Write(2, 4, 106)).ok());
  ASSERT_TRUE(journal->Fail(Write(2, 4, 106)).ok());
  const JournalContents contents = Read();
  EXPECT_EQ(contents.acknowledged, 12u);
  EXPECT_EQ(contents.run_acknowledged, 2u);
  EXPECT_EQ(contents.unknown, 2u);
  EXPECT_EQ(contents.records.size(), 11u);
  EXPECT_EQ(contents.writers.size(), 3u);
  EXPECT_GT(contents.first_run_ack_us, 0);
  EXPECT_LE(contents.first_run_ack_us, contents.last_run_ack_us);

  const RecordHistory& fifth = contents.records.at(105);
  EXPECT_TRUE(fifth.Allows({.writer = 3, .sequence = 1}));
  EXPECT_FALSE(fifth.Allows({.writer = 2, .sequence = 1})) << "overwritten";
  EXPECT_FALSE(fifth.Allows({.writer = 1, .sequence = 6})) << "overwritten";
  const RecordHistory& sixth = contents.records.at(106);
  EXPECT_TRUE(sixth.Allows({.writer = 1, .sequence = 7}));
  EXPECT_TRUE(sixth.Allows({.writer = 2, .sequence = 2})) << "may have happened";
  EXPECT_FALSE(sixth.Allows({.writer = 2, .sequence = 4})) << "refused for good";
  EXPECT_FALSE(sixth.Allows({.writer = 1, .sequence = 6})) << "another record's";
  EXPECT_FALSE(contents.records.at(999).acknowledged);
}

TEST_F(JournalTest, ATornLastLineIsForgottenAndTheNextProcessGoesOn) {
  {
    const auto journal = Open();
    ASSERT_TRUE(journal->Try(Write(1, 1, 5)).ok());
    ASSERT_TRUE(journal->Acknowledge(Write(1, 1, 5), Timestamp(9)).ok());
  }
  const std::string whole = Content();
  const size_t last_line = whole.rfind("A ");
  for (size_t cut = last_line; cut < whole.size(); ++cut) {
    Replace(whole.substr(0, cut));
    JournalContents contents = Read();
    EXPECT_EQ(contents.acknowledged, 0u) << cut;
    EXPECT_EQ(contents.unknown, 1u);
    {
      const auto journal = Open();
      ASSERT_TRUE(journal->Try(Write(2, 1, 6)).ok());
      ASSERT_TRUE(journal->Acknowledge(Write(2, 1, 6), Timestamp(10)).ok());
    }
    contents = Read();
    EXPECT_EQ(contents.processes, 2u);
    EXPECT_TRUE(contents.records.at(6).acknowledged);
    // If the cut is exactly before the newline, the next process completes the line.
    EXPECT_EQ(contents.acknowledged, cut + 1 == whole.size() ? 2u : 1u) << cut;
  }
}

TEST_F(JournalTest, DamageElsewhereIsRefused) {
  {
    const auto journal = Open();
    for (uint32_t i = 1; i <= 3; ++i) {
      ASSERT_TRUE(journal->Try(Write(1, i, i)).ok());
      ASSERT_TRUE(journal->Acknowledge(Write(1, i, i), Timestamp(i)).ok());
    }
  }
  const std::string whole = Content();
  for (size_t i = whole.find('\n') + 1; i + 1 < whole.rfind("A "); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    Replace(damaged);
    EXPECT_THAT(ReadError(), HasSubstr("CORRUPTION")) << i;
  }
  std::string missing = whole;
  missing.erase(missing.find("T 1 2"), missing.find("A 1 2") - missing.find("T 1 2"));
  Replace(missing);
  EXPECT_THAT(ReadError(), HasSubstr("line 4: a write is answered that was not tried"));
  Replace(whole.substr(0, whole.find('\n') + 1) + JournalLine("T 1 1 2"));
  EXPECT_THAT(ReadError(), HasSubstr("says nothing that is known"));
  Replace(JournalLine("S 2 1"));
  EXPECT_THAT(ReadError(), HasSubstr("version 2"));
  Replace("");
  EXPECT_THAT(ReadError(), HasSubstr("no journal"));
  Replace("\n\n");
  EXPECT_THAT(ReadError(), HasSubstr("CORRUPTION"));
  EXPECT_EQ(ReadJournal(directory_.Sub("none")).status().code(), ErrorCode::kIoError);
}

TEST_F(JournalTest, ErrorsNameTheFile) {
  const Result<std::unique_ptr<Journal>> journal = Journal::Open(directory_.Sub("no/such/folder"), RealRuntime());
  EXPECT_EQ(journal.status().code(), ErrorCode::kIoError);
  EXPECT_THAT(journal.status().ToString(), HasSubstr("no/such/folder"));
}

TEST_F(JournalTest, ThreadsDoNotMixTheirLines) {
  const auto journal = Open();
  std::vector<std::thread> threads;
  for (uint64_t writer = 1; writer <= 4; ++writer) {
    threads.emplace_back([&, writer] {
      for (uint32_t i = 1; i <= 2000; ++i) {
        ASSERT_TRUE(journal->Try(Write(writer, i, writer * 10'000 + i)).ok());
        ASSERT_TRUE(journal->Acknowledge(Write(writer, i, writer * 10'000 + i), Timestamp(writer * 10'000 + i)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const JournalContents contents = Read();
  EXPECT_EQ(contents.acknowledged, 8000u);
  EXPECT_EQ(contents.unknown, 0u);
  EXPECT_EQ(contents.torn_lines, 0u);
}

// A write that a killed process had reported as acknowledged is in the file.
TEST_F(JournalTest, SurvivesAKill) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto journal = Open();
    for (uint32_t i = 1;; ++i) {
      if (!journal->Try(Write(1, i, i)).ok() || !journal->Acknowledge(Write(1, i, i), Timestamp(i)).ok()) _exit(1);
      if (write(pipe_ends[1], &i, sizeof(i)) != sizeof(i)) _exit(1);
    }
  }
  close(pipe_ends[1]);
  uint32_t reported = 0;
  while (reported < 500)
    ASSERT_EQ(read(pipe_ends[0], &reported, sizeof(reported)), static_cast<ssize_t>(sizeof(reported)));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  while (read(pipe_ends[0], &reported, sizeof(reported)) == static_cast<ssize_t>(sizeof(reported))) {
  }
  close(pipe_ends[0]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const JournalContents contents = Read();
  EXPECT_GE(contents.acknowledged, reported);
  EXPECT_LE(contents.acknowledged, reported + 1u);
}

}  // namespace
}  // namespace deut::ycsb
