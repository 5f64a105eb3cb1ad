// Tests of the programs on an embedded store: their output, their exit status, a kill in the middle, and the check
// afterwards.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/ycsb/journal.h"

namespace deut::ycsb {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A running program. Both of its output streams go to a file.
class Program {
 public:
  Program(const char* variable, std::vector<std::string> arguments, std::string output) : output_(std::move(output)) {
    arguments.insert(arguments.begin(), std::getenv(variable));
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  // Returns the exit status; 128 + the signal if a signal ended the program.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  bool Running() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  void Kill() const { kill(pid_, SIGKILL); }
  std::string Output() const { return ReadFile(output_); }

 private:
  const std::string output_;
  pid_t pid_ = 0;
};

class ProgramsTest : public ::testing::Test {
 protected:
  struct Ended {
    int status;
    std::string output;
  };
  Ended Run(const char* variable, std::vector<std::string> arguments) {
    Program program(variable, std::move(arguments), directory_.Sub("output"));
    const int status = program.Wait();
    return {status, program.Output()};
  }
  // The same, with the flags that name the store.
  Ended RunHere(const char* variable, std::vector<std::string> arguments) {
    return Run(variable, Here(std::move(arguments)));
  }
  std::vector<std::string> Here(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--target=embedded", Concat("--data_dir=", directory_.Sub("store"))});
    return arguments;
  }
  std::string Journal() const { return Concat("--journal=", directory_.Sub("journal")); }

  TempDir directory_;
};

TEST_F(ProgramsTest, YcsbRunsAndReports) {
  const std::string json = directory_.Sub("result.json");
  const Ended run = RunHere("YCSB", {"--workload=e", "--records=5000", "--threads=2", "--seconds=2", "--settle",
                                     "--min_writes=10", Concat("--json=", json)});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output,
              ContainsRegex("run +1 s +[0-9]+ ops/s +[0-9]+ scans/s +[0-9]+ records/s +aborts [0-9]+/s +errors 0"));
  EXPECT_THAT(run.output, ContainsRegex("loaded 5000 records in .*\n(.*\n)*settled in .*\n(.*\n)*run "));
  EXPECT_THAT(run.output, HasSubstr("the longest operation ("));
  const std::string report = ReadFile(json);
  EXPECT_THAT(report, HasSubstr("\"workload\": \"e\", \"target\": \"embedded\", \"threads\": 2"));
  EXPECT_THAT(report, HasSubstr("\"errors\": 0"));
  EXPECT_THAT(report, ContainsRegex("\"longest_operations\": .[{]\"type\": \"(scan|insert)\", \"began_at_seconds\": "));
  // Runs on the records that are already there.
  const Ended again =
      RunHere("YCSB", {"--workload=f", "--records=5000", "--load=false", "--seconds=0", "--operations=500"});
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("500 transactions"));
  // With more records than were loaded, the run reports it and fails.
  const Ended wrong =
      RunHere("YCSB", {"--workload=c", "--records=90000", "--load=false", "--seconds=0", "--operations=500"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.output, HasSubstr("was the table loaded with as many records?"));
  const Ended wrong_scan =
      RunHere("YCSB", {"--workload=e", "--records=90000", "--load=false", "--seconds=0", "--operations=500"});
  EXPECT_EQ(wrong_scan.status, 1);
  EXPECT_THAT(wrong_scan.output, HasSubstr("was the table loaded with as many records?"));
}

TEST_F(ProgramsTest, AKilledRunLosesNothing) {
  const std::string timeline = Concat("--timeline=", directory_.Sub("timeline"));
  const std::vector<std::string> common{"--workload=a", "--records=3000", "--threads=4", Journal(), timeline};
  std::vector<std::string> first = Here(common);
  first.insert(first.end(), {"--seconds=60"});
  Program killed("YCSB", first, directory_.Sub("killed"));
  // Waits until the run phase has lasted half a second.
  while (ReadFile(directory_.Sub("timeline")).find("\trun\t0.5") == std::string::npos) {
    ASSERT_TRUE(killed.Running()) << killed.Output();
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(10));
  }
  const int64_t kill_us = RealRuntime().WallMicros();
  killed.Kill();
  EXPECT_EQ(killed.Wait(), 128 + SIGKILL);

  std::vector<std::string> second = common;
  second.insert(second.end(), {"--load=false", "--seconds=1"});
  const Ended rest = RunHere("YCSB", second);
  ASSERT_EQ(rest.status, 0) << rest.output;

  const std::vector<std::string> check{Journal(), Concat("--kill_at_us=", kill_us), "--min_acknowledged=100",
                                       "--read_check=2000"};
  const Ended verified = RunHere("VERIFY_JOURNAL", check);
  EXPECT_EQ(verified.status, 0) << verified.output;
  EXPECT_THAT(verified.output,
              ContainsRegex("acknowledged ([0-9]+), checked [0-9]+, missing 0, wrong 0, unknown [0-9]+\n"));
  EXPECT_THAT(verified.output, HasSubstr("2000 by points; disagreements 0"));
  EXPECT_THAT(verified.output, HasSubstr("by 2 processes"));

  // The checker detects errors: a kill outside the run, too few writes, and a write that never happened.
  const Ended outside = RunHere("VERIFY_JOURNAL", {Journal(), "--kill_at_us=1"});
  EXPECT_EQ(outside.status, 1);
  EXPECT_THAT(outside.output, HasSubstr("does not lie between"));
  const Ended few = RunHere("VERIFY_JOURNAL", {Journal(), "--min_acknowledged=100000000"});
  EXPECT_EQ(few.status, 1);
  const JournalWrite invented{.first = {.writer = 12345, .sequence = 1}, .number = 777'777'777};
  {
    const auto journal = Journal::Open(directory_.Sub("journal"), RealRuntime());
    ASSERT_TRUE((*journal)->Try(invented).ok());
    ASSERT_TRUE((*journal)->Acknowledge(invented, Timestamp(uint64_t{1} << 60)).ok());
  }
  const Ended lost = RunHere("VERIFY_JOURNAL", {Journal()});
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.output, HasSubstr("missing 1, wrong 0"));
  EXPECT_THAT(lost.output, HasSubstr("record 777777777"));
}

TEST_F(ProgramsTest, DeutWritesAndReads) {
  EXPECT_EQ(RunHere("DEUT", {"tables", "create", "default"}).status, 0);
  EXPECT_EQ(RunHere("DEUT", {"put", "k1", "v\\x001"}).status, 0);
  EXPECT_EQ(RunHere("DEUT", {"put", "k2", "two"}).status, 0);
  EXPECT_EQ(RunHere("DEUT", {"get", "k1"}).output, "v\\x001\n");
  EXPECT_EQ(RunHere("DEUT", {"--hex", "get", "6b31"}).output, "760031\n");
  EXPECT_EQ(RunHere("DEUT", {"--reverse", "scan"}).output, "k2\ttwo\nk1\tv\\x001\n");
  EXPECT_EQ(RunHere("DEUT", {"delete", "k1"}).status, 0);
  const Ended gone = RunHere("DEUT", {"get", "k1"});
  EXPECT_EQ(gone.status, 1);
  EXPECT_THAT(gone.output, HasSubstr("deut: NOT_FOUND: no record has the key k1"));
  EXPECT_THAT(RunHere("DEUT", {"status"}).output, ContainsRegex("tc.serving 1\n(.*\n)*dc.incarnation [1-9]"));
}

TEST_F(ProgramsTest, WrongFlagsAndUnreachableStores) {
  const Ended workload = RunHere("YCSB", {"--workload=x"});
  EXPECT_EQ(workload.status, 2);
  EXPECT_THAT(workload.output, HasSubstr("no workload is named \"x\"; there are a, b"));
  EXPECT_EQ(RunHere("YCSB", {"--theta=1"}).status, 2);
  EXPECT_THAT(RunHere("YCSB", {"--min_writes=5", "--seconds=0"}).output, HasSubstr("--min_writes=5 prolongs a run of"));
  EXPECT_EQ(RunHere("YCSB", {"--value_bytes=23"}).status, 2);
  EXPECT_THAT(RunHere("YCSB", {"--worklod=e"}).output,
              HasSubstr("there is no flag --worklod; the nearest is --workload"));
  EXPECT_THAT(RunHere("YCSB", {"--theta=1"}).output, HasSubstr("(ycsb --help lists the flags)"));
  const Ended no_json = RunHere("YCSB", {"--records=1000", "--seconds=30", "--json=/proc/none/file"});
  EXPECT_EQ(no_json.status, 1);
  EXPECT_THAT(no_json.output, HasSubstr("cannot open /proc/none/file"));
  EXPECT_THAT(no_json.output, Not(HasSubstr("loaded"))) << "found out before the work";
  EXPECT_EQ(Run("YCSB", {"--target=embedded"}).status, 2) << "no --data_dir";
  EXPECT_EQ(Run("YCSB", {"--target=127.0.0.1:1", "--data_dir=x"}).status, 2) << "--data_dir without embedded";
  EXPECT_EQ(Run("VERIFY_JOURNAL", {"--target=127.0.0.1:1"}).status, 2) << "no --journal";

  const Ended nobody =
      Run("DEUT", {Concat("--target=unix:", directory_.Sub("s").substr(0, 90)), "--deadline=2s", "status"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(nobody.output, HasSubstr("deut: UNAVAILABLE"));
  EXPECT_EQ(Run("DEUT", {"frob"}).status, 2);
  EXPECT_EQ(Run("DEUT", {"--help"}).status, 0);
  const Ended unwritable = Run("YCSB", {"--target=embedded", "--data_dir=/proc/none", "--seconds=1"});
  EXPECT_EQ(unwritable.status, 1);
  EXPECT_THAT(unwritable.output, HasSubstr("/proc/none"));
}

}  // namespace
}  // namespace deut::ycsb
